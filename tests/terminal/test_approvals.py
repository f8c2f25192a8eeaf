"""Questions about tool calls: what is shown, what an answer does, and how long it holds."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import msgspec
import pytest

from recollect.entries import Message, ToolCall, ToolResult
from recollect.runtime.approval_preview import ApprovalPreview
from recollect.runtime.permission_policy import ApprovalAnswer, ApprovalRequest
from recollect.session import Session
from recollect.terminal.approval_panel import ApprovalPanel
from recollect.terminal.approval_text import approval_lines
from recollect.terminal.session_approvals import SessionApprovals
from recollect.testing import ProviderLine, call, says
from recollect.workspace.effective_settings import resolve_settings
from tests.terminal.pilot import DrivenTerminal, TerminalPlace

KEY = "sk-ant-api03-" + "a1B2" * 20


async def ask(driven: DrivenTerminal, text: str) -> None:
    """Send a prompt and wait until a call is asked about."""
    await driven.type(text)
    await driven.press("enter")
    await shown(driven)


async def shown(driven: DrivenTerminal) -> None:
    await driven.wait(lambda: driven.app.screen.query(ApprovalPanel), "a question")
    await driven.wait(lambda: "looking at what" not in driven.shown())
    # keys count only when the user has not typed just now
    await driven.wait(lambda: time.monotonic() - driven.app.chat.prompt.input.typed_at > 0.6)


def results(driven: DrivenTerminal, request: int = -1) -> str:
    return str(driven.server.requests[request].json["messages"][-1]["content"])


def run(command: str) -> ToolCall:
    return call("run_shell_command", command=command)


def test_a_command_is_shown_as_given_and_in_normal_form_and_refused_with_a_reason(
    terminal: TerminalPlace,
) -> None:
    script: list[ProviderLine] = [says("I run", run("FOO=1 env touch made && true")), "as you wish"]

    async def use() -> None:
        async with terminal.open(script, size=(160, 40)) as driven:
            await ask(driven, "do it")
            screen = driven.shown()
            assert "$ FOO=1 env touch made && true" in screen
            assert "which means: touch made" in screen
            assert terminal.project.name in screen
            assert "sandbox" in screen
            assert "always: store `FOO=1 env touch made && true`" in screen
            assert "no rule allows 'touch'" in screen
            assert "--allow" not in screen  # the answers are below
            await driven.press("r")
            await driven.wait_shown("why not? The model is told; Enter sends")
            await driven.type("use make instead")
            await driven.wait_shown("use make instead")
            await driven.press("enter")
            await driven.wait_idle()
            told = results(driven)
            assert "the user refused run_shell_command; the user says: use make instead" in told
            assert not (terminal.project / "made").exists()

    asyncio.run(use())


def test_a_change_is_shown_as_a_diff_of_the_real_file_without_secrets(
    terminal: TerminalPlace,
) -> None:
    file = terminal.write("a.py", "one\ntwo\nthree\n")
    edit = call("replace", file_path="a.py", old_string="two", new_string=f"2 = '{KEY}'")
    script: list[ProviderLine] = [says("edit", edit), says("again", edit), "done"]

    async def use() -> None:
        async with terminal.open(script, size=(100, 40)) as driven:
            await ask(driven, "change it")
            screen = driven.shown()
            assert "─ Change this file? ─" in screen  # nobody else asks
            assert "-two" in screen
            assert "+2 = '" in screen
            assert KEY not in screen
            assert file.read_text() == "one\ntwo\nthree\n"  # nothing is written yet
            await driven.press("s")
            await driven.wait(lambda: "2 = " in file.read_text())
            await driven.wait_idle()  # the second call would fail, and was not asked about
            assert "not found" in results(driven) or "is not" in results(driven)

    asyncio.run(use())


def test_a_change_that_the_tool_would_refuse_is_said_to_fail(terminal: TerminalPlace) -> None:
    terminal.write("a.py", "one\ntwo\n")
    lazy = call(
        "replace", file_path="a.py", old_string="two", new_string="2\n# ... existing code ..."
    )

    async def use() -> None:
        async with terminal.open([says("edit", lazy), "as you wish"], size=(100, 40)) as driven:
            await ask(driven, "change it")
            await driven.wait_shown("it would fail: line 2 of new_string stands for text")
            await driven.press("n")
            await driven.wait_idle()

    asyncio.run(use())


def test_a_call_that_is_interrupted_while_it_is_asked_about_is_said_not_to_have_run(
    terminal: TerminalPlace,
) -> None:
    async def use() -> None:
        async with terminal.open([says("I run", run("touch made"))], size=(110, 30)) as driven:
            await ask(driven, "do it")
            await driven.press("escape")
            await driven.wait_idle()
            await driven.wait_shown("this call was interrupted before it was run")
            assert not (terminal.project / "made").exists()

    asyncio.run(use())


def test_keys_that_were_meant_for_the_prompt_decide_nothing(terminal: TerminalPlace) -> None:
    async def use() -> None:
        async with terminal.open([says("run", run("touch made")), "ok"]) as driven:
            await driven.type("go")
            await driven.press("enter")
            await driven.wait(lambda: driven.app.screen.query(ApprovalPanel))
            panel = driven.app.screen.query_one(ApprovalPanel)
            panel.typed_at = time.monotonic()  # as if a key had come this moment
            await driven.press("y", "enter", "s")
            assert not panel.asked.answer.done()
            await driven.press("escape")  # an interrupt always counts
            await driven.wait_idle()
            assert not driven.app.screen.query(ApprovalPanel)
            assert not (terminal.project / "made").exists()
            assert driven.app.chat.prompt.input.display

    asyncio.run(use())


def test_always_stores_exactly_the_rule_that_was_shown(terminal: TerminalPlace) -> None:
    script: list[ProviderLine] = [
        says("run", run("touch made")),
        says("again", run("touch made")),
        "ok",
    ]

    async def use() -> None:
        async with terminal.open(script) as driven:
            await ask(driven, "go")
            request = driven.app.screen.query_one(ApprovalPanel).asked.request
            await driven.press("a")
            await driven.wait_idle()
            assert len(driven.server.requests) == 3  # the second call was not asked about
            allowed = resolve_settings(terminal.project).settings.permissions.allow
            assert allowed == request.rules

    asyncio.run(use())


def test_questions_at_the_same_time_are_asked_one_after_the_other(
    terminal: TerminalPlace,
) -> None:
    async def use() -> None:
        async with terminal.open(["hello"]) as driven:
            await driven.say("hi")
            runner = driven.app.runner
            both = [
                asyncio.create_task(runner._approve(ApprovalRequest(run(line), "not allowed")))
                for line in ("echo first", "echo second")
            ]
            await shown(driven)
            assert "$ echo first" in driven.shown()
            await driven.press("y")
            await driven.wait_shown("$ echo second")
            await driven.press("down", "down", "enter")
            assert [bool(one) for one in await asyncio.gather(*both)] == [True, False]
            await driven.wait(lambda: not driven.app.screen.query(ApprovalPanel))

    asyncio.run(use())


def request_for(line: str, *, rules: tuple[str, ...] = (), reason: str = "r") -> ApprovalRequest:
    return ApprovalRequest(run(line), reason, rules)


def test_a_yes_for_the_session_covers_only_what_was_seen(terminal: TerminalPlace) -> None:
    effective = resolve_settings(terminal.project)
    approvals = SessionApprovals()
    session = ApprovalAnswer(allowed=True, lasts="session")
    assert [*approvals.keep(effective, request_for("a | b"), session)] == []
    assert approvals.covers(request_for("a | b"))
    assert not approvals.covers(request_for("a | c"))  # no rule allows either
    assert not approvals.covers(request_for("a | b", reason="a hook asks"))
    assert [*approvals.keep(effective, request_for("git push", rules=("git push",)), session)] == []
    assert approvals.covers(request_for("git push", rules=("git push",)))
    assert not approvals.covers(request_for("git push -f", rules=("git push -f",)))
    write = ApprovalRequest(call("write_file", file_path="a"), "writing is not allowed")
    assert [*approvals.keep(effective, write, session)] == []
    other = msgspec.structs.replace(write, call=call("write_file", file_path="b"))
    assert approvals.covers(other)
    secret = msgspec.structs.replace(write, reason="a is a secret")
    assert not approvals.covers(secret)


@pytest.mark.parametrize("text", ["\x1b]2;owned\x07", "\x9b2J", "a\rb", "\u202egpj.exe"])
def test_nothing_that_is_asked_about_can_reach_the_terminal(text: str) -> None:
    shown = ApprovalPreview(
        text, text, command=text, normal_form=text, folder=text, sandbox=text, diff=f"+{text}",
        failure=text, arguments=((text, text * 20_000),), rules=(text,),
    )  # fmt: skip
    plain = "\n".join(line.text for line in approval_lines(shown))
    assert not set(plain) & {"\x1b", "\x07", "\x9b", "\r", "\u202e"}
    assert len(plain) < 60_000


def test_a_panel_is_there_in_a_tiny_terminal(terminal: TerminalPlace) -> None:
    script: list[ProviderLine] = [says("run", run("echo " + "long " * 200)), "ok"]

    async def use() -> None:
        async with terminal.open(script, size=(20, 5)) as driven:
            await driven.type("go")
            await driven.press("enter")
            await driven.wait(lambda: driven.app.screen.query(ApprovalPanel))
            await driven.press("pagedown", "pageup")
            await driven.wait(
                lambda: time.monotonic() - driven.app.chat.prompt.input.typed_at > 0.6
            )
            await driven.press("n")
            await driven.wait_idle()

    asyncio.run(use())
    assert Path.cwd() == terminal.project


def test_the_time_that_is_shown_is_the_tools_own_and_not_the_users(terminal: TerminalPlace) -> None:
    writes = says("I write", call("write_file", file_path="a.py", content="one\n"))
    script: list[ProviderLine] = [writes, "done"]

    async def use() -> None:
        async with terminal.open(script) as driven:
            began = time.monotonic()
            await ask(driven, "do it")
            await asyncio.sleep(2)
            await driven.press("y")
            waited = time.monotonic() - began
            await driven.wait_idle()
            session = driven.app.runner.session
            assert session is not None
            parts = (part for one in messages(session) for part in one.parts)
            (result,) = (part for part in parts if isinstance(part, ToolResult))
            assert result.duration is not None
            assert result.duration < waited / 2

    asyncio.run(use())


def messages(session: Session) -> list[Message]:
    return [one.body for one in session.view().entries if isinstance(one.body, Message)]


def test_a_call_of_a_sub_agent_is_asked_about_and_the_answer_reaches_it(
    terminal: TerminalPlace,
) -> None:
    give = call("task", description="write the file", prompt="Write b.py with b = 2.")
    write = call("write_file", "c2", file_path="b.py", content="b = 2\n")
    change = call("write_file", "c3", file_path="c.py", content="c = 3\n")
    script: list[ProviderLine] = [
        says("I give it away.", give),
        says("I write.", write),
        says("And another.", change),
        "Wrote b.py, c.py was refused.",
        "It is done.",
    ]

    async def use() -> None:
        async with terminal.open(script, size=(100, 40)) as driven:
            await ask(driven, "let somebody write it")
            assert "+b = 2" in driven.shown()
            assert "A sub-agent asks: Create this file?" in driven.shown()
            assert not (terminal.project / "b.py").exists()
            await driven.press("y")
            await driven.wait_shown("+c = 3")
            await shown(driven)
            await driven.press("r")
            await driven.type("one file is enough")
            await driven.press("enter")
            await driven.wait_shown("It is done.")
            await driven.wait_idle()
            assert (terminal.project / "b.py").read_text() == "b = 2\n"
            assert not (terminal.project / "c.py").exists()
            assert "the user says: one file is enough" in results(driven, 3)
            assert "Wrote b.py, c.py was refused." in results(driven, 4)

    asyncio.run(use())

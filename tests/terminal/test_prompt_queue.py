"""Prompts that wait, commands of the user's own, and the permission mode."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

from recollect.entries import Message, Text
from recollect.terminal.permission_modes import MEANINGS, next_mode
from recollect.terminal.shell_prompt import parse_shell
from recollect.testing import call, provider_error, says
from tests.terminal.pilot import DrivenTerminal, TerminalPlace


class Gate:
    """A reply that comes when the test says so."""

    def __init__(self, reply: Any) -> None:
        self.open, self.reached, self.reply = threading.Event(), threading.Event(), reply

    def __call__(self, request: object) -> Any:
        del request
        self.reached.set()
        self.open.wait(30)
        return self.reply


def waiting(driven: DrivenTerminal) -> list[str]:
    return [one.text for one in driven.app.runner.waiting]


async def send(driven: DrivenTerminal, text: str) -> None:
    """Send without waiting for the answer."""
    await driven.type(text)
    await driven.press("enter")
    await driven.wait(lambda: driven.app.chat.prompt.input.text == "")


def test_prompts_wait_in_order_and_the_last_comes_back_for_editing(
    terminal: TerminalPlace,
) -> None:
    gate = Gate("first answer")

    async def use() -> None:
        async with terminal.open([gate, "second answer"]) as driven:
            await send(driven, "one")
            await driven.wait(gate.reached.is_set)
            await send(driven, "two")
            await send(driven, "three")
            await driven.wait_shown("queued: three")
            await driven.press("up")
            await driven.wait(lambda: waiting(driven) == ["two"])
            assert driven.app.chat.prompt.input.text == "three"
            await driven.press("ctrl+c")  # the run is interrupted first, and what waits is held
            gate.open.set()
            await driven.wait(lambda: driven.app.runner.held)
            await driven.wait_shown("held, nothing is lost")
            assert waiting(driven) == ["two"]
            await driven.press("ctrl+c", "enter")  # clears the field; Enter lets them run
            await driven.wait_shown("second answer")
            await driven.wait_idle()

    asyncio.run(use())


def test_what_still_waits_when_the_program_is_left_is_not_lost_without_a_word(
    terminal: TerminalPlace,
) -> None:
    gate = Gate("first answer")

    async def use() -> None:
        async with terminal.open([gate]) as driven:
            await send(driven, "one")
            await driven.wait(gate.reached.is_set)
            await send(driven, "two")
            await send(driven, "!make")
            await driven.type("not yet")
            gate.open.set()
            driven.app.runner.close()
            await driven.wait(lambda: not driven.app.is_running)
            assert driven.app.unsent == "not yet"
            assert [one.typed for one in driven.app.runner.waiting] == ["two", "!make"]

    asyncio.run(use())


def test_a_failed_run_holds_what_waits_and_the_next_prompt_goes_first(
    terminal: TerminalPlace,
) -> None:
    gate = Gate(provider_error("openai", 400, "no such thing"))

    async def use() -> None:
        async with terminal.open([gate, "a", "b"]) as driven:
            await send(driven, "one")
            await driven.wait(gate.reached.is_set)
            await send(driven, "two")
            gate.open.set()
            await driven.wait(lambda: driven.app.runner.held)
            await driven.wait_shown("held, nothing is lost")
            await send(driven, "instead")
            await driven.wait_idle()
            asked = [one.json["messages"][-1]["content"] for one in driven.server.requests]
            assert asked[-2:] == ["instead", "two"]

    asyncio.run(use())


def test_a_command_of_the_users_own_goes_into_the_context(terminal: TerminalPlace) -> None:
    async def use() -> None:
        async with terminal.open(["I see", "again"]) as driven:
            await send(driven, "!echo $MY_KEY; echo more; exit 3")
            await driven.wait_idle()
            await driven.wait_shown("exit code 3")
            session = driven.app.runner.session
            assert session is not None  # a command begins a session too
            await driven.say("what was that?")
            sent = driven.server.requests[0].json["messages"]
            text = str(sent)
            assert "I ran this command myself" in text
            assert "sk-test" in text  # it has the user's environment
            await driven.press("up", "up")
            assert driven.app.chat.prompt.input.text == "!echo $MY_KEY; echo more; exit 3"

    asyncio.run(use())


def test_an_interrupted_command_keeps_what_it_had_written(terminal: TerminalPlace) -> None:
    async def use() -> None:
        async with terminal.open() as driven:
            await send(driven, "!echo be''gan; sleep 100; echo never")
            await driven.wait(lambda: driven.app.runner.busy)
            await driven.wait_shown("began")
            await driven.press("escape")
            await driven.wait_idle()
            session = driven.app.runner.session
            assert session is not None
            bodies = [entry.body for entry in session.view().entries]
            last = [body for body in bodies if isinstance(body, Message)][-1]
            assert isinstance(last.parts[0], Text)
            assert last.parts[0].text.endswith("began\n[interrupted]")
            assert driven.shown().count("began") == 1

    asyncio.run(use())


def test_shift_tab_goes_through_the_modes_and_never_to_unrestricted() -> None:
    mode, seen = "unrestricted", []
    for _ in range(5):
        mode = next_mode(mode)
        seen.append(mode)
    assert seen == ["plan", "ask", "edit", "free", "plan"]
    assert "unrestricted" not in MEANINGS


def test_another_mode_holds_from_the_next_call_on(terminal: TerminalPlace) -> None:
    gate = Gate(says("writing", call("write_file", file_path="a.txt", content="a\n")))

    async def use() -> None:
        async with terminal.open([gate, "done"]) as driven:
            await send(driven, "write it")
            await driven.wait(gate.reached.is_set)
            await driven.press("shift+tab")
            await driven.wait_shown("mode edit")
            assert "from the next call on" in driven.app.chat.prompt.hint.text
            gate.open.set()
            await driven.wait_idle()
            assert (terminal.project / "a.txt").read_text() == "a\n"  # nobody was asked

    asyncio.run(use())


def test_what_is_a_command_of_the_users_own() -> None:
    assert parse_shell("!ls -la ") == "ls -la"
    assert [parse_shell(text) for text in ("!", "!!", "!!ls", "ls", "", " !ls")] == [None] * 6

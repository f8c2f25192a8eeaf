"""The prompt: what is typed, how it is sent, and what the keys do."""

from __future__ import annotations

import asyncio

import pytest

from recollect.testing import says
from tests.terminal.pilot import DrivenTerminal, TerminalPlace


def typed(driven: DrivenTerminal) -> str:
    return driven.app.chat.prompt.input.text


def hint(driven: DrivenTerminal) -> str:
    return driven.app.chat.prompt.hint.text


def test_a_prompt_of_several_lines_is_sent_with_enter(terminal: TerminalPlace) -> None:
    async def use() -> None:
        async with terminal.open(["hello there"]) as driven:
            await driven.wait_shown("/help lists the commands")
            assert "mine · mode ask" in driven.shown()
            await driven.type("one\ntwo\\")
            await driven.press("enter")  # the backslash makes a line of it
            await driven.say("three")
            await driven.wait_shown("hello there")
            assert driven.server.requests[0].json["messages"][-1]["content"] == "one\ntwo\nthree"
            assert typed(driven) == ""

    asyncio.run(use())


def test_up_and_down_go_through_earlier_prompts_and_bring_the_draft_back(
    terminal: TerminalPlace,
) -> None:
    async def use() -> None:
        async with terminal.open(["a", "b"]) as driven:
            await driven.say("first")
            await driven.say("second")
        async with terminal.open() as driven:  # another process reads them from the log
            await driven.wait(lambda: len(driven.app.chat.prompt.input.earlier) == 2)
            await driven.type("draft")
            await driven.press("up")
            assert typed(driven) == "second"
            await driven.press("up", "up")
            assert typed(driven) == "first"
            await driven.press("down", "down", "down")
            assert typed(driven) == "draft"
            await driven.press("ctrl+c")
            assert typed(driven) == ""
            await driven.press("up")
            assert typed(driven) == "draft"  # what was cleared is the newest
            await driven.type(" and more")
            assert typed(driven) == "draft and more"

    asyncio.run(use())


def test_ctrl_r_finds_an_earlier_prompt_by_its_words(terminal: TerminalPlace) -> None:
    async def use() -> None:
        async with terminal.open(["a", "b", "c"]) as driven:
            for prompt in ("look at the parser", "fix the tests", "write the docs"):
                await driven.say(prompt)
            await driven.press("ctrl+r")
            await driven.type("FIX")
            await driven.wait(lambda: len(driven.app.chat.prompt.offered.candidates) == 1)
            await driven.press("enter")
            await driven.wait(lambda: typed(driven) == "fix the tests")
            await driven.press("ctrl+r", "escape")
            await driven.type("!")
            assert typed(driven) == "fix the tests!"

    asyncio.run(use())


def test_ctrl_c_clears_then_warns_then_leaves(terminal: TerminalPlace) -> None:
    async def use() -> None:
        async with terminal.open() as driven:
            await driven.type("abc")
            await driven.press("ctrl+z")
            assert typed(driven) == ""
            await driven.press("ctrl+y", "ctrl+d")  # not empty: it deletes
            assert typed(driven) == "abc"
            await driven.press("ctrl+c")
            assert typed(driven) == ""
            await driven.press("ctrl+c")
            assert hint(driven) == "press Ctrl-C again to leave"
            await driven.press("escape")
            assert driven.app.is_running
            await driven.press("ctrl+c", "ctrl+c")
            await driven.wait(lambda: not driven.app.is_running)
            assert driven.app.stored.resume_command() == ""  # nothing was stored

    asyncio.run(use())


def test_ctrl_d_leaves_and_the_command_to_come_back_is_known(terminal: TerminalPlace) -> None:
    async def use() -> None:
        async with terminal.open(["hello"]) as driven:
            await driven.say("hi")
            session = driven.app.runner.session
            await driven.wait(lambda: len(driven.app.stored.resume_command()) < 30)
            await driven.press("ctrl+d")
            await driven.wait(lambda: not driven.app.is_running)
            assert session is not None
            command = driven.app.stored.resume_command()
            assert command.startswith("recollect -r ")
            assert session.id.endswith(command.rpartition(" ")[2])

    asyncio.run(use())


def test_an_editor_that_cannot_be_run_leaves_the_prompt_alone(
    terminal: TerminalPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def use() -> None:
        async with terminal.open() as driven:
            await driven.type("text")
            monkeypatch.setenv("VISUAL", "true")
            await driven.press("ctrl+g")
            # a terminal without a screen of its own cannot be given away: it says so, calmly
            await driven.wait(lambda: "cannot be given to an editor" in hint(driven))
            assert typed(driven) == "text"
            monkeypatch.setenv("VISUAL", "'open")
            await driven.press("ctrl+g")
            await driven.wait(lambda: "correct it" in hint(driven))
            assert not list(terminal.home.glob("prompt-*"))

    asyncio.run(use())


def test_the_program_is_usable_in_twenty_columns_and_five_lines(terminal: TerminalPlace) -> None:
    async def use() -> None:
        async with terminal.open([says("fine " * 50)], size=(20, 5)) as driven:
            await driven.type("/")
            await driven.wait(lambda: driven.app.chat.prompt.offered.is_open)
            await driven.press("escape", "ctrl+c")
            await driven.say("hi")
            await driven.press("f1", "escape", "shift+tab", "ctrl+r", "escape")
            await driven.pilot.resize_terminal(120, 40)
            await driven.wait_shown("fine fine")

    asyncio.run(use())


def test_hostile_text_in_the_prompt_stays_text(terminal: TerminalPlace) -> None:
    async def use() -> None:
        async with terminal.open(["ok"]) as driven:
            prompt = driven.app.chat.prompt.input
            prompt.take_paste("a\x1b]2;owned\x07b\x00\x9b31mc \u202eabc \U0001f468\u200d\U0001f469")
            await driven.pilot.pause()
            assert "\x1b" not in prompt.text
            assert "\x9b" not in prompt.text
            await driven.press("enter")
            await driven.wait(lambda: driven.server.requests)
            await driven.wait_idle()

    asyncio.run(use())

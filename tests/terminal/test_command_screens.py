"""The text commands on the screen: through the pilot, against a local provider."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from textual.pilot import Pilot

from recollect.terminal.start_options import StartOptions
from recollect.terminal.terminal_app import TerminalApp
from recollect.terminal.theme_choice import DARK, LIGHT, choose_theme
from tests.cli.provider import ENV, provider
from tests.cli.runner import Cli, surroundings
from tests.terminal.running_session import PATIENCE

ANSWER = "So:\n\n```sh\nmake\n```\n"


async def _until(pilot: Pilot[int], condition: Callable[[], bool]) -> None:
    end = asyncio.get_running_loop().time() + PATIENCE
    while not condition():
        assert asyncio.get_running_loop().time() < end, condition
        await pilot.pause(0.01)


async def _type(pilot: Pilot[int], text: str) -> None:
    await pilot.press(*(" " if each == " " else each for each in text), "enter")


def test_copies_colours_and_own_commands_work_on_the_screen(cli: Cli) -> None:
    own = cli.home / "commands" / "build.md"
    own.parent.mkdir(parents=True)
    own.write_text("How is $1 built?")

    async def work() -> None:
        app = TerminalApp(StartOptions())
        async with app.run_test(size=(80, 24)) as pilot:
            blocks = app.chat.transcript.blocks

            def shown(text: str) -> bool:
                return any(text in block.text for block in blocks)

            await pilot.pause()
            await app.runner.opened()
            await _type(pilot, "/build it")
            await _until(pilot, lambda: shown("make") and not app.runner.busy)
            assert shown("How is it built?")
            await _type(pilot, "/copy 1")
            await _until(pilot, lambda: app.clipboard == "make\n")
            await _type(pilot, "/theme light")
            await _until(pilot, lambda: app.theme == LIGHT)
            await _type(pilot, "/permissions edit")
            await _until(pilot, lambda: shown("mode edit"))
            await _type(pilot, "/stats")
            await _until(pilot, lambda: shown("1 prompt,"))
            assert [block.text for block in blocks].count("/stats") == 1
            await _type(pilot, "/biuld")
            await _until(pilot, lambda: shown("did you mean /build?"))
            app.runner.close()
            await _until(pilot, lambda: app.return_value is not None)

    with provider(cli, "openai", [ANSWER]), surroundings(cli.env(ENV), cli.project):
        asyncio.run(work())


def test_the_theme_follows_the_terminal_unless_it_is_set() -> None:
    assert choose_theme("auto", {}) == DARK
    assert choose_theme("auto", {"COLORFGBG": "15;0"}) == DARK
    assert choose_theme("auto", {"COLORFGBG": "0;default;15"}) == LIGHT
    assert choose_theme("light", {"COLORFGBG": "15;0"}) == LIGHT
    assert choose_theme("dark", {"COLORFGBG": "0;15"}) == DARK
    assert choose_theme("auto", {"COLORFGBG": ";;"}) == DARK

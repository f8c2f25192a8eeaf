"""Drives the real terminal program in tests: a home, a project, a local provider, and Textual's
pilot. `wait_for` polls, so that no test sleeps for a fixed time.

>>> def test_something(terminal):
...     async def use() -> None:
...         async with terminal.open(["hello"]) as driven:
...             await driven.say("hi")
...             assert "hello" in driven.shown()
...     asyncio.run(use())
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest
from textual.pilot import Pilot

from recollect.session import Session
from recollect.terminal.start_options import StartOptions
from recollect.terminal.terminal_app import TerminalApp
from recollect.testing import ProviderLine, ProviderServer

PATIENCE = 30.0  # seconds, on a busy machine
SETTINGS = """\
model = "mine"
{more}
[models.mine]
url = "{url}"
wire = "openai"
key = "MY_KEY"
window = {window}
"""


async def wait_for(
    pilot: Pilot[int], condition: Callable[[], object], what: str = "", patience: float = PATIENCE
) -> None:
    """Let the program work until the condition holds; fail with what is on the screen."""
    end = time.monotonic() + patience
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"{what or 'it'} did not happen; shown is:\n{screen_text(pilot)}")
        await asyncio.sleep(0.01)
        await pilot.pause()
    await pilot.pause()


def screen_text(pilot: Pilot[int]) -> str:
    """What is on the screen, as lines of text."""
    screen = pilot.app.screen
    lines = screen._compositor.render_strips(screen.size)
    return "\n".join(strip.text.rstrip() for strip in lines)


class DrivenTerminal(msgspec.Struct):
    """The program while it runs."""

    app: TerminalApp
    pilot: Pilot[int]
    server: ProviderServer

    @property
    def session(self) -> Session:
        """The one that is open, which begins with its first prompt."""
        session = self.app.runner.session
        assert session is not None
        return session

    def shown(self) -> str:
        return screen_text(self.pilot)

    async def wait(self, condition: Callable[[], object], what: str = "") -> None:
        await wait_for(self.pilot, condition, what)

    async def wait_shown(self, text: str) -> None:
        await wait_for(self.pilot, lambda: text in self.shown(), f"{text!r} on the screen")

    async def wait_idle(self) -> None:
        """Until nothing runs and nothing waits."""
        runner = self.app.runner
        await self.wait(lambda: not runner.busy and not runner.waiting, "the end of the prompt")

    async def type(self, text: str) -> None:
        """Type a text key by key; a newline is Ctrl+J."""
        keys = {"\n": "ctrl+j", " ": "space", "/": "slash", "@": "at", "!": "exclamation_mark"}
        await self.pilot.press(*(keys.get(one, one) for one in text))

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)

    async def say(self, text: str) -> None:
        """Type a prompt, send it, and wait until it has run."""
        before = len(self.server.requests)
        await self.type(text)
        await self.press("enter")
        await self.wait(lambda: len(self.server.requests) > before, "a request")
        await self.wait_idle()

    def screenshot(self, file: str | Path) -> None:
        """For looking at it: an SVG file."""
        Path(file).write_text(self.app.export_screenshot())


class TerminalPlace(msgspec.Struct, frozen=True):
    """Where the program runs in a test: a home and a project, both new and empty."""

    home: Path
    project: Path

    def write(self, name: str, text: str) -> Path:
        """A file of the project."""
        file = self.project / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

    @asynccontextmanager
    async def open(
        self,
        script: Iterable[ProviderLine] = (),
        *,
        size: tuple[int, int] = (80, 24),
        window: int = 100_000,
        settings: str = "",
        options: StartOptions = StartOptions(),  # noqa: B008 - a frozen value
        repeat: bool = False,
    ) -> AsyncIterator[DrivenTerminal]:
        """The program against a provider that plays `script`; `settings` are further lines."""
        with ProviderServer("openai", script, repeat=repeat) as server:
            text = SETTINGS.format(url=server.url, window=window, more=settings)
            (self.home / "settings.toml").write_text(text)
            app = TerminalApp(options)
            async with app.run_test(size=size) as pilot:
                await app.runner.opened()
                driven = DrivenTerminal(app, pilot, server)
                await driven.wait(lambda: app.chat.is_mounted)
                yield driven
                app.runner.close()
                await wait_for(pilot, lambda: not app.is_running, "the end of the program")


@pytest.fixture
def terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TerminalPlace:
    home, project = tmp_path / "home", tmp_path / "project"
    home.mkdir()
    project.mkdir()
    monkeypatch.setenv("RECOLLECT_HOME", str(home))
    monkeypatch.setenv("MY_KEY", "sk-test")
    monkeypatch.chdir(project)
    return TerminalPlace(home, project)

"""The recorded session of `recollect demo` in the program that the pilot drives, and pictures of
its screens.

A picture is the program's own SVG, made the same on every machine: without addresses, with one id
for its styles, and with fixed words in the place of what differs from run to run.
"""

from __future__ import annotations

import asyncio
import html
import re
import shutil
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import pytest
from textual.pilot import Pilot
from textual.strip import Strip

from recollect.cli.demo import PROJECT, SETTINGS
from recollect.cli.replay_server import MODEL_NAME, ReplayServer, load_recording, serve_recording
from recollect.entries import json_text
from recollect.terminal.prompt_input import PromptInput
from recollect.terminal.start_options import StartOptions
from recollect.terminal.terminal_app import TerminalApp
from tests.terminal.pilot import TerminalPlace, screen_text, wait_for

TESTS = "python3 -m unittest"
SHOWN = "/home/ada/projects"  # as long as the path of a test's folder
STILL = 3  # times that a screen looks the same
_SECONDS = "0 s"  # without the count
COLUMN, LINE = 12.2, 24.4  # the width and height of a character in a picture
FONT = "ui-monospace, Menlo, Consolas, DejaVu Sans Mono, monospace"
PROMPTS = tuple(prompt.text for prompt in load_recording().prompts)


class RecordedProgram:
    """The program on the recording while it runs."""

    def __init__(self, app: TerminalApp, pilot: Pilot[int]) -> None:
        self.app, self.pilot = app, pilot

    async def wait_shown(self, text: str) -> None:
        await wait_for(self.pilot, lambda: text in screen_text(self.pilot), f"{text!r} shown")
        await self.settle()

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)
        await self.pilot.pause()

    async def enter(self, text: str) -> None:
        """Put a prompt or command into the input, in place of the one offered there, and send."""
        written = self.app.chat.query_one(PromptInput)
        written.focus()
        written.text = text
        await self.press("enter")

    async def send(self, text: str) -> None:
        """Send a prompt and wait until it has run."""
        before = self._head
        await self.enter(text)
        await wait_for(self.pilot, lambda: self._head != before, "the beginning of the prompt")
        await self.wait_idle()
        await self.settle()

    async def wait_idle(self) -> None:
        runner = self.app.runner
        await wait_for(self.pilot, lambda: not (runner.busy or runner.waiting), "its end")

    async def settle(self) -> None:
        """Until all that is under way is shown: what is shown stays the same for a while."""
        same, shown = 0, list[Strip]()
        while same < STILL:
            await asyncio.sleep(0.02)
            await self.pilot.pause()
            screen = self.app.screen
            before, shown = shown, screen._compositor.render_strips(screen.size)
            same = same + 1 if shown == before else 0

    async def resize(self, size: tuple[int, int]) -> None:
        await self.pilot.resize_terminal(*size)
        await self.settle()

    @property
    def _head(self) -> str | None:
        session = self.app.runner.session
        return None if session is None else session.view().head

    def picture(self) -> str:
        folder = str(self.app.runner.runtime.folders.cwd.parent)
        return clean_picture(self.app.export_screenshot(), folder)


@contextmanager
def own_place() -> Iterator[TerminalPlace]:
    """A new folder for one test. Its path is shown and counts as tokens: the names of all these
    folders are as long, and come to as many tokens, and pictures have `SHOWN` in their place."""
    folder = _make_folder()
    place = TerminalPlace(folder / "home", folder / PROJECT)
    try:
        place.home.mkdir()
        place.project.mkdir()
        yield place
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _make_folder() -> Path:
    if Path("/tmp").resolve() != Path("/tmp"):
        pytest.skip("the pictures show paths in /tmp")
    for number in range(100, 1_000):
        with suppress(FileExistsError):
            folder = Path(f"/tmp/recollect-{number}")
            folder.mkdir(mode=0o700)
            return folder
    raise AssertionError("all folders for pictures exist; remove /tmp/recollect-* of killed tests")


@contextmanager
def _project(place: TerminalPlace, mode: str) -> Iterator[ReplayServer]:
    recording = load_recording()
    for name, text in recording.files.items():
        place.write(name, text)
    with serve_recording(recording, {"python": "python3"}) as replay:
        text = SETTINGS.format(model=MODEL_NAME, url=replay.url, tests=json_text(TESTS))
        settings = place.home / "settings.toml"
        settings.write_text(text.replace('mode = "edit"', f'mode = "{mode}"'))
        yield replay


@asynccontextmanager
async def open_recording(
    place: TerminalPlace, *, mode: str = "edit", size: tuple[int, int] = (100, 30)
) -> AsyncIterator[RecordedProgram]:
    with _project(place, mode):
        app = TerminalApp(StartOptions())
        async with app.run_test(size=size) as pilot:
            await app.runner.opened()
            await wait_for(pilot, lambda: app.chat.is_mounted)
            app.chat.query_one(PromptInput).cursor_blink = False
            yield RecordedProgram(app, pilot)
            app.runner.close()
            await wait_for(pilot, lambda: not app.is_running, "the end of the program")


def clean_picture(svg: str, folder: str) -> str:
    """Without comments and addresses of fonts, with one name for its styles, and with a fixed
    folder, fixed times and ids of entries."""
    svg = svg.replace(folder, SHOWN)
    for length in range(len(folder), len("/tmp/"), -1):  # where the path is cut
        svg = svg.replace(f"{folder[:length]}…", f"{SHOWN[:length]}…")
    svg = re.sub(r"<!--.*?-->|@font-face \{.*?\n    \}", "", svg, flags=re.S)
    svg = svg.replace("Fira Code, monospace", FONT)
    svg = re.sub(r"terminal-\d+-", "t-", svg)
    svg = re.sub(r"\d\.\d(&#160;)s\b", r"0.1\1s", svg)
    svg = re.sub(r"\b0\.\d{3}s", "0.001s", svg)
    took = r"·(&#160;)(?:\d+&#160;min&#160;)?\d+(&#160;)s(&#160;)·"
    svg = re.sub(took, r"·\g<1>1\2s\3·", svg)
    ids: dict[str, str] = {}
    for id_ in re.findall(r"(?:\[|recall&#160;)([0-9a-f]{8})\b", svg):
        svg = svg.replace(id_, ids.setdefault(id_, f"{len(ids):04x}e517"))
    return "\n".join(line.rstrip() for line in svg.splitlines() if line.strip()) + "\n"


class Piece(NamedTuple):
    """Text in one style, without what differs from machine to machine."""

    text: str
    style: str  # its colour, and whether it is bold
    background: str


class PictureLine(NamedTuple):
    text: str
    pieces: tuple[Piece, ...]


def picture_lines(svg: str) -> list[PictureLine]:
    """What a picture shows, line by line from its top, and in which colours.

    Counts of tokens are not compared, nor what is drawn to their scale: tests that fail print
    other lines in other versions of Python, and those are in the context. Nor is how long something
    took, which is shown only of what took long.
    """
    styles = dict(re.findall(r"\.t-(r\d+) \{ ([^}]*)\}", svg))
    backgrounds = _backgrounds(svg)
    found: dict[int, list[tuple[float, Piece]]] = {}
    for style, x, y, text in re.findall(
        r'<text class="t-(\w+)" x="([\d.]+)" y="([\d.]+)"[^>]*>([^<]*)</text>', svg
    ):
        if style in styles and text.strip("\n"):
            line, left = int(float(y) / LINE), float(x)
            shown = html.unescape(text).replace("\N{NO-BREAK SPACE}", " ")
            under = [fill for start, end, fill in backgrounds.get(line, ()) if start <= left < end]
            piece = Piece(shown, styles[style], under[-1] if under else "")
            found.setdefault(line, []).append((left, piece))
    lines = (_line(sorted(parts)) for _, parts in sorted(found.items()))
    return [line for line in lines if line.text.strip()]


def _backgrounds(svg: str) -> dict[int, list[tuple[float, float, str]]]:
    """Of each line: from where to where it has which colour."""
    found: dict[int, list[tuple[float, float, str]]] = {}
    for fill, x, y, width in re.findall(
        r'<rect fill="([^"]+)" x="([\d.]+)" y="([\d.]+)" width="([\d.]+)"', svg
    ):
        left = float(x)
        found.setdefault(int(float(y) / LINE), []).append((left, left + float(width), fill))
    return found


def _line(parts: list[tuple[float, Piece]]) -> PictureLine:
    text = ""
    for x, piece in parts:
        text = text.ljust(round(x / COLUMN)) + piece.text
    lead = len(text) - len(text.lstrip())
    text = _without_counts(text)
    indent = "" if text[:1] == "0" else " " * lead  # counts stand on the right of their column
    pieces = (piece._replace(text=_without_counts(piece.text)) for _, piece in parts)
    words = tuple(one for one in pieces if re.search(r"\w", one.text) and one.text != _SECONDS)
    return PictureLine((indent + text.replace(f" · {_SECONDS}", "")).rstrip(), words)


def _without_counts(text: str) -> str:
    text = re.sub(r"[▁-▐░▓│]+", " ", re.sub(r"[\d,.]*\d", "0", text))
    return re.sub(r"\w*…", "…", " ".join(text.split()))

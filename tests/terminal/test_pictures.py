"""The screens look as in docs/images, with the recorded session of `recollect demo`.

`RECOLLECT_WRITE_PICTURES=1` writes the pictures anew, for a look at what has changed.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from recollect.terminal.rewind_preview_screen import RewindPreviewScreen
from recollect.terminal.theme_choice import DARK, LIGHT
from recollect.terminal.transcript_view import TranscriptView
from tests.terminal.pilot import TerminalPlace, wait_for
from tests.terminal.recorded_program import (
    PROMPTS,
    RecordedProgram,
    open_recording,
    own_place,
    picture_lines,
)

IMAGES = Path(__file__).parents[2] / "docs" / "images"
WRITES = os.environ.get("RECOLLECT_WRITE_PICTURES") == "1"
SMALL, USUAL = (80, 24), (100, 30)


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch) -> Iterator[TerminalPlace]:
    with own_place() as found:
        monkeypatch.setenv("RECOLLECT_HOME", str(found.home))
        monkeypatch.setenv("HOME", str(found.home))
        monkeypatch.chdir(found.project)
        yield found


def compare(program: RecordedProgram, name: str) -> None:
    file, now = IMAGES / f"terminal-{name}.svg", program.picture()
    if WRITES:
        file.write_text(now, encoding="utf-8")
    assert "http" not in now.replace("http://www.w3.org/2000/svg", "")
    then = file.read_text(encoding="utf-8")
    assert picture_lines(now) == picture_lines(then), f"{name}: look, and write the pictures anew"


async def compare_sizes(program: RecordedProgram, name: str) -> None:
    """Also on a light background, and in a small terminal."""
    compare(program, name)
    program.app.theme = LIGHT
    await program.settle()
    compare(program, f"{name}-light")
    program.app.theme = DARK
    await program.resize(SMALL)
    compare(program, f"{name}-small")
    await program.resize(USUAL)


async def compare_resume(program: RecordedProgram) -> None:
    """First of all: it says how long ago something was said."""
    await program.enter("/resume")
    await program.wait_shown("All 4")
    compare(program, "resume")
    await program.press("escape")


async def compare_screens(program: RecordedProgram) -> None:
    await program.enter("/context")
    await program.wait_shown("the next request: 1")
    await program.press("home")
    await program.wait_shown("cannot drop tools")
    await compare_sizes(program, "context")
    await program.press("escape")
    await program.enter("/compact")
    await program.wait_shown("would compact")
    await compare_sizes(program, "compaction")
    await program.press("escape")
    await program.enter("/rewind")
    await program.wait_shown("> Several threads")
    await program.press("enter")
    await wait_for(program.pilot, lambda: isinstance(program.app.screen, RewindPreviewScreen))
    await compare_sizes(program, "rewind")


def test_the_screens_look_as_in_the_pictures(place: TerminalPlace) -> None:
    async def use() -> None:
        async with open_recording(place, size=USUAL) as program:
            await program.send(PROMPTS[0])
            await program.send(PROMPTS[1])
            await compare_resume(program)
            await program.press("ctrl+up", *["up"] * 5, "enter")  # the last edit
            await program.wait_shown("with self.lock:")
            program.app.chat.prompt.input.focus()
            await program.settle()
            for _ in range(3):  # heights are known where the screen has been
                program.app.chat.query_one(TranscriptView).scroll_end(animate=False)
                await program.settle()
            await compare_sizes(program, "conversation")
            await compare_screens(program)

    asyncio.run(use())


def test_the_question_looks_as_in_the_picture(place: TerminalPlace) -> None:
    async def use() -> None:
        async with open_recording(place, mode="ask", size=USUAL) as program:
            await program.enter(PROMPTS[0])
            await program.wait_shown("Change this file?")
            await program.wait_shown("+        return self.bucket(client).take()")
            await compare_sizes(program, "approval")
            program.app.runner.interrupt()
            await program.wait_idle()

    asyncio.run(use())


def test_pictures_of_other_texts_colours_or_places_differ() -> None:
    picture = (IMAGES / "terminal-context.svg").read_text(encoding="utf-8")
    lines = picture_lines(picture)
    assert picture_lines(picture.replace("user", "uzer")) != lines
    for colour in ("fill: #ffc473", 'fill="#0178d4"'):  # of a text, and of what is under one
        assert colour in picture
        assert picture_lines(picture.replace(colour, colour[:-6] + "123456")) != lines
    assert picture_lines(picture.replace("11,", "12,")) == lines  # counts depend on the machine

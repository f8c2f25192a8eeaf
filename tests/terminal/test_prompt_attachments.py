"""Long pastes and files that go with a prompt."""

from __future__ import annotations

import asyncio
import base64
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.runtime.prompt_run import RunOptions
from recollect.terminal.prompt_attachments import (
    LONG_TEXT,
    MAX_PASTE,
    PastedTexts,
    PasteRefused,
    media_files,
)
from recollect.terminal.rewind_screen import RewindScreen
from recollect.terminal.start_options import StartOptions
from recollect.terminal.terminal_driver import END, START, FoundPaste, PasteSplitter
from tests.terminal.pilot import DrivenTerminal, TerminalPlace

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


@given(st.lists(st.text("ab\n", min_size=0, max_size=40), max_size=4), st.text("ab", max_size=5))
def test_what_stands_for_a_paste_becomes_the_paste_again(texts: list[str], between: str) -> None:
    pastes = PastedTexts()
    texts = [text * 200 for text in texts]
    prompt = between.join(pastes.add(text) for text in texts)
    assert len(prompt) <= len(texts) * (LONG_TEXT + 5)
    assert pastes.expand(prompt) == between.join(texts)


def test_a_paste_that_names_another_chip_is_not_expanded_twice() -> None:
    pastes = PastedTexts()
    first = pastes.add("x\n" * 20)
    second = pastes.add(f"{first}\n" * 20)
    assert pastes.expand(second) == f"{first}\n" * 20


def test_a_chip_says_how_much_it_stands_for_and_a_huge_paste_is_refused() -> None:
    pastes = PastedTexts()
    assert pastes.add("line\n" * 340) == "[pasted text 1: 340 lines]"
    assert pastes.add("a" * 2_001) == "[pasted text 2: 2,001 characters]"
    assert pastes.add("short\r\nand\rplain") == "short\nand\nplain"
    with pytest.raises(PasteRefused, match="11 million characters is too long"):
        pastes.add("a" * (MAX_PASTE + 1_000_000))


def test_paths_of_images_are_recognised_however_they_were_dropped(tmp_path: Path) -> None:
    image, other = tmp_path / "my shot.png", tmp_path / "b.pdf"
    for file in (image, other):
        file.write_bytes(PNG)
    assert media_files(str(image), tmp_path) == (image,)
    assert media_files(f"'{image}' {other}", tmp_path) == (image, other)
    assert media_files(f"{image}\n{other}\n", tmp_path) == (image, other)
    assert media_files(f"file://{tmp_path}/my%20shot.png", tmp_path) == (image,)
    assert media_files("b.pdf", tmp_path) == (other,)
    for text in ("look at b.pdf", "missing.png", str(tmp_path), "", "a'b", "~nobody/x.png"):
        assert media_files(text, tmp_path) == ()


# --- what a terminal sends ----------------------------------------------------------------------


@given(
    st.lists(st.one_of(st.binary(max_size=6), st.just(b"\x1b"), st.just(b"\x1b[2")), max_size=5),
    st.lists(st.integers(1, 9), min_size=1, max_size=30),
)
def test_pastes_are_found_wherever_reads_are_cut(pieces: list[bytes], cuts: list[int]) -> None:
    clean = [piece.replace(START, b"").replace(END, b"") for piece in pieces]
    sent = b"".join(START + piece + END + b"k" for piece in clean)
    splitter, found, at = PasteSplitter(), list[bytes | FoundPaste](), 0
    for number in range(len(sent)):
        cut = cuts[number % len(cuts)]
        found += splitter.feed(sent[at : at + cut])
        at += cut
        if at >= len(sent):
            break
    found.append(splitter.flush())
    assert [one.data for one in found if isinstance(one, FoundPaste)] == clean
    keys = b"".join(one for one in found if isinstance(one, bytes))
    # an escape that came alone may have been a key, so it is not kept back
    assert keys.replace(b"\x1b", b"") == b"k" * len(clean)


def test_the_escape_key_does_not_wait_and_a_huge_paste_is_only_counted() -> None:
    splitter = PasteSplitter(most=10)
    assert splitter.feed(b"\x1b") == [b"\x1b"]
    assert splitter.feed(b"a\x1b[A") == [b"a\x1b[A"]
    assert splitter.feed(START + b"x" * 1_000) == []
    assert splitter.feed(b"x" * 1_000 + END + b"k") == [FoundPaste(b"x" * 10, 2_000), b"k"]


# --- in the program -----------------------------------------------------------------------------


def attached(driven: DrivenTerminal) -> list[str]:
    return [one.label for one in driven.app.chat.prompt.attached.attachments]


def test_pastes_and_images_are_sent_with_the_prompt(
    terminal: TerminalPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    (terminal.project / "shot.png").write_bytes(PNG)
    programs = terminal.home / "bin"
    programs.mkdir()
    (programs / "clip.png").write_bytes(PNG)
    for name in ("wl-paste", "xclip", "pngpaste"):
        (programs / name).write_text(f"#!/bin/sh\ncat {programs}/clip.png\n")
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")

    async def use() -> None:
        async with terminal.open(["seen"]) as driven:
            prompt = driven.app.chat.prompt.input
            prompt.take_paste("shot.png")
            await driven.wait(lambda: len(attached(driven)) == 1)
            assert attached(driven)[0].startswith("image shot.png ")
            await driven.press("backspace")  # at the beginning: it takes it away
            await driven.wait(lambda: attached(driven) == [])
            await driven.press("ctrl+v")
            await driven.wait(lambda: len(attached(driven)) == 1)
            saved = list((terminal.home / "clipboard").iterdir())
            assert len(saved) == 1
            prompt.take_paste("line\n" * 40)
            prompt.take_paste("gone\n" * 40)
            assert prompt.text == "[pasted text 1: 40 lines][pasted text 2: 40 lines]"
            await driven.press("backspace")  # one key for a whole chip
            assert prompt.text == "[pasted text 1: 40 lines]"
            await driven.say(" why")
            content = driven.server.requests[0].json["messages"][-1]["content"]
            assert content[0] == {"type": "text", "text": "line\n" * 40 + " why"}
            assert content[-1]["type"] == "image_url"
            assert attached(driven) == []
            await driven.press("up", "f2")
        assert not list((terminal.home / "clipboard").iterdir())

    asyncio.run(use())


def test_a_prompt_larger_than_the_window_stays_in_the_prompt(terminal: TerminalPlace) -> None:
    async def use() -> None:
        async with terminal.open(["never"], window=20_000) as driven:
            prompt = driven.app.chat.prompt.input
            prompt.take_paste("many words " * 20_000)
            await driven.press("enter")
            await driven.wait_shown("tokens, and the window of mine has 20,000")
            assert prompt.text == "[pasted text 1: 220,000 characters]"
            assert driven.server.requests == ()
            assert driven.app.runner.session is None  # nothing is stored
            assert await driven.app.runner.runtime.store.sessions() == ()
            await driven.press("f2")
            assert len(prompt.text) == 220_000

    asyncio.run(use())


@given(st.lists(st.sampled_from([b"\x1b", b"[", b"2", b"a", b"\x1b[A", b"\x1b[201~"]), max_size=8))
def test_keys_that_are_no_paste_come_through_as_they_are(keys: list[bytes]) -> None:
    splitter, found = PasteSplitter(), list[bytes | FoundPaste]()
    for key in keys:
        found += splitter.feed(key)
    found.append(splitter.flush())
    assert b"".join(one for one in found if isinstance(one, bytes)) == b"".join(keys)


def sent_content(driven: DrivenTerminal, number: int) -> object:
    return driven.server.requests[number].json["messages"][-1]["content"]


def test_a_prompt_that_is_taken_back_brings_its_images_though_the_files_are_gone(
    terminal: TerminalPlace,
) -> None:
    shot = terminal.project / "shot.png"
    shot.write_bytes(PNG)
    terminal.write("a.py", "print(1)\n")

    async def use() -> None:
        async with terminal.open(["seen", "seen again"]) as driven:
            prompt = driven.app.chat.prompt.input
            prompt.take_paste("shot.png")
            await driven.wait(lambda: len(attached(driven)) == 1)
            await driven.say("look at it beside @a.py ")
            shot.unlink()
            await driven.press("escape", "escape")
            await driven.wait(lambda: isinstance(driven.app.screen, RewindScreen), "the points")
            await driven.wait_shown("look at it")
            await driven.press("enter")
            await driven.wait_shown("c ")
            await driven.press("c")
            await driven.wait(lambda: attached(driven) == ["image shot.png 70 bytes"])
            assert prompt.text == "look at it beside @a.py"
            await driven.say("")
            first, again = (sent_content(driven, number) for number in (0, 1))
            assert isinstance(first, list)
            assert isinstance(again, list)
            assert again[1:] == first[1:]  # the file that is mentioned, and the image
            assert again[-1]["type"] == "image_url"
            assert attached(driven) == []
            await driven.type("/rewind 1 yes")  # the same in words
            await driven.press("enter")
            await driven.wait(lambda: attached(driven) == ["image shot.png 70 bytes"])
            assert prompt.text == "look at it beside @a.py"

    asyncio.run(use())


def test_a_command_keeps_the_attachments_for_the_next_prompt(terminal: TerminalPlace) -> None:
    (terminal.project / "shot.png").write_bytes(PNG)

    async def use() -> None:
        async with terminal.open(["hello", "seen"]) as driven:
            await driven.say("hi")
            driven.app.chat.prompt.input.take_paste("shot.png")
            await driven.wait(lambda: len(attached(driven)) == 1)
            for line, answer in (("/tools", "sys_monitor"), ("!echo by hand", "by hand")):
                await driven.type(line)
                await driven.press("enter")
                await driven.wait_shown("1 attachment kept for your next prompt")
                await driven.wait_shown(answer)
                await driven.wait_idle()
                assert len(attached(driven)) == 1
            await driven.type("/nonsense")
            await driven.press("enter")
            await driven.wait_shown("there is no command /nonsense")
            assert len(attached(driven)) == 1
            await driven.say("now look")
            content = sent_content(driven, 1)
            assert isinstance(content, list)
            assert content[-1]["type"] == "image_url"
            assert attached(driven) == []

    asyncio.run(use())


def test_a_command_of_the_users_own_takes_the_attachments_along(terminal: TerminalPlace) -> None:
    shot = terminal.project / "shot.png"
    shot.write_bytes(PNG)
    (terminal.home / "commands").mkdir()
    (terminal.home / "commands" / "review.md").write_text("Review what I attached.")

    async def use() -> None:
        async with terminal.open(["seen"]) as driven:
            prompt = driven.app.chat.prompt.input
            prompt.take_paste("shot.png")
            await driven.wait(lambda: len(attached(driven)) == 1)
            shot.rename(terminal.project / "away.png")
            await driven.type("/review")
            await driven.press("enter")
            await driven.wait_shown("cannot attach")
            assert len(attached(driven)) == 1  # nothing was sent, so it is kept
            (terminal.project / "away.png").rename(shot)
            await driven.say("/review")
            content = sent_content(driven, 0)
            assert isinstance(content, list)
            assert content[0] == {"type": "text", "text": "Review what I attached."}
            assert content[-1]["type"] == "image_url"
            assert attached(driven) == []

    asyncio.run(use())


def test_a_file_that_the_program_was_started_with_goes_with_the_first_prompt(
    terminal: TerminalPlace,
) -> None:
    terminal.write("a.py", "print(1)\n")
    options = StartOptions(run=RunOptions(attachments=(Path("a.py"),)))

    async def use() -> None:
        async with terminal.open(["seen", "hello"], options=options) as driven:
            assert attached(driven) == ["file a.py 9 bytes"]
            await driven.say("look")
            await driven.say("hi")
            assert "1→print(1)" in str(sent_content(driven, 0))
            assert sent_content(driven, 1) == "hi"

    asyncio.run(use())

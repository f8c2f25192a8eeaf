"""Endless output: what is kept, what is counted, what a reader gets to see."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.execution.command_output import (
    FIRST_BYTES,
    LAST_BYTES,
    MAX_RELAYED,
    OutputCapture,
    OutputRelay,
    sanitize,
    split_output,
)

SEEN = st.characters(exclude_categories=["Cc", "Cs"])
PIECES = st.lists(st.binary(max_size=40), max_size=30)


@given(PIECES, st.integers(0, 30), st.integers(0, 30))
def test_head_and_tail_are_the_ends_of_what_was_fed(
    pieces: list[bytes], head: int, tail: int
) -> None:
    capture = OutputCapture(head=head, tail=tail)
    for piece in pieces:
        capture.feed(piece)
    whole = b"".join(pieces)
    first, last = capture.excerpt_bytes()
    assert capture.total == len(whole)
    assert whole.startswith(first)
    assert whole.endswith(last)
    assert len(first) == min(head, len(whole))
    assert len(last) == min(tail, len(whole) - len(first))


@given(PIECES, st.integers(0, 30), st.integers(0, 30))
def test_how_the_output_is_cut_into_pieces_makes_no_difference(
    pieces: list[bytes], head: int, tail: int
) -> None:
    together, apart = OutputCapture(head=head, tail=tail), OutputCapture(head=head, tail=tail)
    together.feed(b"".join(pieces))
    for piece in pieces:
        apart.feed(piece)
    assert together.excerpt() == apart.excerpt()


@given(st.text(max_size=80), st.integers(0, 40), st.integers(0, 40))
def test_a_cut_falls_between_characters(text: str, head: int, tail: int) -> None:
    data = text.encode("utf-8", "replace")
    capture = OutputCapture(head=head, tail=tail)
    capture.feed(data)
    shown = capture.excerpt()
    clean = sanitize(data.decode())
    if shown.omitted and "�" not in text and clean == data.decode():
        assert clean.startswith(shown.head)
        assert clean.endswith(shown.tail)
        encoded = len(shown.head.encode()) + len(shown.tail.encode())
        assert encoded + shown.omitted == len(data)


@given(
    st.lists(st.binary(max_size=60), max_size=20),
    st.integers(0, 20),
    st.integers(0, 20),
    st.integers(1, 90),
    st.integers(1, 90),
)
def test_what_is_kept_are_the_bytes_that_came_and_the_rest_is_known(
    pieces: list[bytes], head: int, tail: int, first: int, last: int
) -> None:
    capture = OutputCapture(
        Path(tempfile.gettempdir()), head=head, tail=tail, first=first, last=last
    )
    for piece in pieces:
        capture.feed(piece)
    whole = b"".join(pieces)
    ranges = capture.kept_ranges()
    kept = [position for start, end in ranges for position in range(start, end)]
    assert kept == sorted(set(kept))
    assert len(kept) >= min(len(whole), first + last)
    for start, end in ranges:
        assert capture.read(start, end) == whole[start:end]
        middle = (start + end) // 2
        assert capture.read(start, middle) + capture.read(middle, end) == whole[start:end]
    capture.close()
    (start, end), *more = capture.kept_ranges()
    assert capture.read(start, end) == whole[start:end]
    assert all(capture.read(at, to) == whole[at:to] for at, to in more)


@given(st.binary(max_size=200), st.integers(1, 50))
def test_a_part_ends_with_a_line_or_a_character(data: bytes, most: int) -> None:
    text = data.decode("utf-8", "ignore").encode()
    parts, rest = list[bytes](), text
    while rest:
        part = split_output(rest, max(4, most))
        assert 0 < len(part) <= max(4, most)
        parts.append(part)
        rest = rest[len(part) :]
    assert b"".join(parts) == text
    assert "".join(part.decode() for part in parts) == text.decode()


def test_output_that_fits_makes_no_file(tmp_path: Path) -> None:
    capture = OutputCapture(tmp_path / "missing")
    capture.feed(b"short\n")
    assert capture.text() == "short\n"
    assert capture.is_shown_as_it_came
    assert capture.kept_ranges() == ((0, 6),)


def test_the_text_counts_what_is_left_out_and_says_what_to_do() -> None:
    capture = OutputCapture(head=5, tail=5)
    capture.feed(b"begin" + b"x" * 90 + b"final")
    assert "begin\n[... 90 of 100 bytes left out here; try ...]\nfinal" in capture.text("; try")


@pytest.mark.parametrize(
    ("came", "same"),
    [
        (b"plain\n\ttext\r\n", True),
        ("日本語 ✓\n".encode(), True),
        (b"\x1b[31mred\x1b[0m", False),
        (b"10 %\r100 %\n", False),
        (b"caf\xe9", False),
        (b"a\x00b", False),
    ],
)
def test_whether_a_reader_sees_what_came(came: bytes, same: bool) -> None:
    capture = OutputCapture()
    capture.feed(came)
    assert capture.is_shown_as_it_came is same


def test_128_megabytes_in_one_line_take_flat_memory(tmp_path: Path) -> None:
    capture = OutputCapture(tmp_path)
    piece = b"\x00" * (1 << 20)
    tracemalloc.start()
    try:
        for _ in range(128):
            capture.feed(piece)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert capture.total == 1 << 27
    assert sum(end - start for start, end in capture.kept_ranges()) == FIRST_BYTES + LAST_BYTES
    capture.close()
    assert peak < 8 << 20, f"{peak:,} bytes at the peak"


def test_a_file_that_cannot_be_made_does_not_end_the_capture(tmp_path: Path) -> None:
    capture = OutputCapture(tmp_path / "missing", head=5, tail=5)
    capture.feed(b"begin" + b"y" * 90 + b"final")
    assert capture.total == 100
    assert capture.kept_ranges() == ((0, 5), (95, 100))
    assert (capture.read(0, 5), capture.read(95, 100)) == (b"begin", b"final")


def test_a_disk_that_is_full_ends_the_file_and_not_the_capture(tmp_path: Path) -> None:
    # a limit on the size of files stands for the full disk: the write fails in the same place
    script = """
import resource, sys
from pathlib import Path
from recollect.execution.command_output import OutputCapture
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
capture = OutputCapture(Path(sys.argv[1]), head=5, tail=5, first=4000, last=4000)
for number in range(100):
    capture.feed(b"%04d" % number * 25)
(start, end), (begin, last) = capture.kept_ranges()
print(capture.total, start, end, begin, last)
print(capture.read(start, end)[-8:], capture.read(begin, last))
"""
    ran = subprocess.run([sys.executable, "-c", script, tmp_path], capture_output=True, text=True)
    assert ran.stdout == "10000 0 1000 9995 10000\nb'00090009' b'90099'\n", ran.stderr


@given(st.text())
def test_sanitized_text_has_nothing_that_moves_hides_or_reorders(text: str) -> None:
    shown = sanitize(text)
    for character in shown:
        assert character in "\n\t" or ord(character) >= 0x20
        assert not 0x7F <= ord(character) <= 0x9F
        assert not 0x202A <= ord(character) <= 0x202E
        assert not 0xD800 <= ord(character) <= 0xDFFF
    assert sanitize(shown) == shown


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07text", "text"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("10 %\r50 %\r100 %\ndone", "100 %\ndone"),
        ("one\r\ntwo\r\n", "one\ntwo\n"),
        ("a\x00b\x07", "a\\x00b\\x07"),
        ("user\u202etxt.exe", "user\\u{202e}txt.exe"),
        ("hi\U000e0041", "hi\\u{e0041}"),
        ("日本語\tfine", "日本語\tfine"),
        ("\x1b", "\\x1b"),
    ],
)
def test_escapes_are_removed_and_invisible_characters_spelled_out(said: str, shown: str) -> None:
    assert sanitize(said) == shown


@pytest.mark.parametrize("unit", ["\x1b[", "\x1b]", "\x1b[0;", "\r", "\x1b]a\x1b", "\x9b", "\x1b("])
def test_hostile_escapes_take_linear_time(unit: str) -> None:
    def seconds(size: int) -> float:
        text = unit * (size // len(unit))
        begun = time.process_time()
        sanitize(text)
        return time.process_time() - begun

    seconds(1000)
    assert seconds(200_000) < 3.0


def test_the_relay_passes_on_the_newest_and_how_much_was_skipped() -> None:
    heard: list[str] = []
    relay = OutputRelay(heard.append)
    for _ in range(100):
        relay.feed(b"y\n" * 50_000)
    relay.feed(b"the end")
    relay.flush(last=True)
    assert len(heard) == 1
    assert len(heard[0]) < MAX_RELAYED + 100
    assert heard[0].endswith("the end")
    assert "characters not shown" in heard[0]


@given(st.text(SEEN | st.sampled_from("\n\t\x00"), max_size=200), st.integers(1, 7))
def test_the_relay_passes_on_everything_when_it_is_little(text: str, size: int) -> None:
    heard: list[str] = []
    relay = OutputRelay(heard.append)
    data = text.encode()
    for start in range(0, len(data), size):
        relay.feed(data[start : start + size])
        relay.flush()
    relay.flush(last=True)
    assert "".join(heard) == sanitize(data.decode())


def test_a_color_that_comes_in_two_pieces_is_not_shown_as_letters() -> None:
    heard: list[str] = []
    relay = OutputRelay(heard.append)
    relay.feed(b"a\x1b[3")
    relay.flush()
    relay.feed(b"1mb")
    relay.flush()
    relay.flush(last=True)
    assert "".join(heard) == "ab"

"""Endless output: what is kept, what is counted, what a reader gets to see."""

from __future__ import annotations

import subprocess
import sys
import time
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.execution.command_output import MAX_RELAYED, OutputCapture, OutputRelay, sanitize

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


@given(st.lists(st.binary(min_size=1, max_size=60), min_size=1, max_size=20), st.integers(0, 200))
def test_the_file_has_the_first_bytes_up_to_the_cap(
    tmp_path_factory: pytest.TempPathFactory, pieces: list[bytes], cap: int
) -> None:
    path = tmp_path_factory.mktemp("spill") / "output"
    capture = OutputCapture(path, head=10, tail=10, cap=cap)
    for piece in pieces:
        capture.feed(piece)
    capture.close()
    whole = b"".join(pieces)
    if capture.excerpt().omitted:
        assert path.read_bytes() == whole[:cap]
    assert capture.bytes_on_disk <= cap


def test_output_that_fits_makes_no_file(tmp_path: Path) -> None:
    capture = OutputCapture(tmp_path / "output")
    capture.feed(b"short\n")
    capture.close()
    assert capture.text() == "short\n"
    assert not (tmp_path / "output").exists()


def test_the_text_counts_what_is_left_out_and_says_where_it_is(tmp_path: Path) -> None:
    capture = OutputCapture(tmp_path / "output", head=5, tail=5)
    capture.feed(b"begin" + b"x" * 90 + b"final")
    capture.close()
    assert "90 of 100 bytes left out here; all of it is in" in capture.text()
    assert str(tmp_path / "output") in capture.text()


def test_128_megabytes_in_one_line_take_flat_memory(tmp_path: Path) -> None:
    capture = OutputCapture(tmp_path / "output", cap=1_000_000)
    piece = b"\x00" * (1 << 20)
    tracemalloc.start()
    try:
        for _ in range(128):
            capture.feed(piece)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    capture.close()
    assert capture.total == 1 << 27
    assert (tmp_path / "output").stat().st_size == 1_000_000
    assert peak < 8 << 20, f"{peak:,} bytes at the peak"


def test_a_file_that_cannot_be_made_does_not_end_the_capture(tmp_path: Path) -> None:
    capture = OutputCapture(tmp_path / "missing" / "output", head=5, tail=5)
    capture.feed(b"y" * 100)
    capture.close()
    assert capture.total == 100
    assert "90 of 100 bytes left out here; run it again with less output" in capture.text()


def test_a_disk_that_is_full_ends_the_file_and_not_the_capture(tmp_path: Path) -> None:
    # a limit on the size of files stands for the full disk: the write fails in the same place
    script = """
import resource, sys
from pathlib import Path
from recollect.execution.command_output import OutputCapture
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
capture = OutputCapture(Path(sys.argv[1]), head=5, tail=5)
for _ in range(100):
    capture.feed(b"y" * 100)
print(capture.total, capture.bytes_on_disk)
print(capture.text())
"""
    path = tmp_path / "output"
    ran = subprocess.run([sys.executable, "-c", script, path], capture_output=True, text=True)
    assert ran.stdout.startswith("10000 1000\n"), ran.stderr
    assert f"the first 1,000 are in {path}" in ran.stdout


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

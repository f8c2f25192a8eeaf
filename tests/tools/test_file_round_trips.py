"""Files through the real tools on a real disk: bytes outside a change stay what they were."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.entries import Text, json_text
from recollect.tools.builtin import read_file, replace, write_file
from recollect.tools.line_endings import dominant_ending
from recollect.tools.tool import Tool, ToolContext

BREAKS = ("\n", "\r\n", "\r")
MARKS = {
    "utf-8": b"",
    "utf-8-sig": b"\xef\xbb\xbf",
    "utf-16-le": b"",
    "utf-16-be": b"",
    "utf-16": b"\xff\xfe",
    "cp1252": b"",
}
WORDS = st.sampled_from(["alpha", "beta", "grün", "x = 1", "  deep", "", "tab\there", "# end"])


def use(tool: Tool, root: Path, **arguments: object) -> str:
    output = asyncio.run(tool(json_text(arguments), ToolContext((root,))))
    (block,) = output.content
    assert isinstance(block, Text)
    return block.text


def stored(text: str, encoding: str) -> bytes:
    plain = {"utf-8-sig": "utf-8", "utf-16": "utf-16-le"}.get(encoding, encoding)
    return MARKS[encoding] + text.encode(plain)


@st.composite
def files(draw: st.DrawFn) -> tuple[list[str], list[str]]:
    """The lines of a file and the break after each; the last may have none."""
    lines = draw(st.lists(WORDS, min_size=1, max_size=8))
    if draw(st.booleans()):
        kind = draw(st.sampled_from(BREAKS))
        breaks = [kind] * len(lines)
    else:
        breaks = [draw(st.sampled_from(BREAKS[:2])) for _ in lines]
    if draw(st.booleans()):
        breaks[-1] = ""
    return lines, breaks


@given(
    file=files(),
    at=st.integers(0, 8),
    new=st.lists(st.sampled_from(["gamma", "", "grün", "    y"]), min_size=1, max_size=3),
    encoding=st.sampled_from(sorted(MARKS)),
    junk=st.sampled_from([b"", b" \xff\xfe"]),
)
def test_one_line_changes_and_no_other_byte(
    file: tuple[list[str], list[str]], at: int, new: list[str], encoding: str, junk: bytes
) -> None:
    lines, breaks = file
    at = min(at, len(lines) - 1)
    head, tail = (
        "".join(line + end for line, end in zip(lines[part], breaks[part], strict=True))
        for part in (slice(0, at), slice(at + 1, None))
    )
    start, end = stored(head, encoding), stored(breaks[at] + tail, encoding)[len(MARKS[encoding]) :]
    end += junk if encoding == "utf-8" else b""
    line = stored("the only ünique line", encoding)[len(MARKS[encoding]) :]
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder).resolve()
        (root / "f").write_bytes(start + line + end)
        shown = use(read_file, root, absolute_path="f")
        assert f"\n{at + 1}→the only ünique line" in shown
        wanted = {"old_string": "the only ünique line", "new_string": "\n".join(new)}
        assert use(replace, root, file_path="f", **wanted).startswith("Replaced once")
        after = (root / "f").read_bytes()
    assert after.startswith(start)
    assert after.endswith(end)
    ending = breaks[at] or dominant_ending(head)
    middle = stored(ending.join(new), encoding)[len(MARKS[encoding]) :]
    assert after == start + middle + end


@given(
    file=files(),
    encoding=st.sampled_from(sorted(MARKS)),
    given_lines=st.lists(WORDS, max_size=6),
    last=st.sampled_from(["", "\n"]),
)
def test_a_file_that_is_written_keeps_how_it_was_stored(
    file: tuple[list[str], list[str]], encoding: str, given_lines: list[str], last: str
) -> None:
    text = "grün" + "".join(line + end for line, end in zip(*file, strict=True))
    crlf, lf, cr = text.count("\r\n"), text.count("\n"), text.count("\r")
    ending = "\r" if cr and not lf else "\r\n" if crlf > lf - crlf else "\n"
    content = "\n".join(given_lines) + last
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder).resolve()
        (root / "f").write_bytes(stored(text, encoding))
        use(write_file, root, file_path="f", content=content)
        after = (root / "f").read_bytes()
    ours = stored(content.replace("\n", ending), encoding)
    assert after == ours


# --- write_file --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "content", "after"),
    [
        (b"a\r\nb\r\n", "x\r\ny\n", b"x\r\ny\r\n"),  # a CRLF file has CRLF throughout
        (b"a\nb\n", "x\r\ny\r\n", b"x\r\ny\r\n"),  # breaks other than LF were meant
        (b"a\rb\r", "x\ny\n", b"x\ry\r"),
        (b"a\rb\r", "x\r\ny\r\n", b"x\r\ny\r\n"),
        (b"\xef\xbb\xbfa\n", "\ufeffx\n", b"\xef\xbb\xbfx\n"),  # one mark, not two
        (b"\xff\xfe", "x\n", b"\xff\xfex\0\n\0"),
        (b"", "x\r\n", b"x\r\n"),
        (b"a", "b", b"b"),
        (b"a\n", "b", b"b"),  # a last newline is the model's matter
        (b"\x7fELF\0", "x\n", b"x\n"),
    ],
)
def test_line_breaks_and_marks_of_a_file_that_is_written(
    before: bytes, content: str, after: bytes, tmp_path: Path
) -> None:
    (tmp_path / "f").write_bytes(before)
    use(write_file, tmp_path, file_path="f", content=content)
    assert (tmp_path / "f").read_bytes() == after


def test_a_new_file_is_utf_8_as_it_was_given(tmp_path: Path) -> None:
    use(write_file, tmp_path, file_path="f", content="grün\r\nx")
    assert (tmp_path / "f").read_bytes() == "grün\r\nx".encode()
    use(replace, tmp_path, file_path="g", old_string="", new_string="a\r\nb\r\n")
    assert (tmp_path / "g").read_bytes() == b"a\r\nb\r\n"
    said = use(replace, tmp_path, file_path="g", old_string="", new_string="x")
    assert "old_string is empty and" in said


def test_what_was_kept_is_said(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes("﻿a\r\nb\r\n".encode("utf-16-le"))
    said = use(write_file, tmp_path, file_path="f", content="a\nc\n")
    assert "with UTF-16 with a byte order mark and CRLF line breaks as before" in said
    assert "\n-b\n+c\n" in said


def test_text_that_the_encoding_lacks_is_refused_and_nothing_is_lost(tmp_path: Path) -> None:
    before = "café\n".encode("cp1252")
    (tmp_path / "f").write_bytes(before)
    for said in (
        use(write_file, tmp_path, file_path="f", content="a\n你好\n"),
        use(replace, tmp_path, file_path="f", old_string="é", new_string="你"),
    ):
        assert "Windows-1252, which has no '你'" in said
        assert "convert the file" in said
    assert (tmp_path / "f").read_bytes() == before


def test_the_sign_for_unknown_bytes_is_not_written_in_their_place(tmp_path: Path) -> None:
    before = "grüße 你好\n".encode() + b"\xff\xfe\nlast\n"
    (tmp_path / "f").write_bytes(before)
    assert "2→��" in use(read_file, tmp_path, absolute_path="f")
    said = use(write_file, tmp_path, file_path="f", content="grüße 你好\n��\nchanged\n")
    assert "line 2 of content has �" in said
    said = use(replace, tmp_path, file_path="f", old_string="��\nlast", new_string="x")
    assert "leave such lines out" in said
    assert (tmp_path / "f").read_bytes() == before
    use(replace, tmp_path, file_path="f", old_string="last", new_string="ü")
    assert (tmp_path / "f").read_bytes() == before.replace(b"last", "ü".encode())

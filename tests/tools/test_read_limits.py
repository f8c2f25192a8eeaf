"""What `read_file` takes and refuses: ranges, large files, media, binary data; `glob`'s case."""

from __future__ import annotations

import asyncio
import gzip
import resource
from pathlib import Path

import pytest

from recollect.entries import InlineData, Text, json_text
from recollect.tools.builtin import glob, read_file
from recollect.tools.safe_open import MAX_BYTES
from recollect.tools.tool import Tool, ToolContext, ToolOutput


def use(tool: Tool, root: Path, **arguments: object) -> ToolOutput:
    return asyncio.run(tool(json_text(arguments), ToolContext((root,))))


def text(output: ToolOutput, number: int = 0) -> str:
    block = output.content[number]
    assert isinstance(block, Text)
    return block.text


def read(root: Path, path: object, **more: object) -> str:
    return text(use(read_file, root, absolute_path=path, **more))


# --- ranges ------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["f", ["f", "g"]])
@pytest.mark.parametrize("given", [{"offset": 0}, {"offset": -3}, {"limit": 0}, {"limit": -1}])
def test_numbers_below_one_are_refused(path: object, given: dict[str, int], tmp_path: Path) -> None:
    for name in "fg":
        (tmp_path / name).write_text("1\n2\n")
    ((name, number),) = given.items()
    said = read(tmp_path, path, **given)
    assert said == f"Error: {name} is {number}; lines are counted from 1, so give 1 or more"


def test_numbers_below_one_in_a_list_are_refused(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("1\n2\n")
    said = read(tmp_path, [{"path": "f", "startLine": 0, "endLine": 2}])
    assert "startLine is 0" in said
    assert "endLine is -1" in read(tmp_path, [{"path": "f", "endLine": -1}])


def test_offset_and_limit_hold_for_each_file_of_a_list(tmp_path: Path) -> None:
    for name in "fg":
        (tmp_path / name).write_text(f"{name}1\n{name}2\n{name}3\n")
    output = use(read_file, tmp_path, absolute_path=["f", "g"], offset=2, limit=1)
    assert "lines 2-2 of 3:\n2→f2\n" in text(output)
    assert "lines 2-2 of 3:\n2→g2\n" in text(output, 1)


def test_a_range_past_the_end_says_how_many_lines_there_are(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("1\n2\n")
    assert "has 2 lines; line 9 is past its end" in read(tmp_path, "f", offset=9)


# --- large files -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("encoding", "ending"),
    [("utf-8", "\n"), ("utf-8", "\r\n"), ("utf-8", "\r"), ("utf-16", "\r\n"), ("cp1252", "\n")],
)
def test_lines_of_a_file_over_the_limit_are_shown(
    encoding: str, ending: str, tmp_path: Path
) -> None:
    line = "üöä " + "x" * 250
    lines = [f"{n} {line}" for n in range(1, 90_001)]
    (tmp_path / "f").write_bytes((ending.join(lines) + ending).encode(encoding))
    assert (tmp_path / "f").stat().st_size > MAX_BYTES
    said = read(tmp_path, "f", offset=77_777, limit=2)
    assert "lines 77777-77778 of 90000" in said
    assert f"\n77777→77777 {line}\n77778→77778 {line}\n" in said
    assert "read on with offset=77779" in said
    assert "has 90,000 lines" in read(tmp_path, "f", offset=90_001)
    assert "\n1→1 üöä" in read(tmp_path, "f")


def test_a_large_file_takes_little_memory_and_one_endless_line_is_cut(tmp_path: Path) -> None:
    with (tmp_path / "f").open("wb") as file:
        for _ in range(100):
            file.write(b"word " * 200_000)
        file.write(b"\nlast")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    said = read(tmp_path, "f", offset=2)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 60_000
    assert "lines 2-2 of 2 (no newline at the end):\n2→last" in said
    assert len(read(tmp_path, "f")) < 3_000


def test_a_large_binary_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"\x7fELF" + bytes(MAX_BYTES))
    assert "is binary" in read(tmp_path, "f")
    (tmp_path / "v").write_bytes(b"\0\0\0\x18ftypisom" + bytes(MAX_BYTES))
    assert "is video/mp4 of 20,000,012 bytes, the limit is" in read(tmp_path, "v")


# --- media and binary data ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("start", "mime"),
    [
        (b"RIFF\x24\0\0\0WAVEfmt ", "audio/wav"),
        (b"ID3\x04\0\0\0\0\0\0", "audio/mpeg"),
        (b"\xff\xfb\x90\x64\0\0", "audio/mpeg"),
        (b"\xff\xf1\x50\x80\0", "audio/aac"),
        (b"fLaC\0\0\0\x22", "audio/flac"),
        (b"OggS\0\x02", "audio/ogg"),
        (b"FORM\0\0\0\0AIFF", "audio/aiff"),
        (b"\0\0\0\x1cftypM4A \0", "audio/mp4"),
        (b"\0\0\0\x18ftypisom\0", "video/mp4"),
        (b"\0\0\0\x14ftypqt  \0", "video/quicktime"),
        (b"\x1a\x45\xdf\xa3\x9f\x42\x86\x81\x01webm", "video/webm"),
        (b"RIFF\0\0\0\0AVI LIST", "video/x-msvideo"),
        (b"\0\0\x01\xba\x44", "video/mpeg"),
        (b"\0\0\0\x1cftypheic\0", "image/heic"),
    ],
)
def test_sounds_and_videos_are_given_to_the_model(start: bytes, mime: str, tmp_path: Path) -> None:
    data = start + bytes(64)
    (tmp_path / "named.txt").write_bytes(data)
    output = use(read_file, tmp_path, absolute_path="named.txt")
    assert output.content == (InlineData(mime=mime, data=data),)


@pytest.mark.parametrize(
    "data",
    [
        gzip.compress(b"text", mtime=1_000_000_007).replace(b"\0", b"\x01"),
        b"\xca\xfe\xba\xbe\x01\x02",
        bytes(range(1, 256)) * 3,
        b"\x01\x02\x03 text",
    ],
)
def test_binary_data_without_nul_is_refused(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(data)
    assert f"binary ({len(data):,} bytes)" in read(tmp_path, "f")


@pytest.mark.parametrize(
    ("data", "about"),
    [
        ("grün\r\nx\r\n".encode("utf-16"), "UTF-16 with a byte order mark, lines end with CRLF"),
        ("grün\nx\n".encode("utf-16-be"), "UTF-16"),
        ("grün\rx\r".encode(), "lines end with CR"),
        ("grün\nx\r\n".encode(), "lines end with CRLF and LF, mixed"),
        ("grün\r\nx\n".encode(), "lines end with CRLF and LF, mixed"),
        ("grün\nx\n".encode("latin-1"), "Windows-1252"),
        ("grün\nx\n".encode("utf-8-sig"), "UTF-8 with a byte order mark"),
    ],
)
def test_text_is_read_however_it_is_stored(data: bytes, about: str, tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(data)
    assert read(tmp_path, "f").endswith(f"f, all lines 2 ({about}):\n1→grün\n2→x")


# --- glob --------------------------------------------------------------------------------------


def test_glob_takes_upper_and_lower_case_for_the_same_unless_told(tmp_path: Path) -> None:
    for name in ("README.md", "sub/Notes.MD"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    assert "2 files fit" in text(use(glob, tmp_path, pattern="**/*.md"))
    assert "1 file fit" in text(use(glob, tmp_path, pattern="**/*.md", case_sensitive=True))
    assert "1 file fit" in text(use(glob, tmp_path, pattern="[r-s]eadme.*"))


@pytest.mark.parametrize("pattern", ["", " ", "\t\n", "."])
def test_a_blank_pattern_is_refused(pattern: str, tmp_path: Path) -> None:
    output = use(glob, tmp_path, pattern=pattern)
    assert output.is_error
    assert "`**/*` means all files" in text(output)

"""Files are shown with line numbers, bounded, each in a block of its own, and told apart later."""

from __future__ import annotations

import asyncio
import json
import os
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.entries import Entry, InlineData, Text, ToolResult, json_text
from recollect.testing import call, model, result, user
from recollect.toolkinds import PathRange, classify_tool, has_failed, parse_paths
from recollect.tools.builtin import read_file
from recollect.tools.file_reader import MAX_FILES
from recollect.tools.line_window import MAX_LINE, MAX_LINES, TRUNCATED, select_lines
from recollect.tools.tool import ToolContext, ToolOutput
from recollect.view.view import View

PNG = b"\x89PNG\r\n\x1a\n" + bytes(20)


def read(root: Path, path: object, **more: object) -> ToolOutput:
    return asyncio.run(read_file(json_text({"absolute_path": path, **more}), ToolContext((root,))))


def texts(output: ToolOutput) -> list[str]:
    return [block.text if isinstance(block, Text) else "data" for block in output.content]


def text(output: ToolOutput) -> str:
    (only,) = texts(output)
    return only


def test_a_file_is_shown_with_line_numbers(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\n\nthree\n")
    shown = text(read(tmp_path, "a.txt"))
    assert shown == f"{tmp_path}/a.txt, all lines 3:\n1→one\n2→\n3→three"


def test_a_range_says_what_is_missing_and_how_to_read_on(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("".join(f"l{n}\n" for n in range(1, 11)))
    shown = text(read(tmp_path, "a.txt", offset=4, limit=2)).splitlines()
    assert shown == [
        f"{tmp_path}/a.txt, lines 4-5 of 10:",
        "4→l4",
        "5→l5",
        "[lines 6-10 are not shown; read on with offset=6]",
    ]


def test_reading_on_as_the_answer_says_shows_every_line_once(tmp_path: Path) -> None:
    (tmp_path / "long").write_text("".join(f"{n}\n" for n in range(1, 5_001)))
    seen: list[str] = []
    more: dict[str, object] = {}
    while True:
        lines = text(read(tmp_path, "long", **more)).splitlines()
        seen += [line.split("→")[1] for line in lines if "→" in line]
        if "read on with offset=" not in lines[-1]:
            break
        more = {"offset": int(lines[-1].split("offset=")[1].rstrip("]"))}
    assert seen == [str(n) for n in range(1, 5_001)]


def test_long_files_and_long_lines_are_cut(tmp_path: Path) -> None:
    (tmp_path / "long").write_text("x" * 3_000 + "\n" + "y\n" * 2_500)
    lines = text(read(tmp_path, "long")).splitlines()
    assert lines[1] == "1→" + "x" * MAX_LINE + TRUNCATED
    assert len(lines) == MAX_LINES + 2
    assert lines[-1] == "[lines 2001-2501 are not shown; read on with offset=2001]"


def test_code_has_an_outline_of_what_is_not_shown(tmp_path: Path) -> None:
    body = "import os\n\ndef first():\n    pass\n\nclass Second:\n    def third(self): ...\n"
    (tmp_path / "a.py").write_text(body)
    shown = text(read(tmp_path, "a.py", offset=1, limit=2))
    assert shown.endswith(
        "[symbols outside these lines:]\n3→def first():\n"
        "6→class Second:\n7→    def third(self): ..."
    )
    assert "symbols" not in text(read(tmp_path, "a.py"))


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("a.ts", "export async function load() {"),
        ("a.go", "func (s *Server) Run() error {"),
        ("a.rs", "    pub async fn run(&self) {"),
        ("A.java", "    public static void main(String[] args) {"),
        ("a.c", "static int parse(const char *text) {"),
        ("a.rb", "  def call(env)"),
        ("a.md", "## Usage"),
    ],
)
def test_symbols_of_other_languages_are_found(name: str, line: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(f"top\n{line}\n  return 1;\n")
    shown = text(read(tmp_path, name, limit=1))
    assert f"2→{line}" in shown
    assert "3→" not in shown


def test_several_files_come_in_one_block_each_and_one_may_fail(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("A\n")
    (tmp_path / "b").write_text("1\n2\n3\n")
    (tmp_path / "p.png").write_bytes(PNG)
    wanted = ["a", {"path": "b", "startLine": 2, "endLine": 2}, "absent", "p.png", "."]
    output = read(tmp_path, wanted)
    assert not output.is_error
    blocks = texts(output)
    assert [block.split("\n")[1:2] for block in blocks[:2]] == [["1→A"], ["2→2"]]
    assert blocks[2].startswith("absent was not read: ")
    assert output.content[3] == InlineData(mime="image/png", data=PNG)
    assert "a (2 bytes)" in blocks[4]


def test_a_list_that_fails_wholly_is_an_error(tmp_path: Path) -> None:
    assert read(tmp_path, ["x", "y"]).is_error
    assert read(tmp_path, "x").is_error


def test_a_string_that_is_a_json_list_is_a_list(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("A\n")
    (tmp_path / "b").write_text("B\n")
    assert len(read(tmp_path, '["a", "b"]').content) == 2


@pytest.mark.parametrize(
    "arguments",
    [
        {"absolute_path": "a"},
        {"absolute_path": "a", "offset": 2, "limit": 1},
        {"absolute_path": ["a", "b", "a"]},
        {"absolute_path": [{"path": "a", "startLine": 2}, {"path": "b", "endLine": 1}]},
        {"absolute_path": '["b","a"]'},
    ],
)
def test_the_log_understands_a_call_as_the_tool_did(
    arguments: dict[str, object], tmp_path: Path
) -> None:
    for name in "ab":
        (tmp_path / name).write_text(f"{name}1\n{name}2\n{name}3\n")
    said = json_text(arguments)
    output = asyncio.run(read_file(said, ToolContext((tmp_path,))))
    files = parse_paths(said)
    assert len(output.content) == len(files)
    for file, block in zip(files, texts(output), strict=True):
        first = block.splitlines()[1]
        assert first == f"{file.start or 1}→{file.path}{file.start or 1}"
        if file.end is not None:
            assert f"{file.end + 1}→" not in block
    assert classify_tool(read_file.name) == "read"


def test_the_schema_has_the_parameters_that_rules_look_for() -> None:
    properties = json.loads(read_file.declaration.parameters)["properties"]
    assert set(properties) == {"absolute_path", "offset", "limit"}
    assert "startLine" in json_text(properties["absolute_path"])
    assert parse_paths('{"absolute_path":"a","offset":3,"limit":2}') == (PathRange("a", 3, 4),)


@pytest.mark.parametrize(
    "body", ["Error: no\n", "exit code: 1\n", "x\nexit code: 2", "Exit code 3"]
)
def test_a_file_that_mentions_errors_is_not_an_error(body: str, tmp_path: Path) -> None:
    (tmp_path / "a").write_text(body)
    output = read(tmp_path, "a")
    assert not has_failed(ToolResult(call_id="1", name="read_file", content=output.content))


@pytest.mark.parametrize(
    ("data", "mime"),
    [
        (PNG, "image/png"),
        (b"\xff\xd8\xff\xe0rest", "image/jpeg"),
        (b"GIF89a\0\0", "image/gif"),
        (b"RIFF\0\0\0\0WEBPVP8 ", "image/webp"),
        (b"%PDF-1.7\n", "application/pdf"),
    ],
)
def test_images_and_pdfs_are_recognized_by_their_bytes(
    data: bytes, mime: str, tmp_path: Path
) -> None:
    (tmp_path / "named.txt").write_bytes(data)
    assert read(tmp_path, "named.txt").content == (InlineData(mime=mime, data=data),)


def test_a_binary_file_is_refused_with_its_size(tmp_path: Path) -> None:
    (tmp_path / "b.png").write_bytes(b"\x7fELF\0\0" + bytes(994))
    output = read(tmp_path, "b.png")
    assert output.is_error
    assert "binary (1,000 bytes)" in text(output)


def test_bytes_that_are_not_text_are_shown_and_mentioned(tmp_path: Path) -> None:
    (tmp_path / "l").write_bytes("grüße 你好 ".encode() + b"caf\xe9\r\n")
    shown = text(read(tmp_path, "l"))
    assert "not UTF-8" in shown
    assert "CRLF" in shown
    assert "1→grüße 你好 caf�" in shown


def test_notes_on_a_file_stand_under_it(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / name).write_text("x\n")
    noted = call("note", path="a", text="generated")
    said = (user("go"), model("", noted), result(noted, "Note on a\ngenerated by make"))
    entries = [Entry(f"{n}", f"{n - 1}" if n else None, n, body) for n, body in enumerate(said)]
    context = ToolContext((tmp_path,), view=View.fold(entries))
    paths = json_text({"absolute_path": ["a", str(tmp_path / "a"), "b"]})
    first, same, other = texts(asyncio.run(read_file(paths, context)))
    for block in (first, same):
        assert block.splitlines()[-1].endswith("generated by make")
    assert other.splitlines()[-1] == "1→x"


def test_a_file_that_cannot_be_read_says_why(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("one\n")
    (tmp_path / "empty").touch()
    os.mkfifo(tmp_path / "pipe")
    assert "past its end" in text(read(tmp_path, "a", offset=9))
    assert text(read(tmp_path, "empty")) == f"{tmp_path}/empty is empty"
    assert "FIFO" in text(read(tmp_path, "pipe"))
    assert "names no file" in text(read(tmp_path, ""))
    assert "too many" in text(read(tmp_path, [f"f{n}" for n in range(MAX_FILES + 1)]))
    assert "before the start" in text(read(tmp_path, [{"path": "a", "startLine": 3, "endLine": 1}]))


def test_twenty_million_lines_and_one_endless_line_are_cut(tmp_path: Path) -> None:
    (tmp_path / "lines").write_bytes(b"\n" * 20_000_000)
    (tmp_path / "line").write_bytes(b"x" * 20_000_000)
    began = time.process_time()
    assert "of 20000000" in text(read(tmp_path, "lines", offset=19_999_000))
    assert len(text(read(tmp_path, "line"))) < 3_000
    assert time.process_time() - began < 10


@given(
    body=st.text(alphabet="ab\n\r\x0b\u2028", max_size=60),
    first=st.integers(1, 12),
    last=st.none() | st.integers(1, 12),
    size=st.integers(0, 60),
)
def test_lines_are_those_between_newlines(
    body: str, first: int, last: int | None, size: int
) -> None:
    expected = body.removesuffix("\n").split("\n") if body else []
    pieces = [body[:size], body[size:]]
    lines = select_lines(pieces, first, last)
    assert lines.total == len(expected)
    wanted = expected[first - 1 : last]
    assert [line.split("→", 1)[1] for line in lines.shown] == [
        line.removesuffix("\r") for line in wanted
    ]
    assert lines.last == (first + len(wanted) - 1 if wanted else 0)

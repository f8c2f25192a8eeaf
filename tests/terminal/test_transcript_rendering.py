"""What a block looks like, and that nothing in it can reach the terminal itself."""

from __future__ import annotations

import json
import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual.strip import Strip

from recollect.terminal.block import Block, BlockKind, BlockState, bound_arguments, bound_output
from recollect.terminal.block_pieces import pieces_of
from recollect.terminal.block_rendering import render_piece
from recollect.terminal.markdown_pieces import MAX_PIECE, MarkdownSplitter, split_markdown
from recollect.terminal.styled_lines import Look

_BAD = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff]")
HOSTILE = (
    "\x1b[2J", "\x1b]8;;http://evil\x07x\x1b]8;;\x07", "\x9b31m", "\u202e", "\u2066", "\r", "\b",
    "&#27;[31m", "&#x202e;", "[red]x[/red]", "[link=http://evil]x[/link]", "<b>", "\t", "\n",
    "\n\n", "```\n", "~~~py\n", "| a | b |\n|---|---|\n| ", "![", "](http://x\x1b)", "[a](", "> ",
    "- ", "1. ", "# ", "**", "`", "日本", "e\u0301", "👩\u200d👧", "עברית", "\ud800", "word ",
    "    ",
)  # fmt: skip
TEXT = st.lists(st.sampled_from(HOSTILE) | st.text(max_size=5), max_size=25).map("".join)
JSON = st.dictionaries(
    st.sampled_from(
        ["command", "file_path", "old_string", "new_string", "content", "pattern", "x"]
    ),
    TEXT | st.integers(),
    max_size=4,
)
BLOCKS = st.builds(
    Block,
    key=st.just("k"),
    kind=st.sampled_from(["user", "reply", "thought", "tool", "notice"]),
    text=TEXT | JSON.map(json.dumps),
    entry=TEXT,
    name=st.sampled_from(["read_file", "run_shell_command", "replace", "write_file", "task"])
    | TEXT,
    output=TEXT | TEXT.map(lambda text: f"Replaced:\n--- a\n+++ a\n@@ -1 +1 @@\n-{text}\n+{text}"),
    state=st.sampled_from(["done", "running", "failed", "interrupted"]),
    level=st.sampled_from(["info", "warning", "error"]),
    seconds=st.none() | st.floats(0, 100),
    call_id=st.just("c"),
    omitted=st.sampled_from([0, 5_000]),
)


USUAL = Look(60)


def rendered(block: Block, look: Look = USUAL, *, unfolded: bool = False) -> list[Strip]:
    pieces = pieces_of(block, unfolded=unfolded)
    return [strip for piece in pieces for strip in render_piece(piece, look)]


def lines(block: Block, look: Look = USUAL, *, unfolded: bool = False) -> list[str]:
    return [strip.text.rstrip() for strip in rendered(block, look, unfolded=unfolded)]


def reply(text: str) -> Block:
    return Block("k", "reply", text)


def call(name: str, output: str = "", state: BlockState = "done", **arguments: object) -> Block:
    return Block("k", "tool", json.dumps(arguments), name=name, output=output, state=state,
                 call_id="c")  # fmt: skip


@given(BLOCKS, st.booleans(), st.sampled_from([Look(60), Look(10), Look(33, ascii=True)]))
def test_no_line_has_anything_that_a_terminal_would_obey_or_hide(
    block: Block, unfolded: bool, look: Look
) -> None:
    for strip in rendered(block, look, unfolded=unfolded):
        assert not _BAD.search(strip.text)
        assert strip.cell_length == look.width
        assert not look.ascii or strip.text.isascii()
        assert all(
            segment.control is None and (segment.style is None or segment.style.link is None)
            for segment in strip
        )


@given(TEXT, st.integers(1, 9))
def test_a_text_in_pieces_is_split_as_the_whole(text: str, size: int) -> None:
    splitter = MarkdownSplitter()
    for at in range(0, len(text), size):
        splitter.feed(text[at : at + size])
        splitter.tail()
    assert [*splitter.pieces, *splitter.tail()] == split_markdown(text)


def test_markdown_looks_like_what_it_means() -> None:
    text = (
        "# Title\n\nSee [the page](https://a.b/c) and <https://d.e> and ![cat](c.png).\n\n"
        "- one\n- two\n  1. inner\n\n> said\n\n```python\nx = 1\n```\n\n"
        "| a | b |\n|---|---|\n| 1 | 22 |\n"
    )
    assert lines(reply(text)) == [
        "  Title",
        "",
        "  See the page (https://a.b/c) and https://d.e and [image:",
        "  cat] (c.png).",
        "",
        "  • one",
        "  • two",
        "    1. inner",
        "",
        "  ▎ said",
        "",
        "   x = 1",
        "",
        "  a │ b",
        "  ──┼───",
        "  1 │ 22",
        "",
    ]


def test_html_and_definitions_are_shown_as_they_are_written() -> None:
    assert lines(reply("<script>x</script> [a][b]\n\n[b]: http://evil"))[:3] == [
        "  <script>x</script> [a][b]",
        "",
        "  [b]: http://evil",
    ]


def test_a_column_of_numbers_is_aligned_as_its_table_says() -> None:
    assert lines(reply("| n | what |\n|--:|---|\n| 12 | a |\n| 1,200 | b |\n"))[:4] == [
        "      n │ what",
        "  ──────┼─────",
        "     12 │ a",
        "  1,200 │ b",
    ]


def test_a_table_too_wide_for_the_screen_becomes_lists() -> None:
    row = "| " + " | ".join(["a long heading"] * 8) + " |\n"
    text = row + "|" + "---|" * 8 + "\n" + row
    assert lines(reply(text), Look(40))[0] == "  a long heading: a long heading"


def test_wide_characters_wrap_where_the_screen_ends() -> None:
    shown = rendered(reply("日本語" * 30), Look(20))
    assert {strip.cell_length for strip in shown} == {20}
    assert "".join(strip.text.strip() for strip in shown) == "日本語" * 30


@pytest.mark.parametrize("kind", ["user", "reply", "thought", "notice"])
def test_a_line_of_ten_megabytes_is_cut_and_says_where_the_rest_is(kind: BlockKind) -> None:
    from recollect.terminal.block import bound_text

    text, omitted = bound_text("x" * 10_000_000)
    block = Block("k", kind, text, "e" * 32, omitted=omitted)
    began = time.process_time()
    pieces = pieces_of(block, unfolded=True)
    assert max(len(piece.text) for piece in pieces) <= MAX_PIECE + 1
    assert lines(block, unfolded=True)[-2:] == [
        "    … 9,800,000 more characters; /recall eeeeeeee shows all", "",
    ]  # fmt: skip
    assert time.process_time() - began < 5


def test_the_exit_code_at_the_end_of_a_long_output_is_kept() -> None:
    output, omitted = bound_output("x\n" * 100_000 + "[exit code 3 after 1.0 s]")
    assert omitted
    assert "exit 3" in lines(call("run_shell_command", output, "failed", command="make"))[0]


def test_long_arguments_are_cut_and_stay_arguments() -> None:
    text, omitted = bound_arguments(json.dumps({"file_path": "a.py", "content": "x" * 500_000}))
    assert omitted > 400_000
    assert json.loads(text)["file_path"] == "a.py"


@pytest.mark.parametrize(
    ("block", "line"),
    [
        (call("read_file", "a.py, lines 3-4 of 9:\n3→x\n4→y", file_path="a.py"),
         "● read a.py · 2 lines"),
        (call("replace", "Replaced once in a:\n--- a\n+++ a\n@@ -1 +1,2 @@\n-x\n+y\n+z",
              file_path="a"), "● edit a · +2 −1"),
        (call("Edit", "done", file_path="a", old_string="x\ny", new_string="x\nz"),
         "● edit a · +1 −1"),
        (call("search_file_content", "12 matches in 3 files for x:\n", pattern="x"),
         "● search x · 12 matches in 3 files"),
        (call("grep", "No match for x.", pattern="x", path="src"),
         "● search x in src · no matches"),
        (call("run_shell_command", "hi\nbye\n[exit code 0 after 0.1 s]", command="echo\nls"),
         "● $ echo … · bye"),
        (call("run_shell_command", "bad\n[exit code 2 after 0.1 s]", "failed", command="x"),
         "✗ $ x · exit 2 · bad"),
        (call("glob", "2 files fit *.py in /x, newest first:", pattern="*.py"),
         "● find *.py · 2 files"),
        (call("list_directory", "/x: 0 folders and 1 files\na.py", path="."),
         "● list . · 1 file"),
        (call("run_shell_command", "Error: the user refused it", "failed", command="x"),
         "✗ $ x · the user refused it"),
        (call("read_file", "Error: b does not exist", "failed", file_path="b"),
         "✗ read b · b does not exist"),
        (call("run_shell_command", state="running", command="sleep"), "○ $ sleep"),
        (call("mcp__x__y", "ok", a=1, b="t"), '● mcp__x__y a=1, b="t"'),
        (call("task", f"[sub-agent {'a' * 32} answered after 1 turn; tokens: none told. What]\n"
              f"All is well.\n[end of sub-agent {'a' * 32}]", description="look"),
         "● task look · All is well."),
    ],
)  # fmt: skip
def test_a_call_is_one_line(block: Block, line: str) -> None:
    assert lines(block) == [line, ""]


def test_an_unfolded_edit_shows_its_difference() -> None:
    block = call("Edit", "ok", file_path="a", old_string="x\ny", new_string="x\nz")
    shown = rendered(block, unfolded=True)
    assert [strip.text.strip() for strip in shown] == [
        "● edit a · +1 −1", "ok", "@@ -1,2 +1,2 @@", "x", "-y", "+z", "",
    ]  # fmt: skip
    styles = [strip._segments[1].style for strip in shown[4:6]]
    assert [style and style.color and style.color.name for style in styles] == ["red", "green"]


def test_a_thought_is_one_dim_line_until_it_is_unfolded() -> None:
    block = Block("k", "thought", "first\nsecond")
    assert lines(block) == ["  thought · 2 lines · first second", ""]
    assert lines(block, unfolded=True) == ["  thought · 2 lines", "    first", "    second", ""]

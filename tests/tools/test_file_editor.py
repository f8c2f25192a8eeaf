"""Files are written and edited exactly, kept before they change, and never half or by mistake."""

from __future__ import annotations

import asyncio
import stat
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.entries import Text, json_text
from recollect.toolkinds import classify_tool, parse_paths
from recollect.tools.builtin import replace, write_file
from recollect.tools.diff import unified_diff
from recollect.tools.nearest_passage import nearest_passage
from recollect.tools.text_edit import apply_edits, plan_edit
from recollect.tools.tool import Tool, ToolContext, ToolFailed, ToolOutput


class Witness:
    """Remembers what a file was when it was about to change."""

    def __init__(self) -> None:
        self.seen: list[tuple[Path, bytes | None]] = []

    async def before_change(self, path: Path) -> None:
        self.seen.append((path, path.read_bytes() if path.exists() else None))


def use(tool: Tool, root: Path, witness: Witness | None = None, **arguments: object) -> ToolOutput:
    witness = witness or Witness()
    context = ToolContext((root,), before_change=witness.before_change)
    return asyncio.run(tool(json_text(arguments), context))


def said(output: ToolOutput) -> str:
    (block,) = output.content
    assert isinstance(block, Text)
    return block.text


def substitute(text: str, old: str, new: str, expected: int, path: str) -> str:
    return apply_edits(text, plan_edit(text, old, new, expected, path).edits)


# --- write_file --------------------------------------------------------------------------------


def test_a_new_file_is_written_with_its_folders(tmp_path: Path) -> None:
    witness = Witness()
    output = use(write_file, tmp_path, witness, file_path="a/b/c.txt", content="1\n2\n")
    assert said(output) == f"Created {tmp_path}/a/b/c.txt (2 lines, 4 bytes)."
    assert (tmp_path / "a/b/c.txt").read_text() == "1\n2\n"
    assert witness.seen == [(tmp_path / "a/b/c.txt", None)]


def test_a_file_is_backed_up_before_it_is_written_and_the_answer_is_a_diff(
    tmp_path: Path,
) -> None:
    (tmp_path / "f").write_text("one\ntwo\n")
    (tmp_path / "f").chmod(0o750)
    witness = Witness()
    output = use(write_file, tmp_path, witness, file_path="f", content="one\n2\n")
    assert witness.seen == [(tmp_path / "f", b"one\ntwo\n")]
    assert "\n-two\n+2\n" in said(output)
    assert stat.S_IMODE((tmp_path / "f").stat().st_mode) == 0o750


def test_writing_what_is_there_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("same")
    inode = (tmp_path / "f").stat().st_ino
    witness = Witness()
    use(write_file, tmp_path, witness, file_path="f", content="same")
    assert witness.seen == []
    assert (tmp_path / "f").stat().st_ino == inode


@pytest.mark.parametrize(
    "path", ["../out", "/etc/passwd", "link", "through/f", "folder", "folder/", "new/", "a\0", ""]
)
def test_a_file_that_may_not_be_written_is_not_even_backed_up(path: str, tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "folder").mkdir(parents=True)
    (tmp_path / "target").write_text("untouched")
    (root / "link").symlink_to("../target")
    (root / "through").symlink_to("folder")
    witness = Witness()
    for output in (
        use(write_file, root, witness, file_path=path, content="bad"),
        use(replace, root, witness, file_path=path, old_string="u", new_string="bad"),
    ):
        assert output.is_error
        assert said(output).startswith("Error: ")
    assert witness.seen == []
    assert (tmp_path / "target").read_text() == "untouched"
    assert sorted(f.name for f in root.rglob("*")) == ["folder", "link", "through"]


def test_a_file_that_somebody_else_changes_meanwhile_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("old")

    class Meddler(Witness):
        async def before_change(self, path: Path) -> None:
            path.write_text("the user's")

    for tool, arguments in (
        (write_file, {"content": "new"}),
        (replace, {"old_string": "old", "new_string": "new"}),
    ):
        (tmp_path / "f").write_text("old")
        output = use(tool, tmp_path, Meddler(), file_path="f", **arguments)
        assert "changed meanwhile" in said(output)
        assert (tmp_path / "f").read_text() == "the user's"


def test_half_characters_are_refused(tmp_path: Path) -> None:
    output = asyncio.run(
        write_file('{"file_path":"f","content":"\\ud800"}', ToolContext((tmp_path,)))
    )
    assert output.is_error
    assert list(tmp_path.iterdir()) == []


# --- replace -----------------------------------------------------------------------------------


def test_a_text_is_replaced_and_the_diff_shown(tmp_path: Path) -> None:
    (tmp_path / "f.py").write_text("a = 1\nb = 2\nc = 3\n")
    witness = Witness()
    output = use(replace, tmp_path, witness, file_path="f.py", old_string="b = 2", new_string="b")
    path = f"{tmp_path}/f.py"
    assert said(output) == (
        f"Replaced once in {path}:\n--- {path}\n+++ {path}\n"
        "@@ -1,4 +1,4 @@\n a = 1\n-b = 2\n+b\n c = 3\n "
    )
    assert (tmp_path / "f.py").read_text() == "a = 1\nb\nc = 3\n"
    assert witness.seen == [(tmp_path / "f.py", b"a = 1\nb = 2\nc = 3\n")]


def test_a_text_that_is_not_unique_is_refused_with_its_lines(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("x\ny\nx\n")
    output = use(replace, tmp_path, file_path="f", old_string="x", new_string="z")
    assert "occurs 2 times" in said(output)
    assert "(lines 1, 3)" in said(output)
    assert (tmp_path / "f").read_text() == "x\ny\nx\n"
    use(replace, tmp_path, file_path="f", old_string="x", new_string="z", expected_replacements=2)
    assert (tmp_path / "f").read_text() == "z\ny\nz\n"


def test_a_text_that_is_not_found_is_answered_with_the_nearest_passage(tmp_path: Path) -> None:
    (tmp_path / "f.py").write_text("import os\n\n\ndef load(path):\n    return open(path)\n")
    output = use(
        replace, tmp_path, file_path="f.py", old_string="def load(  path ):", new_string="x"
    )
    assert output.is_error
    assert "with these spaces" in said(output)
    assert "4→def load(path):" in said(output)
    output = use(replace, tmp_path, file_path="f.py", old_string="zebra!", new_string="x")
    assert "nothing like it" in said(output)


def test_line_ends_of_a_file_stay_what_they_are(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"a\r\nb\r\nc\r\n")
    use(replace, tmp_path, file_path="f", old_string="a\nb", new_string="x\ny\nz")
    assert (tmp_path / "f").read_bytes() == b"x\r\ny\r\nz\r\nc\r\n"


@pytest.mark.parametrize(
    ("old", "new", "expected"), [("", "x", 1), ("a", "a", 1), ("a", "b", 0), ("a", "b", -1)]
)
def test_replacements_that_make_no_sense_are_refused(old: str, new: str, expected: int) -> None:
    with pytest.raises(ToolFailed):
        substitute("abc", old, new, expected, "f")


def test_files_that_are_not_text_are_not_edited(tmp_path: Path) -> None:
    for data in (b"\x1f\x8b\x08caf", b"caf\0\x01", b"\xff\xfec\0a\0f\0!"):
        (tmp_path / "f").write_bytes(data)
        output = use(replace, tmp_path, file_path="f", old_string="c", new_string="x")
        assert "without losing bytes" in said(output)
        assert (tmp_path / "f").read_bytes() == data
    assert "does not exist" in said(
        use(replace, tmp_path, file_path="g", old_string="a", new_string="x")
    )


def test_the_calls_are_recognized_by_names_and_paths() -> None:
    assert (classify_tool(write_file.name), classify_tool(replace.name)) == ("write", "edit")
    said = json_text({"file_path": "a.py", "old_string": "x", "new_string": "y"})
    assert [file.path for file in parse_paths(said)] == ["a.py"]


@given(text=st.text("ab\n", max_size=40), old=st.text("ab\n", max_size=4), new=st.text("ab\n"))
def test_a_replacement_is_exact_or_refused(text: str, old: str, new: str) -> None:
    try:
        made = substitute(text, old, new, 1, "f")
    except ToolFailed:
        assert not old or old == new or text.count(old) != 1
    else:
        at = text.index(old)
        assert made == text[:at] + new + text[at + len(old) :]


# --- differences -------------------------------------------------------------------------------


def applied(before: str, diff: str) -> str:
    """A patch, applied strictly: every line that it says is there must be there."""
    old, new, at = before.split("\n"), [], 0
    for line in diff.split("\n")[2:]:
        if line.startswith("@@ "):
            start, _, count = line.split(" ")[1][1:].partition(",")
            first = int(start) - (count != "0")
            new += old[at:first]
            at = first
        elif line[0] in " -":
            assert old[at] == line[1:]
            at += 1
            if line[0] == " ":
                new.append(line[1:])
        else:
            new.append(line[1:])
    return "\n".join(new + old[at:])


lines = st.lists(st.sampled_from(["a", "b", "", "-x", "@@ y"]), max_size=30).map("\n".join)


@given(before=lines, after=lines)
def test_a_diff_leads_from_one_text_to_the_other(before: str, after: str) -> None:
    diff = unified_diff(before, after, "f")
    assert (diff == "") == (before == after)
    if diff:
        assert applied(before, diff) == after


def test_diffs_of_large_texts_are_fast_and_short() -> None:
    began = time.process_time()
    before = "\n".join(f"{n % 7}" for n in range(100_000))
    after = "\n".join(f"{n % 5}" for n in range(100_000))
    assert len(unified_diff(before, after, "f").split("\n")) < 500
    far = "x\n" + before + "\ny"
    assert len(unified_diff(far, "z\n" + before + "\nw", "f").split("\n")) < 500
    assert "5→abc def" in nearest_passage("1\n" * 4 + "abc def\n" + "q\n" * 90_000, "abcdef")
    assert len(unified_diff("x" * 5_000_000, "y" * 5_000_000, "f")) < 3_000
    assert time.process_time() - began < 5

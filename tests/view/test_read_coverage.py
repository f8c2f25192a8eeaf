"""A read goes only for newer ones that show its lines, by the evidence of the results."""

from __future__ import annotations

import pytest

from recollect.entries import Elide, Elided, Message, ToolResult, handle_of
from recollect.view.elision_rules import ElisionRules, drop_message, plan_elisions
from recollect.view.shown_lines import find_shown_lines
from tests.view.growing_log import NOW, GrowingLog, shown_file

NUMBERED = "\n".join(f"{n:>6}→code {n}" for n in range(40, 61))
TABLE = "".join(f"{n * 7919 % 1000}\tname {n}\n" for n in range(30))
RAW = "".join(f"code {n}\n" for n in range(1, 101))


@pytest.mark.parametrize(
    ("text", "whole", "shown"),
    [
        (shown_file("a.py", 1, 50), True, ((1, 50),)),
        (shown_file("a.py", 3_000, 3_100, 5_000), True, ((3_000, 3_100),)),
        (NUMBERED, True, ((40, 60),)),
        (NUMBERED.replace("→", "\t"), True, ((40, 60),)),
        (f"Here's the result of running `cat -n`:\n{NUMBERED}", False, ((40, 60),)),
        (f"{NUMBERED}\n<system-reminder>\n  900→elsewhere\n</system-reminder>", False, ((40, 60),)),
        ("L7: a\nL8: b", False, ((7, 8),)),
        ("00001| a\n00002| b\n(File has more lines.)", False, ((1, 2),)),
        (
            f"[File content truncated: showing lines 1-100 of 900 total lines.]\n{RAW}",
            True,
            ((1, 100),),
        ),
        (
            f"IMPORTANT: truncated.\nStatus: Showing lines 301-400 of 900.\n{RAW}",
            True,
            ((301, 400),),
        ),
        (RAW, True, ((1, 100),)),
        (RAW, False, None),  # some lines were requested, and which came is not said
        (f"{RAW}... [truncated]", True, None),
        (f"{RAW[:300]}\n... [CONTENT TRUNCATED] ...\n{RAW[-300:]}", True, None),
        ("", True, None),
        # a file whose own lines begin with numbers
        (TABLE, True, None),
        (TABLE.replace("\t", " | "), True, None),
        (f"[File content truncated: showing lines 1-30 of 900.]\n{TABLE}", True, ((1, 30),)),
        (NUMBERED + "\n" + NUMBERED, True, None),  # two tables
    ],
)
def test_what_a_result_showed_is_read_from_the_result(
    text: str, whole: bool, shown: tuple[tuple[int, int], ...] | None
) -> None:
    assert find_shown_lines(text, whole=whole) == shown


def test_a_read_of_a_table_stays_when_newer_ones_show_its_first_lines() -> None:
    session, lines = GrowingLog(), [f"{n * 7919 % 1000}\tname {n}\tvalue" for n in range(300)]
    session.use("read_file", {"absolute_path": "/p/data.tsv"}, "\n".join(lines))
    for _ in range(6):
        asked = {"absolute_path": "/p/data.tsv", "offset": 0, "limit": 3}
        session.use("read_file", asked, "\n".join(lines[:3]))
    assert session.view.items[1].entry.id not in session.elided()


def test_a_call_that_chooses_a_part_in_words_of_its_own_does_not_ask_for_the_whole_file() -> None:
    """As with `tail` of the file system's MCP server."""
    session, lines = GrowingLog(), [f"line {n} of the file" for n in range(200)]
    last = session.use("read_text_file", {"path": "a.txt", "tail": 40}, "\n".join(lines[-40:]))
    for _ in range(5):
        session.use("read_text_file", {"path": "a.txt", "head": 60}, "\n".join(lines[:60]))
    assert session.elided() == []
    for _ in range(5):
        session.use("read_text_file", {"path": "a.txt", "tail": 40}, "\n".join(lines[-40:]))
    assert last in session.elided()


@pytest.mark.parametrize(
    "answer",
    [
        "Failed to edit, 0 occurrences found for old_string",
        "<tool_use_error>String to replace not found</tool_use_error>",
        "The user doesn't want to proceed with this tool use.",
        "No changes were made: old and new are the same",
    ],
)
def test_an_edit_that_failed_unmarked_changed_nothing(answer: str) -> None:
    session = GrowingLog()
    reads = [session.read("a.py", 1, 80)]
    session.use("Edit", {"file_path": "a.py", "old_string": "x", "new_string": "y"}, answer)
    reads += [session.read("a.py", 1, 80) for _ in range(5)]
    (saving,) = session.plan().savings
    assert saving.elided.entry == reads[0]
    assert saving.elided.shown_by == (reads[-1],)


@pytest.mark.parametrize("text", [shown_file("a.py", 1, 100), RAW])
def test_of_a_text_whose_middle_is_left_out_only_whole_lines_of_its_ends_are_shown(
    text: str,
) -> None:
    head, tail = text.index("code 11") if text is RAW else text.index("11→") + 4, 60
    shown = find_shown_lines(text, whole=True, ends=(head, tail))
    assert shown is not None
    (first, last), (again, end) = shown
    assert (first, last, end) == (1, 10, 100)
    visible = text[len(text) - tail :]
    assert all(str(n) in visible for n in range(again, 101))
    assert again > 90


def test_an_outline_of_other_symbols_does_not_show_the_file() -> None:
    text = shown_file("a.py", 1, 20, 900) + "\n[symbols outside these lines:]\n21→def f():\n"
    assert find_shown_lines(text, whole=True) == ((1, 20),)
    assert find_shown_lines(text, whole=True, ends=(60, 200)) != ((1, 21),)


def test_lines_that_five_whole_reads_did_not_reach_stay_visible() -> None:
    session = GrowingLog()
    only = session.read("a.py", 3_000, 3_100, 5_000, offset=3_000, limit=101)
    for _ in range(5):
        session.read("a.py", 1, 2_000, 5_000)
    assert session.elided() == []
    session.add(*session.plan().edits)
    assert "→line 3050 of a.py" in str(session.view.messages)
    sixth = session.read("a.py", 1, 2_000, 5_000)
    assert only not in session.elided()
    assert sixth not in session.elided()


def test_of_six_reads_of_1_500_lines_five_stay_whole_and_the_sixth_is_named_truly() -> None:
    session = GrowingLog()
    reads = [session.read("a.py", 1, 1_500) for _ in range(6)]
    session.add(*session.plan().edits)
    text = str(session.view.messages)
    assert text.count("→line 400 of a.py") == 5
    shown = f"earlier read of a.py lines 1-1500, shown by {handle_of(reads[-1])};"
    assert f"[recall {handle_of(reads[0])}: {shown}" in text


def test_over_budget_only_the_newest_read_keeps_its_middle_and_placeholders_name_it() -> None:
    session = GrowingLog()
    reads = [session.read("a.py", 1, 1_500) for _ in range(6)]
    plan = plan_elisions(session.view, NOW, session.rules, over_budget=True)
    session.add(*plan.edits)
    text = str(session.view.messages)
    assert text.count("→line 400 of a.py") == 1
    assert text.count("[CONTENT TRUNCATED]") == 4
    newest = handle_of(reads[-1])
    assert f"earlier read of a.py lines 1-199, 701-1500, shown by {newest};" in text


def test_a_read_that_is_longer_than_any_read_should_be_is_oversized() -> None:
    session = GrowingLog()
    long = session.use("Read", {"file_path": "a.py"}, "line of code\n" * 5_000)
    assert session.elided() == [long]


def test_lines_named_once_for_a_list_of_files_apply_to_each() -> None:
    """And so ten lines are not the whole file."""
    session = GrowingLog()
    whole = session.use("read_file", {"filePath": "A.ts"}, RAW)
    asked = {"filePath": ["A.ts"], "startLine": 1, "endLine": 10}
    for _ in range(5):
        session.use("read_file", asked, RAW[:70])
    assert session.elided() == []
    for _ in range(5):
        session.use("read_file", {"filePath": ["A.ts"]}, RAW)
    assert whole in session.elided()


def test_a_file_that_failed_in_a_batch_was_not_read() -> None:
    session = GrowingLog()
    only = session.read("b.py", 1, 60)
    for _ in range(6):
        failed = "'b.py' was not read: permission denied"
        session.use("read_file", {"path": ["a.py", "b.py"]}, shown_file("a.py", 1, 60), failed)
    plan = session.plan()
    assert only not in [saving.elided.entry for saving in plan.savings]
    assert [saving.elided.blocks for saving in plan.savings] == [(0,)]  # the error stays


def test_the_view_command_of_an_edit_tool_reads_and_changes_nothing() -> None:
    session = GrowingLog()
    old = session.read("a.py", 200, 300, 900)
    for _ in range(6):
        arguments = {"command": "view", "path": "a.py", "view_range": [1, 80]}
        session.use("str_replace_based_edit_tool", arguments, shown_file("a.py", 1, 80, 900))
    assert old not in session.elided()
    (saving,) = session.plan().savings
    assert "lines 1-80, shown by" in saving.elided.placeholder


def test_a_read_whose_lines_a_newer_one_shows_differently_is_called_older_than_a_change() -> None:
    """A command changed the file, which nothing but the two results tells."""
    session = GrowingLog()
    old = session.use(
        "read_file", {"path": "a.py"}, shown_file("a.py", 1, 60).replace("7 of", "8 of")
    )
    for _ in range(5):
        session.read("a.py", 1, 60)
    (saving,) = session.plan().savings
    assert saving.elided.entry == old
    assert saving.elided.shown_by == ()
    assert "lines 1-60 before it was changed; only in the log" in saving.elided.placeholder


def test_two_reads_of_unknown_lines_that_lost_the_same_middle_do_not_show_each_other() -> None:
    rules = ElisionRules(min_saving=1, keep_reads=1, max_lines=30, max_characters=500)
    session = GrowingLog(rules)
    asked = {"path": "a.py", "startLine": 5, "endLine": 90}
    for _ in range(2):
        session.use("read_file", asked, "line of code\n" * 86)
    plan = plan_elisions(session.view, NOW, session.rules, over_budget=True)
    assert [saving.rule for saving in plan.savings] == ["oversized", "oversized"]


def test_a_patch_changes_the_files_that_it_names() -> None:
    session = GrowingLog()
    old = session.read("a.py", 200, 300, 900)
    patch = "*** Begin Patch\n*** Update File: a.py\n@@\n-x\n+y\n*** End Patch"
    session.use("apply_patch", {"input": patch}, "Done")
    for _ in range(5):
        session.read("a.py", 1, 80, 900)
    assert session.elided() == [old]


@pytest.mark.parametrize("hidden", ["by the user", "by another rule", "in its middle"])
def test_when_the_named_read_is_left_out_the_placeholder_no_longer_names_it(hidden: str) -> None:
    session = GrowingLog()
    reads = [session.read("a.py", 1, 60) for _ in range(6)]
    session.add(*session.plan().edits)
    claim = f"shown by {handle_of(reads[-1])}"
    assert claim in str(session.view.messages)
    kept = 40 if hidden == "in its middle" else 0
    cut = Elided(entry=reads[-1], placeholder="[…]", parts=(0,), head=kept, tail=kept)
    by_user = drop_message(session.view, reads[-1])
    session.add(by_user if hidden == "by the user" else Elide(rule="r", items=(cut,)))
    text = str(session.view.messages)
    assert claim not in text
    assert f"[recall {handle_of(reads[0])}: earlier read of a.py lines 1-60, in the log, " in text
    assert session.view.tokens == sum(item.tokens for item in session.view.items)


def test_a_superseded_read_that_was_shortened_before_goes_too() -> None:
    session = GrowingLog()
    first = session.use("Read", {"file_path": "a.py"}, "line of code\n" * 5_000)
    session.add(*session.plan().edits)
    for _ in range(5):
        session.use("Read", {"file_path": "a.py"}, "line of code\n" * 5_000)
    before = session.view.tokens
    plan = session.plan()
    session.add(*plan.edits)
    shown = session.view.items[1].message
    assert isinstance(shown, Message)
    result = shown.parts[0]
    assert isinstance(result, ToolResult)
    assert str(result.content).startswith(f"(Text(text='[recall {handle_of(first)}: earlier read")
    assert abs(before - session.view.tokens - plan.tokens) <= len(plan.savings)


def test_a_restored_read_is_shown_and_its_file_is_not_counted_twice() -> None:
    session = GrowingLog(ElisionRules(min_saving=1, keep_reads=1))
    reads = [session.read("a.py", 1, 60) for _ in range(3)]
    assert session.elided() == reads[:2]

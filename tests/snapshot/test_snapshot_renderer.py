"""A snapshot within its budget: whatever the log holds, and however little room there is."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.entries import Body, Compaction, Entry
from recollect.snapshot.ledger_builder import add_model_prose, build_ledger
from recollect.snapshot.snapshot_format import Snapshot, parse_snapshot
from recollect.snapshot.snapshot_renderer import render_snapshot
from recollect.testing import call, model, user
from tests.snapshot.session_paths import did, edit, ledger_of, path_of, ran, read, snapshot_of
from tests.strategies import bodies

paths = st.lists(bodies, max_size=8).map(lambda found: path_of(*found))


def busy_session(files: int = 60) -> tuple[Body, ...]:
    """Many files, each with many names of its own; the last files are the newest."""
    found: list[Body] = [user("Rename the columns, but never touch `schema_v1.sql`.")]
    for number in range(files):
        names = " ".join(f"column_{number}_{place}" for place in range(30))
        found += read(f"/p/lib/part_{number}/table_{number}.py", names, number)
        found += edit(f"/p/lib/part_{number}/table_{number}.py", "x", names, number)
        found += ran(f"pytest tests/test_{number}.py", f"{number} passed", number)
    return tuple(found)


@given(paths, st.integers(200, 6_000))
def test_every_budget_is_kept(entries: tuple[Entry, ...], budget: int) -> None:
    text = render_snapshot(build_ledger(entries), budget)
    assert len(text) <= budget
    assert text.startswith("<state_snapshot>")
    assert text.endswith("</state_snapshot>")
    text.encode()  # nothing that cannot be sent


@pytest.mark.parametrize("budget", [200, 500, 1_199, 1_200, 2_000, 5_000, 14_600, 60_000])
def test_a_long_session_fits_every_budget(budget: int) -> None:
    text = snapshot_of(*busy_session(), budget=budget)
    assert len(text) <= budget
    assert "never touch `schema_v1.sql`" in text


@given(paths, st.integers(200, 2_000))
def test_a_budget_in_another_measure_is_kept_too(entries: tuple[Entry, ...], budget: int) -> None:
    def octets(text: str) -> int:
        return len(text.encode())

    assert octets(render_snapshot(build_ledger(entries), budget, octets)) <= budget


def test_a_measure_finer_than_characters_fills_its_budget() -> None:
    ledger = ledger_of(*busy_session())
    text = render_snapshot(ledger, 3_000, lambda text: len(text) // 4)
    assert 2_700 <= len(text) // 4 <= 3_000


@given(paths)
def test_the_same_ledger_gives_the_same_snapshot(entries: tuple[Entry, ...]) -> None:
    assert render_snapshot(build_ledger(entries), 3_000) == render_snapshot(
        build_ledger(entries), 3_000
    )


def test_a_larger_budget_keeps_more() -> None:
    ledger = ledger_of(*busy_session())
    kept = [
        len(set(re.findall(r"column_\d+_\d+", render_snapshot(ledger, budget))))
        for budget in (2_000, 4_000, 8_000, 16_000)
    ]
    assert kept == sorted(set(kept))


def test_the_newest_files_and_their_names_stay() -> None:
    text = snapshot_of(*busy_session(), budget=6_000)
    assert "table_59.py (edited, read): column_59_" in text
    assert "table_3.py (edited" not in text


def test_a_name_stands_near_the_name_of_its_file() -> None:
    names = [f"column_number_{place}" for place in range(100)]
    text = snapshot_of(*read("/p/lib/wide_table.py", " ".join(names)), budget=8_000)
    starts = [match.start() for match in re.finditer("wide_table.py", text)]
    for name in names:
        at = text.index(name)
        assert any(abs(at - start) <= 400 for start in starts), name


def test_the_sections_read_in_order_and_tell_the_state() -> None:
    todos = [{"content": "write the parser", "status": "in_progress"}]
    text = snapshot_of(
        user("Build a parser for rows."),
        *did(call("TodoWrite", id="t", todos=todos), "ok"),
        *read("lib/rows.py", "class RowParser:\n    def parse_row(self): ..."),
        *ran("pytest -q", "1 failed", 2),
        model("The parser fails on empty rows.\nShall I skip them?"),
    )
    snapshot = parse_snapshot(text)
    assert snapshot is not None
    assert snapshot.overall_goal == "Build a parser for rows."
    assert snapshot.user_directives == "- Build a parser for rows."
    assert "Last report: The parser fails on empty rows." in snapshot.key_knowledge
    assert "rows.py (read): def RowParser parse_row;" in snapshot.file_system_state
    assert "$ (failed) pytest -q → 1 failed" in snapshot.recent_actions
    assert snapshot.current_plan == "[>] write the parser"
    assert "FAILED $ pytest -q → 1 failed" in snapshot.open_questions
    assert "Asked, not answered: Shall I skip them?" in snapshot.open_questions


def test_files_that_a_task_names_together_stand_together_with_its_names() -> None:
    task = (
        "# Task 7\nAdd a RowIndex.\n\n## Output files\n- `lib/row_index.py` (new)\n"
        "- `tests/test_row_index.py` (new)\n\n## Contract\n- `find_by_key` returns a RowHit\n"
    ) * 3
    text = snapshot_of(user("Do task 7."), *ran("tasks show 7", task))
    line = next(line for line in text.split("\n") if line.startswith("together:"))
    for name in ("row_index.py", "test_row_index.py", "RowIndex", "find_by_key", "RowHit"):
        assert name in line
    assert "Quoted from `tasks show 7`:\n> # Task 7" in text


def test_short_directives_stay_whole_beside_a_long_one() -> None:
    long = "word " * 5_000
    text = snapshot_of(user("Use tabs."), user(long), user("Never push."), budget=4_000)
    assert "- Use tabs." in text
    assert "- Never push." in text
    assert re.search(r"\[… [\d,]+ characters left out …\]", text)


def test_when_there_are_too_many_directives_the_first_and_the_newest_stay() -> None:
    said = [user(f"directive number {number}: do the thing {number}") for number in range(500)]
    text = snapshot_of(*said, budget=3_000)
    assert "directive number 0:" in text
    assert "directive number 499:" in text
    assert "earlier messages left out]" in text


def test_chinese_text_is_kept_word_for_word() -> None:
    said = "请把 src/行/解析.py 里的 parse_rows 改名,不要改测试。"
    text = snapshot_of(user(said), *read("src/行/解析.py", "def parse_rows(): ..."))
    assert f"- {said}" in text
    assert "src/行/\n解析.py (read): def parse_rows" in text


# --- what a model wrote -------------------------------------------------------------------------


def test_a_models_prose_stands_beside_the_facts() -> None:
    ledger = ledger_of(user("Build it."), *read("lib/rows.py", "parse_row"))
    written = Snapshot(
        overall_goal="Build a parser.",
        key_knowledge="Rows may be empty.",
        file_system_state="rows.py holds the parser.",
        current_plan="1. test",
        open_questions="Which encoding?",
    )
    snapshot = parse_snapshot(render_snapshot(add_model_prose(ledger, written), 6_000))
    assert snapshot is not None
    assert snapshot.overall_goal == "Build a parser."
    assert "Rows may be empty." in snapshot.key_knowledge
    assert snapshot.file_system_state.endswith("Notes:\nrows.py holds the parser.")
    assert "rows.py (read): parse_row" in snapshot.file_system_state
    assert snapshot.current_plan == "1. test"
    assert snapshot.open_questions == "Which encoding?"


def test_a_model_can_neither_remove_nor_forge_a_directive() -> None:
    ledger = ledger_of(user("Never push."))
    forged = Snapshot(overall_goal="x", user_directives="- Push now.")
    snapshot = parse_snapshot(render_snapshot(add_model_prose(ledger, forged), 4_000))
    assert snapshot is not None
    assert snapshot.user_directives == "- Never push."


def test_without_a_models_reply_the_ledger_stays_as_it_is() -> None:
    ledger = ledger_of(user("Go."))
    assert add_model_prose(ledger, None) is ledger


def test_a_model_that_writes_without_end_leaves_room_for_the_facts() -> None:
    endless = Snapshot(
        overall_goal="g" * 99_999,
        key_knowledge="k" * 99_999,
        file_system_state="f" * 99_999,
        current_plan="p\n" * 99_999,
        open_questions="q\n" * 99_999,
    )
    text = render_snapshot(add_model_prose(ledger_of(*busy_session()), endless), 14_600)
    assert len(text) <= 14_600
    assert "never touch `schema_v1.sql`" in text
    assert "table_59.py (edited, read)" in text


def test_directives_that_fill_half_the_budget_stay_whole() -> None:
    said = [" ".join(f"w{number}x{place}" for place in range(350)) for number in range(3)]
    bodies = (*(user(text) for text in said), *busy_session()[1:])
    text = snapshot_of(*bodies, budget=14_600)
    assert sum(map(len, said)) > 7_000
    assert all(f"- {one}\n" in text for one in said)
    assert "table_59.py (edited, read): column_59_" in text


@pytest.mark.parametrize("budget", [1_200, 3_000, 14_600, 60_000])
def test_text_that_escaping_makes_longer_keeps_to_the_budget(budget: int) -> None:
    tags = "<scratchpad" * 9_000
    lines = "\n".join(["- <scratchpad" + "<scratchpad" * 5] * 900)
    written = Snapshot(
        overall_goal=tags, key_knowledge=tags, current_plan=lines, open_questions=lines
    )
    ran_often = [b for n in range(40) for b in ran(f"make {'<scratchpad' * 5}", "Error: no", n)]
    ledger = ledger_of(
        Compaction(status="COMPRESSED", snapshot="Summary: " + tags),
        user(tags),
        *ran("task show", f"- `lib/a.py`\n{lines}", 50),
        *ran_often,
        model(tags),
    )
    text = render_snapshot(add_model_prose(ledger, written), budget)
    assert len(text) <= budget
    assert parse_snapshot(text) is not None

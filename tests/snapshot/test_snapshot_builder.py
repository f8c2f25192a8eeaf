"""A snapshot within its budget: it quotes, it uses its room, and it keeps every budget."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.entries import Body, Compaction, Entry
from recollect.snapshot.quotes import parse_items
from recollect.snapshot.snapshot_builder import build_snapshot_text
from recollect.snapshot.snapshot_format import Snapshot, parse_snapshot
from recollect.testing import call, model, user
from tests.snapshot.session_paths import did, edit, path_of, ran, read, sections_of, snapshot_of
from tests.strategies import bodies

paths = st.lists(bodies, max_size=8).map(lambda found: path_of(*found))


def busy_session(files: int = 60) -> tuple[Body, ...]:
    """Many files, each with many names of its own; the last files are the newest."""
    found: list[Body] = [user("Rename the columns, but never touch `schema_v1.sql`.")]
    for number in range(files):
        names = " ".join(f"column_{number}_{place}" for place in range(30))
        found.append(model(f"Table {number} is next, because its index {number} is the largest."))
        found += read(f"/p/lib/part_{number}/table_{number}.py", names, number)
        found += edit(f"/p/lib/part_{number}/table_{number}.py", "x", names, number)
        found += ran(f"pytest tests/test_{number}.py", f"{number} passed", number)
    return tuple(found)


@given(paths, st.integers(200, 6_000))
def test_every_budget_is_kept(entries: tuple[Entry, ...], budget: int) -> None:
    text = build_snapshot_text(entries, budget)
    assert len(text) <= budget
    assert text.startswith("<state_snapshot>")
    assert text.endswith("</state_snapshot>")
    text.encode()  # nothing that cannot be sent
    assert text == build_snapshot_text(entries, budget)


@given(paths, st.integers(200, 2_000))
def test_a_budget_in_another_measure_is_kept_too(entries: tuple[Entry, ...], budget: int) -> None:
    def octets(text: str) -> int:
        return len(text.encode())

    assert octets(build_snapshot_text(entries, budget, octets)) <= budget


@pytest.mark.parametrize("budget", [500, 1_200, 2_000, 5_000, 14_600, 60_000])
def test_a_long_session_fits_every_budget_and_fills_it(budget: int) -> None:
    text = snapshot_of(*busy_session(), budget=budget)
    assert "never touch `schema_v1.sql`" in text
    assert len(text) >= 0.9 * min(budget, 40_000)


@pytest.mark.parametrize("budget", [300, 1_500, 8_000])
def test_a_budget_in_tokens_is_used_to_nine_tenths(budget: int) -> None:
    entries = path_of(*busy_session(200))
    text = build_snapshot_text(entries, budget, lambda text: -(-len(text) // 4))
    assert 0.9 * budget <= -(-len(text) // 4) <= budget


def test_twelve_prompts_of_eighty_words_are_kept_to_their_end() -> None:
    said = [" ".join(f"w{number}x{place}" for place in range(80)) for number in range(12)]
    entries = path_of(*(user(text) for text in said), *busy_session()[1:])
    text = build_snapshot_text(entries, 10_000)
    assert all(one in text for one in said)


def test_when_there_are_too_many_directives_the_first_and_the_newest_stay() -> None:
    said = [user(f"directive number {number}: do the thing {number}") for number in range(500)]
    text = snapshot_of(*said, budget=3_000)
    assert "directive number 0:" in text
    assert "directive number 499:" in text
    assert re.search(r"\(\d+ more messages of the user are only in the log\)", text)


def test_short_directives_stay_whole_beside_a_long_one() -> None:
    long = "word " * 5_000
    text = snapshot_of(user("Use tabs."), user(long), user("Never push."), budget=4_000)
    assert "] Use tabs." in text
    assert "] Never push." in text
    assert re.search(r"\[… [\d,]+ characters left out …\]", text)


@given(
    st.lists(st.sampled_from(["word", "\n", "行 ", "\n\n\n", "x" * 90]), min_size=1, max_size=9),
    st.integers(1, 9_000),
    st.integers(700, 6_000),
)
def test_the_number_of_characters_left_out_of_a_directive_is_true(
    pieces: list[str], times: int, budget: int
) -> None:
    said = ("a" + "".join(pieces) * times + "z").strip()
    (item,) = parse_items(sections_of(user(said), model("Ok."), budget=budget).user_directives)
    head, *rest = re.split(r" \[… ([\d,]+) characters left out …\] ", item.partition("] ")[2])
    if rest:
        number, tail = rest
        assert len(head) + int(number.replace(",", "")) + len(tail) == len(said)
        assert said.startswith(head)
        assert said.endswith(tail)
    else:
        assert head == said or head.endswith("…")  # too short for a number


def test_nothing_says_how_much_is_left_out_of_texts_that_are_read_in_part() -> None:
    long = "a row of `some_words` here.\n" * 9_000
    prose = "# Notes\n" + "- `lib/a.py` has a row of some_words here\n" * 9_000
    text = snapshot_of(
        Compaction(status="COMPRESSED", snapshot="Earlier summary. " + "x " * 99_000),
        *ran("notes show", prose, 1),
        *read("lib/long.py", long, 2),
        *edit("lib/long.py", "x", long, 3),
        model(long),
        budget=14_600,
        written=Snapshot(key_knowledge="z" * 200_000),
    )
    (found,) = re.findall(r"\[… ([\d,]+) characters left out …\]", text)
    shown = re.search(r"Earlier summary\. [x ]*(?=\[… ).*?\] ([x ]*)", text)
    assert shown is not None
    kept = len("Earlier summary. ") + shown[0].count("x") * 2
    assert abs(int(found.replace(",", "")) + kept - 198_017) < 6


def test_a_larger_budget_keeps_more() -> None:
    session = busy_session()
    texts = [snapshot_of(*session, budget=budget) for budget in (2_000, 4_000, 8_000, 16_000)]
    kept = [len(set(re.findall(r"column_\d+_\d+", text))) for text in texts]
    assert kept == sorted(set(kept))


def test_the_newest_files_come_first_with_most_names() -> None:
    text = snapshot_of(*busy_session(), budget=6_000)
    assert "table_59.py: read, edited · column_59_" in text
    assert text.index("table_59.py: read") < text.index("table_58.py: read")


def test_each_file_has_the_handle_of_its_newest_change_or_else_of_its_newest_read() -> None:
    state = sections_of(
        *read("lib/read.py", "load_rows", 1),
        *read("lib/read.py", "load_rows", 2),
        *edit("lib/changed.py", "x", "save_rows", 3),
        *read("lib/changed.py", "save_rows", 4),
        *ran("sed -i 's/a/b/' lib/other.py", "", 5),
    ).file_system_state
    assert "- [00000004] lib/read.py: read ×2 · " in state  # the result
    assert "- [00000005] lib/changed.py: edited, read · " in state  # the call
    assert "- [00000009] lib/other.py: wrote" in state


def test_room_that_nothing_else_wants_shows_how_the_files_begin_that_were_read_last() -> None:
    rows = {n: f"the first line of {n}\n" + f"row {n} " * 900 for n in range(9)}
    reads = [body for n, text in rows.items() for body in read(f"rows_{n}.txt", text, n)]
    changed = edit("rows_8.txt", "x", "another first line", 10)
    session = [user("Look at the rows."), *reads, *changed, model("好")]
    state = sections_of(*session, budget=20_000).file_system_state
    assert "- [00000011] Last read of rows_7.txt:\n  the first line of 7\n  row 7 row 7" in state
    assert "Last read of rows_2.txt" in state
    assert "Last read of rows_8.txt" not in state  # it was changed since
    assert "Last read of rows_0.txt" not in state
    assert len(state) < 15_000
    short = sections_of(*session, budget=1_200).file_system_state
    assert "] rows_0.txt: read" in short


def test_the_beginnings_of_files_take_nothing_from_what_else_there_is_to_say() -> None:
    session = (*busy_session(), *read("/p/lib/last.py", "only_here = 1\n" * 90, 99))
    text = snapshot_of(*session, budget=14_600)
    assert "] last.py: read · only_here" in text
    assert "Last read of" not in text


def test_a_name_stands_near_the_name_of_its_file() -> None:
    names = [f"column_number_{place}" for place in range(100)]
    text = snapshot_of(*read("/p/lib/wide_table.py", " ".join(names)), budget=8_000)
    starts = [match.start() for match in re.finditer("wide_table.py", text)]
    for name in names:
        at = text.index(name)
        assert any(abs(at - start) <= 400 for start in starts), name


def test_the_sections_tell_the_state() -> None:
    todos = [{"content": "write the parser", "status": "in_progress"}]
    sections = sections_of(
        user("Build a parser for rows."),
        *did(call("TodoWrite", id="t", todos=todos), "ok"),
        *read("lib/rows.py", "class RowParser:\n    def parse_row(self): ..."),
        *edit("lib/rows.py", "pass", "    return parse_cells(row)"),
        *ran("pytest -q", "E  AssertionError: empty row\n1 failed", 2),
        model("The parser fails on empty rows.\nShall I skip them?"),
    )
    assert sections.overall_goal == "- Build a parser for rows."
    assert sections.user_directives == "- [00000001] Build a parser for rows."
    assert "- [00000006] lib/rows.py: read, edited · " in sections.file_system_state
    assert "Commits: none was made" in sections.file_system_state
    assert "Changed and not committed: lib/rows.py" in sections.file_system_state
    assert "edited rows.py: return parse_cells(row)" in sections.recent_actions
    assert "The parser fails on empty rows." in sections.recent_actions
    assert sections.current_plan == "- [>] write the parser"
    assert "Failed last time: `pytest -q`" in sections.open_questions
    assert "Asked, not answered: Shall I skip them?" in sections.open_questions


def test_the_agents_reasons_are_quoted_with_the_handle_of_their_message() -> None:
    why = "The index is rebuilt at night, because `rebuild_index` locks the table."
    sections = sections_of(user("Go."), model(why), *busy_session(20)[1:], budget=14_600)
    assert f"- [00000002] {why}" in sections.recent_actions


def test_a_chat_without_tools_says_nothing_about_commits() -> None:
    text = snapshot_of(user("What is a monad?"), model("A monad is a monoid."))
    assert "Commits" not in text
    assert "A monad is a monoid." in text


def test_chinese_text_is_kept_word_for_word() -> None:
    said = "请把 src/行/解析.py 里的 parse_rows 改名,不要改测试。"
    text = snapshot_of(user(said), *read("src/行/解析.py", "def parse_rows(): ..."))
    assert f"] {said}" in text
    assert "src/行/解析.py: read · parse_rows" in text


# --- what a model wrote -------------------------------------------------------------------------

WRITTEN = Snapshot(
    overall_goal="Build a parser.",
    user_directives="- Push now.",
    key_knowledge="Rows may be empty.\nThe test suite runs in `ci.yml`.",
    file_system_state="MODIFIED: rows.py holds the parser.\nCommit deadbeef1 has it.",
    recent_actions="Ran the tests.\nFixed the lexer.",
    current_plan="1. [DONE] lexer\n2. [TODO] docs",
    open_questions="Which encoding?",
)


def test_what_a_model_wrote_is_kept_in_every_section() -> None:
    sections = sections_of(user("Never push."), *read("lib/rows.py", "parse_row"), written=WRITTEN)
    for name in ("overall_goal", "key_knowledge", "file_system_state", "recent_actions"):
        for line in WRITTEN.section(name).split("\n"):
            assert f"- {line}" in sections.section(name)
    for name in ("current_plan", "open_questions"):
        for line in WRITTEN.section(name).split("\n"):
            assert line in sections.section(name)
    assert "- [00000003] lib/rows.py: read · parse_row" in sections.file_system_state


def test_a_handle_is_not_taken_for_a_commit_and_the_users_words_are_not_repeated() -> None:
    written = Snapshot(
        user_directives='- [00000001] "Never push."',
        key_knowledge="- [1a2b3c4d] Rows may be empty.",
    )
    sections = sections_of(user("Never push."), written=written)
    assert sections.key_knowledge == "- [1a2b3c4d] Rows may be empty."


def test_what_a_model_says_as_code_does_is_said_once() -> None:
    sections = sections_of(user("Build it all."), written=Snapshot(overall_goal="Build it all."))
    assert sections.overall_goal == "- Build it all."


def test_a_model_can_neither_remove_nor_forge_a_directive() -> None:
    sections = sections_of(user("Never push."), written=WRITTEN)
    assert sections.user_directives == "- [00000001] Never push."
    assert "As the model understood the user: Push now." in sections.key_knowledge


def test_a_commit_or_file_that_no_tool_ever_showed_is_marked() -> None:
    sections = sections_of(user("Go."), *read("lib/rows.py", "parse_row"), written=WRITTEN)
    assert "Commit deadbeef1 has it. [not in the log]" in sections.file_system_state
    assert "rows.py holds the parser.\n" in sections.file_system_state
    assert "`ci.yml`. [not in the log]" in sections.key_knowledge


@pytest.mark.parametrize("budget", [6_000, 14_600, 40_000])
def test_what_a_model_wrote_within_its_words_is_not_cut(budget: int) -> None:
    """Code adds what is left out: it does not cut sentences in two to make room for names."""
    sentence = "Item {} of {} says something that nobody but the model could put in so few words."
    items = budget * 7 // 10 // len(sentence)
    counts = {"overall_goal": 1, "key_knowledge": items * 2 // 3, "current_plan": items // 4}
    sections = {
        name: "\n".join(f"- {sentence.format(n, name)}" for n in range(count))
        for name, count in counts.items()
    }
    text = snapshot_of(*busy_session(), budget=budget, written=Snapshot(**sections))
    wanted = [sentence.format(n, name) for name, count in counts.items() for n in range(count)]
    assert [one for one in wanted if one not in text] == []
    assert "never touch `schema_v1.sql`" in text


def test_a_model_that_writes_without_end_leaves_room_for_the_facts() -> None:
    endless = Snapshot(**{name: f"{name[0]}\n" * 99_999 for name in WRITTEN.__struct_fields__})
    text = snapshot_of(*busy_session(), budget=14_600, written=endless)
    assert "never touch `schema_v1.sql`" in text
    assert "table_59.py: read, edited" in text


@pytest.mark.parametrize("budget", [1_200, 3_000, 14_600, 60_000])
def test_text_that_escaping_makes_longer_keeps_to_the_budget(budget: int) -> None:
    tags = "<scratchpad" * 9_000
    lines = "\n".join(["- <scratchpad" + "<scratchpad" * 5] * 900)
    written = Snapshot(
        overall_goal=tags, key_knowledge=tags, current_plan=lines, open_questions=lines
    )
    ran_often = [b for n in range(40) for b in ran(f"make {'<scratchpad' * 5}", "Error: no", n)]
    text = snapshot_of(
        Compaction(status="COMPRESSED", snapshot="Summary: " + tags),
        user(tags),
        *ran("task show", f"- `lib/a.py`\n{lines}", 50),
        *ran_often,
        model(tags),
        budget=budget,
        written=written,
    )
    assert parse_snapshot(text) is not None

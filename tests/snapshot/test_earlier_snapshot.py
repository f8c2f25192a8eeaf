"""Compacting again and again: directives survive every round, old facts give way to new ones."""

from __future__ import annotations

import re

from recollect.entries import Body, Compaction
from recollect.snapshot.snapshot_format import Snapshot, write_snapshot
from recollect.testing import call, model, user
from tests.snapshot.session_paths import did, edit, facts_of, ran, read, sections_of

BUDGET = 6_000


def work(round_: int) -> list[Body]:
    names = " ".join(f"round_{round_}_name_{place}" for place in range(40))
    bodies: list[Body] = [
        user(f"Directive of round {round_}: keep\n  the indent, <tags> and 中文.")
    ]
    for number in range(5):
        path = f"lib/round_{round_}/file_{round_}_{number}.py"
        bodies += (*read(path, names, number), *edit(path, "x", names, number))
    return bodies


def compacted(bodies: list[Body], earlier: Snapshot | None = None) -> Snapshot:
    before = [] if earlier is None else [mark(earlier)]
    return sections_of(*before, *bodies, budget=BUDGET)


def mark(snapshot: Snapshot) -> Compaction:
    return Compaction(status="COMPRESSED", snapshot=write_snapshot(snapshot))


def test_directives_survive_ten_rounds_word_for_word_and_facts_decay() -> None:
    snapshot = None
    for round_ in range(10):
        snapshot = compacted(work(round_), snapshot)
    assert snapshot is not None
    for round_ in range(10):
        said = f"] Directive of round {round_}: keep\n    the indent, <tags> and 中文."
        assert snapshot.user_directives.count(said) == 1
    assert "round_9_name_0" in snapshot.file_system_state
    assert "round_0_name_0" not in snapshot.file_system_state
    assert snapshot.overall_goal.startswith("- Directive of round 0")


def test_plan_failures_questions_tasks_and_reports_outlive_a_round() -> None:
    task = "# Task\n- change `lib/a.py`\n- and `lib/b.py` for RowIndex, find_row, RowHit\n" * 5
    todos = [{"content": "write it", "status": "in_progress"}]
    bodies: list[Body] = [
        user("Do task-7."),
        *did(call("TodoWrite", id="t", todos=todos), "ok"),
        *ran("tracker show task-7", task, 1),
        *ran("make all", "Error: boom", 2, fails=True),
        model("It does not build.\nShall I stop?"),
    ]
    second = compacted([], compacted(bodies))
    assert second.current_plan == "- [>] write it"
    assert "Failed last time: `make all` → FAILED Error: boom" in second.open_questions
    assert "Shall I stop?" in second.open_questions
    assert "It does not build." in second.recent_actions
    assert "find_row" in second.key_knowledge


def test_a_later_success_resolves_a_failure_of_an_earlier_round() -> None:
    first = compacted([user("Go."), *ran("make all", "Error: boom", fails=True)])
    assert "make all" in first.open_questions
    assert compacted([*ran("make all", "ok")], first).open_questions == ""


def test_an_answer_closes_a_question_of_an_earlier_round() -> None:
    first = compacted([user("Go."), model("Shall I stop?")])
    assert "Shall I stop?" in first.open_questions
    assert compacted([user("No.")], first).open_questions == ""


def test_a_models_knowledge_is_still_there_ten_rounds_later() -> None:
    snapshot = Snapshot(key_knowledge="The API key lives in the vault, never in the code.")
    for round_ in range(10):
        snapshot = compacted(work(round_), snapshot)
    assert snapshot.key_knowledge.count("The API key lives in the vault, never in the code.") == 1


def test_a_commit_of_an_earlier_round_stays_and_what_was_true_only_then_goes() -> None:
    first = compacted(
        [user("Go."), *edit("a.py", "x", "new_name"), *ran("git commit -m a", "[m 1a2b3c4] A", 2)]
    )
    second = compacted([*edit("b.py", "x", "other_name")], first)
    assert "Committed 1a2b3c4 on m: A" in second.file_system_state
    assert second.file_system_state.count("] a.py: edited") == 1
    assert "Changed and not committed: b.py" in second.file_system_state


def test_a_file_of_several_rounds_has_one_line_with_all_that_was_done_to_it() -> None:
    first = compacted([*read("lib/a.py", "load_rows", 1), *read("lib/a.py", "load_rows", 2)])
    assert first.file_system_state.split("\n")[0] == "- [00000004] lib/a.py: read ×2 · load_rows"
    more = [body for n in range(3) for body in read("lib/a.py", "save_rows", n)]
    second = compacted([*more, *read("lib/b.py", "x", 4)], first)
    assert "- [00000007] lib/a.py: read ×5 · save_rows load_rows" in second.file_system_state
    third = compacted([*edit("lib/a.py", "x", "drop_rows")], second)
    assert "] lib/a.py: read ×5, edited · drop_rows" in third.file_system_state
    assert "] lib/b.py: read\n" in third.file_system_state + "\n"
    for snapshot in (first, second, third):
        assert snapshot.file_system_state.count("] lib/a.py: ") == 1


def test_the_handle_of_a_change_stays_when_a_later_round_only_reads() -> None:
    first = compacted([user("Go."), *edit("lib/a.py", "x", "load_rows")])
    assert "- [00000002] lib/a.py: edited" in first.file_system_state
    second = compacted([user("On."), user("Look."), *read("lib/a.py", "load_rows")], first)
    assert "- [00000002] lib/a.py: edited, read" in second.file_system_state


def test_messages_left_out_of_an_earlier_snapshot_are_still_counted() -> None:
    said: list[Body] = [user(f"directive number {n}: do the thing {n}") for n in range(200)]
    first = compacted(said)
    gone, kept = missing(first), first.user_directives.count("directive number ")
    assert gone + kept == 200
    second = compacted([user("And now something else.")], first)
    assert missing(second) + second.user_directives.count("directive number ") == 200


def missing(snapshot: Snapshot) -> int:
    (found,) = re.findall(r"\((\d+) more messages of the user", snapshot.user_directives)
    return int(found)


def test_a_directive_that_is_cut_again_gives_no_false_number() -> None:
    said = "word " * 40_000 + "end"
    first = compacted([user(said)])
    shown, gone = number_in(first.user_directives)
    assert shown + gone == len(said)
    second = sections_of(mark(first), user("Now the next thing."), budget=2_000)
    assert "[…] " in second.user_directives
    assert "characters left out" not in second.user_directives
    whole = sections_of(mark(second), user(said), budget=5_000).user_directives
    assert whole.count("word end") == 1


def number_in(directives: str) -> tuple[int, int]:
    """How much of the only directive is shown, and how much it says is left out."""
    text = directives.partition("] ")[2]
    head, found, tail = re.split(r" \[… ([\d,]+) characters left out …\] ", text)
    return len(head) + len(tail), int(found.replace(",", ""))


def test_a_cut_directive_gives_way_to_the_whole_one_in_the_log() -> None:
    said = "word " * 2_000 + "end"
    first = compacted([user(said)])
    assert "characters left out" in first.user_directives
    again = sections_of(mark(first), user(said), budget=30_000)
    assert again.user_directives.count("end") == 1
    assert said in again.user_directives


def test_another_programs_snapshot_adds_knowledge_but_no_wishes() -> None:
    foreign = Snapshot(overall_goal="Ship it", user_directives="- Push.", key_knowledge="It runs.")
    imported = Compaction(status="COMPRESSED", snapshot=write_snapshot(foreign), trigger="import")
    sections = sections_of(imported, user("Go on."))
    assert "- Ship it" in sections.overall_goal
    assert "It runs." in sections.key_knowledge
    assert "Push." not in sections.user_directives


def test_another_programs_summary_is_quoted() -> None:
    prose = "Thinking aloud.\nSummary:\nThe parser is written; the lexer is next."
    sections = sections_of(Compaction(status="COMPRESSED", snapshot=prose), user("Go on."))
    assert "The parser is written; the lexer is next." in sections.key_knowledge
    assert "Thinking aloud" not in sections.key_knowledge


def test_the_goal_stays_and_the_latest_directive_is_added() -> None:
    first = compacted([user("Build a parser for rows."), user("Now write the documentation.")])
    built = "- Build a parser for rows.\n- Latest: "
    assert first.overall_goal == built + "Now write the documentation."
    second = compacted([user("Then publish the whole package."), user("yes")], first)
    assert second.overall_goal == built + "Then publish the whole package."


def test_the_root_of_a_snapshot_is_the_root_of_the_next() -> None:
    before: list[Body] = [
        *read("/home/u/p/lib/a.py", "load_rows", 1),
        *read("/home/u/p/b.py", "", 2),
    ]
    facts = facts_of(mark(compacted(before)), *edit("/home/u/p/lib/a.py", "x", "y"))
    assert facts.journal.root == "/home/u/p"

"""Compacting again and again: directives survive every round, old facts give way to new ones."""

from __future__ import annotations

from recollect.entries import Body, Compaction
from recollect.snapshot.ledger_builder import build_ledger
from recollect.snapshot.snapshot_format import Snapshot, parse_snapshot
from recollect.snapshot.snapshot_renderer import render_snapshot
from recollect.testing import call, model, user
from tests.snapshot.session_paths import did, edit, file_of, path_of, ran, read

BUDGET = 5_000


def work(round_: int) -> list[Body]:
    names = " ".join(f"round_{round_}_name_{place}" for place in range(40))
    bodies: list[Body] = [
        user(f"Directive of round {round_}: keep\n  the indent, <tags> and 中文.")
    ]
    for number in range(5):
        path = f"lib/round_{round_}/file_{round_}_{number}.py"
        bodies += (*read(path, names, number), *edit(path, "x", names, number))
    return bodies


def compacted(bodies: list[Body], previous: Snapshot | None) -> Snapshot:
    text = render_snapshot(build_ledger(path_of(*bodies), previous=previous), BUDGET)
    assert len(text) <= BUDGET
    snapshot = parse_snapshot(text)
    assert snapshot is not None
    return snapshot


def test_directives_survive_ten_rounds_word_for_word_and_facts_decay() -> None:
    snapshot = None
    for round_ in range(10):
        snapshot = compacted(work(round_), snapshot)
    assert snapshot is not None
    for round_ in range(10):
        said = f"- Directive of round {round_}: keep\n    the indent, <tags> and 中文."
        assert snapshot.user_directives.count(said) == 1
    assert "round_9_name_0" in snapshot.file_system_state
    assert "round_0_name_0" not in snapshot.file_system_state
    assert snapshot.overall_goal.startswith("Directive of round 0")


def test_a_compaction_in_the_log_does_the_same_as_a_previous_snapshot() -> None:
    first = render_snapshot(build_ledger(path_of(*work(0))), BUDGET)
    after = path_of(Compaction(status="COMPRESSED", snapshot=first), *work(1))
    assert render_snapshot(build_ledger(after), BUDGET) == render_snapshot(
        build_ledger(path_of(*work(1)), previous=parse_snapshot(first)), BUDGET
    )


def test_counts_go_on_from_a_snapshot_and_are_not_taken_twice() -> None:
    before: list[Body] = [*edit("a.py", "x", "load_rows", 1), *edit("a.py", "y", "z", 2)]
    first = render_snapshot(build_ledger(path_of(*before)), BUDGET)
    mark = Compaction(status="COMPRESSED", snapshot=first)
    after: list[Body] = [mark, *edit("a.py", "z", "w", 3)]
    for bodies in (after, [*before, *after]):
        ledger = build_ledger(path_of(*bodies))
        assert file_of(ledger, "a.py").edits == 3
        assert "load_rows" in {tally.name for tally in file_of(ledger, "a.py").names}


def test_plan_failures_questions_quotations_and_reports_outlive_a_round() -> None:
    task = "# Task\n- change `lib/a.py`\n- and `lib/b.py` for RowIndex, find_row, RowHit\n" * 9
    todos = [{"content": "write it", "status": "in_progress"}]
    bodies: list[Body] = [
        user("Go."),
        *did(call("TodoWrite", id="t", todos=todos), "ok"),
        *ran("task show", task, 1),
        *ran("make all", "Error: boom", 2, fails=True),
        model("It does not build.\nShall I stop?"),
    ]
    first = compacted(bodies, None)
    second = compacted([], first)
    assert second.current_plan == first.current_plan == "[>] write it"
    assert second.open_questions == first.open_questions
    assert "FAILED $ make all → Error: boom" in second.open_questions
    assert "Last report: It does not build." in second.key_knowledge
    assert "Quoted from `task show`:\n> # Task" in second.key_knowledge
    assert "together: a.py b.py:" in second.file_system_state


def test_a_later_success_resolves_a_failure_of_an_earlier_round() -> None:
    first = compacted([user("Go."), *ran("make all", "Error: boom", fails=True)], None)
    assert "FAILED" in first.open_questions
    assert compacted([*ran("make all", "ok")], first).open_questions == ""


def test_a_models_knowledge_is_still_there_ten_rounds_later() -> None:
    snapshot = Snapshot(key_knowledge="The API key lives in the vault, never in the code.")
    for round_ in range(10):
        snapshot = compacted(work(round_), snapshot)
    assert "The API key lives in the vault, never in the code." in snapshot.key_knowledge


def test_a_cut_directive_gives_way_to_the_whole_one_in_the_log() -> None:
    said = "word " * 2_000 + "end"
    first = render_snapshot(build_ledger(path_of(user(said))), BUDGET)
    assert "characters left out" in first
    mark = Compaction(status="COMPRESSED", snapshot=first)
    assert build_ledger(path_of(user(said), mark)).directives == (said,)


def test_another_programs_snapshot_is_kept_as_prose() -> None:
    foreign = Snapshot(
        overall_goal="Ship it", file_system_state="CWD: /p\nCREATED: lib/a.py - rows"
    )
    ledger = build_ledger(path_of(user("Go.")), previous=foreign)
    assert ledger.goal == "Ship it"
    assert ledger.knowledge == ("CWD: /p\nCREATED: lib/a.py - rows",)
    assert [file.path for file in ledger.files] == ["lib/a.py"]


def test_the_goal_stays_and_the_latest_directive_is_added() -> None:
    first = compacted(
        [user("Build a parser for rows."), user("Now write the documentation.")], None
    )
    assert first.overall_goal == "Build a parser for rows.\nLatest: Now write the documentation."
    second = compacted([user("Then publish the whole package."), user("yes")], first)
    assert (
        second.overall_goal == "Build a parser for rows.\nLatest: Then publish the whole package."
    )


def test_the_root_of_a_snapshot_is_the_root_of_the_next() -> None:
    before: list[Body] = [
        *read("/home/u/p/lib/a.py", "load_rows", 1),
        *read("/home/u/p/b.py", "", 2),
    ]
    first = compacted(before, None)
    ledger = build_ledger(path_of(*edit("/home/u/p/lib/a.py", "x", "y")), previous=first)
    assert ledger.root == "/home/u/p"
    assert (file_of(ledger, "lib/a.py").reads, file_of(ledger, "lib/a.py").edits) == (1, 1)


def test_knowledge_that_every_snapshot_repeats_is_kept_once() -> None:
    known = "The API key lives in the vault."
    first = render_snapshot(
        build_ledger(path_of(*work(0)), previous=Snapshot(key_knowledge=known)), BUDGET
    )
    mark = Compaction(status="COMPRESSED", snapshot=first)
    ledger = build_ledger(path_of(mark, *work(1), mark, *work(2)))
    assert ledger.knowledge == (known,)

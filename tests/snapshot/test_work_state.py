"""The state of the work, and the tasks the user points to, as tools printed them."""

from __future__ import annotations

from recollect.entries import Body
from recollect.testing import call as call_tool
from recollect.testing import model, result, user
from tests.snapshot.session_paths import edit, ran, read, sections_of

TASK = """APP-12 Import rows
## Requirements
- The importer must never drop a row.
- Use `RowReader.read_all` and keep `max_rows` at 5,000.
- Output goes to `lib/importer.py`.
CHILDREN
  APP-12.1: Parse the header
  APP-12.2: Parse the rows
"""


def state_of(*bodies: Body) -> str:
    return sections_of(*bodies, budget=8_000).file_system_state


def test_commits_are_listed_with_hash_branch_and_subject() -> None:
    state = state_of(
        user("Go."),
        *edit("a.py", "x", "y = first_value", 1),
        *ran('git add a.py && git commit -m "Add a"', "[main 1a2b3c4] Add a\n 1 file changed", 2),
        *edit("b.py", "x", "z = other_value", 3),
    )
    assert "Committed 1a2b3c4 on main: Add a" in state
    assert "Pushes: none was made" in state
    assert "Changed since the last commit: b.py" in state


def test_a_push_is_told_and_whether_a_commit_came_after_it() -> None:
    pushed = "To origin\n   1a2b3c4..5d6e7f8  main -> main"
    bodies = [
        user("Go."),
        *ran("git commit -m a", "[main 5d6e7f8] Add a", 1),
        *ran("git push", pushed, 2),
    ]
    assert "Last push: 1a2b3c4..5d6e7f8  main -> main (`git push`)" in state_of(*bodies)
    more = ran("git commit -m b", "[main 9999999] Add b", 3)
    assert "main -> main; the last commit came later" in state_of(*bodies, *more)


def test_the_last_result_of_each_check_is_told() -> None:
    state = state_of(
        user("Go."),
        *ran("pytest -q", "2 failed, 3 passed", 1),
        *ran("pytest -q 2>&1 | tail -3", "5 passed in 1.2s", 2),
        *ran("ruff check .", "Found 2 errors.", 3, fails=True),
    )
    assert "Last check: `pytest -q 2>&1 | tail -3` → 5 passed" in state
    assert "2 failed, 3 passed" not in state
    assert "Last check: `ruff check .` → FAILED Found 2 errors." in state


def test_a_task_that_the_user_points_to_is_quoted_with_its_demands() -> None:
    knowledge = sections_of(
        user("Work on APP-12."), *ran("tracker show APP-12", TASK), budget=8_000
    ).key_knowledge
    assert "The importer must never drop a row." in knowledge
    assert "keep `max_rows` at 5,000" in knowledge


def test_a_file_the_user_points_to_is_a_task_only_if_it_is_prose() -> None:
    code = "\n".join(f"def function_{n}(): return {n}" for n in range(40))
    sections = sections_of(
        user("Do what docs/spec.md says in lib/app.py."),
        *read("docs/spec.md", TASK, 1),
        *read("lib/app.py", code, 2),
    )
    assert "must never drop a row" in sections.key_knowledge
    assert "def function_1" not in sections.key_knowledge


def test_each_ticket_has_the_last_thing_done_to_it() -> None:
    state = state_of(
        user("Work on APP-12."),
        *ran("tracker show APP-12", TASK, 1),
        *ran("tracker update APP-12.1 --status in_progress", "Updated APP-12.1", 2),
        *ran('tracker close APP-12.1 --reason "header done"', "Closed APP-12.1", 3),
        *ran("tracker update APP-12.2 --status in_progress", "Updated APP-12.2", 4),
    )
    assert 'APP-12.1: Parse the header — last: `tracker close APP-12.1 --reason "header' in state
    assert "APP-12.2: Parse the rows — last: `tracker update APP-12.2 --status" in state


def test_a_call_that_the_user_refused_stands_among_the_users_wishes() -> None:
    asked = call_tool("TaskOutput", id="w", task_id="b2", timeout=300)
    refused = "The user doesn't want to proceed with this tool use. The tool use was rejected."
    said = sections_of(
        user("Go."), model("Waiting.", asked), result(asked, refused, is_error=True)
    ).user_directives
    assert "(refused this call: TaskOutput task_id=b2 timeout=300)" in said


def test_files_that_a_command_writes_count_as_changed() -> None:
    state = state_of(
        user("Go."),
        *ran("cat > lib/new.py <<'EOF'\ndef load_rows(): ...\nEOF", "", 1),
        *ran("sed -i 's/a/b/' lib/old.py && ls", "lib", 2),
    )
    assert "Changed and not committed: lib/new.py, lib/old.py" in state
    assert "lib/new.py: wrote · load_rows" in state

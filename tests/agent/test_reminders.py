"""Reminders about the date, the editor and memory, over real files and logs."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from datetime import date, datetime, timedelta
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from recollect.agent.exchange import message_text
from recollect.agent.reminders import MAX_PATHS, ContextReminders, name_addition
from recollect.entries import Body, Compaction, Entry, Message, Text, json_text
from recollect.testing import call, model, result, user
from recollect.view.view import View
from recollect.workspace.memory_files import MemorySources

TODAY = date(2026, 11, 16)


def at(day: date) -> int:
    return int(datetime(day.year, day.month, day.day, 12).timestamp() * 1_000)  # noqa: DTZ001


def initial(extra: str = "") -> Message:
    return Message(role="user", parts=(Text(text="setup"),), context="initial", extra=extra)


def test_each_thing_that_is_added_to_a_request_has_a_name(tmp_path: Path) -> None:
    editor = tmp_path / "editor.json"
    editor.write_text(json.dumps({"openFiles": [{"path": "/a.py", "timestamp": 1}]}))
    (tmp_path / "AGENTS.md").write_text("Use tabs.")
    session = GrowingSession(tmp_path, Entry("a", None, at(TODAY), initial()), editor=editor)
    session.today = TODAY + timedelta(days=1)
    added = asyncio.run(session.reminders(session.view))
    assert [name_addition(one) for one in added] == ["the date", "the editor's state", "memory"]
    assert name_addition(initial()) == "the environment"
    assert name_addition(user("So?")) == "the prompt"


class GrowingSession:
    """A session that grows; calling it appends messages and returns the reminders that follow."""

    def __init__(
        self,
        root: Path,
        *entries: Entry,
        editor: Path | None = None,
        trusted: bool = True,
        today: date = TODAY,
    ) -> None:
        self.today = today
        sources = MemorySources(cwd=root, root=root, home=root / "home", trusted=lambda _: trusted)
        self._sources, self._editor = sources, editor
        self.view, self.reminders = View.fold(entries), self._new()

    def _new(self) -> ContextReminders:
        return ContextReminders(self._sources, editor=self._editor, today=lambda: self.today)

    def resume(self) -> None:
        """In another process."""
        self.view, self.reminders = View.fold(self.view.entries), self._new()

    def append(self, *bodies: Body) -> None:
        for body in bodies:
            id_ = f"e{self.view.n}"
            self.view = self.view.append(Entry(id_, self.view.head, at(self.today), body))

    def __call__(self, *bodies: Body) -> list[str]:
        self.append(*bodies)
        messages: Sequence[Message] = asyncio.run(self.reminders(self.view))
        self.append(*messages)
        assert all(message.context in ("aside", "memory") for message in messages)
        return [message_text(message) for message in messages]


def begun(day: date = TODAY) -> Entry:
    return Entry("first", None, at(day), initial())


# --- the date ----------------------------------------------------------------------------------


def test_the_day_of_the_first_message_is_not_repeated(tmp_path: Path) -> None:
    remind = GrowingSession(tmp_path, begun())
    assert remind(user("hi")) == remind(model("hello"), user("and?")) == []


def test_another_day_is_stated_once_and_every_further_day_once(tmp_path: Path) -> None:
    remind = GrowingSession(tmp_path, begun(TODAY - timedelta(days=3)))
    line = "Today's date is now Monday, November 16, 2026; this session goes on from another day."
    assert remind(user("hi")) == [line]
    assert remind(model("hello"), user("and?")) == []
    remind.resume()
    assert remind(user("again")) == []
    remind.today = TODAY + timedelta(days=1)
    assert remind(user("tomorrow")) == [line.replace("Monday, November 16", "Tuesday, November 17")]
    assert remind(user("still tomorrow")) == []


def test_a_date_that_a_compaction_hid_is_repeated(tmp_path: Path) -> None:
    remind = GrowingSession(tmp_path, begun(TODAY - timedelta(days=3)))
    assert len(remind(user("hi"))) == 1
    remind.append(Compaction(status="COMPRESSED", snapshot="what was", kept=("first",)))
    assert len(remind(user("and?"))) == 1
    assert remind(user("and then?")) == []
    remind.resume()
    assert remind(user("again")) == []


def test_a_session_without_a_date_gets_no_change_of_date(tmp_path: Path) -> None:
    imported = Entry("first", None, at(TODAY - timedelta(days=3)), user("imported"))
    remind = GrowingSession(tmp_path, imported)
    assert remind(user("hi")) == []


@given(
    st.dictionaries(
        st.sampled_from(["told_day", "memory_files", "x"]),
        st.none() | st.booleans() | st.integers() | st.text() | st.lists(st.text(), max_size=2),
    )
)
def test_any_extra_of_a_stored_message_is_survived(extra: dict[str, object]) -> None:
    odd = Message(role="user", parts=(Text(text="x"),), context="aside", extra=json_text(extra))
    remind = GrowingSession(Path("/nonexistent"), begun(), Entry("odd", "first", at(TODAY), odd))
    assert len(remind(user("hi"))) <= 1


# --- memory ------------------------------------------------------------------------------------

READ = call("read_file", id="r", absolute_path="sub/deep/a.py")


def with_memory(root: Path) -> Path:
    (root / "sub" / "deep").mkdir(parents=True)
    (root / ".gitignore").write_text("sub\n")  # not searched at the start
    (root / "sub" / "AGENTS.md").write_text("Tabs only.")
    (root / "sub" / "deep" / "AGENTS.md").write_text("No globals.")
    return root


def test_memory_above_a_touched_file_is_added_once_also_after_a_resume(
    tmp_path: Path,
) -> None:
    remind = GrowingSession(with_memory(tmp_path), begun())
    assert remind(user("go")) == []
    (added,) = remind(Message(role="model", parts=(READ,)), result(READ, "x"))
    assert added.index("Tabs only.") < added.index("No globals.")
    assert remind(Message(role="model", parts=(READ,)), result(READ, "x")) == []
    remind.resume()
    assert remind(user("again"), Message(role="model", parts=(READ,)), result(READ, "x")) == []


def test_a_folder_touched_just_before_the_program_ended_is_not_forgotten(tmp_path: Path) -> None:
    remind = GrowingSession(with_memory(tmp_path), begun())
    remind.append(user("go"), Message(role="model", parts=(READ,)), result(READ, "x"))
    remind.resume()
    assert len(remind(user("go on"))) == 1
    assert remind(user("and?")) == []


def test_memory_in_the_first_message_is_not_repeated(tmp_path: Path) -> None:
    root = with_memory(tmp_path)
    seen = [str(root / "sub" / "AGENTS.md"), str(root / "sub" / "deep" / "AGENTS.md")]
    first = Entry("first", None, at(TODAY), initial(json_text({"memory_files": seen})))
    remind = GrowingSession(root, first)
    assert remind(user("go"), Message(role="model", parts=(READ,)), result(READ, "x")) == []


def test_memory_of_untrusted_and_outside_folders_is_not_added(tmp_path: Path) -> None:
    root = with_memory(tmp_path / "project")
    (tmp_path / "AGENTS.md").write_text("From outside.")
    remind = GrowingSession(root, begun(), trusted=False)
    assert remind(user("go"), Message(role="model", parts=(READ,)), result(READ, "x")) == []
    away = call("read_file", id="o", absolute_path="../x.py")
    remind = GrowingSession(root, begun())
    assert remind(user("go"), Message(role="model", parts=(away,)), result(away, "x")) == []


def test_only_the_first_of_thousands_of_paths_are_looked_at(tmp_path: Path) -> None:
    folders = [f"f{number:03}" for number in range(MAX_PATHS + 10)]
    for name in folders:
        (tmp_path / name).mkdir()
        (tmp_path / name / "AGENTS.md").write_text(f"memory of {name}")
    many = [call("read_file", id=name, absolute_path=f"{name}/x") for name in folders]
    remind = GrowingSession(tmp_path, begun())
    (added,) = remind(user("go"), Message(role="model", parts=tuple(many)))
    assert added.count("memory of") == MAX_PATHS


# --- the editor --------------------------------------------------------------------------------


def write_state(file: Path, *, line: int = 1, files: Sequence[str] = ("/p/b.py",)) -> None:
    active = {"path": "/p/a.py", "timestamp": 9, "isActive": True, "cursor": {"line": line}}
    others = [{"path": path, "timestamp": 1} for path in files]
    file.write_text(json.dumps({"openFiles": [active, *others]}))


def test_the_editor_state_comes_whole_then_as_changes_then_not_at_all(tmp_path: Path) -> None:
    file = tmp_path / "editor.json"
    remind = GrowingSession(tmp_path, begun(), editor=file)
    assert remind(user("hi")) == []  # there is no such file yet
    write_state(file)
    (first,) = remind(user("and?"))
    assert "/p/a.py" in first
    assert remind(user("nothing changed")) == []
    write_state(file, line=7)
    (moved,) = remind(user("moved"))
    assert "cursorMoved" in moved
    assert "/p/b.py" not in moved
    file.write_text("{ half a file")
    (closed,) = remind(user("closed"))
    assert "filesClosed" in closed


def test_the_editor_state_comes_whole_again_after_a_compaction(tmp_path: Path) -> None:
    file = tmp_path / "editor.json"
    write_state(file)
    remind = GrowingSession(tmp_path, begun(), editor=file)
    (whole,) = remind(user("hi"))
    assert remind(user("and?")) == []
    remind.append(Compaction(status="COMPRESSED", snapshot="what was", kept=("first",)))
    assert remind(user("go on")) == [whole]
    remind.append(Compaction(status="NOOP"))
    assert remind(user("go on")) == []

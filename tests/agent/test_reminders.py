"""What the model is told beside the conversation, over real files and logs."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from datetime import date, datetime, timedelta
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from recollect.agent.exchange import message_text
from recollect.agent.reminders import MAX_PATHS, ContextReminders
from recollect.entries import Body, Compaction, Entry, Message, Text, json_text
from recollect.testing import call, model, result, user
from recollect.view.view import View
from recollect.workspace.memory_files import MemorySources

TODAY = date(2026, 11, 16)


def at(day: date) -> int:
    return int(datetime(day.year, day.month, day.day, 12).timestamp() * 1_000)  # noqa: DTZ001


def initial(extra: str = "") -> Message:
    return Message(role="user", parts=(Text(text="setup"),), context="initial", extra=extra)


class Told:
    """A session that grows, and what is told of it each time it is asked; all of it is kept."""

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
        self.view, self.around = View.fold(entries), self._new()

    def _new(self) -> ContextReminders:
        return ContextReminders(self._sources, editor=self._editor, today=lambda: self.today)

    def resumed(self) -> None:
        """In another process."""
        self.view, self.around = View.fold(self.view.entries), self._new()

    def append(self, *bodies: Body) -> None:
        for body in bodies:
            id_ = f"e{self.view.n}"
            self.view = self.view.append(Entry(id_, self.view.head, at(self.today), body))

    def __call__(self, *bodies: Body) -> list[str]:
        self.append(*bodies)
        told: Sequence[Message] = asyncio.run(self.around(self.view))
        self.append(*told)
        assert all(message.context in ("aside", "memory") for message in told)
        return [message_text(message) for message in told]


def begun(day: date = TODAY) -> Entry:
    return Entry("first", None, at(day), initial())


# --- the date ----------------------------------------------------------------------------------


def test_the_day_of_the_first_message_is_not_told_again(tmp_path: Path) -> None:
    told = Told(tmp_path, begun())
    assert told(user("hi")) == told(model("hello"), user("and?")) == []


def test_another_day_is_told_once_and_every_further_day_once(tmp_path: Path) -> None:
    told = Told(tmp_path, begun(TODAY - timedelta(days=3)))
    line = "Today's date is now Monday, November 16, 2026; this session goes on from another day."
    assert told(user("hi")) == [line]
    assert told(model("hello"), user("and?")) == []
    told.resumed()
    assert told(user("again")) == []
    told.today = TODAY + timedelta(days=1)
    assert told(user("tomorrow")) == [line.replace("Monday, November 16", "Tuesday, November 17")]
    assert told(user("still tomorrow")) == []


def test_a_date_that_a_compaction_took_away_is_told_again(tmp_path: Path) -> None:
    told = Told(tmp_path, begun(TODAY - timedelta(days=3)))
    assert len(told(user("hi"))) == 1
    told.append(Compaction(status="COMPRESSED", snapshot="what was", kept=("first",)))
    assert len(told(user("and?"))) == 1
    assert told(user("and then?")) == []
    told.resumed()
    assert told(user("again")) == []


def test_a_session_that_was_never_told_a_day_is_not_told_that_it_is_another(tmp_path: Path) -> None:
    told = Told(tmp_path, Entry("first", None, at(TODAY - timedelta(days=3)), user("imported")))
    assert told(user("hi")) == []


@given(
    st.dictionaries(
        st.sampled_from(["told_day", "memory_files", "x"]),
        st.none() | st.booleans() | st.integers() | st.text() | st.lists(st.text(), max_size=2),
    )
)
def test_whatever_a_stored_message_says_of_itself_is_survived(extra: dict[str, object]) -> None:
    odd = Message(role="user", parts=(Text(text="x"),), context="aside", extra=json_text(extra))
    told = Told(Path("/nonexistent"), begun(), Entry("odd", "first", at(TODAY), odd))
    assert len(told(user("hi"))) <= 1


# --- memory ------------------------------------------------------------------------------------

READ = call("read_file", id="r", absolute_path="sub/deep/a.py")


def with_memory(root: Path) -> Path:
    (root / "sub" / "deep").mkdir(parents=True)
    (root / "sub" / "AGENTS.md").write_text("Tabs only.")
    (root / "sub" / "deep" / "AGENTS.md").write_text("No globals.")
    return root


def test_memory_on_the_way_to_a_touched_file_is_given_once_also_after_a_resume(
    tmp_path: Path,
) -> None:
    told = Told(with_memory(tmp_path), begun())
    assert told(user("go")) == []
    (given_,) = told(Message(role="model", parts=(READ,)), result(READ, "x"))
    assert given_.index("Tabs only.") < given_.index("No globals.")
    assert told(Message(role="model", parts=(READ,)), result(READ, "x")) == []
    told.resumed()
    assert told(user("again"), Message(role="model", parts=(READ,)), result(READ, "x")) == []


def test_a_folder_touched_just_before_the_program_ended_is_not_forgotten(tmp_path: Path) -> None:
    told = Told(with_memory(tmp_path), begun())
    told.append(user("go"), Message(role="model", parts=(READ,)), result(READ, "x"))
    told.resumed()
    assert len(told(user("go on"))) == 1
    assert told(user("and?")) == []


def test_memory_that_the_first_message_gave_is_not_given_again(tmp_path: Path) -> None:
    root = with_memory(tmp_path)
    seen = [str(root / "sub" / "AGENTS.md"), str(root / "sub" / "deep" / "AGENTS.md")]
    first = Entry("first", None, at(TODAY), initial(json_text({"memory_files": seen})))
    told = Told(root, first)
    assert told(user("go"), Message(role="model", parts=(READ,)), result(READ, "x")) == []


def test_no_memory_is_given_of_a_folder_that_is_not_trusted_or_outside(tmp_path: Path) -> None:
    root = with_memory(tmp_path / "project")
    (tmp_path / "AGENTS.md").write_text("From outside.")
    told = Told(root, begun(), trusted=False)
    assert told(user("go"), Message(role="model", parts=(READ,)), result(READ, "x")) == []
    away = call("read_file", id="o", absolute_path="../x.py")
    told = Told(root, begun())
    assert told(user("go"), Message(role="model", parts=(away,)), result(away, "x")) == []


def test_a_reply_that_names_thousands_of_paths_is_looked_at_in_part(tmp_path: Path) -> None:
    folders = [f"f{number:03}" for number in range(MAX_PATHS + 10)]
    for name in folders:
        (tmp_path / name).mkdir()
        (tmp_path / name / "AGENTS.md").write_text(f"memory of {name}")
    many = [call("read_file", id=name, absolute_path=f"{name}/x") for name in folders]
    told = Told(tmp_path, begun())
    (given_,) = told(user("go"), Message(role="model", parts=tuple(many)))
    assert given_.count("memory of") == MAX_PATHS


# --- the editor --------------------------------------------------------------------------------


def write_state(file: Path, *, line: int = 1, files: Sequence[str] = ("/p/b.py",)) -> None:
    active = {"path": "/p/a.py", "timestamp": 9, "isActive": True, "cursor": {"line": line}}
    others = [{"path": path, "timestamp": 1} for path in files]
    file.write_text(json.dumps({"openFiles": [active, *others]}))


def test_the_editor_is_told_whole_then_by_changes_then_not_at_all(tmp_path: Path) -> None:
    file = tmp_path / "editor.json"
    told = Told(tmp_path, begun(), editor=file)
    assert told(user("hi")) == []  # there is no such file yet
    write_state(file)
    (first,) = told(user("and?"))
    assert "/p/a.py" in first
    assert told(user("nothing changed")) == []
    write_state(file, line=7)
    (moved,) = told(user("moved"))
    assert "cursorMoved" in moved
    assert "/p/b.py" not in moved
    file.write_text("{ half a file")
    (closed,) = told(user("closed"))
    assert "filesClosed" in closed


def test_the_editor_is_told_whole_again_after_a_compaction(tmp_path: Path) -> None:
    file = tmp_path / "editor.json"
    write_state(file)
    told = Told(tmp_path, begun(), editor=file)
    (whole,) = told(user("hi"))
    assert told(user("and?")) == []
    told.append(Compaction(status="COMPRESSED", snapshot="what was", kept=("first",)))
    assert told(user("go on")) == [whole]
    told.append(Compaction(status="NOOP"))
    assert told(user("go on")) == []

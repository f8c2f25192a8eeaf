"""Exporting: file names, valid JSON, and the way back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from recollect.entries import Body, Entry, Message, Pin, Text
from recollect.store.open_store import open_store
from recollect.store.sqlite import SqliteStore
from recollect.testing import model, user
from recollect.transcripts import history_server
from recollect.transcripts.format_table import EXPORT_FORMATS
from recollect.transcripts.gemini_cli import session_file
from recollect.transcripts.json_patch import json_equal
from recollect.transcripts.session_export import export_session
from recollect.transcripts.session_file_format import encode_json
from recollect.transcripts.session_import import import_file
from recollect.view.view import View
from tests.transcripts.file_builders import (
    ONE,
    THREE,
    export_value,
    gemini_file,
    heard,
    import_value,
    messages_of,
    model_record,
    server_file,
    server_record,
    tool_call,
    with_store,
)


def test_importing_our_own_export_adds_only_its_source(tmp_path: Path) -> None:
    async def work(store: SqliteStore, file: Path) -> None:
        first = await import_value(store, file, server_file(server_record("user", "one")))
        head = (await store.session(first.session)).head
        await store.append(first.session, [model("two"), user("three")], parent=head)
        exported = await export_value(store, first.session, "history-server")
        home = await import_value(store, file, exported)
        assert (home.session, home.added, home.already, home.warnings) == (first.session, 1, 3, ())
        assert await heard(store, first.session) == ["one", "two", "three"]

    with_store(tmp_path, work)


@pytest.mark.parametrize("to", EXPORT_FORMATS)
def test_a_lone_surrogate_survives_as_valid_utf8(tmp_path: Path, to: Any) -> None:
    async def work(store: SqliteStore, file: Path) -> None:
        text = "a\ud800 \udfff\0 é 😀"
        session = await store.create()
        await store.append(session.id, [user(text)], parent=None)
        _, data = await export_session(store, session.id, to)
        assert "\\ud800" in data.decode("utf-8")
        file.write_bytes(data)
        copy = await import_file(store, file)
        assert await heard(store, copy.session) == [text]

    with_store(tmp_path, work)


def test_a_session_survives_the_way_through_the_other_format(tmp_path: Path) -> None:
    async def work(store: SqliteStore, file: Path) -> None:
        original = gemini_file(
            ONE, model_record("m2", "", toolCalls=[tool_call("c1", "out")]), THREE
        )
        first = await import_value(store, file, original)
        exported = await export_value(store, first.session, "history-server")
        assert (await import_value(store, file, exported)).added == 0
        async with open_store(tmp_path / "other.db") as other:
            second = await import_value(other, file, exported)
            assert first.session == second.session
            ours = [m.parts for m in messages_of(await store.path(first.session))]
            assert [m.parts for m in messages_of(await other.path(second.session))] == ours
            back = await export_value(other, second.session, "gemini")
            assert json_equal(back["messages"], original["messages"])

    with_store(tmp_path, work)


@pytest.mark.parametrize("to", EXPORT_FORMATS)
def test_initial_context_that_came_late_is_carried_and_not_shown_in_the_middle(
    tmp_path: Path, to: Any
) -> None:
    async def work(store: SqliteStore, file: Path) -> None:
        session = await store.create()
        begun = await store.append(session.id, [user("hi"), model("hello")], parent=None)
        block = Message(role="user", parts=(Text(text="the block"),), context="initial")
        late = Entry("c" * 32, None, 1, block)
        items: list[Body | Entry] = [
            late,
            Pin(entries=(late.id,), first=True),
            user("more"),
            model("yes"),
        ]
        await store.append(session.id, items, parent=begun[-1].id)
        value = await export_value(store, session.id, to)
        assert [record["content"] for record in value["messages"]] == ["hi", "hello", "more", "yes"]
        copy = await import_value(store, file, value)
        view = View.fold(await store.path(copy.session))
        assert view.messages[0].parts == block.parts
        assert len(view.messages) == 5
        assert json_equal(
            (await export_value(store, copy.session, to))["messages"], value["messages"]
        )

    with_store(tmp_path, work)


def test_a_file_name_names_the_session_and_never_leaves_the_folder() -> None:
    assert (
        session_file.file_names("0f3a9c21-77aa", 0)[0] == "session-1970-01-01T00-00-0f3a9c21.json"
    )
    assert history_server.file_names("abc", 0) == ("session_19700101_abc.json",)
    for hostile in ("../../etc/passwd", "", "a/b", "\ud800", "x" * 5_000, "."):
        for name in (*session_file.file_names(hostile, 0), *history_server.file_names(hostile, 0)):
            assert Path(name).name == name
            assert len(name.encode()) < 200


def test_names_that_are_taken_by_another_session_get_more_of_the_id(tmp_path: Path) -> None:
    async def work(store: SqliteStore, _file: Path) -> None:
        session = await store.create(id=f"0f3a9c21{'b':0>24}", created=0)
        first, _ = await export_session(store, session.id, "gemini")
        second, _ = await export_session(store, session.id, "gemini", lambda name, _: name == first)
        assert first == "session-1970-01-01T00-00-0f3a9c21.json"
        assert second == "session-1970-01-01T00-00-0f3a9c210000.json"

    with_store(tmp_path, work)


def test_numbers_that_json_does_not_have_are_not_written() -> None:
    with pytest.raises(ValueError, match="JSON"):
        encode_json({"a": float("nan")})

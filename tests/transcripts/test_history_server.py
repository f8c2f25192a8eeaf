"""The history server's files: exact in, exact out, and ours back from them as they were."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from recollect.entries import Body, Message, Note, Pin, Text, ToolCall, ToolResult
from recollect.store.open_store import open_store
from recollect.testing import call, model, result, user
from recollect.transcripts import history_server
from recollect.transcripts.history_server import RECORD_FORMAT
from recollect.transcripts.json_patch import json_equal
from recollect.transcripts.record_conversion import compose_file
from tests import strategies
from tests.transcripts.file_builders import (
    chain,
    export_value,
    histories,
    import_value,
    messages_of,
    new_id,
    round_trip,
    server_call,
    server_file,
    server_files,
    server_record,
)

HEADER = {"session_id": "S", "created_at": "2025-12-31T10:00:00"}
SEED = server_file(
    server_record("user", "帮我查看CPU使用率"),
    server_record("assistant", "让我查看一下系统资源使用情况", server_call()),
    server_record("system", "be brief", source="admin"),
)


def test_the_documented_example_is_read() -> None:
    asked, reply, answer, system = messages_of(history_server.read_object(SEED).entries)
    assert asked == Message(role="user", parts=(Text(text="帮我查看CPU使用率"),), extra=asked.extra)
    assert (reply.role, system.role) == ("model", "system")
    made = reply.parts[1]
    assert isinstance(made, ToolCall)
    assert (made.name, made.arguments) == ("sys_monitor", '{"metric":"cpu"}')
    (part,) = answer.parts
    assert isinstance(part, ToolResult)
    assert (part.call_id, part.status, part.duration) == (made.id, "success", 0.5)
    assert part.content == (Text(text="CPU 使用率: 3.0%"),)


def test_the_documented_example_is_written_as_it_was(tmp_path: Path) -> None:
    assert json_equal(round_trip(tmp_path, SEED, "history-server"), SEED)


def test_calls_that_look_alike_get_ids_of_their_own() -> None:
    file = server_file(*[server_record("assistant", "", server_call(), server_call())] * 2)
    ids = [
        p.id
        for m in messages_of(history_server.read_object(file).entries)
        for p in m.parts
        if isinstance(p, ToolCall)
    ]
    assert len(set(ids)) == 4


def test_a_failed_call_is_an_error() -> None:
    file = server_file(server_record("assistant", "", server_call(status="error")))
    part = messages_of(history_server.read_object(file).entries)[1].parts[0]
    assert isinstance(part, ToolResult)
    assert part.is_error


@given(server_files)
def test_any_file_is_written_as_it_was_read(file: Any) -> None:
    transcript = history_server.read_object(file)
    header = json.loads(transcript.header)["history-server"]["header"]
    assert json_equal(compose_file(RECORD_FORMAT, header, transcript.entries), file)


@given(file=server_files)
def test_any_file_survives_the_store(shared_folder: Path, file: Any) -> None:
    file |= {"session_id": new_id()}
    assert json_equal(round_trip(shared_folder, file, "history-server"), file)


@given(st.lists(strategies.bodies))
def test_any_history_of_ours_survives_export_and_import(bodies: list[Body]) -> None:
    file = compose_file(RECORD_FORMAT, HEADER, chain(bodies))
    back = [entry.body for entry in history_server.read_object(file).entries]
    ours = [body for body in bodies if type(body).__name__ != "Source"]
    assert [type(body) for body in back] == [type(body) for body in ours]
    for one, other in zip(ours, back, strict=True):
        if isinstance(one, Message) and isinstance(other, Message):
            assert (one.role, one.finish, one.model) == (other.role, other.finish, other.model)
            assert repr((one.parts, one.usage)) == repr((other.parts, other.usage))


@given(server_files, histories)
def test_an_imported_session_that_continued_here_survives_export_and_import(
    file: Any, more: Any
) -> None:
    before = history_server.read_object(file)
    entries = [*before.entries, *chain(more)]
    header = json.loads(before.header)["history-server"]["header"]
    exported = compose_file(RECORD_FORMAT, header, entries)
    back = history_server.read_object(exported)
    again = json.loads(back.header)["history-server"]["header"]
    assert json_equal(compose_file(RECORD_FORMAT, again, back.entries), exported)
    ours = [entry.body for entry in entries]
    assert [type(entry.body) for entry in back.entries] == [type(body) for body in ours]
    assert [m.parts for m in messages_of(back.entries)] == [m.parts for m in messages_of(entries)]


def test_the_metadata_carries_what_the_format_has_no_field_for(tmp_path: Path) -> None:
    used = call("shell", id="c1", cmd="ls")
    bodies: list[Body] = [
        user("hi"),
        model("let me", used),
        result(used, "a.py"),
        Note(text="!"),
        model("ok"),
    ]

    async def work() -> None:
        async with open_store(tmp_path / "store.db") as store:
            session = await store.create(title="Mine")
            written = await store.append(session.id, bodies, parent=None)
            pin = Pin(entries=(written[2].id,))
            await store.append(session.id, [pin], parent=written[-1].id)
            file = await export_value(store, session.id, "history-server")
            assert [message["role"] for message in file["messages"]] == [
                "user",
                "assistant",
                "assistant",
            ]
            assert set(file["messages"][0]) == set(SEED["messages"][0])
            assert file["messages"][1]["tool_calls"][0]["result"] == "a.py"
        async with open_store(tmp_path / "other.db") as store:
            copy = await import_value(store, tmp_path / "copy.json", file)
            _, *back = await store.path(copy.session)
            assert [m.parts for m in messages_of(back)] == [
                b.parts for b in bodies if isinstance(b, Message)
            ]
            assert isinstance(back[3].body, Note)
            assert isinstance(back[5].body, Pin)
            assert back[5].body.entries == (back[2].id,)
            assert (await store.session(copy.session)).title == "Mine"
            assert json_equal(await export_value(store, copy.session, "history-server"), file)

    asyncio.run(work())

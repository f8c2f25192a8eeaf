"""Gemini CLI's files: exact in, exact out, and ours back from them as they were."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from recollect.entries import (
    Body,
    Elide,
    Elided,
    FileRef,
    InlineData,
    Message,
    Note,
    Pin,
    Text,
    Thought,
    Title,
    ToolCall,
    ToolResult,
    Usage,
)
from recollect.store.open_store import open_store
from recollect.testing import call, model, result, user
from recollect.transcripts.gemini_cli import session_file
from recollect.transcripts.gemini_cli.message_records import RECORD_FORMAT
from recollect.transcripts.json_patch import json_equal
from recollect.transcripts.record_conversion import compose_file
from recollect.transcripts.record_source import MemoryRecords
from tests import strategies
from tests.transcripts.file_builders import (
    T0,
    chain,
    export_value,
    gemini_file,
    gemini_files,
    histories,
    import_value,
    messages_of,
    model_record,
    new_id,
    round_trip,
    tool_call,
    user_record,
)

HEADER = {"sessionId": "S", "projectHash": "", "startTime": T0, "lastUpdated": T0}


def test_roles_texts_and_times_are_read() -> None:
    transcript = session_file.read_object(
        gemini_file(user_record("m1", "hi"), model_record("m2", "hello"))
    )
    assert [(m.role, m.parts) for m in messages_of(transcript.entries)] == [
        ("user", (Text(text="hi"),)),
        ("model", (Text(text="hello"),)),
    ]
    assert messages_of(transcript.entries)[1].model == "g"
    assert [entry.time for entry in transcript.entries] == [1770842205693] * 2


def test_calls_and_results_are_split_when_read_and_joined_when_written() -> None:
    file = gemini_file(
        model_record("m1", "", toolCalls=[tool_call("c1", "x = 1"), tool_call("c2")])
    )
    reply, answer = messages_of(session_file.read_object(file).entries)
    assert [part.id for part in reply.parts if isinstance(part, ToolCall)] == ["c1", "c2"]
    (part,) = answer.parts
    assert isinstance(part, ToolResult)
    assert (part.call_id, part.name, part.content) == ("c1", "read_file", (Text(text="x = 1"),))
    assert json_equal(
        compose_file(RECORD_FORMAT, HEADER, session_file.read_object(file).entries)["messages"],
        file["messages"],
    )


def test_a_failed_call_is_an_error() -> None:
    file = gemini_file(model_record("m1", "", toolCalls=[tool_call("c1", "no", status="error")]))
    part = messages_of(session_file.read_object(file).entries)[1].parts[0]
    assert isinstance(part, ToolResult)
    assert part.is_error


def test_thoughts_and_tokens_are_read() -> None:
    tokens = {"input": 1, "output": 2, "cached": 3, "thoughts": 4, "tool": 5, "total": 6}
    thought = {"subject": "s", "description": "d", "timestamp": T0}
    file = gemini_file(model_record("m1", "x", thoughts=[thought], tokens=tokens))
    (message,) = messages_of(session_file.read_object(file).entries)
    assert message.parts[0] == Thought(text="d", subject="s", time=1770842205693)
    assert message.usage == Usage(input=1, output=2, cached=3, thoughts=4, tool=5, total=6)


def test_content_that_holds_calls_gives_the_order() -> None:
    content = [
        {"text": "first"},
        {"functionCall": {"id": "c1", "name": "read_file", "args": {}}},
        {"text": "last"},
    ]
    file = gemini_file(model_record("m1", "", content=content, toolCalls=[tool_call("c1", "out")]))
    reply, answer = messages_of(session_file.read_object(file).entries)
    assert [type(part) for part in reply.parts] == [Text, ToolCall, Text]
    assert len(answer.parts) == 1


def test_an_empty_text_in_the_part_of_a_call_does_not_hide_the_call() -> None:
    content = [{"text": "", "functionCall": {"id": "c1", "name": "read_file", "args": {}}}]
    file = gemini_file(model_record("m1", "", content=content))
    (reply,) = messages_of(session_file.read_object(file).entries)
    assert [type(part) for part in reply.parts] == [ToolCall]


def test_a_result_that_is_in_the_file_twice_is_read_once() -> None:
    response = tool_call("c1", "out")["result"]
    file = gemini_file(
        model_record("m1", "", toolCalls=[tool_call("c1", "out")]),
        user_record("m2", "", content=response),
    )
    found = session_file.read_object(file).entries
    results = [p for m in messages_of(found) for p in m.parts if isinstance(p, ToolResult)]
    assert len(results) == 1
    assert json_equal(compose_file(RECORD_FORMAT, HEADER, found)["messages"], file["messages"])


def test_notices_become_notes() -> None:
    notes = [
        {"id": kind, "timestamp": T0, "type": kind, "content": "!"}
        for kind in ("info", "warning", "error")
    ]
    bodies = [entry.body for entry in session_file.read_object(gemini_file(*notes)).entries]
    assert [body.level for body in bodies if isinstance(body, Note)] == ["info", "warning", "error"]


@given(gemini_files)
def test_any_file_is_written_as_it_was_read(file: Any) -> None:
    transcript = session_file.read_object(file)
    header = json.loads(transcript.header)["gemini"]["header"]
    assert json_equal(compose_file(RECORD_FORMAT, header, transcript.entries), file)
    assert [e.id for e in session_file.read_object(file).entries] == [
        e.id for e in transcript.entries
    ]


@given(file=gemini_files)
def test_any_file_survives_the_store(shared_folder: Path, file: Any) -> None:
    file |= {"sessionId": new_id()}
    assert json_equal(round_trip(shared_folder, file, "gemini"), file)


@given(st.lists(strategies.bodies.filter(lambda b: "gemini" not in getattr(b, "extra", ""))))
def test_any_history_of_ours_survives_export_and_import(bodies: list[Body]) -> None:
    entries = chain(bodies)
    file = compose_file(RECORD_FORMAT, HEADER, entries)
    back = session_file.read_object(file)
    assert json_equal(_told(compose_file(RECORD_FORMAT, HEADER, back.entries)), _told(file))
    ours = [body for body in bodies if type(body).__name__ != "Source"]
    assert [type(entry.body) for entry in back.entries] == [type(body) for body in ours]
    theirs = [entry.body for entry in back.entries]
    for one, other in zip(ours, theirs, strict=True):
        if isinstance(one, Message) and isinstance(other, Message):
            assert (one.role, one.finish, one.model) == (other.role, other.finish, other.model)
            assert repr((one.parts, one.usage)) == repr((other.parts, other.usage))


@given(gemini_files, histories)
def test_an_imported_session_that_continued_here_survives_export_and_import(
    file: Any, more: Any
) -> None:
    before = session_file.read_object(file)
    entries = [*before.entries, *chain(more)]
    header = json.loads(before.header)["gemini"]["header"]
    exported = compose_file(RECORD_FORMAT, header, entries)
    back = session_file.read_object(exported)
    again = json.loads(back.header)["gemini"]["header"]
    assert json_equal(compose_file(RECORD_FORMAT, again, back.entries), exported)
    ours = [entry.body for entry in entries]
    assert [type(entry.body) for entry in back.entries] == [type(body) for body in ours]
    assert [m.parts for m in messages_of(back.entries)] == [m.parts for m in messages_of(entries)]


def _told(file: Any) -> Any:
    return file["messages"], file.get("recollect", {}).get("before")


def test_a_session_of_ours_survives_export_and_import_whole(tmp_path: Path) -> None:
    read = call("read_file", id="c1", path="a.py")
    bad = ToolCall(id="c2", name="shell", arguments='{"cmd": ', signature="sig")
    thought = Thought(text="hm", subject="plan", time=5, signature="opaque")
    reply = Message(
        role="model",
        parts=(thought, Text(text="let me see"), read, Text(text="and"), bad),
        model="m",
        finish="calls",
        usage=Usage(input=3, output=4, total=7),
    )
    image = InlineData(mime="image/png", data=b"\x00\xff")
    bodies: list[Body] = [
        Message(role="system", parts=(Text(text="be kind"),)),
        user("look", image, FileRef(mime="text/plain", uri="file:///a")),
        reply,
        result(read, "x = 1", image),
        Note(text="slow", level="warning"),
        result(bad, "what?", is_error=True),
        model("done"),
        Title(title="A title"),
    ]

    async def work() -> None:
        async with open_store(tmp_path / "store.db") as store:
            session = await store.create()
            written = await store.append(session.id, bodies, parent=None)
            edits = (
                Pin(entries=(written[1].id,)),
                Elide(rule="r", items=(Elided(entry=written[3].id, placeholder="…", parts=(0,)),)),
            )
            await store.append(session.id, edits, parent=written[-1].id)
            file = await export_value(store, session.id, "gemini")
            assert "toolCalls" in file["messages"][2]
        async with open_store(tmp_path / "other.db") as store:
            copy = await import_value(store, tmp_path / "copy.json", file)
            back = list(await store.path(copy.session))[1:]
            same = [one.id == other.id for one, other in zip(back, written, strict=False)]
            assert same == [not isinstance(body, Note) for body in bodies]
            assert messages_of(back)[2].parts == reply.parts
            assert [m.parts for m in messages_of(back)] == [
                b.parts for b in bodies if isinstance(b, Message)
            ]
            assert (messages_of(back)[2].finish, messages_of(back)[2].usage) == (
                "calls",
                reply.usage,
            )
            *_, title, pin, elide = (entry.body for entry in back)
            assert isinstance(title, Title)
            assert title.title == "A title"
            # edits speak of the entries that came back, not of those that left
            assert isinstance(pin, Pin)
            assert pin.entries == (back[1].id,)
            assert isinstance(elide, Elide)
            assert elide.items[0].entry == back[3].id
            assert json_equal(await export_value(store, copy.session, "gemini"), file)
            assert (await store.session(copy.session)).title == "A title"

    asyncio.run(work())


def test_results_in_messages_of_their_own_stay_apart() -> None:
    first, second = call("a", id="1"), call("b", id="2")
    bodies = [model("go", first, second), result(second, "B"), result(first, "A"), user("more")]
    file = compose_file(RECORD_FORMAT, HEADER, chain(bodies))
    assert len(file["messages"]) == 2
    assert [m.parts for m in messages_of(session_file.read_object(file).entries)] == [
        b.parts for b in bodies
    ]


# --- JSON lines --------------------------------------------------------------------------------


def _lines(*records: Any) -> Any:
    head = {"sessionId": "G-1", "projectHash": "h", "startTime": T0, "kind": "main"}
    return session_file.read(MemoryRecords(enumerate([head, *records], 1)))


def _main(transcript: Any) -> list[str]:
    by_id = {entry.id: entry for entry in transcript.entries}
    texts, at = [], transcript.leaf
    while at:
        texts.append("".join(p.text for p in by_id[at].body.parts if isinstance(p, Text)))
        at = by_id[at].parent
    return texts[::-1]


def test_a_message_that_is_written_again_keeps_its_place() -> None:
    transcript = _lines(
        user_record("1", "a"),
        model_record("2", "b"),
        user_record("3", "c"),
        model_record("2", "b, more"),
    )
    assert _main(transcript) == ["a", "b, more", "c"]
    assert len(transcript.entries) == 3


def test_rewound_messages_become_a_branch() -> None:
    transcript = _lines(
        user_record("1", "a"), model_record("2", "b"), {"$rewindTo": "2"}, model_record("4", "d")
    )
    assert _main(transcript) == ["a", "d"]
    assert len(transcript.entries) == 3


def test_a_checkpoint_replaces_earlier_messages_and_loses_none() -> None:
    transcript = _lines(
        user_record("1", "a"),
        model_record("2", "b"),
        {
            "$set": {
                "messages": [user_record("1", "a"), model_record("9", "summary")],
                "summary": "A title",
            }
        },
        user_record("3", "c"),
    )
    assert _main(transcript) == ["a", "summary", "c"]
    assert len(transcript.entries) == 4
    assert transcript.heading == "A title"


def test_a_rewind_to_an_unknown_message_clears_the_path_and_keeps_the_messages() -> None:
    transcript = _lines(user_record("1", "a"), {"$rewindTo": "nowhere"}, user_record("2", "b"))
    assert _main(transcript) == ["b"]
    assert len(transcript.entries) == 2


def test_lines_and_one_object_are_the_same_session() -> None:
    one = session_file.read_object(gemini_file(user_record("1", "a"), model_record("2", "b")))
    lines = _lines(user_record("1", "a"), model_record("2", "b"))
    assert (one.session, one.leaf) == (lines.session, lines.leaf)

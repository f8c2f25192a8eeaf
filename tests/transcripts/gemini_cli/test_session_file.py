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
from recollect.store.sqlite import open_store
from recollect.testing import call, model, result, user
from recollect.transcripts.gemini_cli import session_file
from recollect.transcripts.gemini_cli.message_records import RECORD_FORMAT
from recollect.transcripts.json_patch import json_equal
from recollect.transcripts.record_writer import compose_file
from tests import strategies
from tests.transcripts.file_builders import (
    T0,
    answered,
    asked,
    bring,
    chain,
    gemini_file,
    gemini_files,
    spoken,
    take,
    talks,
    through_a_store,
    tool_call,
)

HEADER = {"sessionId": "S", "projectHash": "", "startTime": T0, "lastUpdated": T0}


def test_roles_texts_and_times_come_in() -> None:
    transcript = session_file.read_object(gemini_file(asked("m1", "hi"), answered("m2", "hello")))
    assert [(m.role, m.parts) for m in spoken(transcript.entries)] == [
        ("user", (Text(text="hi"),)),
        ("model", (Text(text="hello"),)),
    ]
    assert spoken(transcript.entries)[1].model == "g"
    assert [entry.time for entry in transcript.entries] == [1770842205693] * 2


def test_calls_and_results_are_parted_on_the_way_in_and_joined_on_the_way_out() -> None:
    file = gemini_file(answered("m1", "", toolCalls=[tool_call("c1", "x = 1"), tool_call("c2")]))
    reply, answer = spoken(session_file.read_object(file).entries)
    assert [part.id for part in reply.parts if isinstance(part, ToolCall)] == ["c1", "c2"]
    (part,) = answer.parts
    assert isinstance(part, ToolResult)
    assert (part.call_id, part.name, part.content) == ("c1", "read_file", (Text(text="x = 1"),))
    assert json_equal(
        compose_file(RECORD_FORMAT, HEADER, session_file.read_object(file).entries)["messages"],
        file["messages"],
    )


def test_a_failed_call_is_an_error() -> None:
    file = gemini_file(answered("m1", "", toolCalls=[tool_call("c1", "no", status="error")]))
    part = spoken(session_file.read_object(file).entries)[1].parts[0]
    assert isinstance(part, ToolResult)
    assert part.is_error


def test_thoughts_and_tokens_come_in() -> None:
    tokens = {"input": 1, "output": 2, "cached": 3, "thoughts": 4, "tool": 5, "total": 6}
    thought = {"subject": "s", "description": "d", "timestamp": T0}
    file = gemini_file(answered("m1", "x", thoughts=[thought], tokens=tokens))
    (message,) = spoken(session_file.read_object(file).entries)
    assert message.parts[0] == Thought(text="d", subject="s", time=1770842205693)
    assert message.usage == Usage(input=1, output=2, cached=3, thoughts=4, tool=5, total=6)


def test_content_that_holds_calls_says_in_which_order_things_came() -> None:
    content = [
        {"text": "first"},
        {"functionCall": {"id": "c1", "name": "read_file", "args": {}}},
        {"text": "last"},
    ]
    file = gemini_file(answered("m1", "", content=content, toolCalls=[tool_call("c1", "out")]))
    reply, answer = spoken(session_file.read_object(file).entries)
    assert [type(part) for part in reply.parts] == [Text, ToolCall, Text]
    assert len(answer.parts) == 1


def test_a_result_that_is_in_the_file_twice_comes_in_once() -> None:
    response = tool_call("c1", "out")["result"]
    file = gemini_file(
        answered("m1", "", toolCalls=[tool_call("c1", "out")]), asked("m2", "", content=response)
    )
    found = session_file.read_object(file).entries
    results = [p for m in spoken(found) for p in m.parts if isinstance(p, ToolResult)]
    assert len(results) == 1
    assert json_equal(compose_file(RECORD_FORMAT, HEADER, found)["messages"], file["messages"])


def test_notices_are_notes() -> None:
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
def test_any_file_survives_the_store(tmp_path_factory: Any, file: Any) -> None:
    assert json_equal(through_a_store(tmp_path_factory.mktemp("gemini"), file, "gemini"), file)


@given(st.lists(strategies.bodies.filter(lambda b: "gemini" not in getattr(b, "extra", ""))))
def test_any_history_of_ours_comes_back_as_it_was(bodies: list[Body]) -> None:
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


@given(gemini_files, talks)
def test_a_file_that_went_on_here_comes_back_with_what_was_added(file: Any, more: Any) -> None:
    before = session_file.read_object(file)
    entries = [*before.entries, *chain(more)]
    header = json.loads(before.header)["gemini"]["header"]
    exported = compose_file(RECORD_FORMAT, header, entries)
    back = session_file.read_object(exported)
    again = json.loads(back.header)["gemini"]["header"]
    assert json_equal(compose_file(RECORD_FORMAT, again, back.entries), exported)
    ours = [entry.body for entry in entries]
    assert [type(entry.body) for entry in back.entries] == [type(body) for body in ours]
    assert [m.parts for m in spoken(back.entries)] == [m.parts for m in spoken(entries)]


def _told(file: Any) -> Any:
    return file["messages"], file.get("recollect", {}).get("before")


def test_a_session_of_ours_travels_whole(tmp_path: Path) -> None:
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
            file = await take(store, session.id, "gemini")
            assert "toolCalls" in file["messages"][2]
            copy = await bring(store, tmp_path / "copy.json", file)
            back = list(await store.path(copy.session))[1:]
            assert spoken(back)[2].parts == reply.parts
            assert [m.parts for m in spoken(back)] == [
                b.parts for b in bodies if isinstance(b, Message)
            ]
            assert (spoken(back)[2].finish, spoken(back)[2].usage) == ("calls", reply.usage)
            *_, title, pin, elide = (entry.body for entry in back)
            assert isinstance(title, Title)
            assert title.title == "A title"
            # edits speak of the entries that came back, not of those that left
            assert isinstance(pin, Pin)
            assert pin.entries == (back[1].id,)
            assert isinstance(elide, Elide)
            assert elide.items[0].entry == back[3].id
            assert json_equal(await take(store, copy.session, "gemini"), file)
            assert (await store.session(copy.session)).title == "A title"

    asyncio.run(work())


def test_results_in_messages_of_their_own_stay_apart() -> None:
    first, second = call("a", id="1"), call("b", id="2")
    bodies = [model("go", first, second), result(second, "B"), result(first, "A"), user("more")]
    file = compose_file(RECORD_FORMAT, HEADER, chain(bodies))
    assert len(file["messages"]) == 2
    assert [m.parts for m in spoken(session_file.read_object(file).entries)] == [
        b.parts for b in bodies
    ]


# --- JSON lines --------------------------------------------------------------------------------


def _lines(*records: Any) -> Any:
    head = {"sessionId": "G-1", "projectHash": "h", "startTime": T0, "kind": "main"}
    return session_file.read_lines(enumerate([head, *records], 1))


def _main(transcript: Any) -> list[str]:
    by_id = {entry.id: entry for entry in transcript.entries}
    texts, at = [], transcript.leaf
    while at:
        texts.append("".join(p.text for p in by_id[at].body.parts if isinstance(p, Text)))
        at = by_id[at].parent
    return texts[::-1]


def test_a_message_that_is_written_again_keeps_its_place() -> None:
    transcript = _lines(
        asked("1", "a"), answered("2", "b"), asked("3", "c"), answered("2", "b, more")
    )
    assert _main(transcript) == ["a", "b, more", "c"]
    assert len(transcript.entries) == 3


def test_what_was_rewound_becomes_a_branch() -> None:
    transcript = _lines(asked("1", "a"), answered("2", "b"), {"$rewindTo": "2"}, answered("4", "d"))
    assert _main(transcript) == ["a", "d"]
    assert len(transcript.entries) == 3


def test_a_checkpoint_replaces_what_was_before_and_nothing_is_lost() -> None:
    transcript = _lines(
        asked("1", "a"),
        answered("2", "b"),
        {"$set": {"messages": [asked("1", "a"), answered("9", "summary")], "summary": "A title"}},
        asked("3", "c"),
    )
    assert _main(transcript) == ["a", "summary", "c"]
    assert len(transcript.entries) == 4
    assert transcript.heading == "A title"


def test_a_rewind_to_what_is_not_there_clears_the_path_and_keeps_the_messages() -> None:
    transcript = _lines(asked("1", "a"), {"$rewindTo": "nowhere"}, asked("2", "b"))
    assert _main(transcript) == ["b"]
    assert len(transcript.entries) == 2


def test_lines_and_one_object_are_the_same_session() -> None:
    one = session_file.read_object(gemini_file(asked("1", "a"), answered("2", "b")))
    lines = _lines(asked("1", "a"), answered("2", "b"))
    assert (one.session, one.leaf) == (lines.session, lines.leaf)

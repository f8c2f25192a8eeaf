"""Session files for tests: one-line builders, and random ones for properties."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from recollect.entries import (
    Body,
    Entry,
    Message,
    Note,
    Pin,
    Text,
    Thought,
    Title,
    ToolCall,
    ToolResult,
)
from recollect.store.contract import Store
from recollect.store.open_store import open_store
from recollect.store.sqlite import SqliteStore
from recollect.transcripts.import_result import ImportResult
from recollect.transcripts.json_values import Json
from recollect.transcripts.session_export import export_session
from recollect.transcripts.session_import import import_file

T0 = "2026-02-11T20:36:45.693Z"


# --- Gemini ------------------------------------------------------------------------------------


def gemini_file(*messages: Json, session: str = "G-1", **more: Any) -> Json:
    header = {"sessionId": session, "projectHash": "h", "startTime": T0, "lastUpdated": T0}
    return {**header, **more, "messages": list(messages)}


def user_record(id_: str, text: str, **more: Any) -> Json:
    return {"id": id_, "timestamp": T0, "type": "user", "content": text, **more}


def model_record(id_: str, text: str, **more: Any) -> Json:
    return {"id": id_, "timestamp": T0, "type": "gemini", "content": text, "model": "g", **more}


def tool_call(id_: str, output: str | None = None, **more: Any) -> Json:
    call: Json = {"id": id_, "name": "read_file", "args": {"path": "a.py"}, "status": "scheduled"}
    if output is None:
        return call | more
    response = {"id": id_, "name": "read_file", "response": {"output": output}}
    done = {"status": "success", "timestamp": T0, "result": [{"functionResponse": response}]}
    return call | done | more


ONE, TWO, THREE = user_record("m1", "one"), model_record("m2", "two"), user_record("m3", "three")


# --- history server ----------------------------------------------------------------------------


def server_file(*messages: Json, session: str = "abc123-def456") -> Json:
    times = {"created_at": "2025-12-31T10:00:00", "updated_at": "2025-12-31T10:05:00"}
    return {"session_id": session, "messages": list(messages), **times}


def server_record(role: str, content: str, *calls: Json, **metadata: Any) -> Json:
    return {
        "role": role,
        "content": content,
        "timestamp": "2025-12-31T10:00:00",
        "tool_calls": list(calls),
        "metadata": metadata,
    }


def server_call(result: str = "CPU 使用率: 3.0%", **more: Any) -> Json:
    return {
        "tool_name": "sys_monitor",
        "arguments": {"metric": "cpu"},
        "result": result,
        "status": "success",
        "duration": 0.5,
        "timestamp": "2025-12-31T10:00:02",
        **more,
    }


# --- Claude Code -------------------------------------------------------------------------------


def line(uuid: str, parent: str | None, kind: str, content: Any = None, **more: Any) -> Json:
    """A record; what is named `id`, `usage` or `stop_reason` goes into the message."""
    inner = {key: more.pop(key) for key in ("id", "usage", "stop_reason") if key in more}
    record: Json = {
        "type": kind,
        "uuid": uuid,
        "parentUuid": parent,
        "sessionId": "C-1",
        "timestamp": T0,
        "isSidechain": False,
        **more,
    }
    if content is not None:
        record["message"] = {"role": kind, "content": content, **inner}
    return record


def use(id_: str, **arguments: Any) -> Json:
    return {"type": "tool_use", "id": id_, "name": "Read", "input": arguments}


def result_of(id_: str, content: Any, **more: Any) -> Json:
    return {"type": "tool_result", "tool_use_id": id_, "content": content, **more}


# --- one or more files of every format, with everything in them that the format has -------------


def _gemini_sample() -> Json:
    reply = model_record("m2", "see", toolCalls=[tool_call("c1", "x = 1"), tool_call("c2")])
    reply["thoughts"] = [{"subject": "s", "description": "d", "timestamp": reply["timestamp"]}]
    reply["tokens"] = {"input": 1, "output": 2, "cached": 0, "thoughts": 0, "tool": 0, "total": 3}
    mark = {"recollect": {"id": "m9", "patch": [[[0, "body", "finish"], "stop"]], "after": []}}
    return gemini_file(user_record("m1", "é 😀"), reply, user_record("m3", "x", **mark))


def _claude_sample() -> list[Json]:
    def about(kind: str, metadata: Any) -> dict[str, Any]:
        name = "microcompactMetadata" if kind else "compactMetadata"
        return {"subtype": f"{kind}compact_boundary", name: metadata, "logicalParentUuid": "k1"}

    return [
        {"type": "summary", "summary": "t", "leafUuid": "a2"},
        line("u1", None, "user", "hi"),
        line("a1", "u1", "assistant", [{"type": "thinking", "thinking": "h"}, use("t1")], id="m"),
        line("r1", "a1", "user", [result_of("t1", "one")], toolUseResult={"agentId": "x"}),
        line("x1", "a1", "user", "do", isSidechain=True, agentId="x"),
        line("p1", "r1", "progress", data={"agentId": "y", "message": line("y", None, "user", "")}),
        line("k1", "p1", "system", **about("micro", {"compactedToolIds": ["t1"]})),
        line("c1", None, "system", **about("", {"preservedMessages": {"uuids": ["r1"]}})),
        line("s1", "c1", "user", "sum", isCompactSummary=True, summarizeMetadata={"direction": ""}),
        line("a2", "s1", "assistant", [{"type": "text", "text": "done"}], id="n"),
    ]


def as_bytes(value: Any, indent: int | None = None) -> bytes:
    """One object, or JSON lines when the value is a list."""
    if isinstance(value, list):
        return "\n".join(map(json.dumps, value)).encode()
    return json.dumps(value, indent=indent).encode()


SAMPLES = {
    "gemini": [
        as_bytes(_gemini_sample()),
        as_bytes(_gemini_sample(), indent=2),
        as_bytes(
            [
                {"sessionId": "G", "projectHash": "h"},
                user_record("1", "a"),
                model_record("2", "b"),
                {"$rewindTo": "2"},
                {"$set": {"summary": "t"}},
            ]
        ),
    ],
    "history-server": [
        as_bytes(
            server_file(
                server_record("user", "帮我"),
                server_record("assistant", "ok", server_call()),
                server_record("system", "s"),
            ),
            indent=1,
        )
    ],
    "claude-code": [as_bytes(_claude_sample())],
}


# --- random files: every field may be missing, odd, or of the wrong type --------------------------

# a high surrogate right before a low one is the one thing that JSON text cannot tell apart
texts = st.text(max_size=12) | st.text(st.sampled_from('ab\0\ud800\n"\\é😀'), max_size=6)
scalars = st.none() | st.booleans() | st.integers(-(2**70), 2**70) | texts
numbers = st.floats(allow_nan=False, allow_infinity=False)
anything: st.SearchStrategy[Any] = st.recursive(
    scalars | numbers,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=5,
)
times = st.datetimes().map(lambda moment: moment.isoformat()) | st.just(T0) | texts


def fields(required: dict[str, st.SearchStrategy[Any]], **optional: Any) -> Any:
    """An object; any of its fields may now and then be anything, and there may be others."""
    odd = {key: value | st.just(...) for key, value in required.items()}
    for key, value in optional.items():
        odd[key] = st.just(...) | value
    known = st.fixed_dictionaries(odd).map(
        lambda found: {key: value for key, value in found.items() if value is not ...}
    )
    strange = st.dictionaries(texts | st.sampled_from(sorted(odd)), anything, max_size=1)
    return st.builds(lambda base, more: {**base, **more}, known, strange | st.just({}))


_ids = st.sampled_from(["c1", "c2", "c3"]) | texts
_response = fields({"id": _ids, "name": texts}, response=fields({"output": texts}) | anything)
gemini_parts = st.one_of(
    fields({"text": texts}, thought=st.booleans(), thoughtSignature=texts),
    fields({"functionCall": fields({"id": _ids, "name": texts, "args": anything})}),
    fields({"functionResponse": _response}),
    fields({"inlineData": fields({"mimeType": texts, "data": st.just("AAEC") | texts})}),
    fields({"fileData": fields({"mimeType": texts, "fileUri": texts})}),
)
gemini_calls = fields(
    {"id": _ids, "name": texts, "args": anything},
    status=st.sampled_from(["success", "error", "cancelled", "executing"]) | anything,
    timestamp=times,
    result=st.lists(fields({"functionResponse": _response}), max_size=2) | anything,
    resultDisplay=anything,
)
gemini_messages = fields(
    {
        "id": texts,
        "timestamp": times,
        "type": st.sampled_from(["user", "gemini", "info", "error", "warning"]) | texts,
        "content": texts | st.lists(gemini_parts, max_size=3) | gemini_parts | anything,
    },
    thoughts=st.lists(
        fields({"subject": texts, "description": texts}, timestamp=times), max_size=2
    ),
    tokens=fields({"input": st.integers(0, 99), "total": st.integers(0, 99)}) | anything,
    model=texts,
    toolCalls=st.lists(gemini_calls, max_size=3) | anything,
    recollect=anything | fields({"id": texts, "patch": anything, "after": anything}),
)
gemini_files = st.builds(
    lambda header, messages: {**header, "sessionId": "S", "messages": messages},
    fields({"projectHash": texts, "startTime": times, "lastUpdated": times}, recollect=anything),
    st.lists(gemini_messages, max_size=5),
)
server_calls = fields(
    {
        "tool_name": texts,
        "arguments": st.dictionaries(texts, anything, max_size=2) | anything,
        "result": texts | anything,
        "status": st.sampled_from(["success", "error", "pending"]) | texts,
        "duration": st.floats(0, 9) | anything,
        "timestamp": times,
    },
    id=_ids,
    function=fields({"name": texts, "arguments": texts | st.just('{"a":1}')}),
)
_images = st.just("data:image/png;base64,AAEC") | texts
chat_parts = st.one_of(
    fields({"type": st.just("text"), "text": texts}),
    fields({"type": st.just("image_url"), "image_url": fields({"url": _images}) | _images}),
    fields({"type": st.just("tool_use"), "id": _ids, "name": texts, "input": anything}),
    fields({"type": st.just("tool_result"), "tool_use_id": _ids, "content": texts | anything}),
    fields({"type": texts}),
)
_server_roles = ["user", "assistant", "system", "developer", "tool", "function", "narrator"]
server_messages = fields(
    {
        "role": st.sampled_from(_server_roles) | texts,
        "content": texts | st.lists(chat_parts, max_size=3) | anything,
        "timestamp": times,
        "tool_calls": st.lists(server_calls, max_size=3) | anything,
        "metadata": st.dictionaries(texts, anything, max_size=2)
        | fields({"recollect": fields({"after": anything}, id=texts)}),
    },
    tool_call_id=_ids,
    name=texts,
)
server_files = st.builds(
    lambda header, messages: {**header, "session_id": "S", "messages": messages},
    fields({"created_at": times, "updated_at": times}, recollect=anything),
    st.lists(server_messages, max_size=5),
)


# --- random histories of ours, in which calls are answered ----------------------------------------

_call_ids = st.sampled_from(["1", "2", "3"])
_calls = st.builds(
    ToolCall, id=_call_ids, name=texts, arguments=texts | st.just('{"a":1}'), signature=texts
)
_results = st.builds(
    ToolResult,
    call_id=_call_ids,
    name=texts,
    content=st.lists(st.builds(Text, text=texts), max_size=2).map(tuple),
    is_error=st.booleans(),
    status=st.sampled_from(["", "success", "error"]),
    duration=st.none() | st.floats(0, 9),
)
_spoken = st.builds(Text, text=texts) | st.builds(Thought, text=texts, subject=texts)
histories: st.SearchStrategy[list[Body]] = st.lists(
    st.one_of(
        st.builds(
            Message,
            role=st.just("model"),
            parts=st.lists(_spoken | _calls, max_size=4).map(tuple),
            finish=texts,
        ),
        st.builds(Message, role=st.just("user"), parts=st.lists(_results, max_size=2).map(tuple)),
        st.builds(Note, text=texts),
        st.builds(Title, title=texts),
        st.builds(Pin, entries=st.lists(st.integers(1, 9).map(lambda n: f"{n:032x}")).map(tuple)),
    ),
    max_size=8,
)


# --- through a store ---------------------------------------------------------------------------


def save(path: Path, value: Any) -> Path:
    """A file: one object, or lines when it is a list."""
    if isinstance(value, list):
        path.write_text("".join(json.dumps(each) + "\n" for each in value))
    else:
        path.write_text(json.dumps(value))
    return path


async def import_value(store: Store, path: Path, value: Any) -> ImportResult:
    return await import_file(store, save(path, value))


async def export_value(store: Store, session: str, to: Any) -> Json:
    _, data = await export_session(store, session, to)
    value: Json = json.loads(data)
    return value


def new_id() -> str:
    """For sessions that share a store and must not meet there."""
    return f"session {next(_numbers)}"


_numbers = itertools.count()


def round_trip(tmp_path: Path, value: Json, to: Any) -> Json:
    """File, entries, store, entries, file."""

    async def work() -> Json:
        async with open_store(tmp_path / "store.db") as store:
            imported = await import_value(store, tmp_path / "file.json", value)
            return await export_value(store, imported.session, to)

    return asyncio.run(work())


def with_store(tmp_path: Path, work: Callable[[SqliteStore, Path], Awaitable[None]]) -> None:
    async def run() -> None:
        async with open_store(tmp_path / "store.db") as store:
            await work(store, tmp_path / "file.json")

    asyncio.run(run())


async def heard(store: Store, session: str) -> list[str]:
    texts = (
        p.text
        for m in messages_of(await store.path(session))
        for p in m.parts
        if isinstance(p, Text)
    )
    return list(texts)


def chain(bodies: Sequence[Body], time: int = 1_770_000_000_000) -> list[Entry]:
    """Entries of ours, one after the other."""
    ids = [f"{number:032x}" for number in range(1, len(bodies) + 1)]
    parents = [None, *ids]
    return [
        Entry(id_, parent, time + number, body)
        for number, (id_, parent, body) in enumerate(zip(ids, parents, bodies, strict=False))
    ]


def messages_of(entries: Sequence[Entry]) -> list[Message]:
    return [entry.body for entry in entries if isinstance(entry.body, Message)]

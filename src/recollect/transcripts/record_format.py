"""What the two ways between a log and a file have in common: see `records` and `marks`.

A `RecordFormat` knows one format. A *tag* is what an imported entry remembers of its record, in `extra`
under the dialect's name; a *mark* is what an exported record says about our entry.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import msgspec

from recollect.entries import (
    Body,
    Entry,
    Message,
    Part,
    ToolCall,
    ToolResult,
    UnknownBody,
    entry_to_json,
    json_text,
)
from recollect.transcripts.json_patch import Json

MARK_FIELD = "recollect"


class ParsedBody(NamedTuple):
    """What a dialect read: a body and its time, if the record told it."""

    body: Body
    time: int | None


class RecordFormat(Protocol):
    @property
    def name(self) -> str: ...

    def read(self, record: Json, key: str) -> list[ParsedBody]:
        """The record's own body, then at most one message with the results of its calls. `key`
        is for ids that the format does not have."""
        ...

    def write(self, run: Sequence[Entry], name: str) -> Json:
        """The inverse, for an entry and the messages that answer its calls."""
        ...

    def name_of(self, record: Json) -> str | None:
        """The id the record has in its file."""
        ...

    def stands_alone(self, body: Body) -> bool:
        """Whether the format has a record for such a body."""
        ...

    def mark_of(self, record: Json) -> object: ...

    def with_mark(self, record: Json, mark: object) -> Json:
        """The record with this mark; without any for None."""
        ...


# --- tags: what an imported entry remembers of its record ---------------------------------------


def get_tag(dialect: str, body: Body) -> Json:
    """`was`: the id in the file. `patch`: makes the record exact. `merge_decisions`: part of the one before.
    `header`: made from the file's header."""
    text = body.data if isinstance(body, UnknownBody) else body.extra
    if dialect not in text:
        return {}
    tag = json.loads(text).get(dialect)
    return tag if isinstance(tag, dict) else {}


def with_tag(dialect: str, body: Body, tag: Json) -> Body:
    if isinstance(body, UnknownBody):
        return UnknownBody(data=json_text(json.loads(body.data) | {dialect: tag}))
    extra = json.loads(body.extra) if body.extra else {}
    return msgspec.structs.replace(body, extra=json_text(extra | {dialect: tag}))


def original_id(dialect: str, body: Body) -> str | None:
    """The id that an imported entry had in the file."""
    was = get_tag(dialect, body).get("was")
    return was if isinstance(was, str) else None


def id_in_file(dialect: str, entry: Entry) -> str:
    """The id an entry goes by in the file: that of its record, or its own."""
    return original_id(dialect, entry.body) or entry.id


# --- references between entries ----------------------------------------------------------------


def rename_references(body: Json, name: Callable[[str], str]) -> Json:
    """A body as JSON, with the ids of other entries in it replaced."""

    def change(value: Any) -> Any:
        if isinstance(value, list):
            return [change(item) for item in value]
        return name(value) if isinstance(value, str) else value

    kind = body.get("kind")
    if kind in ("pin", "restore") and "entries" in body:
        return body | {"entries": change(body["entries"])}
    if kind == "elide" and isinstance(body.get("items"), list):
        items = [
            item | {"entry": change(item["entry"])}
            if isinstance(item, dict) and "entry" in item
            else item
            for item in body["items"]
        ]
        return body | {"items": items}
    fields = {"compaction": ("first_kept",), "request": ("head", "settings")}.get(str(kind), ())
    return body | {field: change(body[field]) for field in fields if field in body}


# --- what a record says by itself ---------------------------------------------------------------


def call_ids(body: Body) -> list[str]:
    if not isinstance(body, Message):
        return []
    return [part.id for part in body.parts if isinstance(part, ToolCall)]


def answered_call_ids(body: Body) -> list[str]:
    """The calls that a message answers, if it does nothing else."""
    if not isinstance(body, Message) or body.role != "user":
        return []
    results = [part.call_id for part in body.parts if isinstance(part, ToolResult)]
    return results if len(results) == len(body.parts) else []


def with_call_ids(loose: list[ParsedBody], ids: object) -> list[ParsedBody]:
    """With these ids for the calls, where the format has none or others."""
    if not isinstance(ids, list) or not all(isinstance(id_, str) for id_ in ids):
        return loose
    names = dict(zip(call_ids(loose[0].body), ids, strict=False))

    def change(part: Part) -> Part:
        if isinstance(part, ToolCall):
            return msgspec.structs.replace(part, id=names.get(part.id, part.id))
        if isinstance(part, ToolResult):
            return msgspec.structs.replace(part, call_id=names.get(part.call_id, part.call_id))
        return part

    return [
        ParsedBody(msgspec.structs.replace(body, parts=tuple(map(change, body.parts))), time)
        if isinstance(body, Message)
        else ParsedBody(body, time)
        for body, time in loose
    ]


def split_results(loose: list[ParsedBody], groups: object) -> list[ParsedBody]:
    """The results apart again, as the log had them: one message for each group of call ids."""
    if not isinstance(groups, list) or len(loose) < 2 or not isinstance(loose[1].body, Message):
        return loose
    parts = {part.call_id: part for part in loose[1].body.parts if isinstance(part, ToolResult)}
    messages = [
        Message(role="user", parts=tuple(parts[call] for call in group if call in parts))
        for group in groups
        if isinstance(group, list) and all(isinstance(call, str) for call in group)
    ]
    return [loose[0], *(ParsedBody(message, loose[1].time) for message in messages)]


def unpatched_json(loose: list[ParsedBody], name: str) -> list[Json]:
    """What a record says by itself, in the form that a mark's patch is made for."""
    first = loose[0].time or 0
    items: list[Json] = [
        {"time": first if time is None else time, "body": body_to_json(body)}
        for body, time in loose
    ]
    return [{"id": name, **items[0]}, *items[1:]]


def body_to_json(body: Body) -> Json:
    value: Json = entry_to_json(Entry("", None, 0, body))["body"]
    return value

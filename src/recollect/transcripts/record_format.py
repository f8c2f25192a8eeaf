"""What one format's records look like, and what reading and writing them have in common.

A *tag* is what an imported entry remembers of its record, in `extra` under the format's name. A
*mark* is what an exported record says about our entry. `record_conversion` explains how they make
the conversion exact.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from recollect.entries import (
    Body,
    Entry,
    Message,
    Part,
    ToolCall,
    ToolResult,
    UnknownBody,
    entry_from_json,
    entry_to_json,
    json_text,
)
from recollect.transcripts.json_values import Json, object_or_empty, quick_json_text, too_deep
from recollect.transcripts.tolerant_json import parse_plain_line
from recollect.transcripts.transcript import Transcript

MARK_FIELD = "recollect"
_ARGUMENTS_DEPTH = 80  # deeper, and reading the exported file would refuse them
_REFERENCES = {  # the fields of a body that name entries, or objects whose `entry` does
    "compaction": ("first_kept", "kept"),
    "elide": ("items",),
    "pin": ("entries",),
    "request": ("head", "settings"),
    "restore": ("entries",),
}


class ParsedBody(NamedTuple):
    body: Body
    time: int | None  # None if the record has none


class RecordFormat(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    bodies: tuple[type, ...]  # those for which the format has a record
    # the record's own body, then at most one message with the results of its calls; where the
    # format has no ids of calls, they are made from the key
    read: Callable[[Json, str], list[ParsedBody]]
    # the inverse: an entry and the messages that answer its calls, and the record's id
    write: Callable[[Sequence[Entry], str], Json]
    id_field: str = ""  # none if records have no id
    mark_inside: str = ""  # the object of a record that the mark is put in; the record itself

    def id_of(self, record: Json) -> str | None:
        """The id that the record has in its file."""
        id_ = record.get(self.id_field)
        return id_ if isinstance(id_, str) and self.id_field else None

    def get_mark(self, record: Json) -> object:
        holder = object_or_empty(record.get(self.mark_inside)) if self.mark_inside else record
        return holder.get(MARK_FIELD)

    def with_mark(self, record: Json, mark: object) -> Json:
        """The record with this mark; without any for None."""
        holder = object_or_empty(record.get(self.mark_inside)) if self.mark_inside else record
        marked = {key: item for key, item in holder.items() if key != MARK_FIELD}
        marked |= {} if mark is None else {MARK_FIELD: mark}
        return record | {self.mark_inside: marked} if self.mark_inside else marked


def get_tag(format_: str, body: Body) -> Json:
    """`was`: the id in the file. `patch`: makes the record exact. `joined`: came from the same
    record as the entry before. `header`: made from the file's header. A format may add which of
    several shapes a record had."""
    text = body.data if isinstance(body, UnknownBody) else body.extra
    if format_ not in text:
        return {}
    tag = json.loads(text).get(format_)
    return tag if isinstance(tag, dict) else {}


def with_tag(format_: str, body: Body, tag: Json) -> Body:
    if isinstance(body, UnknownBody):
        return UnknownBody(data=json_text(json.loads(body.data) | {format_: tag}))
    extra = json.loads(body.extra) if body.extra else {}
    return msgspec.structs.replace(body, extra=quick_json_text(extra | {format_: tag}))


def original_id(format_: str, body: Body) -> str | None:
    """The id that an imported entry had in the file."""
    was = get_tag(format_, body).get("was")
    return was if isinstance(was, str) else None


def id_in_file(format_: str, entry: Entry) -> str:
    """The id that a file uses for an entry: that of its record, or its own."""
    return original_id(format_, entry.body) or entry.id


def rename_references(body: Json, rename: Callable[[str], str]) -> Json:
    """A body as JSON, with the ids of other entries in it replaced."""

    def change(value: Any) -> Any:
        if isinstance(value, list):
            return [change(item) for item in value]
        if isinstance(value, dict):
            return value | {"entry": change(value["entry"])} if "entry" in value else value
        return rename(value) if isinstance(value, str) else value

    fields = _REFERENCES.get(str(body.get("kind")), ())
    output = body.get("output")  # of a command, in a note that names the parts before it
    if body.get("kind") == "note" and isinstance(output, dict) and "before" in output:
        body = body | {"output": output | {"before": change(output["before"])}}
    return body | {field: change(body[field]) for field in fields if field in body}


def rename_entry(entry: Entry, rename: Callable[[str], str]) -> Entry:
    """With other ids for itself, its parent and the entries that it names."""
    body = entry.body
    if not isinstance(body, Message | UnknownBody):
        value = entry_to_json(entry)
        renamed = rename_references(value["body"], rename)
        body = entry_from_json(value | {"body": renamed}).body
    return Entry(rename(entry.id), rename(entry.parent) if entry.parent else None, entry.time, body)


def rename_entries(transcript: Transcript, ids: Mapping[str, str]) -> Transcript:
    """With other ids for some entries, and wherever others name them."""
    entries = tuple(
        rename_entry(entry, lambda name: ids.get(name, name)) for entry in transcript.entries
    )
    leaf = transcript.leaf and ids.get(transcript.leaf, transcript.leaf)
    return msgspec.structs.replace(transcript, entries=entries, leaf=leaf)


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


def with_call_ids(parsed: list[ParsedBody], ids: object) -> list[ParsedBody]:
    """With our ids for the calls, where the format has none or others."""
    if not isinstance(ids, list) or not all(isinstance(id_, str) for id_ in ids):
        return parsed
    renamed = dict(zip(call_ids(parsed[0].body), ids, strict=False))

    def change(part: Part) -> Part:
        if isinstance(part, ToolCall):
            return msgspec.structs.replace(part, id=renamed.get(part.id, part.id))
        if isinstance(part, ToolResult):
            return msgspec.structs.replace(part, call_id=renamed.get(part.call_id, part.call_id))
        return part

    return [
        ParsedBody(msgspec.structs.replace(body, parts=tuple(map(change, body.parts))), time)
        if isinstance(body, Message)
        else ParsedBody(body, time)
        for body, time in parsed
    ]


def _split_results(parsed: list[ParsedBody], groups: object) -> list[ParsedBody]:
    """Results in one message for each group of call ids, as the log had them."""
    if not isinstance(groups, list) or len(parsed) < 2 or not isinstance(parsed[1].body, Message):
        return parsed
    results = {part.call_id: part for part in parsed[1].body.parts if isinstance(part, ToolResult)}
    messages = [
        Message(role="user", parts=tuple(results[call] for call in group if call in results))
        for group in groups
        if isinstance(group, list) and all(isinstance(call, str) for call in group)
    ]
    return [parsed[0], *(ParsedBody(message, parsed[1].time) for message in messages)]


def unpatched_json(parsed: list[ParsedBody], mark: Json) -> list[Json]:
    """What a record says without the patch of its mark, in the form that the patch applies to."""
    first = parsed[0].time or 0
    items: list[Json] = [
        {"time": first if time is None else time, "body": body_to_json(body)}
        for body, time in _split_results(parsed, mark.get("results"))
    ]
    return [{"id": str(mark["id"]), **items[0]}, *items[1:]]


def with_results(message: ParsedBody, results: Sequence[ToolResult]) -> list[ParsedBody]:
    """A model's message and, if there are results, the user message that holds them."""
    if not results:
        return [message]
    times = [result.time for result in results if result.time is not None]
    answer = Message(role="user", parts=tuple(results))
    return [message, ParsedBody(answer, max(times) if times else None)]


class OpenCalls:
    """The calls that were read, for results that do not say which of them they answer. Each call
    is looked at once, so a file of any kind takes linear time."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._waiting: dict[str, deque[str]] = {}  # by name, and all of them under no name
        self._answered: set[str] = set()

    def complete(self, parsed: list[ParsedBody]) -> list[ParsedBody]:
        """With the call and the name of the tool in results that lack them."""
        return [
            ParsedBody(self._complete(body), time) if isinstance(body, Message) else each
            for each in parsed
            for body, time in [each]
        ]

    def _complete(self, message: Message) -> Message:
        parts = tuple(self._note(part) for part in message.parts)
        return message if parts == message.parts else msgspec.structs.replace(message, parts=parts)

    def _note(self, part: Part) -> Part:
        if isinstance(part, ToolCall):
            self._names[part.id] = part.name
            for name in {part.name, ""}:
                self._waiting.setdefault(name, deque()).append(part.id)
        elif isinstance(part, ToolResult):
            call_id = part.call_id or self._first_waiting(part.name)
            self._answered.add(call_id)
            name = part.name or self._names.get(call_id, "")
            if (call_id, name) != (part.call_id, part.name):
                return msgspec.structs.replace(part, call_id=call_id, name=name)
        return part

    def _first_waiting(self, name: str) -> str:
        waiting = self._waiting.get(name, deque())
        while waiting and waiting[0] in self._answered:
            waiting.popleft()
        return waiting[0] if waiting else ""


def results_by_call(run: Sequence[Entry]) -> dict[str, tuple[ToolResult, int]]:
    """The first result of each call with its message's time, from the messages after the first."""
    return {
        part.call_id: (part, entry.time)
        for entry in reversed(run[1:])
        if isinstance(entry.body, Message)
        for part in reversed(entry.body.parts)
        if isinstance(part, ToolResult)
    }


def arguments_object(arguments: str) -> Json:
    """A call's arguments; an empty object if they are no JSON object that a file can hold."""
    value: Any = parse_plain_line(arguments.encode("utf-8", "surrogatepass"))
    if value is None:
        try:
            value = json.loads(arguments)
            json_text(value)
        except (ValueError, RecursionError):
            return {}
    return value if isinstance(value, dict) and not too_deep(value, _ARGUMENTS_DEPTH) else {}


def body_to_json(body: Body) -> Json:
    value: Json = entry_to_json(Entry("", None, 0, body))["body"]
    return value

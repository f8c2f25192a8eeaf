"""Between a log and the records of a file that a program writes whole: exact in both directions.

A `Dialect` reads and writes what its format has fields for, and need not be exact. This module
makes it so, by construction:
- a foreign record becomes entries; what writing them would not give back (ids, odd times, unknown
  fields, wrong types) is kept as a patch in `extra` of the first of them, under the dialect's name;
- an entry of ours becomes a record; what reading it would not give back (thought signatures, call
  ids, finish reasons …) is written as a patch in the record's `recollect` mark;
- entries that are no record (edits, requests, titles …) follow in the mark's `after`, or in the
  file's own mark (`before`) when no record precedes them.
Only `Source` entries do not travel: the bytes they name stay in the store. An imported entry gets
an id derived from its record and its parent's id, so the same history always gets the same ids.
References from edits to entries follow the entries to their new ids and back.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, Protocol

import msgspec

from recollect.entries import (
    Body,
    Entry,
    Message,
    Source,
    ToolCall,
    ToolResult,
    UnknownBody,
    entry_from_json,
    entry_to_json,
    json_text,
)
from recollect.errors import BadInput
from recollect.store.ids import derived_id
from recollect.transcripts.patches import Json, apply, diff, same

MARK = "recollect"


class Loose(NamedTuple):
    """What a dialect read: a body and its time, if the record told it."""

    body: Body
    time: int | None


class Dialect(Protocol):
    @property
    def name(self) -> str: ...

    def read(self, record: Json, key: str) -> list[Loose]:
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


def tag_of(dialect: str, body: Body) -> Json:
    """`was`: the id in the file. `patch`: makes the record exact. `joined`: part of the one before.
    `header`: made from the file's header."""
    text = body.data if isinstance(body, UnknownBody) else body.extra
    if dialect not in text:
        return {}
    tag = json.loads(text).get(dialect)
    return tag if isinstance(tag, dict) else {}


def tagged(dialect: str, body: Body, tag: Json) -> Body:
    if isinstance(body, UnknownBody):
        return UnknownBody(data=json_text(json.loads(body.data) | {dialect: tag}))
    extra = json.loads(body.extra) if body.extra else {}
    return msgspec.structs.replace(body, extra=json_text(extra | {dialect: tag}))


def known_as(dialect: str, entry: Entry) -> str:
    """The id an entry goes by in the file: that of its record, or its own."""
    was = tag_of(dialect, entry.body).get("was")
    return was if isinstance(was, str) else entry.id


# --- references between entries ----------------------------------------------------------------


def renamed(body: Json, name: Callable[[str], str]) -> Json:
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


# --- from records to entries -------------------------------------------------------------------


class Reader:
    """Turns records into entries, one after the other; knows the ids of those it has seen."""

    def __init__(self, dialect: Dialect, session: str, answered: frozenset[str]) -> None:
        self._dialect, self._session = dialect, session
        self._answered = answered  # calls whose result has a record of its own
        self._ids: dict[str, str] = {}  # by the id in the file

    def read(self, record: Json, parent: Entry | None, start: int) -> list[Entry]:
        """The entries of a record that follows `parent`; `start` is when the session began."""
        above = parent.id if parent else ""
        key = derived_id(self._dialect.name, self._session, above, canonical(record))
        base = _Base(key, parent, start)
        entries = self._marked(record, base) or self._plain(record, base)
        self._learn(entries)
        return entries

    def sides(self, items: object, key: str, start: int) -> list[Entry] | None:
        """Entries that are no records, as a mark lists them; None when it is not a list of ours."""
        try:
            entries = self._sides(items, _Base(key, None, start))
        except (BadInput, LookupError, TypeError, ValueError):
            return None
        self._learn(entries)
        return entries

    def _learn(self, entries: Iterable[Entry]) -> None:
        self._ids.update((known_as(self._dialect.name, entry), entry.id) for entry in entries)

    def _marked(self, record: Json, base: _Base) -> list[Entry] | None:
        """By the mark that an export of ours made; None unless it gives exactly this record."""
        mark = self._dialect.mark_of(record)
        if not isinstance(mark, dict):
            return None
        plain = self._dialect.with_mark(record, None)
        try:
            run = self._ours(plain, mark, base) if "id" in mark else self._plain(plain, base)
            self._learn(run)
            after = self._sides(mark.get("after", []), base.after(run))
            written = write_records(self._dialect, [*run, *after])
        except (BadInput, LookupError, TypeError, ValueError):
            return None
        exact = not written.before and same(written.records, [record])
        return [*run, *after] if exact else None

    def _ours(self, plain: Json, mark: Json, base: _Base) -> list[Entry]:
        loose = self._dialect.read(plain, str(mark["id"]))
        natural = natural_json(_split(loose, mark.get("results")), str(mark["id"]), base.time)
        return self._sides(apply(natural, mark.get("patch", [])), base)

    def _sides(self, items: object, base: _Base) -> list[Entry]:
        if not isinstance(items, list):
            raise BadInput("not a list of entries")
        entries: list[Entry] = []
        for item in items:
            body = renamed(item["body"], lambda name: self._ids.get(name, name))
            tag = {"was": item["id"]} if "id" in item else {}
            base = base.after(entries[-1:])
            value = {"id": base.next_id, "parent": base.parent_id, "time": item["time"]}
            entry = entry_from_json(value | {"body": body | {self._dialect.name: tag}})
            if not -(2**53) <= entry.time < 2**53:
                raise BadInput(f"time {entry.time} is not in whole milliseconds")
            entries.append(entry)
        return entries

    def _plain(self, record: Json, base: _Base) -> list[Entry]:
        dialect = self._dialect
        name = dialect.name_of(record)
        entries: list[Entry] = []
        for body, time in _unanswered(dialect.read(record, base.key), self._answered):
            base = base.after(entries[-1:])
            when = base.time if time is None else time
            joined = tagged(dialect.name, body, {"joined": True}) if entries else body
            entries.append(Entry(base.next_id, base.parent_id, when, joined))
        head = entries[0]
        patch = diff(dialect.write(entries, name or base.key), record)
        tag = ({} if name is None else {"was": name}) | {"patch": patch}
        first = msgspec.structs.replace(head, body=tagged(dialect.name, head.body, tag))
        return [first, *entries[1:]]


class _Base(NamedTuple):
    """Where the next entry of a record goes."""

    key: str
    parent: Entry | None
    start: int
    count: int = 0

    @property
    def next_id(self) -> str:
        return self.key if self.count == 0 else derived_id(self.key, str(self.count))

    @property
    def parent_id(self) -> str | None:
        return self.parent.id if self.parent else None

    @property
    def time(self) -> int:
        return self.parent.time if self.parent else self.start

    def after(self, entries: Sequence[Entry]) -> _Base:
        if not entries:
            return self
        return self._replace(parent=entries[-1], count=self.count + len(entries))


def canonical(record: Json) -> str:
    return json.dumps(record, ensure_ascii=False, separators=(",", ":"), sort_keys=True)


def _unanswered(loose: list[Loose], answered: frozenset[str]) -> list[Loose]:
    """Without the results that stand in a record of their own: a provider refuses one sent twice."""
    kept = loose[:1]
    for body, time in loose[1:]:
        assert isinstance(body, Message)
        parts = tuple(
            part
            for part in body.parts
            if not (isinstance(part, ToolResult) and part.call_id in answered)
        )
        if parts:
            kept.append(Loose(msgspec.structs.replace(body, parts=parts), time))
    return kept


# --- from entries to records -------------------------------------------------------------------


class Written(NamedTuple):
    records: list[Json]
    before: list[Json]  # entries that stand before the first record


def write_records(dialect: Dialect, entries: Sequence[Entry]) -> Written:
    names = {entry.id: known_as(dialect.name, entry) for entry in entries}
    written = Written([], [])
    after = written.before
    at = 0
    while at < len(entries):
        entry, tag = entries[at], tag_of(dialect.name, entries[at].body)
        if isinstance(entry.body, Source) or "header" in tag:
            at += 1
        elif not dialect.stands_alone(entry.body):
            after.append(_side(dialect, entry, names))
            at += 1
        else:
            foreign = "patch" in tag
            run = _run(dialect, entries, at, foreign=foreign)
            at += len(run)
            after = []
            name = names[entry.id]
            record = dialect.write(run, name)
            if foreign:
                record = apply(record, tag["patch"])
                record = record if isinstance(record, dict) else {}
                mark: Json = {}
            else:
                mark = _mark(dialect, record, run, names)
            written.records.append(record)
            _pending = (record, mark)
            while at < len(entries) and _is_side(dialect, entries[at]):
                after.append(_side(dialect, entries[at], names))
                at += 1
            if after:
                mark = mark | {"after": after}
            if mark:
                written.records[-1] = dialect.with_mark(record, mark)
    return written

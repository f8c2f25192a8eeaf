"""Between a log and the records of a file that a program writes whole: exact in both directions.

A `RecordFormat` reads and writes what its format has fields for, and need not be exact. This module
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
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec

from recollect.entries import (
    Entry,
    Message,
    ToolResult,
    entry_from_json,
    json_text,
)
from recollect.errors import BadInput
from recollect.store.ids import derived_id
from recollect.transcripts.json_patch import Json, apply_patch, json_equal, make_patch
from recollect.transcripts.record_format import (
    MARK_FIELD,
    ParsedBody,
    RecordFormat,
    id_in_file,
    rename_references,
    split_results,
    unpatched_json,
    with_call_ids,
    with_tag,
)
from recollect.transcripts.record_writer import write_records

# what reading a mark can raise that is not a mark of ours
_NOT_OURS = (
    BadInput,
    LookupError,
    TypeError,
    ValueError,
    AttributeError,
    ArithmeticError,
    RecursionError,
)


class RecordReader:
    """Turns records into entries, one after the other; knows the ids of those it has seen."""

    def __init__(self, dialect: RecordFormat, session: str, answered: frozenset[str]) -> None:
        self._dialect, self._session = dialect, session
        self._answered = answered  # calls whose result has a record of its own
        self._ids: dict[str, str] = {}  # by the id in the file
        self._names: dict[str, str] = {}  # the other way round
        self._anchors: dict[str, str] = {}  # of entries that ride along: what they ride on

    def read(self, record: Json, parent: Entry | None, start: int) -> list[Entry]:
        """The entries of a record that follows `parent`; `start` is when the session began."""
        # not what rides along: a record is the same with and without edits of ours around it
        above = self._anchors.get(parent.id, parent.id) if parent else ""
        mark = self._dialect.mark_of(record)
        foreign = isinstance(mark, dict) and "id" not in mark
        own = self._unmarked(record, mark) if foreign and isinstance(mark, dict) else record
        key = derived_id(self._dialect.name, self._session, above, canonical_json(own))
        base = _EntryPosition(key, parent, start)
        if isinstance(mark, dict) and (entries := self._marked(record, mark, base)):
            return entries
        if foreign:  # what looks like a mark is none, so it is part of the record
            key = derived_id(self._dialect.name, self._session, above, canonical_json(record))
            base = _EntryPosition(key, parent, start)
        entries = self._plain(record, base)
        self._learn(entries)
        return entries

    def before(self, items: object, start: int) -> list[Entry] | None:
        """Entries before the first record, as a file's mark lists them; None if it is not ours."""
        key = derived_id(self._dialect.name, self._session, "before", json_text(items))
        try:
            entries = self._sides(items, _EntryPosition(key, None, start))
        except _NOT_OURS:
            return None
        if not json_equal(write_records(self._dialect, entries).before, items):
            return None
        self._learn(entries)
        self._anchors.update((entry.id, "") for entry in entries)
        return entries

    def _learn(self, entries: Iterable[Entry]) -> None:
        for entry in entries:
            name = id_in_file(self._dialect.name, entry)
            self._ids[name], self._names[entry.id] = entry.id, name

    def _marked(self, record: Json, mark: Json, base: _EntryPosition) -> list[Entry] | None:
        """By the mark that an export of ours made; None unless it gives exactly this record."""
        plain = self._unmarked(record, mark)
        try:
            run = self._ours(plain, mark, base) if "id" in mark else self._plain(plain, base)
            self._learn(run)
            after = self._sides(mark.get("after", []), base.after(run))
            written = write_records(self._dialect, [*run, *after], self._names)
        except _NOT_OURS:
            return None
        if written.before or not json_equal(written.records, [record]):
            return None
        self._learn(after)
        self._anchors.update((entry.id, run[-1].id) for entry in after)
        return [*run, *after]

    def _unmarked(self, record: Json, mark: Json) -> Json:
        """The record as it was before the mark."""
        plain = apply_patch(self._dialect.with_mark(record, None), mark.get("undo"))
        return plain if isinstance(plain, dict) else record

    def _ours(self, plain: Json, mark: Json, base: _EntryPosition) -> list[Entry]:
        loose = with_call_ids(self._dialect.read(plain, str(mark["id"])), mark.get("calls"))
        natural = unpatched_json(split_results(loose, mark.get("results")), str(mark["id"]))
        return self._sides(apply_patch(natural, mark.get("patch", [])), base)

    def _sides(self, items: object, base: _EntryPosition) -> list[Entry]:
        if not isinstance(items, list):
            raise BadInput("not a list of entries")
        entries: list[Entry] = []
        for item in items:
            if not isinstance(item["body"], dict):
                raise BadInput("a body that is no object")
            body = rename_references(item["body"], lambda name: self._ids.get(name, name))
            tag = {"was": item["id"]}
            base = base.after(entries[-1:])
            id_ = derived_id(base.next_id, json_text(item))
            value = {"id": id_, "parent": base.parent_id, "time": item["time"]}
            entry = entry_from_json(value | {"body": body | {self._dialect.name: tag}})
            if not -(2**53) <= entry.time < 2**53:
                raise BadInput(f"time {entry.time} is not in whole milliseconds")
            entries.append(entry)
        return entries

    def _plain(self, record: Json, base: _EntryPosition) -> list[Entry]:
        dialect = self._dialect
        name = dialect.name_of(record)
        entries: list[Entry] = []
        for body, time in _unanswered(dialect.read(record, base.key), self._answered):
            base = base.after(entries[-1:])
            when = base.time if time is None else time
            joined = with_tag(dialect.name, body, {"joined": True}) if entries else body
            entries.append(Entry(base.next_id, base.parent_id, when, joined))
        head = entries[0]
        patch = make_patch(dialect.write(entries, name or base.key), record)
        tag: Json = ({} if name is None else {"was": name}) | {"patch": patch}
        if len(entries) > 1:
            tag["run"] = len(entries)
        first = msgspec.structs.replace(head, body=with_tag(dialect.name, head.body, tag))
        return [first, *entries[1:]]


class _EntryPosition(NamedTuple):
    """Where the next entry of a record goes."""

    key: str
    parent: Entry | None
    start: int
    done: int = 0

    @property
    def next_id(self) -> str:
        return self.key if self.done == 0 else derived_id(self.key, str(self.done))

    @property
    def parent_id(self) -> str | None:
        return self.parent.id if self.parent else None

    @property
    def time(self) -> int:
        return self.parent.time if self.parent else self.start

    def after(self, entries: Sequence[Entry]) -> _EntryPosition:
        if not entries:
            return self
        return self._replace(parent=entries[-1], done=self.done + len(entries))


def canonical_json(record: Json) -> str:
    return json.dumps(record, ensure_ascii=False, separators=(",", ":"), sort_keys=True)


def _unanswered(loose: list[ParsedBody], answered: frozenset[str]) -> list[ParsedBody]:
    """Without results that stand in a record of their own: providers refuse one sent twice."""
    kept = loose[:1]
    for body, time in loose[1:]:
        assert isinstance(body, Message)
        parts = tuple(
            part
            for part in body.parts
            if not (isinstance(part, ToolResult) and part.call_id in answered)
        )
        if parts:
            kept.append(ParsedBody(msgspec.structs.replace(body, parts=parts), time))
    return kept


def read_leading_entries(
    reader: RecordReader, header: Json, start: int
) -> tuple[Json, list[Entry]]:
    """A file's header without the entries that its mark lists, and those entries."""
    mark = header.get(MARK_FIELD)
    if not isinstance(mark, dict) or "before" not in mark:
        return header, []
    entries = reader.before(mark["before"], start)
    if entries is None:
        return header, []
    rest = {key: item for key, item in mark.items() if key != "before"}
    return header | {MARK_FIELD: rest}, entries

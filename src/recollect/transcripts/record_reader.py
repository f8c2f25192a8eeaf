"""From records to entries: exact in both directions, with `record_writer`.

A `RecordFormat` reads and writes what its format has fields for, and need not be exact. These two
modules make it exact:
- a record becomes entries; what writing them would not restore (ids, odd times, unknown fields,
  wrong types) is stored as a patch in `extra` of the first of them, under the format's name;
- an entry of ours becomes a record; what reading it would not restore (thought signatures, call
  ids, finish reasons …) is written as a patch in the record's `recollect` mark;
- entries for which the format has no record (edits, requests, titles …) follow in the mark's
  `after`, or in the file's own mark (`before`) when no record precedes them.
Only `Source` entries are not exported: the bytes they name stay in the store. The id of an imported
entry is derived from its record and its parent's id, so the same history always gets the same ids.
References from edits to entries follow the entries to their new ids and back.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec

from recollect.entries import Entry, Message, ToolResult, entry_from_json, json_text
from recollect.errors import BadInput
from recollect.store.ids import derived_id
from recollect.transcripts.json_patch import apply_patch, json_equal, make_patch
from recollect.transcripts.json_values import Json, canonical_json
from recollect.transcripts.record_format import (
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

# what reading a mark can raise when the mark is not one of ours
_NOT_OURS = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError)


class RecordReader:
    """Turns records into entries, one after the other, and remembers the ids it has seen."""

    def __init__(
        self, format_: RecordFormat, session: str, answered: frozenset[str] = frozenset()
    ) -> None:
        """`answered`: calls whose result has a record of its own."""
        self._format, self._session, self._answered = format_, session, answered
        self._ids: dict[str, str] = {}  # ours, by the id in the file
        self._ids_in_file: dict[str, str] = {}  # the other way round
        self._anchors: dict[str, str] = {}  # for entries in a mark: the entry that carries them

    def read(self, record: Json, parent: Entry | None, start: int) -> list[Entry]:
        """The entries of a record that follows `parent`; `start` is when the session began."""
        mark = self._format.get_mark(record)
        if isinstance(mark, dict):
            own = record if "id" in mark else self._unmarked(record, mark)
            if entries := self._read_marked(record, mark, self._position(own, parent, start)):
                return entries
        entries = self._read_plain(record, self._position(record, parent, start))
        self._remember(entries)
        return entries

    def _position(self, record: Json, parent: Entry | None, start: int) -> _EntryPosition:
        # not from the entries in a mark: a record stays the same with and without our edits
        above = self._anchors.get(parent.id, parent.id) if parent else ""
        key = derived_id(self._format.name, self._session, above, canonical_json(record))
        return _EntryPosition(key, parent, start)

    def read_before(self, items: object, start: int) -> list[Entry] | None:
        """Entries before the first record, as a file's mark lists them; None if it is not ours."""
        key = derived_id(self._format.name, self._session, "before", json_text(items))
        try:
            entries = self._read_items(items, _EntryPosition(key, None, start))
        except _NOT_OURS:
            return None
        if not json_equal(write_records(self._format, entries).before, items):
            return None
        self._remember(entries)
        self._anchors.update((entry.id, "") for entry in entries)
        return entries

    def _remember(self, entries: Iterable[Entry]) -> None:
        for entry in entries:
            theirs = id_in_file(self._format.name, entry)
            self._ids[theirs], self._ids_in_file[entry.id] = entry.id, theirs

    def _read_marked(self, record: Json, mark: Json, at: _EntryPosition) -> list[Entry] | None:
        """By the mark of an export of ours; None unless the entries give exactly this record."""
        plain = self._unmarked(record, mark)
        try:
            run = self._read_own(plain, mark, at) if "id" in mark else self._read_plain(plain, at)
            self._remember(run)
            after = self._read_items(mark.get("after", []), at.after(run))
            written = write_records(self._format, [*run, *after], self._ids_in_file)
        except _NOT_OURS:
            return None
        if written.before or not json_equal(written.records, [record]):
            return None
        self._remember(after)
        self._anchors.update((entry.id, run[-1].id) for entry in after)
        return [*run, *after]

    def _unmarked(self, record: Json, mark: Json) -> Json:
        """The record as it was before the mark."""
        plain = apply_patch(self._format.with_mark(record, None), mark.get("undo"))
        return plain if isinstance(plain, dict) else record

    def _read_own(self, plain: Json, mark: Json, at: _EntryPosition) -> list[Entry]:
        record_id = str(mark["id"])
        parsed = with_call_ids(self._format.read(plain, record_id), mark.get("calls"))
        unpatched = unpatched_json(split_results(parsed, mark.get("results")), record_id)
        return self._read_items(apply_patch(unpatched, mark.get("patch", [])), at)

    def _read_items(self, items: object, at: _EntryPosition) -> list[Entry]:
        if not isinstance(items, list):
            raise BadInput("not a list of entries")
        entries: list[Entry] = []
        for item in items:
            if not isinstance(item["body"], dict):
                raise BadInput("a body that is not an object")
            body = rename_references(item["body"], lambda name: self._ids.get(name, name))
            tag = {"was": item["id"]}
            at = at.after(entries[-1:])
            id_ = derived_id(at.next_id, json_text(item))
            value = {"id": id_, "parent": at.parent_id, "time": item["time"]}
            entry = entry_from_json(value | {"body": body | {self._format.name: tag}})
            if not -(2**53) <= entry.time < 2**53:
                raise BadInput(f"time {entry.time} is not in whole milliseconds")
            entries.append(entry)
        return entries

    def _read_plain(self, record: Json, at: _EntryPosition) -> list[Entry]:
        format_ = self._format
        record_id = format_.id_of(record)
        entries: list[Entry] = []
        for body, time in _without_answered(format_.read(record, at.key), self._answered):
            at = at.after(entries[-1:])
            when = at.time if time is None else time
            joined = with_tag(format_.name, body, {"joined": True}) if entries else body
            entries.append(Entry(at.next_id, at.parent_id, when, joined))
        head = entries[0]
        patch = make_patch(format_.write(entries, record_id or at.key), record)
        tag: Json = ({} if record_id is None else {"was": record_id}) | {"patch": patch}
        if len(entries) > 1:
            tag["run"] = len(entries)
        first = msgspec.structs.replace(head, body=with_tag(format_.name, head.body, tag))
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


def _without_answered(parsed: list[ParsedBody], answered: frozenset[str]) -> list[ParsedBody]:
    """Without results that have a record of their own: providers refuse one sent twice."""
    kept = parsed[:1]
    for body, time in parsed[1:]:
        assert isinstance(body, Message)
        parts = tuple(
            part
            for part in body.parts
            if not (isinstance(part, ToolResult) and part.call_id in answered)
        )
        if parts:
            kept.append(ParsedBody(msgspec.structs.replace(body, parts=parts), time))
    return kept

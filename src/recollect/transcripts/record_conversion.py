"""Between records and entries: exact in both directions.

A `RecordFormat` reads and writes what its format has fields for, and need not be exact. This module
makes it exact:
- a record becomes entries; what writing them would not restore (ids, odd times, unknown fields,
  wrong types) is stored as a patch in `extra` of the first of them, under the format's name;
- an entry of ours becomes a record; what reading it would not restore (thought signatures, call
  ids, finish reasons …) is written as a patch in the record's `recollect` mark, with its id, and
  its calls and results where the format has no field for them;
- entries for which the format has no record (edits, requests, titles, outputs of commands …), and
  initial context that a pin places first, follow in the mark's `after`, or in the file's own mark
  (`before`) when no record precedes them.
Only `Source` entries are not exported: the bytes they name stay in the store. The id of an imported
entry is derived from its record and its parent's id, so the same history always gets the same ids.
References from edits to entries follow the entries to their new ids and back.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from recollect.entries import Body, Entry, Message, Pin, Source, entry_from_json, json_text
from recollect.errors import BadInput
from recollect.store.ids import derived_id
from recollect.store.output_notes import output_part
from recollect.transcripts.json_patch import apply_patch, json_equal, make_patch
from recollect.transcripts.json_values import Json, object_or_empty
from recollect.transcripts.plain_record import EntryPosition, read_plain_record, record_key
from recollect.transcripts.record_format import (
    MARK_FIELD,
    OpenCalls,
    RecordFormat,
    answered_call_ids,
    body_to_json,
    call_ids,
    get_tag,
    id_in_file,
    rename_references,
    unpatched_json,
    with_call_ids,
    with_tag,
)

# what reading a mark can raise when the mark is not one of ours
_NOT_OURS = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError)


class RecordReader:
    """Turns records into entries, one after the other, and remembers the ids it has seen."""

    def __init__(
        self, format_: RecordFormat, session: str, start: int, answered: frozenset[str]
    ) -> None:
        """`start`: when the session began; `answered`: calls whose result has its own record."""
        self._format, self._session = format_, session
        self._start, self._answered = start, answered
        self._calls = OpenCalls()
        self._ids: dict[str, str] = {}  # ours, by the id in the file
        self._ids_in_file: dict[str, str] = {}  # the other way round
        self._anchors: dict[str, str] = {}  # for entries in a mark: the entry that carries them

    def read(self, record: Json, parent: Entry | None) -> list[Entry]:
        """The entries of a record that follows `parent`."""
        mark = self._format.get_mark(record)
        if isinstance(mark, dict):
            own = record if "id" in mark else self._unmarked(record, mark)
            if entries := self._read_marked(record, mark, self._position(own, parent)):
                return entries
        entries = self._read_plain(record, self._position(record, parent))
        self._remember(entries)
        return entries

    def _position(self, record: Json, parent: Entry | None) -> EntryPosition:
        # not from the entries in a mark: a record stays the same with and without our edits
        above = self._anchors.get(parent.id, parent.id) if parent else ""
        key = record_key(self._format, self._session, above, record)
        at = EntryPosition(key, None, self._start)
        return at._replace(parent=parent.id, time=parent.time) if parent else at

    def read_before(self, items: object) -> list[Entry] | None:
        """Entries before the first record, as a file's mark lists them; None if it is not ours."""
        key = derived_id(self._format.name, self._session, "before", json_text(items))
        try:
            entries = self._read_items(items, EntryPosition(key, None, self._start))
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

    def _read_marked(self, record: Json, mark: Json, at: EntryPosition) -> list[Entry] | None:
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

    def _read_own(self, plain: Json, mark: Json, at: EntryPosition) -> list[Entry]:
        parsed = with_call_ids(self._format.read(plain, str(mark["id"])), mark.get("calls"))
        return self._read_items(apply_patch(unpatched_json(parsed, mark), mark.get("patch")), at)

    def _read_items(self, items: object, at: EntryPosition) -> list[Entry]:
        if not isinstance(items, list):
            raise BadInput("not a list of entries")
        entries: list[Entry] = []
        new: dict[str, str] = {}  # an edit may name an entry that is carried beside it
        ids = ChainMap(new, self._ids)
        for item in items:
            if not isinstance(item["body"], dict):
                raise BadInput("a body that is not an object")
            body = rename_references(item["body"], lambda name: ids.get(name, name))
            id_ = derived_id(at.next_id, json_text(item))
            value = {"id": id_, "parent": at.parent, "time": item["time"]}
            tag = {self._format.name: {"was": item["id"]}}
            entry = entry_from_json(value | {"body": body | tag})
            if not -(2**53) <= entry.time < 2**53:
                raise BadInput(f"time {entry.time} is not in whole milliseconds")
            entries.append(entry)
            new[str(item["id"])] = entry.id
            at = at.after([entry])
        return entries

    def _read_plain(self, record: Json, at: EntryPosition) -> list[Entry]:
        return read_plain_record(self._format, record, at, self._answered, self._calls.complete)


class WrittenRecords(NamedTuple):
    records: list[Json]
    before: list[Json]  # entries that precede the first record


class _RecordGroup(NamedTuple):
    """What becomes one record: an entry with its answers, and entries that the mark carries."""

    run: list[Entry]
    carried: list[Entry]


def compose_file(format_: RecordFormat, header: Json, entries: Sequence[Entry]) -> Json:
    """The value of a file that holds its records in `messages`."""
    records, before = write_records(format_, entries)
    if before:
        mark = object_or_empty(header.get(MARK_FIELD)) | {"before": before}
        header = header | {MARK_FIELD: mark}
    return header | {"messages": records}


def write_records(
    format_: RecordFormat, entries: Sequence[Entry], known: Mapping[str, str] | None = None
) -> WrittenRecords:
    """`known`: the ids in the file of entries that are referred to and not written here."""
    ids = dict(known or {}) | {e.id: id_in_file(format_.name, e) for e in entries}
    before, *groups = _group(format_, entries)
    records = []
    for run, carried in groups:
        mark = Json()
        if _imported_run(format_, run, 0) == len(run):
            patch = get_tag(format_.name, run[0].body)["patch"]
            record = apply_patch(format_.write(run, ids[run[0].id]), patch)
        else:
            record = format_.write([_untagged(format_, entry) for entry in run], ids[run[0].id])
            mark = _make_mark(format_, record, run, ids)
        if carried:
            mark["after"] = [_to_json(format_, entry, ids) for entry in carried]
            # an imported record may have had something of its own where the mark goes
            unmarked = format_.with_mark(format_.with_mark(record, mark), None)
            mark |= {"undo": undo} if (undo := make_patch(unmarked, record)) else {}
        records.append(format_.with_mark(record, mark) if mark else record)
    return WrittenRecords(records, [_to_json(format_, entry, ids) for entry in before.carried])


def _group(format_: RecordFormat, entries: Sequence[Entry]) -> list[_RecordGroup]:
    exported = [
        entry
        for entry in entries
        if not isinstance(entry.body, Source) and "header" not in get_tag(format_.name, entry.body)
    ]
    groups, at, placed = [_RecordGroup([], [])], 0, _placed_first(format_, exported)
    while at < len(exported):
        if not _has_record(format_, exported[at].body) or exported[at].id in placed:
            groups[-1].carried.append(exported[at])
            at += 1
            continue
        length = _imported_run(format_, exported, at) or _own_run(format_, exported, at)
        groups.append(_RecordGroup(exported[at : at + length], []))
        at += length
    return groups


def _has_record(format_: RecordFormat, body: Body) -> bool:
    """Whether it becomes a record of its own; outputs of commands are nothing to show."""
    return isinstance(body, format_.bodies) and output_part(body) is None


def _placed_first(format_: RecordFormat, entries: Sequence[Entry]) -> set[str]:
    """Initial context that a pin right after it places first: as records these messages would stand
    in the middle of the history. Decided by neighbours alone, so that a part gives the same."""
    found: set[str] = set()
    named: set[str] = set()
    for entry in reversed(entries):
        body = entry.body
        if isinstance(body, Pin) and body.first:
            named.update(body.entries)
        elif isinstance(body, Message) and body.context == "initial" and entry.id in named:
            found.add(entry.id)
        elif _has_record(format_, body):
            named.clear()
    return found


def _imported_run(format_: RecordFormat, entries: Sequence[Entry], at: int) -> int:
    """How many entries came from one record; 0 unless all of them are here."""
    tag = get_tag(format_.name, entries[at].body)
    if not isinstance(tag.get("patch"), list):
        return 0
    end = at + 1
    while end < len(entries) and "joined" in get_tag(format_.name, entries[end].body):
        end += 1
    return end - at if tag.get("run", 1) == end - at else 0


def _own_run(format_: RecordFormat, entries: Sequence[Entry], at: int) -> int:
    """A message and the messages that answer its calls, with the entries between them."""
    head = entries[at].body
    is_model = isinstance(head, Message) and head.role == "model"
    pending, length = set(call_ids(head)) if is_model else set(), 1
    for position in range(at + 1, len(entries)):
        body = entries[position].body
        if not pending:
            break
        if not _has_record(format_, body):
            continue
        answers = answered_call_ids(body)
        if not answers or not pending.issuperset(answers) or len(set(answers)) < len(answers):
            break
        pending.difference_update(answers)
        length = position - at + 1
    return length


def _make_mark(format_: RecordFormat, record: Json, run: list[Entry], ids: dict[str, str]) -> Json:
    """What the record needs so that exactly these entries are read from it."""
    mark: Json = {"id": ids[run[0].id]}
    parsed = format_.read(record, mark["id"])
    if (calls := call_ids(run[0].body)) != call_ids(parsed[0].body):
        mark["calls"] = calls
        parsed = with_call_ids(parsed, calls)
    groups = [answers for entry in run[1:] if (answers := answered_call_ids(entry.body))]
    if groups != [answered_call_ids(body) for body, _ in parsed[1:]]:
        mark["results"] = groups
    items = [_to_json(format_, entry, ids) for entry in run]
    patch = make_patch(unpatched_json(parsed, mark), items)
    return mark | ({"patch": patch} if patch else {})


def _untagged(format_: RecordFormat, entry: Entry) -> Entry:
    """As if it were ours: a tag also says in which of several shapes its record was written."""
    if not get_tag(format_.name, entry.body):
        return entry
    return msgspec.structs.replace(entry, body=with_tag(format_.name, entry.body, {}))


def _to_json(format_: RecordFormat, entry: Entry, ids: dict[str, str]) -> Json:
    body = body_to_json(entry.body)
    body.pop(format_.name, None)
    body = rename_references(body, lambda id_: ids.get(id_, id_))
    return {"id": ids[entry.id], "time": entry.time, "body": body}

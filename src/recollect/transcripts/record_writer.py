"""From entries to records; `record_reader` says what is promised.

An imported entry is written as its record was. An entry of ours gets a mark that holds what the
record cannot say: its id, its calls and results where the format has no field for them, and a
patch for everything else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from recollect.entries import Entry, Message, Source
from recollect.transcripts.json_patch import apply_patch, make_patch
from recollect.transcripts.json_values import Json, object_or_empty
from recollect.transcripts.record_format import (
    MARK_FIELD,
    RecordFormat,
    answered_call_ids,
    body_to_json,
    call_ids,
    get_tag,
    id_in_file,
    rename_references,
    split_results,
    unpatched_json,
    with_call_ids,
)


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
        record, mark = format_.write(run, ids[run[0].id]), Json()
        if _imported_run(format_, run, 0) == len(run):
            record = apply_patch(record, get_tag(format_.name, run[0].body)["patch"])
        else:
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
    groups, at = [_RecordGroup([], [])], 0
    while at < len(exported):
        if not isinstance(exported[at].body, format_.bodies):
            groups[-1].carried.append(exported[at])
            at += 1
            continue
        length = _imported_run(format_, exported, at) or _own_run(format_, exported, at)
        groups.append(_RecordGroup(exported[at : at + length], []))
        at += length
    return groups


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
        if not isinstance(body, format_.bodies):
            continue
        answers = answered_call_ids(body)
        if not answers or not pending.issuperset(answers) or len(set(answers)) < len(answers):
            break
        pending.difference_update(answers)
        length = position - at + 1
    return length


def _make_mark(format_: RecordFormat, record: Json, run: list[Entry], ids: dict[str, str]) -> Json:
    """What the record needs so that exactly these entries are read from it."""
    record_id = ids[run[0].id]
    mark: Json = {"id": record_id}
    parsed = format_.read(record, record_id)
    if (calls := call_ids(run[0].body)) != call_ids(parsed[0].body):
        mark["calls"] = calls
        parsed = with_call_ids(parsed, calls)
    groups = [answers for entry in run[1:] if (answers := answered_call_ids(entry.body))]
    if groups != [answered_call_ids(body) for body, _ in parsed[1:]]:
        mark["results"] = groups
    unpatched = unpatched_json(split_results(parsed, mark.get("results")), record_id)
    patch = make_patch(unpatched, [_to_json(format_, entry, ids) for entry in run])
    return mark | ({"patch": patch} if patch else {})


def _to_json(format_: RecordFormat, entry: Entry, ids: dict[str, str]) -> Json:
    body = body_to_json(entry.body)
    body.pop(format_.name, None)
    body = rename_references(body, lambda id_: ids.get(id_, id_))
    return {"id": ids[entry.id], "time": entry.time, "body": body}

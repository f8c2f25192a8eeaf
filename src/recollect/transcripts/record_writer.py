"""From entries to records: see `records` for what is promised.

An imported entry is written as its record was. One of ours gets a mark, with what it takes to read
exactly this entry out of the record: its id, its calls and results where the format does not tell
them, and a patch for all the rest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from recollect.entries import (
    Entry,
    Message,
    Source,
)
from recollect.transcripts.json_patch import Json, apply_patch, make_patch
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
    before: list[Json]  # entries that stand before the first record


def compose_file(dialect: RecordFormat, header: Json, entries: Sequence[Entry]) -> Json:
    """The value of a file that holds its records in `messages`."""
    records, before = write_records(dialect, entries)
    if before:
        mark = header.get(MARK_FIELD)
        header = header | {
            MARK_FIELD: (mark if isinstance(mark, dict) else {}) | {"before": before}
        }
    return header | {"messages": records}


class _RecordGroup(NamedTuple):
    """What becomes one record: an entry with its answers, and the entries that ride along."""

    run: list[Entry]
    sides: list[Entry]


def write_records(
    dialect: RecordFormat, entries: Sequence[Entry], known: Mapping[str, str] | None = None
) -> WrittenRecords:
    """`known` are the names in the file of entries that are referred to and not written here."""
    names = dict(known or {}) | {e.id: id_in_file(dialect.name, e) for e in entries}
    before, *groups = _groups(dialect, entries)
    records = []
    for run, sides in groups:
        name = names[run[0].id]
        record, mark = dialect.write(run, name), Json()
        if _foreign_run(dialect, run, 0) == len(run):
            record = apply_patch(record, get_tag(dialect.name, run[0].body)["patch"])
        else:
            mark = _mark(dialect, record, run, names)
        if sides:
            mark["after"] = [_to_json(dialect, side, names) for side in sides]
            # a foreign record may have had something of its own where the mark goes
            unmarked = dialect.with_mark(dialect.with_mark(record, mark), None)
            mark |= {"undo": undo} if (undo := make_patch(unmarked, record)) else {}
        records.append(dialect.with_mark(record, mark) if mark else record)
    return WrittenRecords(records, [_to_json(dialect, side, names) for side in before.sides])


def _groups(dialect: RecordFormat, entries: Sequence[Entry]) -> list[_RecordGroup]:
    travelling = [
        entry
        for entry in entries
        if not isinstance(entry.body, Source) and "header" not in get_tag(dialect.name, entry.body)
    ]
    groups, at = [_RecordGroup([], [])], 0
    while at < len(travelling):
        if not dialect.stands_alone(travelling[at].body):
            groups[-1].sides.append(travelling[at])
            at += 1
            continue
        length = _foreign_run(dialect, travelling, at) or _own_run(dialect, travelling, at)
        groups.append(_RecordGroup(travelling[at : at + length], []))
        at += length
    return groups


def _foreign_run(dialect: RecordFormat, entries: Sequence[Entry], at: int) -> int:
    """How many entries came from one record, if they did and all of them are here."""
    tag = get_tag(dialect.name, entries[at].body)
    if not isinstance(tag.get("patch"), list):
        return 0
    end = at + 1
    while end < len(entries) and "joined" in get_tag(dialect.name, entries[end].body):
        end += 1
    return end - at if tag.get("run", 1) == end - at else 0


def _own_run(dialect: RecordFormat, entries: Sequence[Entry], at: int) -> int:
    """A message and the messages that answer its calls, with what stands between them."""
    head = entries[at].body
    is_model = isinstance(head, Message) and head.role == "model"
    waiting, length = set(call_ids(head)) if is_model else set(), 1
    for position in range(at + 1, len(entries)):
        body = entries[position].body
        if not waiting:
            break
        if not dialect.stands_alone(body):
            continue
        answers = answered_call_ids(body)
        if not answers or not waiting.issuperset(answers) or len(set(answers)) < len(answers):
            break
        waiting.difference_update(answers)
        length = position - at + 1
    return length


def _mark(dialect: RecordFormat, record: Json, run: list[Entry], names: dict[str, str]) -> Json:
    """What it takes to read exactly these entries out of this record."""
    name = names[run[0].id]
    mark: Json = {"id": name}
    loose = dialect.read(record, name)
    if (calls := call_ids(run[0].body)) != call_ids(loose[0].body):
        mark["calls"] = calls
        loose = with_call_ids(loose, calls)
    groups = [answers for entry in run[1:] if (answers := answered_call_ids(entry.body))]
    if groups != [answered_call_ids(body) for body, _ in loose[1:]]:
        mark["results"] = groups
    natural = unpatched_json(split_results(loose, mark.get("results")), name)
    patch = make_patch(natural, [_to_json(dialect, entry, names) for entry in run])
    return mark | ({"patch": patch} if patch else {})


def _to_json(dialect: RecordFormat, entry: Entry, names: dict[str, str]) -> Json:
    body = body_to_json(entry.body)
    body.pop(dialect.name, None)
    body = rename_references(body, lambda id_: names.get(id_, id_))
    return {"id": names[entry.id], "time": entry.time, "body": body}

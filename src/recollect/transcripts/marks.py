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
from recollect.transcripts.dialects import (
    MARK,
    Dialect,
    answers_in,
    body_json,
    called,
    calls_in,
    known_as,
    natural_json,
    renamed,
    split,
    tag_of,
)
from recollect.transcripts.patches import Json, apply, diff


class Written(NamedTuple):
    records: list[Json]
    before: list[Json]  # entries that stand before the first record


def write_file(dialect: Dialect, header: Json, entries: Sequence[Entry]) -> Json:
    """The value of a file that holds its records in `messages`."""
    records, before = write_records(dialect, entries)
    if before:
        mark = header.get(MARK)
        header = header | {MARK: (mark if isinstance(mark, dict) else {}) | {"before": before}}
    return header | {"messages": records}


class _Group(NamedTuple):
    """What becomes one record: an entry with its answers, and the entries that ride along."""

    run: list[Entry]
    sides: list[Entry]


def write_records(
    dialect: Dialect, entries: Sequence[Entry], known: Mapping[str, str] | None = None
) -> Written:
    """`known` are the names in the file of entries that are referred to and not written here."""
    names = dict(known or {}) | {e.id: known_as(dialect.name, e) for e in entries}
    before, *groups = _groups(dialect, entries)
    records = []
    for run, sides in groups:
        name = names[run[0].id]
        record, mark = dialect.write(run, name), Json()
        if _foreign_run(dialect, run, 0) == len(run):
            record = apply(record, tag_of(dialect.name, run[0].body)["patch"])
        else:
            mark = _mark(dialect, record, run, names)
        if sides:
            mark["after"] = [_to_json(dialect, side, names) for side in sides]
            # a foreign record may have had something of its own where the mark goes
            unmarked = dialect.with_mark(dialect.with_mark(record, mark), None)
            mark |= {"undo": undo} if (undo := diff(unmarked, record)) else {}
        records.append(dialect.with_mark(record, mark) if mark else record)
    return Written(records, [_to_json(dialect, side, names) for side in before.sides])


def _groups(dialect: Dialect, entries: Sequence[Entry]) -> list[_Group]:
    travelling = [
        entry
        for entry in entries
        if not isinstance(entry.body, Source) and "header" not in tag_of(dialect.name, entry.body)
    ]
    groups, at = [_Group([], [])], 0
    while at < len(travelling):
        if not dialect.stands_alone(travelling[at].body):
            groups[-1].sides.append(travelling[at])
            at += 1
            continue
        length = _foreign_run(dialect, travelling, at) or _own_run(dialect, travelling, at)
        groups.append(_Group(travelling[at : at + length], []))
        at += length
    return groups


def _foreign_run(dialect: Dialect, entries: Sequence[Entry], at: int) -> int:
    """How many entries came from one record, if they did and all of them are here."""
    tag = tag_of(dialect.name, entries[at].body)
    if not isinstance(tag.get("patch"), list):
        return 0
    end = at + 1
    while end < len(entries) and "joined" in tag_of(dialect.name, entries[end].body):
        end += 1
    return end - at if tag.get("run", 1) == end - at else 0


def _own_run(dialect: Dialect, entries: Sequence[Entry], at: int) -> int:
    """A message and the messages that answer its calls, with what stands between them."""
    head = entries[at].body
    is_model = isinstance(head, Message) and head.role == "model"
    waiting, length = set(calls_in(head)) if is_model else set(), 1
    for position in range(at + 1, len(entries)):
        body = entries[position].body
        if not waiting:
            break
        if not dialect.stands_alone(body):
            continue
        answers = answers_in(body)
        if not answers or not waiting.issuperset(answers) or len(set(answers)) < len(answers):
            break
        waiting.difference_update(answers)
        length = position - at + 1
    return length


def _mark(dialect: Dialect, record: Json, run: list[Entry], names: dict[str, str]) -> Json:
    """What it takes to read exactly these entries out of this record."""
    name = names[run[0].id]
    mark: Json = {"id": name}
    loose = dialect.read(record, name)
    if (calls := calls_in(run[0].body)) != calls_in(loose[0].body):
        mark["calls"] = calls
        loose = called(loose, calls)
    groups = [answers for entry in run[1:] if (answers := answers_in(entry.body))]
    if groups != [answers_in(body) for body, _ in loose[1:]]:
        mark["results"] = groups
    natural = natural_json(split(loose, mark.get("results")), name)
    patch = diff(natural, [_to_json(dialect, entry, names) for entry in run])
    return mark | ({"patch": patch} if patch else {})


def _to_json(dialect: Dialect, entry: Entry, names: dict[str, str]) -> Json:
    body = body_json(entry.body)
    body.pop(dialect.name, None)
    body = renamed(body, lambda id_: names.get(id_, id_))
    return {"id": names[entry.id], "time": entry.time, "body": body}

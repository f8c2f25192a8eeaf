"""The entries of a record that no mark of ours belongs to, and the tag that makes them exact.

They follow from the record, from the entry before it, and from which calls have a result in a
record of their own; so they can be made as often as necessary, in any order.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

import msgspec

from recollect.entries import Entry, Message
from recollect.store.ids import derived_id
from recollect.transcripts.json_patch import make_patch
from recollect.transcripts.json_values import Json, canonical_json
from recollect.transcripts.record_format import ParsedBody, RecordFormat, get_tag, with_tag


class EntryPosition(NamedTuple):
    """Where the next entry of a record goes."""

    key: str
    parent: str | None
    time: int  # of an entry whose record has none
    done: int = 0

    @property
    def next_id(self) -> str:
        return self.key if self.done == 0 else derived_id(self.key, str(self.done))

    def after(self, entries: Sequence[Entry]) -> EntryPosition:
        if not entries:
            return self
        last, done = entries[-1], self.done + len(entries)
        return EntryPosition(self.key, last.id, last.time, done)


def record_key(format_: RecordFormat, session: str, above: str, record: Json) -> str:
    """The id of the record's first entry. `above`: the last entry of the record before it."""
    return derived_id(format_.name, session, above, canonical_json(record))


def read_plain_record(
    format_: RecordFormat,
    record: Json,
    at: EntryPosition,
    answered: Collection[str],
    complete: Callable[[list[ParsedBody]], list[ParsedBody]] = lambda parsed: parsed,
) -> list[Entry]:
    """`answered`: calls whose results have a record of their own; `complete` names the call of
    results that do not."""
    record_id = format_.id_of(record)
    entries: list[Entry] = []
    parsed = complete(format_.read(record, at.key))
    for body, time in _without_answered(parsed, answered) if answered else parsed:
        joined = with_tag(format_.name, body, {"joined": True}) if entries else body
        at = at.after(entries[-1:])
        entries.append(Entry(at.next_id, at.parent, at.time if time is None else time, joined))
    head = entries[0]
    tag = get_tag(format_.name, head.body)
    tag["patch"] = make_patch(format_.write(entries, record_id or at.key), record)
    if record_id is not None:
        tag["was"] = record_id
    if len(entries) > 1:
        tag["run"] = len(entries)
    entries[0] = Entry(head.id, head.parent, head.time, with_tag(format_.name, head.body, tag))
    return entries


def _without_answered(parsed: list[ParsedBody], answered: Collection[str]) -> list[ParsedBody]:
    """Without results that have a record of their own: providers refuse one sent twice."""
    kept = parsed[:1]
    for body, time in parsed[1:]:
        assert isinstance(body, Message)
        parts = [p for p in body.parts if getattr(p, "call_id", None) not in answered]
        if parts:
            kept.append(ParsedBody(msgspec.structs.replace(body, parts=tuple(parts)), time))
    return kept

"""Finds the other half of an exchange: the call of a result, the results of a call."""

from __future__ import annotations

from recollect.entries import Entry
from recollect.errors import Damaged, NotFound
from recollect.store.log_reader import LogReader
from recollect.store.readable_text import calls_of, results_of
from recollect.store.sql_schema import SEGMENT_MASK

_NEAR = 16  # entries before and after: parallel calls, and notes between a call and its result


def read_counterparts(reader: LogReader, key: int, entry: Entry) -> tuple[Entry, ...]:
    """The entries near this one with the calls of its results, or the results of its calls."""
    answered = {result.call_id for result in results_of(entry)}
    called = {call.id for call in calls_of(entry)}
    try:
        before = reader.path(key, last=_NEAR, mark=True)[:-1] if answered else ()
        after = _following(reader, key) if called else ()
    except (Damaged, NotFound):
        return ()  # reading its session reports the damage
    calls = (e for e in before if any(call.id in answered for call in calls_of(e)))
    results = (e for e in after if any(r.call_id in called for r in results_of(e)))
    return (*calls, *results)


def _following(reader: LogReader, key: int) -> tuple[Entry, ...]:
    """What was appended after this entry, in its own segment."""
    query = "SELECT max(key) FROM entries WHERE key > ? AND key <= ?"
    ((last,),) = reader.db.execute(query, (key, min(key + _NEAR, key | SEGMENT_MASK)))
    return () if last is None else reader.path(last, last=last - key, mark=True)

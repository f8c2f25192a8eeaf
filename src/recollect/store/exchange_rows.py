"""Finds the other half of an exchange: the call of a result, the results of a call."""

from __future__ import annotations

from collections.abc import Collection

from recollect.entries import Entry
from recollect.errors import Damaged, NotFound
from recollect.store.output_notes import output_part
from recollect.store.readable_text import calls_of, results_of
from recollect.store.search_source import EntrySource, RowKey

# entries before and after: parallel calls, and notes between a call and its result
_NEAR, _FAR = 16, 128


def read_counterparts(
    source: EntrySource, key: RowKey, entry: Entry, only: Collection[str] | None = None
) -> tuple[Entry, ...]:
    """The entries near this one with the calls of its results or of its output, or the results of
    its calls; `only` names the calls that matter. An id that was used again means the nearest
    call."""
    part = output_part(entry.body)
    ids = [result.call_id for result in results_of(entry)] + ([part.call] if part else [])
    answered = {call for call in ids if _matters(call, only)}
    called = {call.id for call in calls_of(entry) if _matters(call.id, only)}
    try:
        return (*_find_calls(source, key, answered), *_find_results(source, key, called))
    except (Damaged, NotFound):
        return ()  # reading its session reports the damage


def _matters(call: str, only: Collection[str] | None) -> bool:
    return only is None or call in only


def _find_calls(source: EntrySource, key: RowKey, wanted: set[str]) -> list[Entry]:
    found: list[Entry] = []
    for near in (_NEAR, _FAR) if wanted else ():
        left, found = set(wanted), []
        for entry in reversed(source.up_to(key, near)[:-1]):
            own = left.intersection(call.id for call in calls_of(entry))
            found[:0] = [entry] if own else []
            left -= own
        if not left:
            break
    return found


def _find_results(source: EntrySource, key: RowKey, wanted: set[str]) -> list[Entry]:
    found: list[Entry] = []
    for near in (_NEAR, _FAR) if wanted else ():
        mine, answered, found = set(wanted), set[str](), []
        for entry in source.after(key, near):
            mine.difference_update(call.id for call in calls_of(entry))
            own = mine.intersection(result.call_id for result in results_of(entry))
            found += [entry] if own else []
            answered |= own
        if answered >= mine:
            break
    return found

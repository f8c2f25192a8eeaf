"""Which entries of a session begin a message, so that a page of a long history is read alone.

The log has no count of its messages. The first request for a session's history reads it once, in
slices that let others work; from then on only what is new is read. A session that was rewound is
noticed by its entries and read again.
"""

from __future__ import annotations

import asyncio
from array import array
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

from recollect.entries import Entry
from recollect.server.nplt.history_pages import history_record, starts_record
from recollect.store.contract import Store

SLICE = 500  # entries that are read at a time
MAX_SESSIONS = 100  # that are remembered
MAX_RUN = 5_000  # entries of one page


class _MessagePositions:
    """The positions in one session's path at which messages begin."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.starts = array("I")
        self.entries, self.last = 0, ""

    def add(self, entries: Sequence[Entry]) -> None:
        for entry in entries:
            if starts_record(entry.body):
                self.starts.append(self.entries)
            self.entries += 1
            self.last = entry.id


class HistoryIndex:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: OrderedDict[str, _MessagePositions] = OrderedDict()

    async def records(
        self, session: str, *, offset: int, limit: int, count: int | None = None
    ) -> tuple[int, list[dict[str, Any]]]:
        """The number of messages, and those before the `offset` newest, at most `limit`, in their
        order. With a `count` the session is taken as it was when it had so many."""
        known = self._known.setdefault(session, _MessagePositions())
        self._known.move_to_end(session)
        while len(self._known) > MAX_SESSIONS:
            self._known.popitem(last=False)
        async with known.lock:
            await self._follow(session, known)
            starts, entries = known.starts, known.entries
            total = len(starts) if count is None else min(max(count, 0), len(starts))
            end = max(0, total - offset)
            begin = max(0, end - limit)
            if begin == end:
                return total, []
            stop = starts[end] if end < len(starts) else entries
            places = list(starts[begin:end])
        if stop - places[-1] > MAX_RUN:  # the newest message alone is long enough
            first = places[-1]
        else:  # the newest ones, if all are too many entries
            first = next(place for place in places if stop - place <= MAX_RUN)
        limit = min(stop - first, MAX_RUN)
        found = await self._store.page(session, start=first, limit=limit)
        return total, await asyncio.to_thread(_records, found, places, first)

    async def _follow(self, session: str, known: _MessagePositions) -> None:
        while True:
            start = max(0, known.entries - 1)
            page = await self._store.page(session, start=start, limit=SLICE + 1)
            if known.entries and (not page or page[0].id != known.last):
                known.starts, known.entries, known.last = array("I"), 0, ""
                continue
            known.add(page[1:] if known.entries else page)
            if len(page) <= SLICE:
                return


def _records(entries: Sequence[Entry], places: Sequence[int], first: int) -> list[dict[str, Any]]:
    inside = [place - first for place in places if place >= first]
    ends = [*inside[1:], len(entries)]
    return [
        history_record(entries[start:end])
        for start, end in zip(inside, ends, strict=True)
        if start < len(entries) and starts_record(entries[start].body)
    ]

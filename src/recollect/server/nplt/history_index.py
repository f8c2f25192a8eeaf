"""Which entries of a session begin a message, so that a page of a long history is read alone.

The log has no count of its messages. The first request for a session's history reads it once, in
slices that let others work, and notes beside the log how many messages there are up to every
500th entry; what comes before an entry never changes, so these notes hold for ever, for every
server, and for every branch. From then on only the end of a session is read, and what is new. A
session that was rewound is noticed by its entries.
"""

from __future__ import annotations

import asyncio
from array import array
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from recollect.entries import Entry
from recollect.errors import CannotWrite
from recollect.server.nplt.history_pages import history_record, starts_record
from recollect.store.contract import Store

SLICE = 500  # entries that are read at a time, and after which messages are counted
COUNTER = "messages-1"  # the name of these counts beside those of tokens
MAX_SESSIONS = 100  # that are remembered
MAX_RUN = 5_000  # entries of one page


class _MessagePositions:
    """The positions in one session's path at which messages begin, from entry `base` on."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.begin_at(0, 0, "")

    def begin_at(self, entries: int, messages: int, last: str) -> None:
        """Forget everything but how many messages the first entries have."""
        self.base = self.entries = entries
        self.before, self.last = messages, last
        self.starts = array("I")

    @property
    def total(self) -> int:
        return self.before + len(self.starts)

    def add(self, entries: Sequence[Entry]) -> dict[str, tuple[int, ...]]:
        """Take entries that follow; the messages so far, by the entries to note them at."""
        counted: dict[str, tuple[int, ...]] = {}
        for entry in entries:
            if starts_record(entry.body):
                self.starts.append(self.entries)
            self.entries += 1
            self.last = entry.id
            if self.entries % SLICE == 0:
                counted[entry.id] = (self.total,)
        return counted

    def add_before(self, entries: Sequence[Entry]) -> None:
        """Take the slice before the first entry."""
        self.base -= SLICE
        places = [self.base + n for n, one in enumerate(entries) if starts_record(one.body)]
        self.starts = array("I", places) + self.starts
        self.before = max(0, self.before - len(places)) if self.base else 0


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
            total = known.total if count is None else min(max(count, 0), known.total)
            end = max(0, total - offset)
            begin = max(0, end - limit)
            if begin == end:
                return total, []
            while begin < known.before:
                start = known.base - SLICE
                known.add_before(await self._store.page(session, start=start, limit=SLICE))
            stop = known.starts[end - known.before] if end < known.total else known.entries
            places = list(known.starts[begin - known.before : end - known.before])
        if stop - places[-1] > MAX_RUN:  # the newest message alone is long enough
            first = places[-1]
        else:  # the newest ones, if all are too many entries
            first = next(place for place in places if stop - place <= MAX_RUN)
        limit = min(stop - first, MAX_RUN)
        found = await self._store.page(session, start=first, limit=limit)
        return total, await asyncio.to_thread(_records, found, places, first)

    async def _follow(self, session: str, known: _MessagePositions) -> None:
        counted: dict[str, tuple[int, ...]] = {}
        while True:
            if not known.entries:
                await self._begin(session, known)
            start = max(0, known.entries - 1)
            page = await self._store.page(session, start=start, limit=SLICE + 1)
            if known.entries and (not page or page[0].id != known.last):
                known.begin_at(0, 0, "")
                continue
            counted |= known.add(page[1:] if known.entries else page)
            if len(page) <= SLICE:
                break
        if counted:
            with suppress(CannotWrite):  # a cache: a full disk must not stop a reader
                await self._store.keep_counts(COUNTER, counted)

    async def _begin(self, session: str, known: _MessagePositions) -> None:
        """Go to the last entry up to which somebody has counted already. There are notes at all
        places before one that has a note, so it is found by halving."""
        low, high = 0, (await self._store.session(session)).entries // SLICE
        place = high
        while low < high:
            entries = await self._store.page(session, start=place * SLICE - 1, limit=1)
            found = await self._store.counts(COUNTER, [one.id for one in entries])
            if found:
                low = place
                known.begin_at(place * SLICE, next(iter(found.values()))[0], entries[0].id)
            else:
                high = place - 1
            place = (low + high + 1) // 2


def _records(entries: Sequence[Entry], places: Sequence[int], first: int) -> list[dict[str, Any]]:
    inside = [place - first for place in places if place >= first]
    ends = [*inside[1:], len(entries)]
    return [
        history_record(entries[start:end])
        for start, end in zip(inside, ends, strict=True)
        if start < len(entries) and starts_record(entries[start].body)
    ]

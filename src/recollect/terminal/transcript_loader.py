"""Loads a session into a transcript: the newest entries at once, older ones behind them in steps.

A step takes a few milliseconds, so typing does not wait for it. Of a very large session only the
newer part is loaded; the rest comes when its end is in sight.
"""

from __future__ import annotations

import asyncio

from recollect.entries import Entry
from recollect.runtime.garbage_collection import keep_loaded
from recollect.session import Session
from recollect.store.contract import Store
from recollect.terminal.transcript_blocks import BlockList

FIRST_PAGE, STEP = 200, 100  # entries
PAUSE = 0.01  # seconds between two steps
MAX_EAGER = 20_000_000  # characters that are loaded before anybody asks for them


class TranscriptLoader:
    """Of one session. Whatever a run adds meanwhile is newer than what is loaded, and stays."""

    def __init__(self, transcript: BlockList, store: Store, session: Session) -> None:
        self._transcript, self._store, self._session = transcript, store, session
        self._head = session.view().head
        self._start: int | None = None  # number of the first entry that is loaded
        self._characters = 0
        self._wanted = asyncio.Event()  # the user is at the top

    def load_more(self) -> None:
        """The beginning of what is loaded is in sight."""
        self._wanted.set()

    async def open(self) -> None:
        """Show what is stored, before whatever a run has added since, until all is there."""
        if self._head is None:
            return
        if self._start is None:
            self._start = await self._count()
            await self._read_page(FIRST_PAGE)
        while self._start:
            if self._characters > MAX_EAGER:
                self._wanted.clear()
                await self._wanted.wait()
            await self._read_page(STEP)
            await asyncio.sleep(PAUSE)  # what the user types comes first
        keep_loaded()

    async def reload(self) -> None:
        """The path is another one: show what changed, and leave the rest where it is."""
        self._head = self._session.view().head
        newer = self._transcript.first + len(self._transcript.blocks)
        start, entries = 0, tuple[Entry, ...]()
        if self._head is not None:
            start = max(0, await self._count() - FIRST_PAGE)
            entries = await self._page(start, FIRST_PAGE)
        if not self._transcript.reload(entries, newer) or self._start is None:
            self._start = start
        await self.open()

    async def _read_page(self, size: int) -> None:
        assert self._start is not None
        start = max(0, self._start - size)
        page = await self._page(start, self._start - start)
        count = self._transcript.prepend_entries(page)
        self._start = start
        blocks = self._transcript.blocks[:count]
        self._characters += sum(len(block.text) + len(block.output) for block in blocks)

    async def _page(self, start: int, size: int) -> tuple[Entry, ...]:
        return await self._store.page(self._session.id, start=start, limit=size, at=self._head)

    async def _count(self) -> int:
        """How many entries the path to our head has, though a run may be appending to it."""
        info = await self._store.session(self._session.id)
        view = self._session.view()
        ours = view.log.position(self._head or "", view.n)
        stored = view.log.position(info.head or "", view.n)
        return info.entries - (stored - ours if stored is not None and ours is not None else 0)

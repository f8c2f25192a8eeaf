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
from recollect.terminal.found_passage import FoundPassage
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
        self._loaded: dict[str, int] = {}  # entries of the path, with their numbers
        self._news = asyncio.Condition()  # more is loaded
        self._wanted = asyncio.Event()  # the user is at the top
        self._sought = ""  # the entry that everything is loaded up to

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
            if self._characters > MAX_EAGER and not self._sought:
                self._wanted.clear()
                await self._wanted.wait()
            await self._read_page(STEP)
            await asyncio.sleep(PAUSE)  # what the user types comes first
        keep_loaded()

    async def find(self, passage: FoundPassage) -> int | None:
        """The number of the block that shows an entry, or of the nearest one before it, as soon as
        that is loaded; None if the entry is on another branch."""
        entry = passage.entry
        view = self._session.view()
        is_new = view.log.position(entry, view.n) is not None  # it may have come since
        if not is_new or self._transcript.find(entry) is None:
            self._sought = entry
            self._wanted.set()
            async with self._news:
                await self._news.wait_for(lambda: entry in self._loaded or self._is_whole)
            self._sought = ""
        if not is_new and entry not in self._loaded:
            return None
        before = await self._store.path(self._session.id, at=entry, last=STEP, damaged="mark")
        blocks = (self._transcript.find(one.id, passage.calls) for one in reversed(before))
        return next((number for number in blocks if number is not None), self._transcript.first)

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
        kept = range(self._start, start)
        self._loaded = {id_: n for id_, n in self._loaded.items() if n in kept}
        await self._note(start, entries)
        await self.open()

    async def _read_page(self, size: int) -> None:
        assert self._start is not None
        start = max(0, self._start - size)
        page = await self._page(start, self._start - start)
        count = self._transcript.prepend_entries(page)
        self._start = start
        blocks = self._transcript.blocks[:count]
        self._characters += sum(len(block.text) + len(block.output) for block in blocks)
        await self._note(start, page)

    async def _note(self, start: int, page: tuple[Entry, ...]) -> None:
        self._loaded.update((entry.id, start + n) for n, entry in enumerate(page))
        async with self._news:
            self._news.notify_all()

    @property
    def _is_whole(self) -> bool:
        """Whether there is nothing more to load."""
        return self._start == 0 or self._head is None

    async def _page(self, start: int, size: int) -> tuple[Entry, ...]:
        return await self._store.page(self._session.id, start=start, limit=size, at=self._head)

    async def _count(self) -> int:
        """How many entries the path to our head has, though a run may be appending to it."""
        info = await self._store.session(self._session.id)
        view = self._session.view()
        ours = view.log.position(self._head or "", view.n)
        stored = view.log.position(info.head or "", view.n)
        return info.entries - (stored - ours if stored is not None and ours is not None else 0)

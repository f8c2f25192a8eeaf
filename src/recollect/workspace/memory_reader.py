"""Reads the memory files of one place for all sessions that work there.

Reading looks at every folder below, so sessions that ask while a read is running share the next
one. Nobody gets what was read before they asked.
"""

from __future__ import annotations

import asyncio

from recollect.workspace.memory_files import MemoryFiles, MemorySources, read_memory


class MemoryReader:
    def __init__(self, sources: MemorySources) -> None:
        self.sources = sources
        self._running: asyncio.Task[MemoryFiles] | None = None
        self._next: asyncio.Task[MemoryFiles] | None = None  # has not begun: may be joined

    async def __call__(self) -> MemoryFiles:
        if self._next is None or self._next.done():  # it was cancelled with its event loop
            self._next = asyncio.create_task(self._read_after(self._running))
        return await asyncio.shield(self._next)

    async def _read_after(self, earlier: asyncio.Task[MemoryFiles] | None) -> MemoryFiles:
        if earlier is not None and not earlier.done():
            await asyncio.wait([earlier])
        self._running, self._next = self._next, None
        return await asyncio.to_thread(read_memory, self.sources)

"""Lines from a terminal, a pipe or a file, read while something else goes on.

A line that is too long is not kept, and told by its size; nothing waits for it to be copied.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections import deque
from collections.abc import Callable

MAX_LINE = 16_000_000  # bytes


class TypedLines:
    """Lines that the user types, also while an answer comes."""

    def __init__(self, too_long: Callable[[int], None] = lambda _: None) -> None:
        self._loop = asyncio.get_running_loop()
        self._typed: deque[str] = deque()
        self._held, self._ended = bytearray(), False
        self._size, self._too_long = 0, too_long  # of the line that is arriving
        self._news = asyncio.Event()
        self._descriptor = sys.stdin.fileno()
        self._watched = False
        try:
            self._loop.add_reader(self._descriptor, self._read)
            self._watched = True
        except PermissionError:  # a regular file is always ready
            while not self._ended:
                self._read()

    def close(self) -> None:
        if self._watched:
            self._loop.remove_reader(self._descriptor)
            self._watched = False

    def end(self) -> None:
        self._ended = True
        self._news.set()

    async def next(self, *, fresh: bool = False) -> str | None:
        """The next line, None at the end; with `fresh` one that is typed from now on."""
        before = len(self._typed) if fresh else 0
        while len(self._typed) <= before and not self._ended:
            self._news.clear()
            await self._news.wait()
        if len(self._typed) <= before:
            return None
        line = self._typed[before]
        del self._typed[before]
        return line

    def _read(self) -> None:
        try:
            data = os.read(self._descriptor, 65_536)
        except OSError:  # the terminal is gone
            data = b""
        *lines, rest = data.split(b"\n")
        for line in lines:
            self._hold(line)
            self._keep()
        self._hold(rest)
        if not data:
            self.close()
            self._ended = True
            if self._size:
                self._keep()
        self._news.set()

    def _hold(self, piece: bytes) -> None:
        self._size += len(piece)
        if self._size <= MAX_LINE:
            self._held += piece

    def _keep(self) -> None:
        if self._size <= MAX_LINE:
            self._typed.append(self._held.decode("utf-8", "replace"))
        else:
            self._too_long(self._size)
        self._held.clear()
        self._size = 0

"""Lines from a terminal, a pipe or a file, read while something else goes on."""

from __future__ import annotations

import asyncio
import os
import sys
from collections import deque


class TypedLines:
    """Lines that the user types, also while an answer comes."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._typed: deque[str] = deque()
        self._held, self._ended = b"", False
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
        *lines, self._held = (self._held + data).split(b"\n")
        if not data:
            self.close()
            self._ended = True
            lines += [self._held] if self._held else []
        self._typed += [line.decode("utf-8", "replace") for line in lines]
        self._news.set()

"""Writes a command's output to the log: each byte once, as it came, and says where it is.

Recorded is what the result does not show exactly as it came: a long output, one with escape
sequences or overwritten lines, bytes that are not text, and whatever an interrupted command had
written. Of a job that runs on, only what will stay is recorded, so that reading it often adds
nothing twice. An output that cannot be stored is no reason to lose the result: the text says so.
"""

from __future__ import annotations

import asyncio

from recollect.entries import handle_of
from recollect.errors import RecollectError
from recollect.execution.command_output import FIRST_BYTES, OutputCapture, split_output
from recollect.store.output_notes import PART_BYTES, OutputLog, OutputPart, output_note
from recollect.text import one_line

_RUN_AGAIN = "run it again with less output, for instance through `tail` or `grep`"


class OutputRecorder:
    """The output of one command, and how much of it the log has."""

    def __init__(self, capture: OutputCapture, log: OutputLog) -> None:
        self.capture, self.job = capture, ""  # the name of the job, if it is one
        self._log = log
        self._parts: list[str] = []  # entries
        self._recorded = 0  # bytes from the beginning that need no recording any more
        self._missing = 0  # of these, bytes that nobody kept
        self._reported = 0  # bytes of the output when a result last showed it
        self._trouble = ""
        self._lock = asyncio.Lock()  # a job may be read by two calls at a time

    async def report(self, *, ended: bool) -> str:
        """The output as a result shows it, after what it does not show was recorded."""
        if not self.capture.is_shown_as_it_came:
            await self._record(ended=ended)
        self._reported = self.capture.total
        return self.capture.text(self._remedy(ended=ended)).rstrip() or "(no output)"

    async def settle(self) -> None:
        """Record what no result has shown: the command was interrupted, or nobody read the job."""
        if self.capture.total > self._reported or not self.capture.is_shown_as_it_came:
            await self._record(ended=True)
        self.capture.close()

    async def _record(self, *, ended: bool) -> None:
        async with self._lock:
            for start, end in self.capture.kept_ranges():
                # of a job that runs, what comes after these may still be overwritten
                await self._record_range(start, end if ended else min(end, FIRST_BYTES), ended)

    async def _record_range(self, start: int, end: int, ended: bool) -> None:  # noqa: FBT001
        at = max(start, self._recorded)
        while at < end and not self._trouble:
            data = self.capture.read(at, min(end, at + PART_BYTES + 1))
            piece = split_output(data, PART_BYTES, whole=not ended)
            if not piece:
                return
            at = await self._append(piece, at)

    async def _append(self, piece: bytes, at: int) -> int:
        """Append a part; returns where the next one begins."""
        missing = at - self._recorded
        part = OutputPart(self._log.call, self._log.tool, self.job, tuple(self._parts), missing)
        try:
            entry = await self._log.append(output_note(piece, part))
        except RecollectError as error:
            self._trouble = one_line(str(error), 200)
            return at
        self._parts += [entry] if entry else []
        self._recorded, self._missing = at + len(piece), self._missing + missing
        return self._recorded

    def _remedy(self, *, ended: bool) -> str:
        if self._trouble:
            return f"; they could not be stored ({self._trouble}); {_RUN_AGAIN}"
        if not self._parts or not self._log.recallable:
            return f"; {_RUN_AGAIN}"
        handle, kept = handle_of(self._parts[-1]), self._recorded - self._missing
        after = self.capture.excerpt().after
        more = f"recall {handle} with around=WORDS or offset={after} gives"
        if self._missing:
            return f"; {more} all but {self._missing:,} of them"
        if not ended and kept < self.capture.total:
            return f"; {more} the first {kept:,}, the others when the job has ended"
        return f"; {more} them"

"""Appends runs of entries in batches, so that a long one needs little memory; the next import
completes one that was interrupted."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import NamedTuple

from recollect.entries import Entry
from recollect.store.contract import SessionInfo, Store
from recollect.transcripts.collection_pause import pause_collection
from recollect.transcripts.import_plan import describe_session
from recollect.transcripts.transcript import EntryRun, Transcript

_BATCH_ENTRIES = 1_000  # of one append
_BATCH_BYTES = 8_000_000  # of the file


class RunWriter:
    def __init__(self, store: Store, session: SessionInfo, progress: Callable[[int], None]) -> None:
        self._store, self._session, self._progress = store, session.id, progress
        self.head, self._written = session.head, 0

    async def write(self, run: Iterator[tuple[Entry, int]], *, follows: bool) -> None:
        """Append the entries after the parent of the first one. Only a run that the head `follows`
        moves it: every other one is a branch, so the head never strays."""
        above, is_begun = None, False
        while batch := await asyncio.to_thread(_take_batch, run):
            if not is_begun:
                above, is_begun = batch[0].parent, True
                if follows and above != self.head:
                    await self._store.rewind(self._session, above, head=self.head)
            if follows:
                await self._store.append(self._session, batch, parent=above)
                self.head = batch[-1].id
            else:
                await self._store.branch(self._session, batch, at=above)
            above = batch[-1].id
            self._written += len(batch)
            self._progress(self._written)


def _take_batch(run: Iterator[tuple[Entry, int]]) -> list[Entry]:
    batch, taken = list[Entry](), 0
    with pause_collection():
        for entry, size in run:
            batch.append(entry)
            taken += size
            if len(batch) == _BATCH_ENTRIES or taken >= _BATCH_BYTES:
                break
    return batch


class FramedRuns(NamedTuple):
    runs: list[Iterator[tuple[Entry, int]]]
    entries: int
    end: str | None = None  # where the head goes afterwards, unless it is where they lead


def stream_runs(transcript: Transcript, source: Entry | None) -> FramedRuns:
    """The runs of a file that is new: with the source before and title and notes after the entries
    on the way to the leaf."""
    stream, time = transcript.stream, transcript.updated
    assert stream is not None
    leaf = None if stream.ends_with_leaf else stream.find_leaf()
    first = [] if source is None else [source]
    last = [Entry(id_, leaf, time, body) for id_, body in describe_session(transcript, {})]
    runs = frame_runs(stream.runs(), first, last, ends_with_leaf=stream.ends_with_leaf)
    return FramedRuns(runs, len(first) + len(stream) + len(last), None if last else leaf)


def frame_runs(
    found: Sequence[EntryRun],
    first: Sequence[Entry],
    last: Sequence[Entry],
    *,
    ends_with_leaf: bool,
) -> list[Iterator[tuple[Entry, int]]]:
    """The runs with these entries before and after those on the way to the leaf."""
    before, after = ([(entry, 0) for entry in entries] for entries in (first, last))
    runs = [chain(before, run.entries) if run.starts_path else run.entries for run in found]
    if not any(run.starts_path for run in found):
        runs.append(iter(before))
    elif not ends_with_leaf:
        return [*runs, iter(after)] if after else runs
    return [*runs[:-1], chain(runs[-1], after)]

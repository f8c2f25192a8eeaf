"""Importing a large file into a session that has a part of it: the file has grown, or an import of
it was interrupted. The same as `import_plan` decides, in little memory: of what the session holds,
ids are kept, and of what the file holds, numbers.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import msgspec

from recollect.entries import Entry
from recollect.store.contract import SessionInfo, Store
from recollect.transcripts.import_plan import (
    CANDIDATES,
    Course,
    EarlierState,
    describe_session,
    is_bookkeeping,
)
from recollect.transcripts.original_files import store_original
from recollect.transcripts.record_format import get_tag
from recollect.transcripts.run_writer import RunWriter, frame_runs
from recollect.transcripts.transcript import (
    MissingEntries,
    Transcript,
    TranscriptFile,
)

_PAGE = 200  # entries of the session that are read at once


class HeldIds:
    """The ids of a session's entries, in little memory; and which of them a file has too."""

    def __init__(self) -> None:
        self._in_file: dict[bytes, bool] = {}

    def add(self, ids: Iterable[str]) -> None:
        self._in_file.update((bytes.fromhex(id_), False) for id_ in ids)

    def find(self, id_: str) -> bool:
        """Whether the session has this entry of the file."""
        raw = bytes.fromhex(id_)
        if raw not in self._in_file:
            return False
        self._in_file[raw] = True
        return True

    def is_in_file(self, id_: str) -> bool:
        """Whether `find` has found it."""
        return self._in_file.get(bytes.fromhex(id_), False)


class SessionContents(NamedTuple):
    info: SessionInfo
    ids: HeldIds
    about: tuple[Entry, ...]  # what earlier imports wrote about their files


class MissingImport(NamedTuple):
    """What an import has added."""

    added: int
    course: Course
    displaced: int = 0  # see `ImportPlan`


class _PathEnd(NamedTuple):
    """The session's path after the last entry that the file has on its own way."""

    length: int  # of entries that are no bookkeeping
    changed: dict[int, list[EarlierState]]  # by time: those that the file does not have


async def read_contents(store: Store, transcript: Transcript, info: SessionInfo) -> SessionContents:
    ids, about, after = HeldIds(), list[Entry](), None
    while page := await store.tree_page(info.id, limit=_PAGE, after=after):
        ids.add(entry.id for entry in page)
        about += [entry for entry in page if is_bookkeeping(transcript, entry)]
        after = page[-1].id
    return SessionContents(info, ids, tuple(about))


async def append_missing(
    store: Store,
    file: TranscriptFile,
    contents: SessionContents,
    missing: MissingEntries,
    progress: Callable[[int, int], None],
) -> MissingImport:
    transcript, _, original = file
    total = (original.size if original else 0) + missing.held + missing.count + 2
    found = await store_original(store, file, contents.about, lambda done: progress(done, total))
    source = [] if found is None else [msgspec.structs.replace(found, parent=missing.fork)]
    notes = _describe(transcript, contents, missing)
    added = len(source) + missing.count + len(notes)
    end = _last_new(source, notes, missing)
    course, displaced = await _choose_course(store, transcript, contents, missing, end)
    info, stays = contents.info, course in ("branch", "none")
    writer = RunWriter(store, info, lambda written: progress(total - added + written, total))
    found_runs = await asyncio.to_thread(missing.runs)
    runs = frame_runs(found_runs, source, notes, ends_with_leaf=missing.ends_with_leaf)
    for number, each in enumerate(runs, 1):
        run = _move_start(each, missing.fork, info.head) if course == "append" else each
        await writer.write(run, follows=not stays and number == len(runs))
    if not stays and writer.head != end:
        await store.rewind(info.id, end, head=writer.head)
    progress(total, total)
    return MissingImport(added, course, displaced)


def _describe(
    transcript: Transcript, contents: SessionContents, missing: MissingEntries
) -> list[Entry]:
    """Title and notes that are new, after the leaf."""
    new = describe_session(transcript, {entry.id: entry for entry in contents.about})
    return [Entry(id_, missing.leaf, transcript.updated, body) for id_, body in new]


def _last_new(source: list[Entry], notes: list[Entry], missing: MissingEntries) -> str | None:
    """The last new entry on the way to the leaf."""
    if notes:
        return notes[-1].id
    if missing.fork != missing.leaf:
        return missing.leaf
    return source[0].id if source else None


async def _choose_course(
    store: Store,
    transcript: Transcript,
    contents: SessionContents,
    missing: MissingEntries,
    end: str | None,
) -> tuple[Course, int]:
    if end is None:
        return "none", 0
    if contents.info.head is None and missing.fork is not None:
        return "follow", 0  # an import that was interrupted before its last run
    tail = await _read_path_end(store, transcript, contents, missing)
    if tail is not None and tail.length == 0:
        return "append", 0
    follows = tail is not None and await asyncio.to_thread(_accounts_for, missing, tail.changed)
    return "follow" if follows else "branch", tail.length if tail else 0


async def _read_path_end(
    store: Store, transcript: Transcript, contents: SessionContents, missing: MissingEntries
) -> _PathEnd | None:
    """None if the last entry that the file has on its own way is not on the session's path."""
    info, ids, _ = contents
    count, changed, stop = 0, dict[int, list[EarlierState]](), info.entries
    while stop > 0:
        start = max(0, stop - _PAGE)
        page = await store.page(info.id, start=start, limit=stop - start, at=info.head)
        for entry in reversed(page):
            if entry.id == missing.fork:
                return _PathEnd(count, changed)
            if is_bookkeeping(transcript, entry):
                continue
            count += 1
            if not ids.is_in_file(entry.id) and "joined" not in get_tag(
                transcript.format, entry.body
            ):
                changed.setdefault(entry.time, []).append(EarlierState.of(entry.body))
        stop = start
    return None if missing.fork else _PathEnd(count, changed)


def _accounts_for(missing: MissingEntries, changed: dict[int, list[EarlierState]]) -> bool:
    """Whether the file has a later state of each of these."""
    left, compared = dict(changed), Counter[int]()
    for entry in missing.main() if left else ():
        if entry.time in left and compared[entry.time] < CANDIDATES:
            compared[entry.time] += 1
            states = [one for one in left[entry.time] if not one.is_continued_by(entry.body)]
            left[entry.time] = states
            if not states:
                del left[entry.time]
    return not left


def _move_start(
    run: Iterator[tuple[Entry, int]], fork: str | None, head: str | None
) -> Iterator[tuple[Entry, int]]:
    """A run that follows the last entry in common follows the head: bookkeeping is between them."""
    for number, (entry, size) in enumerate(run):
        moves = number == 0 and entry.parent == fork
        yield msgspec.structs.replace(entry, parent=head) if moves else entry, size

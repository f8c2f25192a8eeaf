"""Copies everything from one store to another: sessions, branches, forks, projects, contents.

Ids, times and parents stay as they are, and forks share their beginnings there too. The source is
only read. A copy that was interrupted is continued by copying again: what the target has is not
written twice. A session that the target has continued on its own gets the source's new entries as
branches and keeps its head. Drafts and cached token counts are not copied. At the end, every
session is read back from the target and compared by number and hash of its entries.
"""

from __future__ import annotations

import shlex
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from hashlib import blake2b

import msgspec

from recollect.entries import Entry, encode
from recollect.errors import Damaged, RecollectError, StoreError, UnknownSession
from recollect.store.contract import Project, SessionInfo, Store

BATCH = 500  # entries of one append


class CopyProgress(msgspec.Struct, frozen=True):
    phase: str
    done: int
    total: int | None = None


class NotCopied(msgspec.Struct, frozen=True):
    session: str
    why: str


class CopyReport(msgspec.Struct, frozen=True):
    """What was compared and what was written; `continued` are sessions that the target has entries
    of its own in."""

    sessions: int
    new_sessions: int
    entries: int
    new_entries: int
    contents: int
    new_contents: int
    continued: tuple[str, ...] = ()
    not_copied: tuple[NotCopied, ...] = ()


class _Copied(msgspec.Struct, frozen=True):
    """A session as the source has it, and what was written of it."""

    info: SessionInfo
    is_new: bool
    added: int
    entries: int
    digest: bytes
    only: frozenset[str] | None = None  # its entries, if the target has others as well


ReportCopy = Callable[[CopyProgress], None]


async def copy_store(source: Store, target: Store, progress: ReportCopy) -> CopyReport:
    """Copy what the target does not have. Raises if a store fails; what is wrong with a session
    does not stop the others."""
    infos = (*await source.sessions(), *await source.sessions(trashed=True))
    copied: list[_Copied] = []
    failed: list[NotCopied] = []
    for number, info in enumerate(await _parents_first(source, infos)):
        progress(CopyProgress("copying sessions", number, len(infos)))
        try:
            copied.append(await _copy_session(source, target, info))
        except RecollectError as error:
            failed.append(_failure(info.id, error, source))
    contents, new_contents = await _copy_contents(source, target, progress)
    for number, each in enumerate(copied):
        progress(CopyProgress("comparing sessions", number, len(copied)))
        failed += await _compare(target, each)
    wrong = {each.session for each in failed}
    right = [each for each in copied if each.info.id not in wrong]
    return CopyReport(
        sessions=len(right),
        new_sessions=sum(each.is_new for each in right),
        entries=sum(each.entries for each in right),
        new_entries=sum(each.added for each in right),
        contents=contents,
        new_contents=new_contents,
        continued=tuple(each.info.id for each in right if each.only is not None),
        not_copied=tuple(failed),
    )


def _failure(session: str, error: RecollectError, source: Store) -> NotCopied:
    if isinstance(error, Damaged) and "://" not in source.address:  # only a file can be repaired
        doctor = f"recollect doctor --repair --store {shlex.quote(source.address)}"
        then = "puts what is damaged into quarantine; then the same command copies the rest"
        return NotCopied(session, f"{error.what}; `{doctor}` {then}")
    if isinstance(error, StoreError) and not isinstance(error, Damaged):
        raise error  # the store itself fails, and would for the next session
    return NotCopied(session, str(error))


async def _parents_first(source: Store, infos: Sequence[SessionInfo]) -> list[SessionInfo]:
    """Oldest first, and each fork after the session whose entry it was forked at."""
    parents: dict[str, str] = {}
    for info in infos:
        if info.forked_from is not None:
            parents[info.id] = (await source.entry(info.forked_from))[0].id
    by_id = {info.id: info for info in sorted(infos, key=lambda s: (s.created, s.id))}
    ordered: dict[str, SessionInfo] = {}
    for info in by_id.values():
        chain = [info.id]
        while (parent := parents.get(chain[-1])) in by_id and parent not in ordered:
            chain.append(parent)
        ordered |= {each: by_id[each] for each in reversed(chain)}
    return list(ordered.values())


async def _copy_session(source: Store, target: Store, listed: SessionInfo) -> _Copied:
    info = await source.session(listed.id)  # before its entries: its head is among them
    entries, project = await source.tree(info.id), await source.project_of(info.id)
    known = await _find(target, info.id)
    there: frozenset[str] = frozenset()
    if known is None:
        known_head = (await target.adopt(info, project)).head
    else:
        known_head = known.head
        there = frozenset([entry.id for entry in await target.tree(info.id)])
    missing = [entry for entry in entries if entry.id not in there]
    ours = frozenset([entry.id for entry in entries])
    has_own = not there <= ours
    if has_own:
        for run in _runs(missing):
            await target.branch(info.id, run, at=run[0].parent)
    else:
        await _write(target, info, known_head, missing, _end_of_segment(entries, info))
        await _describe(target, info, project)
    only = ours if has_own else None
    return _Copied(info, known is None, len(missing), len(entries), _digest(entries), only)


async def _find(target: Store, session: str) -> SessionInfo | None:
    try:
        return await target.session(session)
    except UnknownSession:
        return None


async def _write(
    target: Store, info: SessionInfo, head: str | None, missing: Sequence[Entry], end: str | None
) -> None:
    """Append the missing entries where they belong, and leave the head where the source has it."""
    for run in _runs(missing, end):
        parent = run[0].parent
        if parent is not None and parent == head == end:
            await target.branch(info.id, run, at=parent)
            await target.rewind(info.id, run[-1].id, head=head)
        else:
            if parent != head:
                await target.rewind(info.id, parent, head=head)
            await target.append(info.id, run, parent=parent)
        head = run[-1].id
    if head != info.head:
        await target.rewind(info.id, info.head, head=head)


def _end_of_segment(entries: Sequence[Entry], info: SessionInfo) -> str | None:
    """A session was used last at the latest end of its segments. Where clocks went backwards, that
    can be an entry that others follow; a segment ends there in the target, too."""
    after = (*(entry.parent for entry in entries[1:]), None)
    ends = (entry.time for entry, next_ in zip(entries, after, strict=False) if next_ != entry.id)
    if info.used in (info.created, *ends):
        return None
    return next((entry.id for entry in reversed(entries) if entry.time == info.used), None)


def _runs(entries: Sequence[Entry], end: str | None = None) -> Iterator[list[Entry]]:
    """Entries that follow each other, in batches; none goes beyond `end`."""
    run: list[Entry] = []
    for entry in entries:
        if run and (entry.parent != run[-1].id or len(run) == BATCH or run[-1].id == end):
            yield run
            run = []
        run.append(entry)
    if run:
        yield run


async def _describe(target: Store, info: SessionInfo, project: Project | None) -> None:
    """Appending may have changed the title, and an earlier copy may have left another state."""
    found = await target.session(info.id)
    if _description(found) != _description(info) or await target.project_of(info.id) != project:
        await target.adopt(info, project)


def _description(info: SessionInfo) -> tuple[str, str, int | None]:
    return info.title, info.owner, info.trashed


async def _copy_contents(source: Store, target: Store, progress: ReportCopy) -> tuple[int, int]:
    """The contents of the source, and how many of them the target did not have; long texts came
    with their entries."""
    count = added = 0
    theirs = _digests(target)
    reached = await anext(theirs, None)
    async for digest in _digests(source):
        while reached is not None and reached < digest:
            reached = await anext(theirs, None)
        if reached != digest:
            progress(CopyProgress("copying contents", count))
            stored = await target.put(await source.blob(digest))
            if stored != digest:
                raise Damaged(f"content {digest} was stored as {stored}")
            added += 1
        count += 1
    return count, added


async def _digests(store: Store) -> AsyncIterator[str]:
    after = ""
    while page := await store.blobs(after=after):
        for digest in page:
            yield digest
        after = page[-1]


async def _compare(target: Store, copied: _Copied) -> list[NotCopied]:
    """What differs in the target from what was read in the source."""
    info = copied.info
    found, entries = await target.session(info.id), await target.tree(info.id)
    if copied.only is not None:
        entries = tuple(entry for entry in entries if entry.id in copied.only)
    if len(entries) != copied.entries or _digest(entries) != copied.digest:
        there = f"{len(entries):,} of {copied.entries:,} entries are there"
        return [NotCopied(info.id, f"it differs in the target: {there}, or their hashes differ")]
    if copied.only is None and (found.head, found.entries) != (info.head, info.entries):
        return [NotCopied(info.id, f"its head is {found.head} in the target, not {info.head}")]
    if found.forked_from != info.forked_from:
        return [NotCopied(info.id, "it was forked at another entry in the target")]
    return []


def _digest(entries: Iterable[Entry]) -> bytes:
    """A hash of entries, whatever order their branches come in."""
    hashed = blake2b(digest_size=32)
    for entry in sorted(entries, key=lambda entry: entry.id):
        place = repr((entry.id, entry.parent, entry.time)).encode()
        hashed.update(blake2b(place + encode(entry.body), digest_size=32).digest())
    return hashed.digest()

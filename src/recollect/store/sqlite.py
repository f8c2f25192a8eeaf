"""The store in one SQLite file. `open_store` is the way in.

Reads run in a thread with a connection of their own, so they never wait for a writer; writes go
through the `GroupCommitter`. The search index follows the log within seconds, in the background.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, Literal, TypeVar

import apsw

from recollect.entries import Body, Entry, Message, Title, check
from recollect.errors import (
    BadInput,
    Damaged,
    HeadMoved,
    RecollectError,
    TooLarge,
    UnknownBlob,
    UnknownEntry,
)
from recollect.store import (
    drafts,
    row_encoding,
    search_index,
    session_rows,
    token_count_cache,
    wal_journal,
)
from recollect.store.contract import Project, SearchHit, SearchQuery, SessionInfo
from recollect.store.full_text_search import (
    entry_by_prefix,
    list_sessions,
    search_entries,
    session_by_prefix,
)
from recollect.store.group_commit import GroupCommitter, translate_error
from recollect.store.ids import is_id, new_id, now
from recollect.store.log_reader import LogReader
from recollect.store.log_writer import LogWriter, PreparedEntry, prepare_entries
from recollect.store.open_file import connect_to_store, open_database
from recollect.store.sql_schema import SEGMENT_BITS, SEGMENT_MASK

T = TypeVar("T")
OnDamage = Literal["refuse", "mark"]
INDEX_DELAY = 5.0  # seconds that new entries wait for the index, which a search does not
LONG_BATCH = 200  # items; larger appends run in the writer's thread
CHECKPOINT_PAGES = 500


class _Anywhere:
    """The default of `rewind(head=…)`: wherever the head is now."""


ANY_HEAD: Final = _Anywhere()


class SqliteStore:
    """Implements `recollect.store.contract.Store`. Made by `open_store`."""

    def __init__(self, path: Path) -> None:
        self.file = path
        self._expected_frames = wal_journal.committed_frames(path)
        self._writer = writer = _writer(path)
        self._commit = GroupCommitter(writer, str(path))
        self._readers = ThreadPoolExecutor(1, thread_name_prefix="recollect-reader")
        self._reader: LogReader | None = None
        self._upkeep: asyncio.Task[None] | None = None
        self.warnings: list[str] = []  # what opening found and put right, for people

    async def recover(self) -> None:
        """What a crash left behind: a journal that was cut or damaged, replies in progress."""
        self.warnings += wal_journal.report_lost_frames(
            self.file, self._writer.db, self._expected_frames
        )
        if await self._read(lambda r: list(r.db.execute("SELECT 1 FROM drafts LIMIT 1"))):
            for session, entry in await self._commit(lambda _: drafts.recover_drafts(self._writer)):
                self.warnings.append(
                    f"a reply that broke off was kept as interrupted entry {entry} "
                    f"of session {session}"
                )

    # --- sessions ------------------------------------------------------------------------------

    async def create(
        self,
        *,
        project: Project | None = None,
        title: str = "",
        id: str | None = None,  # noqa: A002 - the word everybody looks for
        created: int | None = None,
    ) -> SessionInfo:
        session = id or new_id()

        when = now() if created is None else created
        await self._commit(
            lambda db: session_rows.create_session(db, session, project, title, when)
        )
        return await self.session(session)

    async def sessions(
        self, *, project: Project | None = None, trashed: bool = False
    ) -> tuple[SessionInfo, ...]:
        return await self._read(lambda r: list_sessions(r.db, project, trashed=trashed))

    async def session(self, prefix: str) -> SessionInfo:
        return await self._read(lambda r: session_by_prefix(r.db, prefix))

    async def entry(self, prefix: str, *, session: str | None = None) -> tuple[SessionInfo, Entry]:
        return await self._read(lambda r: entry_by_prefix(r, prefix, session))

    async def fork(self, session: str, *, at: str | None = None, title: str = "") -> SessionInfo:
        forked = new_id()
        await self._commit(lambda db: session_rows.fork_session(db, session, at, forked, title))
        return await self.session(forked)

    async def rewind(
        self, session: str, to: str | None, *, head: str | _Anywhere | None = ANY_HEAD
    ) -> SessionInfo:
        def write(db: apsw.Connection) -> None:
            number, now_at = self._writer.head(session)
            if not isinstance(head, _Anywhere) and now_at.id != head:
                raise HeadMoved(session, head, now_at.id)
            base = None if to is None else session_rows.key_in_session(db, number, session, to)
            if base != now_at.key:
                session_rows.add_segment(db, number, base)
                self._writer.moved(session)

        await self._commit(write)
        return await self.session(session)

    async def rename(self, session: str, title: str) -> SessionInfo:
        if not session_rows.clean_title(title):
            raise BadInput("a title needs at least one visible character")
        while True:
            current = await self.session(session)
            with contextlib.suppress(HeadMoved):
                await self.append(current.id, [Title(title=title)], parent=current.head)
                return await self.session(session)

    async def trash(self, session: str) -> SessionInfo:
        return await self._set_trashed(session, now())

    async def restore(self, session: str) -> SessionInfo:
        return await self._set_trashed(session, None)

    async def _set_trashed(self, session: str, when: int | None) -> SessionInfo:
        await self._commit(lambda db: session_rows.set_trashed(db, session, when))
        return await self.session(session)

    # --- entries -------------------------------------------------------------------------------

    async def append(
        self, session: str, items: Sequence[Body | Entry], *, parent: str | None
    ) -> tuple[Entry, ...]:
        return await self._add(items, lambda new: self._writer.append(session, new, parent))

    async def branch(
        self, session: str, items: Sequence[Body | Entry], *, at: str | None
    ) -> tuple[Entry, ...]:
        return await self._add(items, lambda new: self._writer.branch(session, new, at))

    async def _add(
        self,
        items: Sequence[Body | Entry],
        write: Callable[[list[PreparedEntry]], tuple[Entry, ...]],
    ) -> tuple[Entry, ...]:
        if not items:
            return ()
        if len(items) > LONG_BATCH:
            entries = await self._commit(lambda _: write(self._prepare_many(items)), long=True)
        else:
            new = prepare_entries(items)
            entries = await self._commit(lambda _: write(new))
        if self._writer.drafts:
            self._writer.drafts.difference_update(entry.id for entry in entries)
        self._wake()
        return entries

    def _prepare_many(self, items: Sequence[Body | Entry]) -> list[PreparedEntry]:
        new = prepare_entries(items)
        if not self._writer.packer.trained:
            dictionary = row_encoding.train_dictionary([item.json for item in new])
            if dictionary is not None:
                search_index.save_dictionary(self._writer, dictionary)
        return new

    async def path(
        self,
        session: str,
        *,
        at: str | None = None,
        last: int | None = None,
        since: str | None = None,
        damaged: OnDamage = "refuse",
    ) -> tuple[Entry, ...]:
        def read(reader: LogReader) -> tuple[Entry, ...]:
            db = reader.db
            number = session_rows.session_number(db, session)
            if at is None:
                head = session_rows.read_head(db, number)
                _refuse_lost_tail(db, head)
                key = head.key
            else:
                key = session_rows.key_in_session(db, number, session, at)
            floor = None if since is None else session_rows.find_key(db, since)
            if since is not None and floor is None:
                raise UnknownEntry(since, session)
            return reader.path(key, last=last, since=floor, mark=damaged == "mark")

        return await self._read(read)

    async def tree(self, session: str, *, damaged: OnDamage = "refuse") -> tuple[Entry, ...]:
        def read(reader: LogReader) -> tuple[Entry, ...]:
            number = session_rows.session_number(reader.db, session)
            lines = list(reader.db.execute("SELECT line FROM lines WHERE session = ?", (number,)))
            found: list[Entry] = []
            for (line,) in lines:
                found += reader.line(line, mark=damaged == "mark")
            return tuple(found)

        return await self._read(read)

    async def draft(
        self,
        session: str,
        message: Message,
        *,
        parent: str | None,
        id: str | None = None,  # noqa: A002 - the word everybody looks for
    ) -> str:
        draft, json = id or new_id(), check(message)
        if not is_id(draft):
            raise BadInput(f"draft id {draft!r} is not 32 hexadecimal digits")
        await self._commit(lambda _: drafts.save_draft(self._writer, session, draft, json, parent))
        return draft

    async def put(self, data: bytes) -> str:
        if len(data) > row_encoding.MAX_STRING:
            raise TooLarge("content", len(data), row_encoding.MAX_STRING)
        digest = row_encoding.content_address(data)
        await self._commit(lambda _: self._writer.put(digest, data), long=len(data) > 100_000)
        return digest.hex()

    async def blob(self, digest: str) -> bytes:
        try:
            raw = bytes.fromhex(digest)
        except ValueError:
            raise UnknownBlob(digest) from None
        return await self._read(lambda r: r.blob(raw))

    async def counts(self, counter: str, entries: Iterable[str]) -> dict[str, tuple[int, ...]]:
        return await self._read(lambda r: token_count_cache.read_counts(r.db, counter, entries))

    async def keep_counts(self, counter: str, counts: Mapping[str, tuple[int, ...]]) -> None:
        if counts:
            long = len(counts) > LONG_BATCH
            await self._commit(
                lambda db: token_count_cache.write_counts(db, counter, counts), long=long
            )

    async def search(
        self, query: SearchQuery, *, project: Project | None = None
    ) -> tuple[SearchHit, ...]:
        await self.index_now()
        return await self._read(lambda r: search_entries(r, query, project))

    # --- upkeep --------------------------------------------------------------------------------

    async def index_now(self) -> None:
        """Bring the search index up to the last entry."""
        while await self._read(lambda r: search_index.is_behind(r.db)):
            await self._commit.run_exclusively(lambda _: search_index.index_slice(self._writer))

    def _wake(self) -> None:
        if self._upkeep is None or self._upkeep.done():
            self._upkeep = asyncio.get_running_loop().create_task(self._keep_up())

    async def _keep_up(self) -> None:
        """In rounds, until one finds nothing to do: a busy session is indexed in large slices."""
        try:
            indexed = 1
            while indexed:
                await asyncio.sleep(0 if indexed == search_index.SLICE else INDEX_DELAY)
                indexed = await self._commit.run_exclusively(self._keep_up_once)
        except RecollectError as error:
            # the log is not concerned: what is pending stays marked and is tried again
            self.warnings.append(f"the search index is behind: {error}")

    def _keep_up_once(self, db: apsw.Connection) -> int:
        """A slice for the index, the dictionary when it is due, a checkpoint when it pays."""
        indexed = search_index.index_slice(self._writer)
        search_index.train_dictionary_once(self._writer)
        if wal_journal.frames_in_use(db) > CHECKPOINT_PAGES:
            with contextlib.suppress(apsw.BusyError):  # another process is at it
                db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
        return indexed

    async def close(self) -> None:
        if self._upkeep is not None:
            self._upkeep.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._upkeep
        self._commit.stop_waiting()
        try:
            with contextlib.suppress(RecollectError):  # what is pending stays marked
                await self._commit.run_exclusively(lambda _: search_index.index_all(self._writer))
        finally:
            await self._commit.close()
            self._readers.shutdown()
            if self._reader is not None:
                self._reader.db.close()
            self._writer.db.close()

    async def _read(self, work: Callable[[LogReader], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(
            self._readers, self._read_consistently, work
        )

    def _read_consistently(self, work: Callable[[LogReader], T]) -> T:
        try:
            if self._reader is None:
                self._reader = LogReader(connect_to_store(self.file))
            db = self._reader.db
            db.execute("BEGIN")
            try:
                return work(self._reader)
            finally:
                db.execute("ROLLBACK")
        except Exception as error:
            raise translate_error(error, str(self.file), reading=True) from error


def _writer(path: Path) -> LogWriter:
    db = open_database(path)
    try:
        return LogWriter(db)
    except Exception as error:
        db.close()
        raise translate_error(error, str(path), reading=True) from error


def _refuse_lost_tail(db: apsw.Connection, head: session_rows.Head) -> None:
    """The index has seen more of this line than is there: its end has been lost."""
    ((indexed,),) = db.execute("SELECT indexed FROM lines WHERE line = ?", (head.line,))
    on_line = head.key is not None and head.key >> SEGMENT_BITS == head.line
    present = head.key & SEGMENT_MASK if head.key is not None and on_line else 0
    if present < indexed:
        raise Damaged(f"the newest {indexed - present} entries of this session are missing")


@contextlib.asynccontextmanager
async def open_store(path: Path | str | None = None) -> AsyncIterator[SqliteStore]:
    """Open the store at `path` (by default the user's own), and close it in order."""
    from recollect.settings import store_path

    store = SqliteStore(Path(path) if path is not None else store_path())
    try:
        await store.recover()
        yield store
    finally:
        await store.close()

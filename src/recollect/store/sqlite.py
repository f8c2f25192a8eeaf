"""The store in one SQLite file. `open_sqlite` is the way in.

Reads go through `ReadTransactions`, so they never wait for a writer; writes go through the
`GroupCommitter`. The search index is updated in the background, within seconds.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from types import EllipsisType
from typing import TypeVar

from recollect.entries import Body, Entry, Message, Source, check
from recollect.errors import (
    BadInput,
    HeadMoved,
    RecollectError,
    TooLarge,
    UnknownBlob,
    UnknownEntry,
)
from recollect.store import drafts, row_encoding, search_index, session_rows, wal_journal
from recollect.store.append_watch import AppendWatch, read_heads
from recollect.store.contract import (
    OnDamage,
    Project,
    SearchHit,
    SearchQuery,
    SearchResult,
    SessionInfo,
)
from recollect.store.exchange_rows import read_counterparts
from recollect.store.file_identity import FileIdentity, close_connections
from recollect.store.full_text_search import search_entries
from recollect.store.group_commit import GroupCommitter, translate_error
from recollect.store.ids import is_id, new_id, now
from recollect.store.index_maintenance import IndexMaintenance
from recollect.store.journal_mark import set_aside_foreign_journal
from recollect.store.log_reader import LogReader
from recollect.store.log_writer import LogWriter, PreparedEntry, prepare_entries
from recollect.store.open_file import open_database, refuse_special_files
from recollect.store.read_transactions import ReadTransactions
from recollect.store.rename_session import rename_session
from recollect.store.session_lookup import (
    SessionList,
    entry_by_id,
    list_sessions,
    read_sources,
    session_by_id,
    short_ids,
)
from recollect.store.session_rows import NewSession
from recollect.store.sqlite_search import SqliteEntries, SqliteSearch
from recollect.store.store_facts import read_facts
from recollect.store.token_count_cache import read_counts, write_counts

T = TypeVar("T")
LONG_BATCH = 200  # items; larger appends run in the writer's thread


class SqliteStore:
    """Implements `recollect.store.contract.Store`. Made by `open_sqlite`."""

    def __init__(self, path: Path) -> None:
        refuse_special_files(path)
        self.file, self.address, self.closed = path, str(path), False
        # for the user: what opening found and repaired
        self.warnings: list[str] = set_aside_foreign_journal(path)
        self._expected_frames = wal_journal.committed_frames(path)
        self._writer, identity = _open_writer(path)
        self._commit = GroupCommitter(self._writer, str(path), identity)
        self._read = ReadTransactions(path, self._writer.db, self._commit)
        self._maintenance = IndexMaintenance(self._commit, self.warnings)
        self._watch = AppendWatch(
            lambda sessions, version: self._read(lambda r: read_heads(r, sessions, version))
        )

    async def recover(self) -> None:
        """Recover from a crash: a truncated or damaged journal, replies in progress."""
        self.warnings += wal_journal.report_lost_frames(
            self.file, self._writer.db, self._expected_frames
        )
        if await self._read(lambda r: list(r.db.execute("SELECT 1 FROM drafts LIMIT 1"))):
            for session, entry in await self._commit(drafts.recover_drafts):
                self.warnings.append(
                    f"an unfinished reply was saved as interrupted entry {entry} "
                    f"of session {session}"
                )

    async def create(
        self,
        *,
        project: Project | None = None,
        title: str = "",
        id: str | None = None,  # noqa: A002 - the name callers expect
        created: int | None = None,
        owner: str = "",
    ) -> SessionInfo:
        when = now() if created is None else created
        new = NewSession(id=id or new_id(), title=title, owner=owner, created=when)
        await self._commit(lambda w: session_rows.create_session(w.db, new, project))
        return await self.session(new.id)

    async def sessions(
        self,
        *,
        project: Project | None = None,
        trashed: bool = False,
        owner: str | None = None,
        limit: int | None = None,
        before: tuple[int, str] | None = None,
    ) -> tuple[SessionInfo, ...]:
        wanted = SessionList(
            project=project, trashed=trashed, owner=owner, limit=limit, before=before
        )
        return await self._read(lambda r: list_sessions(r.db, wanted))

    async def check_usable(self) -> None:
        await self._commit.run_exclusively(lambda _: None)  # looks at the file first
        await self.sessions(limit=1)

    async def session(self, given: str) -> SessionInfo:
        if is_id(given):
            return await self._read.look_up(lambda db: session_by_id(db, given))
        return await self._read(lambda r: session_by_id(r.db, given))

    async def entry(self, given: str, *, session: str | None = None) -> tuple[SessionInfo, Entry]:
        return await self._read(lambda r: entry_by_id(r, given, session))

    async def project_of(self, session: str) -> Project | None:
        return await self._read(
            lambda r: session_rows.project_of(r.db, session_rows.session_number(r.db, session))
        )

    async def counterparts(self, entry: Entry) -> tuple[Entry, ...]:
        def read(reader: LogReader) -> tuple[Entry, ...]:
            key = session_rows.find_key(reader.db, entry.id)
            return () if key is None else read_counterparts(SqliteEntries(reader), key, entry)

        return await self._read(read)

    async def sources(self) -> dict[str, Source]:
        return await self._read(read_sources)

    async def short_session_ids(self, ids: Iterable[str]) -> dict[str, str]:
        return await self._read(lambda r: short_ids(r.db, ids, ("sessions",)))

    async def short_entry_ids(self, ids: Iterable[str]) -> dict[str, str]:
        return await self._read(lambda r: short_ids(r.db, ids, ("sessions", "entries")))

    async def fork(
        self, session: str, *, at: str | None = None, title: str = "", owner: str | None = None
    ) -> SessionInfo:
        new = NewSession(id=new_id(), title=title, owner=owner or "", created=now())
        same = owner is None
        await self._commit(
            lambda w: session_rows.fork_session(w.db, session, at, new, keep_owner=same)
        )
        return await self.session(new.id)

    async def adopt(self, info: SessionInfo, project: Project | None) -> SessionInfo:
        await self._commit(lambda w: session_rows.adopt_session(w.db, info, project))
        self._writer.forget_title(info.id)
        return await self.session(info.id)

    async def rewind(
        self, session: str, to: str | None, *, head: str | EllipsisType | None = ...
    ) -> SessionInfo:
        def write(writer: LogWriter) -> None:
            number, actual = writer.head(session)
            if not isinstance(head, EllipsisType) and actual.id != head:
                raise HeadMoved(session, head, actual.id)
            db = writer.db
            base = None if to is None else session_rows.key_in_session(db, number, session, to)
            if base != actual.key:
                session_rows.add_segment(db, number, base)
                writer.forget_head(session)

        await self._commit(write)
        self._watch.notify(session)
        return await self.session(session)

    async def rename(self, session: str, title: str) -> SessionInfo:
        return await rename_session(self, session, title)

    async def trash(self, session: str) -> SessionInfo:
        return await self._set_trashed(session, now())

    async def restore(self, session: str) -> SessionInfo:
        return await self._set_trashed(session, None)

    async def _set_trashed(self, session: str, when: int | None) -> SessionInfo:
        def write(writer: LogWriter) -> None:
            number = session_rows.session_number(writer.db, session)
            session_rows.set_column(writer.db, number, "trashed", when)

        await self._commit(write)
        return await self.session(session)

    async def append(
        self, session: str, items: Sequence[Body | Entry], *, parent: str | None
    ) -> tuple[Entry, ...]:
        entries = await self._add(items, lambda w, new: w.append(session, new, parent))
        self._watch.notify(session)
        return entries

    async def branch(
        self, session: str, items: Sequence[Body | Entry], *, at: str | None
    ) -> tuple[Entry, ...]:
        return await self._add(items, lambda w, new: w.branch(session, new, at))

    async def _add(
        self,
        items: Sequence[Body | Entry],
        write: Callable[[LogWriter, list[PreparedEntry]], tuple[Entry, ...]],
    ) -> tuple[Entry, ...]:
        if not items:
            return ()
        if len(items) > LONG_BATCH:
            entries = await self._commit(lambda w: write(w, _prepare_many(w, items)), long=True)
        else:
            new = prepare_entries(items)
            entries = await self._commit(lambda w: write(w, new))
        if self._writer.drafts:
            self._writer.drafts.difference_update(entry.id for entry in entries)
        self._maintenance.start()
        return entries

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
            db, key = reader.db, session_rows.path_end(reader.db, session, at)
            floor = None if since is None else session_rows.find_key(db, since)
            if since is not None and floor is None:
                raise UnknownEntry(since, session)
            return reader.path(key, last=last, since=floor, mark=damaged == "mark")

        return await self._read(read)

    async def page(
        self, session: str, *, start: int, limit: int, at: str | None = None
    ) -> tuple[Entry, ...]:
        if start < 0 or limit < 0:
            raise BadInput(f"a page of {limit} entries from {start} on: both count from 0 up")
        return await self._read(
            lambda r: r.page(session_rows.path_end(r.db, session, at), start, limit)
        )

    async def wait_for_append(self, session: str, head: str | None, timeout: float) -> bool:
        return await self._watch.wait(session, head, timeout)

    async def tree(self, session: str, *, damaged: OnDamage = "refuse") -> tuple[Entry, ...]:
        def read(reader: LogReader) -> tuple[Entry, ...]:
            number = session_rows.session_number(reader.db, session)
            segments = reader.db.execute("SELECT line FROM lines WHERE session = ?", (number,))
            read_segment = partial(reader.segment, mark=damaged == "mark")
            return tuple(chain.from_iterable(read_segment(line) for (line,) in list(segments)))

        return await self._read(read)

    async def tree_page(
        self, session: str, *, limit: int, after: str | None = None
    ) -> tuple[Entry, ...]:
        def read(reader: LogReader) -> tuple[Entry, ...]:
            db, number = reader.db, session_rows.session_number(reader.db, session)
            key = session_rows.key_in_session(db, number, session, after) if after else 0
            return reader.tree_page(number, key, limit)

        return await self._read(read)

    async def draft(
        self,
        session: str,
        message: Message,
        *,
        parent: str | None,
        id: str | None = None,  # noqa: A002 - the name callers expect
    ) -> str:
        draft, json = id or new_id(), check(message)
        if not is_id(draft):
            raise BadInput(f"draft id {draft!r} is not 32 hexadecimal digits")
        await self._commit(lambda w: drafts.save_draft(w, session, draft, json, parent))
        return draft

    async def put(self, data: bytes) -> str:
        if len(data) > row_encoding.MAX_STRING:
            raise TooLarge("content", len(data), row_encoding.MAX_STRING)
        digest = row_encoding.content_address(data)
        await self._commit(lambda w: w.put(digest, data), long=len(data) > 100_000)
        return digest.hex()

    async def blob(self, digest: str) -> bytes:
        try:
            raw = bytes.fromhex(digest)
        except ValueError:
            raise UnknownBlob(digest) from None
        return await self._read(lambda r: r.blob(raw))

    async def blobs(self, *, after: str = "", limit: int = 1_000) -> tuple[str, ...]:
        query = "SELECT address FROM blobs WHERE address > ? ORDER BY address LIMIT ?"
        values = (bytes.fromhex(after), limit)
        return await self._read(
            lambda r: tuple(raw.hex() for (raw,) in r.db.execute(query, values))
        )

    async def counts(self, counter: str, entries: Iterable[str]) -> dict[str, tuple[int, ...]]:
        return await self._read(lambda r: read_counts(r.db, counter, entries))

    async def keep_counts(self, counter: str, counts: Mapping[str, tuple[int, ...]]) -> None:
        if counts:
            long = len(counts) > LONG_BATCH
            await self._commit(lambda w: write_counts(w.db, counter, counts), long=long)

    async def search(self, query: SearchQuery) -> tuple[SearchHit, ...]:
        await self.index_now()
        return await self._read(lambda r: search_entries(SqliteSearch(r, query), query))

    async def rank(self, query: SearchQuery, *, length: int = 600) -> SearchResult:
        # late: most commands search nothing, and ranking takes 5 ms to load
        from recollect.store.ranked_search import rank_entries

        await self.index_now()
        return await self._read(lambda r: rank_entries(SqliteSearch(r, query), query, length))

    async def index_now(self) -> None:
        """Bring the search index up to the last entry."""
        while await self._read(lambda r: search_index.is_behind(r.db)):
            await self._commit.run_exclusively(search_index.index_slice)

    async def facts(self) -> dict[str, int | str]:
        return await self._read(lambda r: read_facts(r.db, self.file))

    async def close(self) -> None:
        self.closed = self._read.closed = True
        self._watch.notify_all()
        await self._maintenance.stop()
        self._commit.stop_waiting()
        try:
            with contextlib.suppress(RecollectError):  # pending segments stay marked
                await self._commit.run_exclusively(search_index.index_all)
        finally:
            await self._commit.close()
            used = [self._writer.db, *self._read.stop()]
            close_connections(used, checkpoint=self._commit.is_file_intact())
            self._writer.mark.close()


def _open_writer(path: Path) -> tuple[LogWriter, FileIdentity]:
    db = open_database(path)
    try:
        return LogWriter(db), FileIdentity(path, db)
    except Exception as error:
        db.close()
        raise translate_error(error, str(path), reading=True) from error


def _prepare_many(writer: LogWriter, items: Sequence[Body | Entry]) -> list[PreparedEntry]:
    new = prepare_entries(items)
    if not writer.packer.trained:
        dictionary = row_encoding.train_dictionary([item.json for item in new])
        if dictionary is not None:
            search_index.save_dictionary(writer, dictionary)
    return new


@contextlib.asynccontextmanager
async def open_sqlite(path: Path) -> AsyncIterator[SqliteStore]:
    """Open the store at `path`, which is created if there is none, and close it at the end."""
    store = SqliteStore(path)
    try:
        await store.recover()
        yield store
    finally:
        await store.close()

"""What every part of the PostgreSQL store shares, and the parts that do not touch the log:
contents, token counts, searches, checks."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TypeVar

from recollect.entries import Entry, Source
from recollect.errors import StoreClosed, TooLarge, UnknownBlob
from recollect.store import row_encoding
from recollect.store.contract import SearchHit, SearchQuery, SearchResult
from recollect.store.ids import is_id
from recollect.store.postgres import contents, id_lookup
from recollect.store.postgres.connections import Connection, Database
from recollect.store.postgres.integrity import check_database, read_facts
from recollect.store.postgres.session_states import find_place, raw_id
from recollect.store.postgres.word_index import PostgresIndex, index_all
from recollect.store.recovery.integrity_checks import Finding

T = TypeVar("T")


class StoredContents:
    def __init__(self, database: Database) -> None:
        self._database = database
        self.address, self.closed = database.address, False
        self._sources: dict[str, Source] = {}  # as read so far

    async def counterparts(self, entry: Entry) -> tuple[Entry, ...]:
        place = await self._read(lambda db: find_place(db, raw_id(entry.id)))
        return () if place is None else await self._index().counterparts(place, entry)

    async def sources(self) -> dict[str, Source]:
        known = self._sources
        self._sources = await self._read(lambda db: contents.read_sources(db, known))
        return self._sources

    async def short_session_ids(self, ids: Iterable[str]) -> dict[str, str]:
        given = list(ids)
        return await self._read(lambda db: id_lookup.short_ids(db, given, ("session_trees",)))

    async def short_entry_ids(self, ids: Iterable[str]) -> dict[str, str]:
        given, tables = list(ids), ("session_trees", "entry_places")
        return await self._read(lambda db: id_lookup.short_ids(db, given, tables))  # type: ignore[arg-type]

    async def put(self, data: bytes) -> str:
        if len(data) > row_encoding.MAX_STRING:
            raise TooLarge("content", len(data), row_encoding.MAX_STRING)
        address = row_encoding.content_address(data)
        packed = await asyncio.to_thread(row_encoding.pack_blob, data)
        await self._read(lambda db: contents.put_blob(db, address, len(data), packed))
        return address.hex()

    async def blob(self, digest: str) -> bytes:
        try:
            raw = bytes.fromhex(digest)
        except ValueError:
            raise UnknownBlob(digest) from None
        return await self._read(lambda db: contents.read_blob(db, raw))

    async def blobs(self, *, after: str = "", limit: int = 1_000) -> tuple[str, ...]:
        raw = bytes.fromhex(after)
        return await self._read(lambda db: contents.list_blobs(db, raw, limit))

    async def counts(self, counter: str, entries: Iterable[str]) -> dict[str, tuple[int, ...]]:
        ids = [entry for entry in entries if is_id(entry)]
        return await self._read(lambda db: contents.read_counts(db, counter, ids))

    async def keep_counts(self, counter: str, counts: Mapping[str, tuple[int, ...]]) -> None:
        if counts:
            await self._read(lambda db: contents.write_counts(db, counter, counts))

    async def search(self, query: SearchQuery) -> tuple[SearchHit, ...]:
        await self.index_now()
        return await self._index().search(query)

    async def rank(self, query: SearchQuery, *, length: int = 600) -> SearchResult:
        await self.index_now()
        return await self._index().rank(query, length)

    async def index_now(self) -> None:
        """Bring the search index up to the last entry."""
        self._check_open()
        await index_all(self._database)

    async def check(self) -> tuple[Finding, ...]:
        """What is damaged: hash chains, checksums, stored contents. Changes nothing."""
        return await self._read(check_database)

    async def facts(self) -> dict[str, int | str]:
        return await self._read(read_facts)

    def _index(self) -> PostgresIndex:
        self._check_open()
        return PostgresIndex(self._database)

    def _check_open(self) -> None:
        if self.closed:
            raise StoreClosed(self.address)

    async def _read(self, work: Callable[[Connection], Awaitable[T]]) -> T:
        """Run what may be run twice: it reads, or writes the same again."""
        self._check_open()
        return await self._database.run(work)

    async def _change(self, work: Callable[[Connection, bool], Awaitable[T]]) -> T:
        """Run work in a transaction."""
        self._check_open()

        async def transact(db: Connection, again: bool) -> T:  # noqa: FBT001 - see `run_again`
            async with db.transaction():
                return await work(db, again)

        return await self._database.run_again(transact)

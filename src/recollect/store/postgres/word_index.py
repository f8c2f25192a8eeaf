"""The search index on PostgreSQL: the words of each entry in a `tsvector` without positions.

A GIN index of words is smaller than a table with a row for each word, and one statement evaluates
words, beginnings of words, AND, OR and NOT, which is all that our queries need; PostgreSQL's own
parser and dictionaries are not used, so that both stores find the same. The index follows the log:
an append marks its session, and whoever indexes it removes the mark unless the session changed
meanwhile. Indexing twice does no harm.

The logic of searches is synchronous and shared with SQLite; it runs in a thread, and its questions
are answered on the event loop.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeVar

from recollect.entries import Body, Entry
from recollect.store.contract import Project, SearchHit, SearchQuery, SearchResult, SessionInfo
from recollect.store.exchange_rows import read_counterparts
from recollect.store.full_text_search import search_entries
from recollect.store.postgres import id_lookup
from recollect.store.postgres.connections import Connection, Database
from recollect.store.postgres.contents import read_last
from recollect.store.postgres.path_reader import decode_bodies
from recollect.store.postgres.project_rows import find_project
from recollect.store.postgres.session_states import BASES, EntryPlace, find_tree, raw_id
from recollect.store.ranked_search import rank_entries
from recollect.store.search_tokenizer import fold_text, index_text

T = TypeVar("T")
SLICE = 500  # entries in one statement
_SESSIONS = 50  # that one round looks at
_PAGE = 200  # rows that a search fetches at a time
_MAX_WORD = 400  # characters; PostgreSQL's limit is 2,046 bytes
_MAX_WORDS = 900_000  # bytes of the words of one entry; PostgreSQL's limit is 1,048,575
_EXACT_COUNT = 50_000  # entries; above that, PostgreSQL's estimate is good enough
_MAX_RUNS = 200
_WORD = re.compile("(?:[^\\W_]|[\ue000-\uf8ff])+")  # marks of roles and tools are private-use
_TOKEN = re.compile(r'"([^"]*)"( ?\*)?|\b(AND|OR|NOT)\b|([()])')
_OPERATORS = {"AND": " & ", "OR": " | ", "NOT": " & !"}
_NOTHING = "'\ue002'"  # a word that no entry has

_ROWS = "SELECT f.tree, f.segment, f.n, f.session, f.time FROM"
_VISIBLE = " JOIN sessions s ON s.tree = f.tree AND s.session = f.session WHERE s.trashed IS NULL"
_NEWEST = " ORDER BY f.time DESC, f.tree DESC, f.segment DESC, f.n DESC"
_RUNS = f"""{BASES}
SELECT segment, 2147483647 FROM segments WHERE tree = %(tree)s AND session = %(session)s
UNION ALL SELECT b.segment, max(b.n) FROM bases b
  JOIN segments g ON g.tree = %(tree)s AND g.segment = b.segment AND g.session <> %(session)s
  GROUP BY b.segment ORDER BY 1 DESC LIMIT %(most)s
"""  # noqa: S608


class RowPlace(NamedTuple):
    """The key of a row: newer ones are greater."""

    time: int
    tree: bytes
    segment: int
    n: int

    @property
    def place(self) -> EntryPlace:
        return EntryPlace(self.tree, self.segment, self.n)


class RowCondition(NamedTuple):
    """A condition on rows `f` or sessions `s`, and its values."""

    sql: str = ""
    values: tuple[Any, ...] = ()


def words_of(body: Body) -> list[str]:
    """The words that an entry is found by, each once."""
    words: dict[str, None] = {}
    size = 0
    for word in _WORD.findall(fold_text(index_text(body))):
        short = word[:_MAX_WORD]
        if short not in words:
            size += len(short.encode())
            if size > _MAX_WORDS:
                break
            words[short] = None
    return list(words)


def to_tsquery(match: str) -> str:
    """A match expression (see `search_source`) in PostgreSQL's syntax."""
    parts = []
    for word, begins, operator, bracket in _TOKEN.findall(match):
        if operator or bracket:
            parts.append(_OPERATORS.get(operator) or bracket)
            continue
        words = [found[:_MAX_WORD] for found in _WORD.findall(fold_text(word))]
        quoted = [f"'{one}'" for one in words] or [_NOTHING]
        if begins:
            quoted[-1] += ":*"
        parts.append(quoted[0] if len(quoted) == 1 else f"({' & '.join(quoted)})")
    return "".join(parts)


class PostgresSearch:
    """Implements `recollect.store.search_source.SearchSource`, in a thread."""

    def __init__(self, database: Database, query: SearchQuery) -> None:
        self._database, self._query = database, query
        self._loop = asyncio.get_running_loop()
        self._rows = RowCondition()  # for the index
        self._filters = RowCondition()  # for the sessions of its rows

    def _ask(self, work: Callable[[Connection], Awaitable[T]]) -> T:
        return asyncio.run_coroutine_threadsafe(self._database.run(work), self._loop).result()

    def _fetch(self, sql: str, values: Iterable[Any]) -> list[Any]:
        given = tuple(values)

        async def read(db: Connection) -> list[Any]:
            return await (await db.execute(sql, given, binary=True)).fetchall()

        return self._ask(read)

    def up_to(self, key: RowPlace, count: int) -> tuple[Entry, ...]:
        return self._ask(lambda db: read_last(db, key.place, count))

    def after(self, key: RowPlace, count: int) -> tuple[Entry, ...]:
        query = "SELECT max(n) FROM entries WHERE tree = %s AND segment = %s AND n > %s AND n <= %s"
        values = (key.tree, key.segment, key.n, key.n + count)
        ((last,),) = self._fetch(query, values)
        if last is None:
            return ()
        end = EntryPlace(key.tree, key.segment, last)
        return self._ask(lambda db: read_last(db, end, last - key.n))

    def session(self, owner: tuple[bytes, bytes]) -> SessionInfo:
        return self._ask(lambda db: id_lookup.read_session(db, *owner))

    def candidates(self, match: str) -> Iterable[tuple[RowPlace, tuple[bytes, bytes]]]:
        filters = self._common_filters()
        if filters is None:
            return
        if self._query.session is not None:
            found = self._named_session(self._query.session)
            session = RowCondition(" AND f.tree = %s AND f.session = %s", found)
            filters = RowCondition(filters.sql + session.sql, filters.values + session.values)
        yield from self._pages(match, filters)

    def entries_in_scope(self) -> int | None:
        filters = self._common_filters()
        if filters is None:
            return None
        if self._query.session is None:
            self._filters = filters
            return self._count_all()
        tree, session = self._named_session(self._query.session)
        info = self.session((tree, session))
        if self._query.owner not in (None, info.owner):
            return None  # what a session inherited belongs to its owner too, whoever wrote it
        values = {"tree": tree, "session": session, "most": _MAX_RUNS}
        runs = self._ask(lambda db: _fetch_all(db, _RUNS, values))
        among = (
            " AND f.tree = %s AND EXISTS (SELECT 1 FROM unnest(%s::integer[], %s::integer[])"
            " r (segment, top) WHERE r.segment = f.segment AND f.n <= r.top)"
        )
        self._rows = RowCondition(among, (tree, [run[0] for run in runs], [run[1] for run in runs]))
        self._filters = self._time_filters()
        counted = f"SELECT count(*) FROM search f WHERE true{among}"  # noqa: S608 - our own words
        ((count,),) = self._fetch(counted, self._rows.values)
        return int(count)

    def count(self, match: str, most: int) -> int:
        rows = f"SELECT 1 FROM search f WHERE f.words @@ %s::tsquery{self._rows.sql} LIMIT %s"  # noqa: S608
        values = (to_tsquery(match), *self._rows.values, most)
        ((count,),) = self._fetch(f"SELECT count(*) FROM ({rows}) f", values)  # noqa: S608
        return int(count)

    def newest(
        self, match: str, most: int | None = None
    ) -> Iterable[tuple[RowPlace, tuple[bytes, bytes]]]:
        both = RowCondition(
            self._rows.sql + self._filters.sql, self._rows.values + self._filters.values
        )
        if most is None:
            return self._pages(match, both)
        sql = f"{_ROWS} ({self._matching()}) f{_VISIBLE}{self._filters.sql}"
        values = (to_tsquery(match), *self._rows.values, most, *self._filters.values)
        return list(map(_row, self._fetch(sql, values)))

    def heaviest(
        self, matches: Sequence[tuple[str, float]], each: int, most: int
    ) -> Iterable[tuple[RowPlace, tuple[bytes, bytes]]]:
        weighted = f"(SELECT w.*, %s::float8 AS weight FROM ({self._matching()}) w)"  # noqa: S608
        every = " UNION ALL ".join([weighted] * len(matches))
        columns = "f.tree, f.segment, f.n, f.session, f.time"
        united = f"SELECT {columns}, sum(weight) AS weight FROM ({every}) f GROUP BY {columns}"  # noqa: S608
        order = _NEWEST.replace("BY", "BY f.weight DESC,")
        sql = f"{_ROWS} ({united}) f{_VISIBLE}{self._filters.sql}{order} LIMIT %s"
        values: list[Any] = []
        for match, weight in matches:
            values += [weight, to_tsquery(match), *self._rows.values, each]
        return list(map(_row, self._fetch(sql, (*values, *self._filters.values, most))))

    def _matching(self) -> str:
        """The newest rows that match; takes the match, the values of the rows, and how many."""
        return f"{_ROWS} search f WHERE f.words @@ %s::tsquery{self._rows.sql}{_NEWEST} LIMIT %s"

    def _pages(
        self, match: str, condition: RowCondition
    ) -> Iterable[tuple[RowPlace, tuple[bytes, bytes]]]:
        """Newest first, some rows at a time."""
        wanted = " AND f.words @@ %s::tsquery"
        after = ""
        last: tuple[Any, ...] = ()
        while True:
            sql = f"{_ROWS} search f{_VISIBLE}{wanted}{condition.sql}{after}{_NEWEST} LIMIT %s"
            values = (to_tsquery(match), *condition.values, *last, _PAGE)
            rows = list(map(_row, self._fetch(sql, values)))
            yield from rows
            if len(rows) < _PAGE:
                return
            after = " AND (f.time, f.tree, f.segment, f.n) < (%s, %s, %s, %s)"
            last = tuple(rows[-1][0])

    def _time_filters(self) -> RowCondition:
        wanted = {" AND f.time >= %s": self._query.after, " AND f.time < %s": self._query.before}
        given = {sql: value for sql, value in wanted.items() if value is not None}
        return RowCondition("".join(given), tuple(given.values()))

    def _common_filters(self) -> RowCondition | None:
        """Time, project and owner; None if there is no such project."""
        sql, values = self._time_filters()
        if (project := self._query.project) is not None:
            wanted = Project(project) if isinstance(project, str) else project
            key = self._ask(lambda db: find_project(db, wanted))
            if key is None:
                return None
            sql, values = sql + " AND s.project = %s", (*values, key)
        if self._query.owner is not None:
            sql, values = sql + " AND s.owner = %s", (*values, self._query.owner)
        return RowCondition(sql, values)

    def _named_session(self, given: str) -> tuple[bytes, bytes]:
        """Its tree and its id."""
        raw = raw_id(self._ask(lambda db: id_lookup.session_by_id(db, given)).id)
        tree = self._ask(lambda db: find_tree(db, raw))
        assert tree is not None
        return tree, raw

    def _count_all(self) -> int:
        query = "SELECT count(*) FROM (SELECT 1 FROM search f LIMIT %s) f"
        ((count,),) = self._fetch(query, (_EXACT_COUNT,))
        if count < _EXACT_COUNT:
            return int(count)
        estimate = "SELECT reltuples::bigint FROM pg_class WHERE oid = 'search'::regclass"
        return max(int(count), *(int(row[0]) for row in self._fetch(estimate, ())))


def _row(row: tuple[bytes, int, int, bytes, int]) -> tuple[RowPlace, tuple[bytes, bytes]]:
    tree, segment, n, session, time = row
    return RowPlace(time, tree, segment, n), (tree, session)


async def _fetch_all(db: Connection, sql: str, values: dict[str, Any]) -> list[Any]:
    return await (await db.execute(sql, values)).fetchall()


def _words_of_all(bodies: Iterable[Body | None]) -> list[list[str]]:
    return [words_of(body) if body is not None else [] for body in bodies]


class PostgresIndex:
    """Runs searches in a thread."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def search(self, query: SearchQuery) -> tuple[SearchHit, ...]:
        return await asyncio.to_thread(search_entries, PostgresSearch(self._database, query), query)

    async def rank(self, query: SearchQuery, length: int) -> SearchResult:
        source = PostgresSearch(self._database, query)
        return await asyncio.to_thread(rank_entries, source, query, length)

    async def counterparts(self, place: EntryPlace, entry: Entry) -> tuple[Entry, ...]:
        source = PostgresSearch(self._database, SearchQuery(words=""))
        key = RowPlace(entry.time, *place)
        return await asyncio.to_thread(read_counterparts, source, key, entry)


async def index_all(database: Database) -> None:
    """Index every session that is marked; those that are marked meanwhile are left for later."""
    last = (b"", b"")
    while marked := await database.run(partial(_index_some, after=last)):
        last = marked[-1]


async def _index_some(db: Connection, after: tuple[bytes, bytes]) -> list[tuple[bytes, bytes]]:
    query = (
        "SELECT tree, session FROM sessions WHERE unindexed AND (tree, session) > (%s, %s)"
        " ORDER BY tree, session LIMIT %s"
    )
    marked = await (await db.execute(query, (*after, _SESSIONS), binary=True)).fetchall()
    for tree, session in marked:
        await index_session(db, tree, session)
    return marked


async def index_session(db: Connection, tree: bytes, session: bytes) -> None:
    """Index what a session has now, and remove its mark unless it changed meanwhile."""
    query = "SELECT version FROM sessions WHERE tree = %s AND session = %s AND unindexed"
    row = await (await db.execute(query, (tree, session))).fetchone()
    if row is None:
        return
    query = "SELECT segment, indexed FROM segments WHERE tree = %s AND session = %s"
    for segment, indexed in await (await db.execute(query, (tree, session))).fetchall():
        await _index_segment(db, tree, session, segment, indexed)
    await db.execute(
        "UPDATE sessions SET unindexed = false WHERE tree = %s AND session = %s AND version = %s",
        (tree, session, row[0]),
    )


async def _index_segment(
    db: Connection, tree: bytes, session: bytes, segment: int, done: int
) -> None:
    query = (
        "SELECT n, time, body FROM entries"
        " WHERE tree = %s AND segment = %s AND n > %s ORDER BY n LIMIT %s"
    )
    while True:
        cursor = await db.execute(query, (tree, segment, done, SLICE), binary=True)
        rows = await cursor.fetchall()
        if rows:
            done = rows[-1][0]
            await _insert_words(db, tree, session, segment, rows)
        if len(rows) < SLICE:
            return


async def _insert_words(
    db: Connection, tree: bytes, session: bytes, segment: int, rows: Sequence[Any]
) -> None:
    bodies = await decode_bodies(db, tree, [row[2] for row in rows])
    words = await asyncio.to_thread(_words_of_all, bodies)
    found = [(n, time, own) for (n, time, _), own in zip(rows, words, strict=True) if own]
    async with db.cursor() as cursor:
        await cursor.executemany(
            "INSERT INTO search (tree, segment, n, session, time, words)"
            " VALUES (%s, %s, %s, %s, %s, array_to_tsvector(%s::text[]))"
            " ON CONFLICT DO NOTHING",
            [(tree, segment, n, session, time, own) for n, time, own in found],
        )
    await db.execute(
        "UPDATE segments SET indexed = greatest(indexed, %s) WHERE tree = %s AND segment = %s",
        (rows[-1][0], tree, segment),
    )

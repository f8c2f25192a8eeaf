"""What a search asks of a store in SQLite: its full-text index, and its log."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from recollect.entries import Entry
from recollect.store.contract import Project, SearchQuery, SessionInfo
from recollect.store.log_reader import LogReader
from recollect.store.search_scope import RowScope, scope_of
from recollect.store.session_lookup import session_by_id, session_by_number
from recollect.store.session_rows import find_project
from recollect.store.sql_schema import SEGMENT_BITS, SEGMENT_MASK

_NEWEST = f"""
SELECT e.key, l.session FROM search
JOIN entries e ON e.key = search.rowid
JOIN lines l ON l.line = e.key >> {SEGMENT_BITS}
JOIN sessions s ON s.session = l.session
WHERE search MATCH ?{{}} AND s.trashed IS NULL{{}} ORDER BY search.rowid DESC
"""  # noqa: S608 - the number is a constant


class SqliteEntries:
    """Implements `recollect.store.search_source.EntrySource`."""

    def __init__(self, reader: LogReader) -> None:
        self.reader = reader

    def up_to(self, key: int, count: int) -> tuple[Entry, ...]:
        return self.reader.path(key, last=count, mark=True)

    def after(self, key: int, count: int) -> tuple[Entry, ...]:
        query = "SELECT max(key) FROM entries WHERE key > ? AND key <= ?"
        bounds = (key, min(key + count, key | SEGMENT_MASK))
        ((last,),) = self.reader.db.execute(query, bounds)
        return () if last is None else self.reader.path(last, last=last - key, mark=True)


class SqliteSearch(SqliteEntries):
    """Implements `recollect.store.search_source.SearchSource`."""

    def __init__(self, reader: LogReader, query: SearchQuery) -> None:
        super().__init__(reader)
        self._db, self._query = reader.db, query
        self._scope = RowScope()

    def session(self, owner: int) -> SessionInfo:
        return session_by_number(self._db, owner)

    def candidates(self, match: str) -> Iterable[tuple[int, int]]:
        query = self._query
        wanted: dict[str, Any] = {
            " AND e.time >= ?": query.after,
            " AND e.time < ?": query.before,
            " AND s.owner = ?": query.owner,
        }
        if (project := query.project) is not None:
            project = Project(project) if isinstance(project, str) else project
            if (number := find_project(self._db, project)) is None:
                return ()
            wanted[" AND s.project = ?"] = number
        if query.session is not None:
            wanted[" AND s.id = ?"] = bytes.fromhex(session_by_id(self._db, query.session).id)
        given = {condition: value for condition, value in wanted.items() if value is not None}
        sql = _NEWEST.format("", "".join(given))
        return self._db.execute(sql, (match, *given.values()))

    def entries_in_scope(self) -> int | None:
        scope = scope_of(self._db, self._query)
        if scope is None:
            return None
        self._scope = scope
        return scope.entries

    def count(self, match: str, most: int) -> int:
        scope = self._scope
        rows = f"SELECT 1 FROM search WHERE search MATCH ?{scope.rows} LIMIT {most}"  # noqa: S608
        query = f"SELECT count(*) FROM ({rows})"  # noqa: S608 - our own words
        ((count,),) = self._db.execute(query, (match, *scope.row_values))
        return int(count)

    def newest(self, match: str, most: int | None = None) -> Iterable[tuple[int, int]]:
        scope = self._scope
        if most is None:
            sql = _NEWEST.format(scope.rows, scope.filters)
        else:
            sql = self._in_scope(self._rows(most))
        return self._db.execute(sql, (match, *scope.row_values, *scope.values))

    def heaviest(
        self, matches: Sequence[tuple[str, float]], each: int, most: int
    ) -> Iterable[tuple[int, int]]:
        scope = self._scope
        every = " UNION ALL ".join(
            f"SELECT * FROM ({self._rows(each, weight)})"  # noqa: S608 - our own words
            for _, weight in matches
        )
        united = f"SELECT key, sum(weight) AS weight FROM ({every}) GROUP BY key"  # noqa: S608
        sql = f"{self._in_scope(united)} ORDER BY f.weight DESC, f.key DESC LIMIT {most}"
        values = [value for match, _ in matches for value in (match, *scope.row_values)]
        return list(self._db.execute(sql, (*values, *scope.values)))

    def _rows(self, most: int, weight: float = 0.0) -> str:
        """The newest rows that match; takes the match and the scope's row values."""
        return (
            f"SELECT rowid AS key, {weight!r} AS weight FROM search "  # noqa: S608 - our own words
            f"WHERE search MATCH ?{self._scope.rows} ORDER BY rowid DESC LIMIT {most}"
        )

    def _in_scope(self, rows: str) -> str:
        """Rows with the session of each, of those that are in scope."""
        return (
            f"SELECT f.key, l.session FROM ({rows}) f "  # noqa: S608 - our own words
            f"JOIN entries e ON e.key = f.key JOIN lines l ON l.line = f.key >> {SEGMENT_BITS} "
            "JOIN sessions s ON s.session = l.session "
            f"WHERE s.trashed IS NULL{self._scope.filters}"
        )

"""Full-text search over entries. The index names candidates; the text itself decides."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import apsw

from recollect.errors import Damaged, NotFound
from recollect.store import search_tokenizer
from recollect.store.contract import Project, SearchHit, SearchQuery, SessionInfo
from recollect.store.log_reader import LogReader
from recollect.store.project_rows import find_project
from recollect.store.session_lookup import session_by_number, session_by_prefix
from recollect.store.sql_schema import SEGMENT_BITS


def search_entries(
    reader: LogReader, query: SearchQuery, project: Project | None
) -> tuple[SearchHit, ...]:
    """The newest segments first."""
    terms = search_tokenizer.parse_query(query.words)
    hits: list[SearchHit] = []
    owners: dict[int, SessionInfo] = {}
    for key, number in _candidates(reader.db, query, terms, project):
        try:
            entry = reader.path(key, last=1, mark=True)[0]
        except (Damaged, NotFound):
            continue  # reading its session reports the damage
        text = search_tokenizer.searchable_text(entry.body)
        if not search_tokenizer.contains_literals(text, terms):
            continue
        if number not in owners:
            owners[number] = session_by_number(reader.db, number)
        shown, marks = search_tokenizer.make_snippet(text, terms)
        hits.append(SearchHit(owners[number], entry, shown, marks))
        if len(hits) >= query.limit:
            break
    return tuple(hits)


def _candidates(
    db: apsw.Connection,
    query: SearchQuery,
    terms: tuple[search_tokenizer.SearchTerm, ...],
    project: Project | None,
) -> Iterable[tuple[int, int]]:
    sql = f"""
    SELECT e.key, l.session FROM search
    JOIN entries e ON e.key = search.rowid
    JOIN lines l ON l.line = e.key >> {SEGMENT_BITS}
    JOIN sessions s ON s.session = l.session
    WHERE search MATCH ? AND s.trashed IS NULL
    """  # noqa: S608 - the number is a constant
    given: list[Any] = [search_tokenizer.match_expression(terms, role=query.role, tool=query.tool)]
    if project is not None:
        number = find_project(db, project)
        if number is None:
            return ()
        sql, given = sql + " AND s.project = ?", [*given, number]
    if query.session is not None:
        sql += " AND s.id = ?"
        given.append(bytes.fromhex(session_by_prefix(db, query.session).id))
    for condition, value in ((" AND e.time >= ?", query.after), (" AND e.time < ?", query.before)):
        if value is not None:
            sql, given = sql + condition, [*given, value]
    return db.execute(sql + " ORDER BY search.rowid DESC", given)

"""Full-text search over entries. The index names candidates; the text itself decides."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import apsw

from recollect.errors import Damaged, NotFound
from recollect.store import search_tokenizer
from recollect.store.contract import Project, SearchHit, SearchQuery, SessionInfo
from recollect.store.log_reader import LogReader
from recollect.store.session_lookup import session_by_id, session_by_number
from recollect.store.session_rows import find_project
from recollect.store.sql_schema import SEGMENT_BITS


def search_entries(reader: LogReader, query: SearchQuery) -> tuple[SearchHit, ...]:
    """The newest segments first."""
    terms = search_tokenizer.parse_query(query.words)
    hits: list[SearchHit] = []
    owners: dict[int, SessionInfo] = {}
    for key, number in _candidates(reader.db, query, terms):
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
    db: apsw.Connection, query: SearchQuery, terms: tuple[search_tokenizer.SearchTerm, ...]
) -> Iterable[tuple[int, int]]:
    sql = f"""
    SELECT e.key, l.session FROM search
    JOIN entries e ON e.key = search.rowid
    JOIN lines l ON l.line = e.key >> {SEGMENT_BITS}
    JOIN sessions s ON s.session = l.session
    WHERE search MATCH ? AND s.trashed IS NULL
    """  # noqa: S608 - the number is a constant
    wanted: dict[str, Any] = {" AND e.time >= ?": query.after, " AND e.time < ?": query.before}
    if (project := query.project) is not None:
        project = Project(project) if isinstance(project, str) else project
        if (number := find_project(db, project)) is None:
            return ()
        wanted[" AND s.project = ?"] = number
    if query.session is not None:
        wanted[" AND s.id = ?"] = bytes.fromhex(session_by_id(db, query.session).id)
    given = {condition: value for condition, value in wanted.items() if value is not None}
    match = search_tokenizer.match_expression(terms, role=query.role, tool=query.tool)
    order = " ORDER BY search.rowid DESC"
    return db.execute(sql + "".join(given) + order, (match, *given.values()))

"""Which rows of the search index a query may see.

The entries of a session are a few runs of keys, so the index reads only these; other conditions
are checked for the rows it names.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import apsw

from recollect.entries import Body, Message
from recollect.store.contract import Project, SearchQuery
from recollect.store.session_lookup import session_by_id
from recollect.store.session_rows import find_project, session_number
from recollect.store.sql_schema import SEGMENT_BITS, SEGMENT_MASK

_MAX_RUNS = 200

# the segments of a session, whole, and what it inherited of others, each up to an entry
_RUNS = f"""
WITH RECURSIVE bases(key) AS (
  SELECT base FROM lines WHERE session = ?1 AND base IS NOT NULL
  UNION SELECT base FROM bases JOIN lines ON line = key >> {SEGMENT_BITS} WHERE base IS NOT NULL)
SELECT line << {SEGMENT_BITS}, line << {SEGMENT_BITS} | {SEGMENT_MASK} FROM lines WHERE session = ?1
UNION ALL
SELECT key >> {SEGMENT_BITS} << {SEGMENT_BITS}, max(key) FROM bases
JOIN lines ON line = key >> {SEGMENT_BITS} WHERE session <> ?1
GROUP BY key >> {SEGMENT_BITS} ORDER BY 2 DESC LIMIT {_MAX_RUNS}
"""  # noqa: S608 - the numbers are constants


def has_role(body: Body, role: str | None) -> bool:
    """Whether somebody who asks for a role's words means this entry: what a program adds is indexed
    under the role it is sent with, but it is nobody's words."""
    return role != "user" or not isinstance(body, Message) or not body.context


class RowScope(NamedTuple):
    rows: str = ""  # a condition on the rows of `search`, and its values
    row_values: tuple[Any, ...] = ()
    filters: str = ""  # conditions on entry `e` and session `s`, and their values
    values: tuple[Any, ...] = ()
    entries: int = 0  # in scope, about


def scope_of(db: apsw.Connection, query: SearchQuery) -> RowScope | None:
    """None if nothing can be in scope."""
    wanted: dict[str, Any] = {" AND e.time >= ?": query.after, " AND e.time < ?": query.before}
    if (project := query.project) is not None:
        project = Project(project) if isinstance(project, str) else project
        if (number := find_project(db, project)) is None:
            return None
        wanted[" AND s.project = ?"] = number
    if query.session is None:
        wanted[" AND s.owner = ?"] = query.owner
    given = {condition: value for condition, value in wanted.items() if value is not None}
    scope = RowScope(filters="".join(given), values=tuple(given.values()))
    if query.session is None:
        ((indexed,),) = db.execute("SELECT total(indexed) FROM lines")
        return scope._replace(entries=int(indexed))
    found = session_by_id(db, query.session)
    if query.owner not in (None, found.owner):
        return None  # what a session inherited belongs to its owner too, whoever wrote it
    number = session_number(db, found.id)
    runs = list(db.execute(_RUNS, (number,)))
    any_run = " OR ".join("search.rowid > ? AND search.rowid <= ?" for _ in runs)
    between = (min(low for low, _ in runs), max(high for _, high in runs))
    values = (*between, *(bound for run in runs for bound in run))
    query_entries = "SELECT total(min(indexed, ? - (line << ?))) FROM lines WHERE line = ? >> ?"
    entries = sum(
        int(next(iter(db.execute(query_entries, (high, SEGMENT_BITS, high, SEGMENT_BITS))))[0])
        for _, high in runs
    )
    rows = f" AND search.rowid > ? AND search.rowid <= ? AND ({any_run})"
    return scope._replace(rows=rows, row_values=values, entries=entries)

"""Finds sessions by project and prefix, and entries by prefix and words."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import apsw

from recollect.entries import Entry
from recollect.errors import Ambiguous, Damaged, NotFound, UnknownEntry, UnknownSession
from recollect.store import sessions
from recollect.store.contract import Hit, Project, Query, Session
from recollect.store.ids import is_prefix, tidy
from recollect.store.reading import Reader
from recollect.store.schema import LINE_BITS, LINE_FULL
from recollect.store.sessions import find_project

if TYPE_CHECKING:
    from recollect.store import words

_SESSIONS = f"""
SELECT s.id, s.title, s.created, s.trashed, p.path, l.depth, l.line, t.key, t.id, t.time, f.id
FROM sessions s
JOIN lines l ON l.line = (SELECT max(line) FROM lines WHERE session = s.session)
LEFT JOIN projects p ON p.project = s.project
LEFT JOIN entries t ON t.key = coalesce(
  (SELECT e.key FROM entries e
    WHERE e.key > l.line << {LINE_BITS} AND e.key <= (l.line << {LINE_BITS} | {LINE_FULL})
    ORDER BY e.key DESC LIMIT 1), l.base)
LEFT JOIN entries f ON f.key =
  (SELECT base FROM lines WHERE session = s.session ORDER BY line LIMIT 1)
"""  # noqa: S608 - the numbers are constants


def _session(row: Iterable[Any]) -> Session:
    raw_id, title, created, trashed, path, depth, line, key, head, time, forked = row
    on_line = key is not None and key >> LINE_BITS == line
    return Session(
        id=raw_id.hex(),
        title=title,
        head=head.hex() if head else None,
        entries=depth + (key & LINE_FULL) if on_line else depth,
        created=created,
        used=max(created, time) if time is not None and on_line else created,
        project=None if path is None else sessions.to_text(path),
        trashed=trashed,
        forked_from=forked.hex() if forked else None,
    )


def list_sessions(
    db: apsw.Connection, project: Project | None, *, trashed: bool
) -> tuple[Session, ...]:
    where = f" WHERE s.trashed IS {'NOT NULL' if trashed else 'NULL'}"
    given: tuple[Any, ...] = ()
    if project is not None:
        number = find_project(db, project)
        if number is None:
            return ()
        where, given = where + " AND s.project = ?", (number,)
    found = [_session(row) for row in db.execute(_SESSIONS + where, given)]
    return tuple(sorted(found, key=lambda s: (s.used, s.created, s.id), reverse=True))


def session_by_number(db: apsw.Connection, number: int) -> Session:
    return _session(next(iter(db.execute(_SESSIONS + " WHERE s.session = ?", (number,)))))


def session_by_prefix(db: apsw.Connection, prefix: str) -> Session:
    wanted = tidy(prefix)
    found = _by_prefix(db, "SELECT session, id FROM sessions WHERE id >= ? AND id <= ?", wanted)
    if not found:
        raise UnknownSession(prefix)
    if len(found) > 1:
        raise Ambiguous(prefix, [raw.hex() for _, raw in found])
    return session_by_number(db, found[0][0])


def entry_by_prefix(reader: Reader, prefix: str, session: str | None) -> tuple[Session, Entry]:
    """An entry by its id or the beginning of it, with the session that wrote it."""
    wanted = tidy(prefix)
    found = _by_prefix(reader.db, "SELECT key, id FROM entries WHERE id >= ? AND id <= ?", wanted)
    owned = [(key, raw, _owner(reader.db, key)) for key, raw in found]
    if session is not None:
        number = sessions.number_of(reader.db, session)
        owned = [row for row in owned if sessions.holds(reader.db, number, row[0])]
    if not owned:
        raise UnknownEntry(prefix, session)
    if len(owned) > 1:
        raise Ambiguous(prefix, [raw.hex() for _, raw, _ in owned])
    key, _, owner = owned[0]
    return owner, reader.path(key, last=1, mark=True)[0]


def _owner(db: apsw.Connection, key: int) -> Session:
    query = "SELECT session FROM lines WHERE line = ?"
    ((number,),) = db.execute(query, (key >> LINE_BITS,))
    return session_by_number(db, number)


def _by_prefix(db: apsw.Connection, query: str, wanted: str) -> list[tuple[int, bytes]]:
    if not is_prefix(wanted):
        return []
    low, high = (bytes.fromhex(wanted.ljust(32, digit)) for digit in "0f")
    return list(db.execute(query + " LIMIT 9", (low, high)))


def find(reader: Reader, query: Query, project: Project | None) -> tuple[Hit, ...]:
    """Newest lines first. The index names candidates; the text itself decides."""
    from recollect.store import words

    terms = words.parse_query(query.words)
    candidates = _candidates(reader.db, query, terms, project)
    if candidates is None:
        return ()
    hits: list[Hit] = []
    owners: dict[int, Session] = {}
    for key, number in candidates:
        try:
            entry = reader.path(key, last=1, mark=True)[0]
        except (Damaged, NotFound):
            continue  # reading its session reports it
        text = words.text_of(entry.body)
        if not words.fits(text, terms):
            continue
        if number not in owners:
            owners[number] = session_by_number(reader.db, number)
        shown, marks = words.snippet(text, terms)
        hits.append(Hit(owners[number], entry, shown, marks))
        if len(hits) >= query.limit:
            break
    return tuple(hits)


def _candidates(
    db: apsw.Connection, query: Query, terms: tuple[words.Term, ...], project: Project | None
) -> Iterable[tuple[int, int]] | None:
    from recollect.store import words

    sql = f"""
    SELECT e.key, l.session FROM search
    JOIN entries e ON e.key = search.rowid
    JOIN lines l ON l.line = e.key >> {LINE_BITS}
    JOIN sessions s ON s.session = l.session
    WHERE search MATCH ? AND s.trashed IS NULL
    """  # noqa: S608 - the number is a constant
    given: list[Any] = [words.match_expression(terms, role=query.role, tool=query.tool)]
    if project is not None:
        number = find_project(db, project)
        if number is None:
            return None
        sql, given = sql + " AND s.project = ?", [*given, number]
    if query.session is not None:
        sql += " AND s.id = ?"
        given.append(bytes.fromhex(session_by_prefix(db, query.session).id))
    for condition, value in ((" AND e.time >= ?", query.after), (" AND e.time < ?", query.before)):
        if value is not None:
            sql, given = sql + condition, [*given, value]
    return db.execute(sql + " ORDER BY search.rowid DESC", given)

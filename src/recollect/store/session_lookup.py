"""Finds sessions by project or id prefix, and entries by id prefix."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import apsw

from recollect.entries import Entry
from recollect.errors import AmbiguousId, UnknownEntry, UnknownSession
from recollect.store import session_rows
from recollect.store.contract import Project, SessionInfo
from recollect.store.ids import is_prefix, normalize_id
from recollect.store.log_reader import LogReader
from recollect.store.session_rows import find_project, path_from_bytes
from recollect.store.sql_schema import SEGMENT_BITS, SEGMENT_MASK

_SESSIONS = f"""
SELECT s.id, s.title, s.created, s.trashed, p.path, l.depth, l.line, t.key, t.id, t.time, f.id
FROM sessions s
JOIN lines l ON l.line = (SELECT max(line) FROM lines WHERE session = s.session)
LEFT JOIN projects p ON p.project = s.project
LEFT JOIN entries t ON t.key = coalesce(
  (SELECT e.key FROM entries e
    WHERE e.key > l.line << {SEGMENT_BITS} AND e.key <= (l.line << {SEGMENT_BITS} | {SEGMENT_MASK})
    ORDER BY e.key DESC LIMIT 1), l.base)
LEFT JOIN entries f ON f.key =
  (SELECT base FROM lines WHERE session = s.session ORDER BY line LIMIT 1)
"""  # noqa: S608 - the numbers are constants


def _session_info(row: Iterable[Any]) -> SessionInfo:
    raw_id, title, created, trashed, path, depth, segment, key, head, time, forked = row
    in_segment = key is not None and key >> SEGMENT_BITS == segment
    return SessionInfo(
        id=raw_id.hex(),
        title=title,
        head=head.hex() if head else None,
        entries=depth + (key & SEGMENT_MASK) if in_segment else depth,
        created=created,
        used=max(created, time) if time is not None and in_segment else created,
        project=None if path is None else path_from_bytes(path),
        trashed=trashed,
        forked_from=forked.hex() if forked else None,
    )


def list_sessions(
    db: apsw.Connection, project: Project | None, *, trashed: bool
) -> tuple[SessionInfo, ...]:
    where = f" WHERE s.trashed IS {'NOT NULL' if trashed else 'NULL'}"
    given: tuple[Any, ...] = ()
    if project is not None:
        number = find_project(db, project)
        if number is None:
            return ()
        where, given = where + " AND s.project = ?", (number,)
    found = [_session_info(row) for row in db.execute(_SESSIONS + where, given)]
    return tuple(sorted(found, key=lambda s: (s.used, s.created, s.id), reverse=True))


def session_by_number(db: apsw.Connection, number: int) -> SessionInfo:
    return _session_info(next(iter(db.execute(_SESSIONS + " WHERE s.session = ?", (number,)))))


def session_by_prefix(db: apsw.Connection, prefix: str) -> SessionInfo:
    found = _by_prefix(db, "SELECT session, id FROM sessions", prefix)
    return session_by_number(db, _only(found, prefix, UnknownSession(prefix)))


def entry_by_prefix(
    reader: LogReader, prefix: str, session: str | None
) -> tuple[SessionInfo, Entry]:
    """The entry with this id or id prefix, and the session that wrote it."""
    db = reader.db
    found = _by_prefix(db, "SELECT key, id FROM entries", prefix)
    if session is not None:
        number = session_rows.session_number(db, session)
        found = [row for row in found if session_rows.contains_entry(db, number, row[0])]
    key = _only(found, prefix, UnknownEntry(prefix, session))
    ((owner,),) = db.execute("SELECT session FROM lines WHERE line = ?", (key >> SEGMENT_BITS,))
    return session_by_number(db, owner), reader.path(key, last=1, mark=True)[0]


def _by_prefix(db: apsw.Connection, query: str, prefix: str) -> list[tuple[int, bytes]]:
    wanted = normalize_id(prefix)
    if not is_prefix(wanted):
        return []
    low, high = (bytes.fromhex(wanted.ljust(32, digit)) for digit in "0f")
    return list(db.execute(f"{query} WHERE id >= ? AND id <= ? LIMIT 9", (low, high)))


def _only(found: list[tuple[int, bytes]], prefix: str, unknown: Exception) -> int:
    if not found:
        raise unknown
    if len(found) > 1:
        raise AmbiguousId(prefix, [raw.hex() for _, raw in found])
    return found[0][0]

"""Finds sessions by project or id, and entries by id.

An id is given as a whole, as its beginning, or as its end: the end is random, so a few digits of it
are enough, and these are what commands print (`short_ids`). Ends have no index of their own: a scan
of the ids takes 10 ms for 100,000 entries, while an index would make every append a quarter slower.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Literal, TypeAlias

import apsw
import msgspec

from recollect.entries import Entry, Source
from recollect.errors import AmbiguousId, UnknownEntry, UnknownSession
from recollect.store import session_rows
from recollect.store.contract import Project, SessionInfo
from recollect.store.ids import is_id, is_prefix, normalize_id
from recollect.store.log_reader import LogReader
from recollect.store.session_rows import find_project, path_from_bytes
from recollect.store.sql_schema import SEGMENT_BITS, SEGMENT_MASK

IdTable: TypeAlias = Literal["sessions", "entries"]
_KEYS: dict[IdTable, str] = {"sessions": "session", "entries": "key"}
MIN_END = 4  # digits: fewer are only looked for at the beginning of ids
SHORT_BYTES = 4  # of an id's end, for a short id: 8 digits
MAX_CANDIDATES = 9
_BATCH = 5_000  # of the ids that one scan looks for

# when a session was used: the latest end of all its segments. A rewind, or a branch that an import
# adds, gives the session a new and empty segment, but takes nothing back
_USED = f"""max(s.created, coalesce(
  (SELECT max((SELECT e.time FROM entries e
    WHERE e.key > m.line << {SEGMENT_BITS} AND e.key <= (m.line << {SEGMENT_BITS} | {SEGMENT_MASK})
    ORDER BY e.key DESC LIMIT 1)) FROM lines m WHERE m.session = s.session), 0))"""  # noqa: S608
_SESSIONS = f"""
SELECT s.id, s.title, s.created, s.trashed, s.owner, p.path, l.depth, l.line, t.key, t.id,
  {_USED}, f.id
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
    raw_id, title, created, trashed, owner, path, depth, segment, key, head, used, forked = row
    in_segment = key is not None and key >> SEGMENT_BITS == segment
    return SessionInfo(
        id=raw_id.hex(),
        title=title,
        head=head.hex() if head else None,
        entries=depth + (key & SEGMENT_MASK) if in_segment else depth,
        created=created,
        used=used,
        project=None if path is None else path_from_bytes(path),
        trashed=trashed,
        forked_from=forked.hex() if forked else None,
        owner=owner,
    )


class SessionList(msgspec.Struct, frozen=True, kw_only=True):
    """Which sessions to list; `before` is the time of use and the id of the last one listed."""

    project: Project | None = None
    trashed: bool = False
    owner: str | None = None
    limit: int | None = None
    before: tuple[int, str] | None = None


def list_sessions(db: apsw.Connection, wanted: SessionList) -> tuple[SessionInfo, ...]:
    where = f" WHERE s.trashed IS {'NOT NULL' if wanted.trashed else 'NULL'}"
    given: list[Any] = []
    if wanted.project is not None:
        number = find_project(db, wanted.project)
        if number is None:
            return ()
        where, given = where + " AND s.project = ?", [number]
    if wanted.owner is not None:
        where, given = where + " AND s.owner = ?", [*given, wanted.owner]
    if wanted.limit is not None or wanted.before is not None:
        where, given = _one_page(db, wanted, where, given)
    found = [_session_info(row) for row in db.execute(_SESSIONS + where, given)]
    found.sort(key=_order, reverse=True)
    return tuple(found)


def _one_page(
    db: apsw.Connection, wanted: SessionList, where: str, given: list[Any]
) -> tuple[str, list[Any]]:
    """The condition for a page alone: of the others nothing is read but when they were used."""
    after, order = "", "ORDER BY used DESC, s.created DESC, s.id DESC LIMIT ?"
    if wanted.before is not None:
        used, last = wanted.before
        query = "SELECT created FROM sessions WHERE session = ?"
        ((created,),) = db.execute(query, (session_rows.session_number(db, last),))
        after = " AND (used, s.created, s.id) < (?, ?, ?)"
        given = [*given, used, created, bytes.fromhex(last)]
    page = f"SELECT s.session, {_USED} AS used FROM sessions s{where}{after} {order}"  # noqa: S608
    limit = -1 if wanted.limit is None else wanted.limit
    return f" WHERE s.session IN (SELECT session FROM ({page}))", [*given, limit]  # noqa: S608


def _order(session: SessionInfo) -> tuple[int, int, str]:
    return session.used, session.created, session.id


def session_by_number(db: apsw.Connection, number: int) -> SessionInfo:
    return _session_info(next(iter(db.execute(_SESSIONS + " WHERE s.session = ?", (number,)))))


def session_by_id(db: apsw.Connection, given: str) -> SessionInfo:
    """The session with this id, or with the only id that begins or ends like this."""
    if is_id(whole := normalize_id(given)):
        rows = list(db.execute(_SESSIONS + " WHERE s.id = ?", (bytes.fromhex(whole),)))
        if rows:
            return _session_info(rows[0])
    found = list(islice(_matches(db, "sessions", given), MAX_CANDIDATES))
    return session_by_number(db, _only(db, found, given, UnknownSession(given)))


def read_sources(reader: LogReader) -> dict[str, Source]:
    """The first source of each session whose id was derived: it is the first entry of a segment
    that continues nothing. It never changes, so each is read once by a reader."""
    query = f"""
    SELECT s.id, e.key FROM sessions s
    JOIN lines l ON l.session = s.session AND l.base IS NULL
    JOIN entries e ON e.key = (l.line << {SEGMENT_BITS} | 1)
    WHERE substr(hex(s.id), 13, 1) = '8'
    """  # noqa: S608 - the number is a constant
    found = reader.sources
    for raw_id, key in list(reader.db.execute(query)):
        if raw_id.hex() in found:
            continue
        (entry,) = reader.path(key, last=1, mark=True)
        if isinstance(entry.body, Source):
            found[raw_id.hex()] = entry.body
    return dict(found)


def entry_by_id(reader: LogReader, given: str, session: str | None) -> tuple[SessionInfo, Entry]:
    """The entry with this id, its beginning or its end, and the session that wrote it."""
    db = reader.db
    matches = _matches(db, "entries", given)
    if session is not None:
        number = session_rows.session_number(db, session)
        matches = (row for row in matches if session_rows.contains_entry(db, number, row[0]))
    found = list(islice(matches, MAX_CANDIDATES))
    key = _only(db, found, given, UnknownEntry(given, session), owner=_owner)
    return session_by_number(db, _owner(db, key)), reader.path(key, last=1, mark=True)[0]


def _owner(db: apsw.Connection, key: int) -> int:
    ((owner,),) = db.execute("SELECT session FROM lines WHERE line = ?", (key >> SEGMENT_BITS,))
    return int(owner)


def _matches(db: apsw.Connection, table: IdTable, given: str) -> Iterator[tuple[int, bytes]]:
    wanted = normalize_id(given)
    if not is_prefix(wanted):
        return
    query = f"SELECT {_KEYS[table]}, id FROM {table}"  # noqa: S608 - our own names
    low, high = (bytes.fromhex(wanted.ljust(32, digit)) for digit in "0f")
    yield from db.execute(f"{query} WHERE id >= ? AND id <= ?", (low, high))
    if MIN_END <= len(wanted) < 32:
        # half a byte in front may be any
        starts = [""] if len(wanted) % 2 == 0 else list("0123456789abcdef")
        ends = [bytes.fromhex(start + wanted) for start in starts]
        condition = f"substr(id, {-len(ends[0])}) IN ({_marks(ends)})"
        other = "NOT (id >= ? AND id <= ?)"
        yield from db.execute(f"{query} WHERE {condition} AND {other}", (*ends, low, high))


def _marks(values: Sequence[bytes]) -> str:
    return ", ".join("?" * len(values))


def _only(
    db: apsw.Connection,
    found: list[tuple[int, bytes]],
    given: str,
    unknown: Exception,
    owner: Callable[[apsw.Connection, int], int] = lambda _, number: number,
) -> int:
    if not found:
        raise unknown
    if len(found) > 1:
        query = "SELECT title FROM sessions WHERE session = ?"
        titles = [next(iter(db.execute(query, (owner(db, key),))))[0] for key, _ in found]
        raise AmbiguousId(given, [raw.hex() for _, raw in found], titles)
    return found[0][0]


def short_ids(db: apsw.Connection, ids: Iterable[str], tables: Sequence[IdTable]) -> dict[str, str]:
    """The shortest end of each id, of at least 8 digits and an even number, that no other id in
    these tables ends or begins with."""
    short: dict[str, str] = {}
    left = {bytes.fromhex(each) for each in ids}
    for size in range(SHORT_BYTES, 16):
        taken: dict[bytes, set[bytes]] = {}
        ends = sorted({raw[-size:] for raw in left})
        for start in range(0, len(ends), _BATCH):
            for end, raw in _sharing(db, ends[start : start + _BATCH], size, tables):
                taken.setdefault(end, set()).add(raw)
        unique = {raw for raw in left if not taken.get(raw[-size:], set()) - {raw}}
        short |= {raw.hex(): raw[-size:].hex() for raw in unique}
        left -= unique
        if not left:
            break
    return short | {raw.hex(): raw.hex() for raw in left}


def _sharing(
    db: apsw.Connection, ends: Sequence[bytes], size: int, tables: Sequence[IdTable]
) -> Iterator[tuple[bytes, bytes]]:
    """Every id that ends or begins with one of these, together with it."""
    marks = _marks(ends)
    for table in tables:
        for part in (f"substr(id, {-size})", f"substr(id, 1, {size})"):
            query = f"SELECT {part}, id FROM {table} WHERE {part} IN ({marks})"  # noqa: S608
            yield from db.execute(query, ends)

"""Appends entries. Each function here runs inside a transaction that the `GroupCommitter` holds.

The writing connection remembers where sessions stand. What it knows holds until another connection
commits, which SQLite's data version tells, or until a transaction of its own is undone; so a usual
append is one question (did anybody else write?), one insert and one commit. The version counts our
own commits too: it is noted after each, before anything else can be seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import apsw

from recollect.entries import Body, Entry, Title, check
from recollect.errors import AlreadyExists, BadInput, HeadMoved
from recollect.store import row_encoding, session_rows
from recollect.store.ids import is_id, new_id, now
from recollect.store.log_reader import LogReader, load_packer
from recollect.store.session_rows import Head
from recollect.store.sql_schema import SEGMENT_BITS, SEGMENT_MASK

MAX_CACHED_HEADS = 10_000  # sessions one process keeps in mind
MAX_FRESH_BODIES = 8_000  # bodies that are kept for the index until it has taken them,
MAX_FRESH_BYTES = 2_048  # each of at most this size


class PreparedEntry(NamedTuple):
    """An item on its way in: checked, encoded, with the strings that live elsewhere."""

    id: str
    time: int
    body: Body
    json: bytes
    moved: dict[bytes, bytes]


class LogWriter(LogReader):
    def __init__(self, db: apsw.Connection) -> None:
        super().__init__(db)
        self.drafts: set[str] = set()  # replies in progress that this process keeps
        self.fresh: dict[int, Body] = {}  # by key: what the index need not read back
        self._heads: dict[str, tuple[int, Head]] = {}
        self._pending: set[int] = set()  # lines that are marked for the index
        self._titled: set[str] = set()
        self._version = -1
        self._undone = False

    def begin(self) -> None:
        self.db.execute("BEGIN IMMEDIATE")
        if self.db.data_version() != self._version or len(self._heads) > MAX_CACHED_HEADS:
            self.forget()
        if self._undone:  # a dictionary made in a transaction that was undone is no dictionary
            self.packer, self._undone = load_packer(self.db), False

    def commit(self) -> None:
        self.db.execute("COMMIT")
        self._version = self.db.data_version()

    def undone(self) -> None:
        """A transaction was rolled back: nothing learnt in it holds."""
        self.forget()
        self._undone = True

    def forget(self) -> None:
        self._heads.clear()
        self.fresh.clear()
        self._pending.clear()
        self._titled.clear()

    def forget_pending(self) -> None:
        """The index has caught up: the next append to any line marks it anew."""
        self._pending.clear()

    def moved(self, session: str) -> None:
        self._heads.pop(session, None)

    def head(self, session: str) -> tuple[int, Head]:
        """A session's number and where it stands."""
        known = self._heads.get(session)
        if known is None:
            number = session_rows.session_number(self.db, session)
            known = self._heads[session] = (number, session_rows.read_head(self.db, number))
        return known

    def append(
        self, session: str, new: list[PreparedEntry], parent: str | None
    ) -> tuple[Entry, ...]:
        number, head = self.head(session)
        if head.id != parent:
            raise HeadMoved(session, parent, head.id)
        entries, head = self.append_at(number, head, new)
        self._heads[session] = (number, head)
        if session not in self._titled or any(isinstance(item.body, Title) for item in new):
            self._title(session, number, new)
        for entry in entries if self.drafts else ():
            if entry.id in self.drafts:
                self.db.execute("DELETE FROM drafts WHERE id = ?", (bytes.fromhex(entry.id),))
        return entries

    def branch(self, session: str, new: list[PreparedEntry], at: str | None) -> tuple[Entry, ...]:
        """Append after another entry than the head, which stays where it is."""
        number, _ = self.head(session)
        base = None if at is None else session_rows.key_in_session(self.db, number, session, at)
        entries = self.branch_at(number, base, new)
        self.moved(session)
        return entries

    def branch_at(
        self, session: int, base: int | None, new: list[PreparedEntry]
    ) -> tuple[Entry, ...]:
        head = session_rows.read_head(self.db, session)
        session_rows.add_segment(self.db, session, base)
        entries, _ = self.append_at(session, session_rows.read_head(self.db, session), new)
        session_rows.add_segment(self.db, session, head.key)
        return entries

    def append_at(
        self, session: int, head: Head, new: list[PreparedEntry]
    ) -> tuple[tuple[Entry, ...], Head]:
        line, key = head.line, head.key
        if key is None or key >> SEGMENT_BITS != line:
            key = line << SEGMENT_BITS
        if (key & SEGMENT_MASK) + len(new) > SEGMENT_MASK:
            line = session_rows.add_segment(self.db, session, head.key, head.depth)
            key = line << SEGMENT_BITS
        pack, entries, stored = self.packer.pack, [], []
        parent, previous = head.id, head.hash
        for entry_id, time, body, json, moved in new:
            key += 1
            raw_id = bytes.fromhex(entry_id)
            previous = row_encoding.entry_hash(previous, raw_id, time, json)
            stored.append((key, raw_id, time, previous, pack(json, moved=bool(moved))))
            entries.append(Entry(entry_id, parent, time, body))
            parent = entry_id
            if len(json) <= MAX_FRESH_BYTES and len(self.fresh) < MAX_FRESH_BODIES:
                self.fresh[key] = body
            for digest, data in moved.items():
                self.put(digest, data)
        self._insert(stored)
        if line not in self._pending:
            self.db.execute("INSERT OR IGNORE INTO pending VALUES (?)", (line,))
            self._pending.add(line)
        return tuple(entries), Head(line, key, parent, previous, head.depth + len(new))

    def _insert(self, stored: list[tuple[int, bytes, int, bytes, bytes]]) -> None:
        try:
            self.db.executemany("INSERT INTO entries VALUES (?, ?, ?, ?, ?)", stored)
        except apsw.ConstraintError as error:
            ids = [row[1].hex() for row in stored]
            taken = [i for i in ids if ids.count(i) > 1 or session_rows.find_key(self.db, i)]
            raise AlreadyExists("an entry", ", ".join(taken[:3])) from error

    def put(self, digest: bytes, data: bytes) -> None:
        if not list(self.db.execute("SELECT 1 FROM blobs WHERE address = ?", (digest,))):
            self.db.execute(
                "INSERT INTO blobs(address, size, data) VALUES (?, ?, ?)",
                (digest, len(data), row_encoding.pack_blob(data)),
            )

    def _title(self, session: str, number: int, new: list[PreparedEntry]) -> None:
        titled = session in self._titled or session_rows.is_titled(self.db, number)
        given = session_rows.title_from([item.body for item in new], titled=titled)
        if given:
            session_rows.set_title(self.db, number, given)
        if given or titled:
            self._titled.add(session)


def prepare_entries(items: Sequence[Body | Entry]) -> list[PreparedEntry]:
    """Check and encode what was handed in; nothing has been written when this raises."""
    time = now()
    return [
        _prepare_entry(item, position)
        if isinstance(item, Entry)
        else PreparedEntry(new_id(), time, item, *row_encoding.extract_blobs(check(item, position)))
        for position, item in enumerate(items)
    ]


def _prepare_entry(entry: Entry, position: int) -> PreparedEntry:
    if not is_id(entry.id):
        raise BadInput(f"item {position}: id {entry.id!r} is not 32 hexadecimal digits")
    if type(entry.time) is not int or not -(2**53) <= entry.time < 2**53:
        raise BadInput(f"item {position}: time {entry.time!r} is not in whole milliseconds")
    json, moved = row_encoding.extract_blobs(check(entry.body, position))
    return PreparedEntry(entry.id, entry.time, entry.body, json, moved)

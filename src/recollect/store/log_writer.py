"""Appends entries. Each function here runs inside a transaction.

The writing connection caches the heads of sessions. The cache is valid until another connection
commits, which SQLite's data version shows, or until a transaction of its own is rolled back; so an
ordinary append is one check (has anyone else written?), one insert and one commit. The data version
counts our own commits too: it is read after each one, before anyone else can commit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import apsw

from recollect.entries import Body, Entry, Title, check
from recollect.errors import AlreadyExists, BadInput, HeadMoved
from recollect.store import row_encoding, session_rows
from recollect.store.ids import is_id, new_id, now
from recollect.store.journal_mark import JournalMark
from recollect.store.log_reader import LogReader, load_packer
from recollect.store.session_rows import Head
from recollect.store.sql_schema import SEGMENT_BITS, SEGMENT_MASK

MAX_CACHED_HEADS = 10_000  # sessions
MAX_FRESH_BODIES = 8_000  # bodies kept in memory until they are indexed,
MAX_FRESH_BYTES = 2_048  # each of at most this size


class PreparedEntry(NamedTuple):
    """An item to append: checked and encoded, with the strings that go to blobs."""

    id: str
    time: int
    body: Body
    json: bytes
    moved: dict[bytes, bytes]


class LogWriter(LogReader):
    def __init__(self, db: apsw.Connection) -> None:
        super().__init__(db)
        self.drafts: set[str] = set()  # replies in progress that this process stores
        self.fresh: dict[int, Body] = {}  # by key: bodies the index need not read back
        self._heads: dict[str, tuple[int, Head]] = {}
        self._pending: set[int] = set()  # segments that are marked for the index
        self._titled: set[str] = set()
        self._version = -1
        self._rolled_back = False
        self.mark = JournalMark(db)

    def begin(self) -> None:
        self.db.execute("BEGIN IMMEDIATE")
        if self.db.data_version() != self._version or len(self._heads) > MAX_CACHED_HEADS:
            self.clear_caches()
            self.mark.forget()
        if self._rolled_back:  # a dictionary stored by that transaction does not exist
            self.packer, self._rolled_back = load_packer(self.db), False
        self.mark.advance()

    def commit(self) -> None:
        self.db.execute("COMMIT")
        self._version = self.db.data_version()

    def roll_back(self) -> None:
        """Undo the open transaction, if there is one, and all that was cached in it."""
        if self.db.in_transaction:
            self.db.execute("ROLLBACK")
        self.clear_caches()
        self.mark.forget()
        self._rolled_back = True

    @contextmanager
    def transaction(self) -> Iterator[None]:
        try:
            self.begin()
            yield
            self.commit()
        except BaseException:
            self.roll_back()
            raise

    def clear_caches(self) -> None:
        self._heads.clear()
        self.fresh.clear()
        self._pending.clear()
        self._titled.clear()

    def forget_pending(self) -> None:
        """The index has caught up: the next append to any segment marks it again."""
        self._pending.clear()

    def forget_head(self, session: str) -> None:
        self._heads.pop(session, None)

    def forget_title(self, session: str) -> None:
        self._titled.discard(session)

    def head(self, session: str) -> tuple[int, Head]:
        """A session's row number and its head."""
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
            self._update_title(session, number, new)
        for entry in entries if self.drafts else ():
            if entry.id in self.drafts:
                self.db.execute("DELETE FROM drafts WHERE id = ?", (bytes.fromhex(entry.id),))
        return entries

    def branch(self, session: str, new: list[PreparedEntry], at: str | None) -> tuple[Entry, ...]:
        """Append after an entry other than the head, which stays where it is."""
        number, _ = self.head(session)
        base = None if at is None else session_rows.key_in_session(self.db, number, session, at)
        entries = self.branch_at(number, base, new)
        self.forget_head(session)
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
        segment, key = head.segment, head.key
        if key is None or key >> SEGMENT_BITS != segment:
            key = segment << SEGMENT_BITS
        if (key & SEGMENT_MASK) + len(new) > SEGMENT_MASK:
            segment = session_rows.add_segment(self.db, session, head.key, head.depth)
            key = segment << SEGMENT_BITS
        pack, entries, stored = self.packer.pack, [], []
        fresh: dict[int, Body] = {}
        parent, previous = head.id, head.hash
        for entry_id, time, body, json, moved in new:
            key += 1
            raw_id = bytes.fromhex(entry_id)
            previous = row_encoding.entry_hash(previous, raw_id, time, json)
            stored.append((key, raw_id, time, previous, pack(json, moved=bool(moved))))
            entries.append(Entry(entry_id, parent, time, body))
            parent = entry_id
            # a body with long strings, which are in blobs, is larger than its JSON
            is_small = len(json) <= MAX_FRESH_BYTES and not moved
            if is_small and len(self.fresh) + len(fresh) < MAX_FRESH_BODIES:
                fresh[key] = body
            for digest, data in moved.items():
                self.put(digest, data)
        self._insert(stored)
        # only now: if the entries are refused, others get their keys
        self.fresh.update(fresh)
        if segment not in self._pending:
            self.db.execute("INSERT OR IGNORE INTO pending VALUES (?)", (segment,))
            self._pending.add(segment)
        return tuple(entries), Head(segment, key, parent, previous, head.depth + len(new))

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

    def _update_title(self, session: str, number: int, new: list[PreparedEntry]) -> None:
        current = session_rows.title_of(self.db, number)
        title = session_rows.title_from((item.body for item in new), current)
        if title:
            session_rows.set_column(self.db, number, "title", title)
        if session_rows.is_final_title(title or current):
            self._titled.add(session)


def prepare_entries(items: Sequence[Body | Entry]) -> list[PreparedEntry]:
    """Check and encode the items; raises before anything is written."""
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

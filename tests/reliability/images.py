"""Stores to damage, their true content, and which bytes of the file belong to which entry."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path
from typing import NamedTuple

import apsw

from recollect.entries import Body, Entry, InlineData, Message, Note, Text
from recollect.errors import RecollectError
from recollect.store.contract import SearchQuery, SessionInfo
from recollect.store.log_reader import QUARANTINED, UNREADABLE
from recollect.store.open_store import open_store
from recollect.store.row_encoding import BLOB_FROM, content_address
from recollect.store.sqlite import SqliteStore
from recollect.testing import call, model, result, user
from tests.reliability.children import Child, copy_store, in_store

WORDS = ("the", "log", "of", "entries", "is", "kept", "in", "one", "file", "and", "read", "back")
PAGE = 4_096
LEAF = 0x0D  # the first byte of a page with rows of a table
QUERIES = (  # between them they read most of the index
    SearchQuery("unique*", limit=10_000),
    SearchQuery("word*", limit=10_000),
    SearchQuery("the", limit=10_000, role="user"),
    SearchQuery("look", tool="read_file"),
    SearchQuery("unique299"),
    SearchQuery("noted"),
)


class Sight(NamedTuple):
    """What a reader sees of a store. Keys name the question; an error is no answer."""

    answers: dict[str, object]
    entries: dict[str, Entry]
    errors: tuple[str, ...]


def some_text(noise: random.Random, number: int) -> str:
    words = " ".join(noise.choice(WORDS) for _ in range(noise.randint(5, 60)))
    long = "".join(noise.choice("abcdefgh ") for _ in range(6_000)) if number % 60 == 59 else ""
    return f"unique{number} {words} {long}"


async def _fill(store: SqliteStore) -> None:
    noise = random.Random(7)
    items: list[Body] = [(user if n % 2 else model)(some_text(noise, n)) for n in range(450)]
    first = await store.create(title="the long one")
    entries = await store.append(first.id, items, parent=None)
    await store.rewind(first.id, entries[300].id)
    asked = call("read_file", path="a.py")
    more = [model("let me look", asked), result(asked, some_text(noise, 1_000)), model("done")]
    await store.append(first.id, more, parent=entries[300].id)
    forked = await store.fork(first.id, at=entries[100].id, title="a fork")
    picture = InlineData(mime="image/png", data=noise.randbytes(9_000))
    await store.append(
        forked.id, [user("look", picture), Note(text="noted")], parent=entries[100].id
    )
    for n in range(6):
        small = await store.create(title=f"small {n}")
        texts: list[Body] = [user(some_text(noise, 2_000 + 10 * n + i)) for i in range(5)]
        await store.append(small.id, texts, parent=None)
    trashed = await store.create(title="thrown away")
    await store.append(trashed.id, [user("unique3000 gone")], parent=None)
    await store.trash(trashed.id)


def closed_image(path: Path) -> Path:
    """A store that was closed in order: everything is in the one file, and indexed."""
    in_store(path, _fill)
    return path


def killed_image(path: Path) -> Path:
    """What a killed writer left: an older state in the file, the rest only in the journal."""
    work = path.with_name("work.db")
    in_store(work, _fill)

    async def new(store: SqliteStore) -> str:
        return (await store.create(title="in the journal")).id

    session = in_store(work, new)
    child = Child("batch", work, session)
    child.wait_for("ok", 5)
    child.kill()
    return copy_store(work, path)


def unindexed_image(path: Path) -> Path:
    """A killed writer's journal went into the file before the index had seen its entries."""
    killed_image(path)
    db = apsw.Connection(str(path))
    db.pragma("user_version")  # only a connection that has read knows of the journal
    db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    db.close()
    return path


IMAGES = {"closed": closed_image, "killed": killed_image, "unindexed": unindexed_image}


class _Looking:
    """Asks one question after the other; an error is noted, the next question still asked."""

    def __init__(self, store: SqliteStore) -> None:
        self.store = store
        self.answers: dict[str, object] = {}
        self.entries: dict[str, Entry] = {}
        self.errors: list[str] = []

    async def everything(self) -> None:
        store = self.store
        sessions: list[SessionInfo] = []
        for trashed in (False, True):
            try:
                sessions += await store.sessions(trashed=trashed)
            except RecollectError as error:
                self.errors.append(str(error))
        self.answers["sessions"] = sorted(sessions, key=lambda s: s.id)
        for session in sessions:
            await self._session(session.id)
        for query in QUERIES:
            try:
                hits = await store.search(query)
                self.answers[f"search {query}"] = sorted(hit.entry.id for hit in hits)
                self._take([hit.entry for hit in hits])
            except RecollectError as error:
                self.errors.append(str(error))

    async def _session(self, session: str) -> None:
        for name, reading in (("path", self.store.path), ("tree", self.store.tree)):
            try:
                found = await reading(session)
            except RecollectError as error:
                self.errors.append(str(error))
                try:
                    self._take(await reading(session, damaged="mark"))
                except RecollectError:
                    continue
            else:
                self.answers[f"{name} {session}"] = found
                self._take(found)

    def _take(self, found: tuple[Entry, ...] | list[Entry]) -> None:
        self.entries |= {entry.id: entry for entry in found if not is_marked(entry)}


def is_marked(entry: Entry) -> bool:
    return isinstance(entry.body, Note) and entry.body.text in (QUARANTINED, UNREADABLE)


async def _look(path: Path) -> Sight:
    try:
        async with open_store(path) as store:
            looking = _Looking(store)
            await looking.everything()
            errors = (*looking.errors, *store.warnings)
            return Sight(looking.answers, looking.entries, errors)
    except RecollectError as error:
        return Sight({}, {}, (str(error),))


def look(path: Path) -> Sight:
    return asyncio.run(_look(path))


# --- whose bytes are these ---------------------------------------------------------------------


class Owner(NamedTuple):
    table: str
    row: int


class Extent(NamedTuple):
    start: int
    end: int
    owner: Owner


def extents(path: Path, *tables: str) -> list[Extent]:
    """The bytes of every row of the tables, overflow pages included, read from the file itself."""
    data = path.read_bytes()
    db = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    query = "SELECT name, rootpage FROM sqlite_schema WHERE type = 'table'"
    roots = {str(name): int(root) for name, root in db.execute(query)}
    db.close()
    return [found for table in tables for found in _tree(data, roots[table], table)]


def _tree(data: bytes, page: int, table: str) -> list[Extent]:
    start = (page - 1) * PAGE
    at = start + (100 if page == 1 else 0)
    kind, count = data[at], int.from_bytes(data[at + 3 : at + 5], "big")
    cells = at + (12 if kind == 5 else 8)
    pointers = [
        int.from_bytes(data[cells + 2 * i : cells + 2 * i + 2], "big") for i in range(count)
    ]
    if kind == 5:
        children = [int.from_bytes(data[start + p : start + p + 4], "big") for p in pointers]
        children.append(int.from_bytes(data[at + 8 : at + 12], "big"))
        return [found for child in children for found in _tree(data, child, table)]
    rows = [_cell(data, start + p, table) for p in pointers]
    for index, row in enumerate(rows):  # the two bytes that say where a row is are its own as well
        row.append(Extent(cells + 2 * index, cells + 2 * index + 2, row[0].owner))
    return [found for row in rows for found in row]


def _cell(data: bytes, at: int, table: str) -> list[Extent]:
    size, here = _varint(data, at)
    row, here = _varint(data, here)
    owner = Owner(table, row)
    most, least = PAGE - 35, (PAGE - 12) * 32 // 255 - 23
    if size <= most:
        return [Extent(at, here + size, owner)]
    local = least + (size - least) % (PAGE - 4)
    local = local if local <= most else least
    found = [Extent(at, here + local + 4, owner)]
    following = int.from_bytes(data[here + local : here + local + 4], "big")
    left = size - local
    while following:
        start = (following - 1) * PAGE
        found.append(Extent(start, start + 4 + min(left, PAGE - 4), owner))
        left -= PAGE - 4
        following = int.from_bytes(data[start : start + 4], "big")
    return found


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for position in range(8):
        byte = data[at + position]
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, at + position + 1
    return value << 8 | data[at + 8], at + 9


class Ownership:
    """Which entries a byte of the file belongs to, and which share its page."""

    def __init__(self, path: Path, entries: dict[str, Entry]) -> None:
        db = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
        ids = {int(key): raw.hex() for key, raw in db.execute("SELECT key, id FROM entries")}
        users: dict[str, set[str]] = {}
        for entry in entries.values():
            for digest in _moved(entry.body):
                users.setdefault(digest, set()).add(entry.id)
        blobs = {
            int(number): users.get(raw.hex(), set())
            for number, raw in db.execute("SELECT number, address FROM blobs")
        }
        db.close()
        self._of: list[tuple[int, int, set[str]]] = []
        for start, end, owner in extents(path, "entries", "blobs"):
            concerned = {ids[owner.row]} if owner.table == "entries" else blobs[owner.row]
            self._of.append((start, end, concerned))

    def at(self, start: int, end: int) -> set[str]:
        """The entries any of whose bytes lie in this range."""
        return {e for a, b, concerned in self._of if a < end and start < b for e in concerned}

    def on_page(self, offset: int) -> set[str]:
        start = offset // PAGE * PAGE
        return self.at(start, start + PAGE)


def _moved(body: Body) -> list[str]:
    if not isinstance(body, Message):
        return []
    import base64

    texts = [part.text for part in body.parts if isinstance(part, Text)]
    texts += [base64.b64encode(p.data).decode() for p in body.parts if isinstance(p, InlineData)]
    long = [text for text in texts if len(text) >= BLOB_FROM]
    return [content_address(text.encode("utf-8", "surrogatepass")).hex() for text in long]

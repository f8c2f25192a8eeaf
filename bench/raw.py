"""Raw SQLite: what the same messages cost with the same settings and nothing around them.

One plain table, `json.dumps` of each message, apsw, and the store's own connection settings by
construction (WAL, synchronous=FULL, foreign keys, checkpoints and cache alike). No hashes, no ids,
no index, no check of what is inserted. `bare` is the same with text that was serialised before.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw

from bench import clock, conversation
from recollect.store.open_file import open_database

_TABLE = (
    "CREATE TABLE IF NOT EXISTS messages(id INTEGER PRIMARY KEY, session TEXT, body TEXT);"
    "CREATE TABLE IF NOT EXISTS sessions(id TEXT PRIMARY KEY, title TEXT, used INTEGER)"
)
_INSERT = "INSERT INTO messages(session, body) VALUES (?, ?)"
_SESSION = "raw"
_PRAGMAS = (
    "journal_mode",
    "synchronous",
    "foreign_keys",
    "wal_autocheckpoint",
    "journal_size_limit",
    "cache_size",
    "mmap_size",
    "temp_store",
)


async def settings(place: Path) -> dict[str, Any]:
    """The store's own settings, read from a connection that it made."""
    with tempfile.TemporaryDirectory(dir=place) as folder:
        db = open_database(Path(folder) / "store.db")
        found = {name: db.pragma(name) for name in _PRAGMAS}
        db.close()
    return found


async def connect(place: Path, known: dict[str, Any] | None = None) -> apsw.Connection:
    known = known or await settings(place)
    db = apsw.Connection(str(place / "raw.db"))
    db.set_busy_timeout(60_000)
    for name, value in known.items():
        db.pragma(name, value)
    db.execute(_TABLE)
    return db


async def append(
    place: Path, n: int, start: int = 0, write: Callable[[Any], str] = json.dumps
) -> dict[str, Any]:
    payloads = conversation.payloads(n, start)
    values = payloads if write is str else [json.loads(body) for body in payloads]
    db = await connect(place)
    clock.settle()
    before = clock.now()
    for value in values:
        db.execute(_INSERT, (_SESSION, write(value)))
    acknowledged = clock.now()
    db.close()
    return clock.spans(before, acknowledged, clock.now(), place)


async def batch(
    place: Path, batches: int, size: int, write: Callable[[Any], str] = json.dumps
) -> dict[str, Any]:
    payloads = conversation.payloads(batches * size)
    values = payloads if write is str else [json.loads(body) for body in payloads]
    db = await connect(place)
    clock.settle()
    before = clock.now()
    for first in range(0, len(values), size):
        db.execute("BEGIN")
        db.executemany(_INSERT, ((_SESSION, write(v)) for v in values[first : first + size]))
        db.execute("COMMIT")
    acknowledged = clock.now()
    db.close()
    return clock.spans(before, acknowledged, clock.now(), place)


async def fill(place: Path, n: int, warm_up: bool = False) -> dict[str, Any]:
    """`warm_up` adds the other session that our stores have, so that a search finds the same."""
    db = await connect(place)
    other = conversation.payloads(*conversation.WARM_UP) if warm_up else []
    with db:
        db.executemany(_INSERT, (("other", body) for body in other))
        db.executemany(_INSERT, ((_SESSION, body) for body in conversation.payloads(n)))
    db.close()
    return {}


async def load(place: Path, last: int | None = None, repeats: int = 5, **_: Any) -> dict[str, Any]:
    db = await connect(place)
    newest = "SELECT body FROM messages WHERE session = ? ORDER BY id DESC LIMIT ?"
    whole = "SELECT body FROM messages WHERE session = ? ORDER BY id"

    async def work() -> int:
        if last is None:
            found = [json.loads(body) for (body,) in db.execute(whole, (_SESSION,))]
        else:
            rows = list(db.execute(newest, (_SESSION, last)))
            found = [json.loads(body) for (body,) in reversed(rows)]
        return len(found)

    return await clock.repeat(work, repeats)


async def fill_sessions(place: Path, n: int) -> dict[str, Any]:
    db = await connect(place)
    rows = [(f"{i:032x}", f"session {i}", i) for i in range(n)]
    with db:
        db.executemany("INSERT INTO sessions VALUES (?, ?, ?)", rows)
    db.close()
    return {}


async def opening(place: Path, repeats: int = 9) -> dict[str, Any]:
    known = await settings(place)

    async def work() -> int:
        db = await connect(place, known)
        found = len(list(db.execute("SELECT 1 FROM sessions LIMIT 1")))
        db.close()
        return found

    return await clock.repeat(work, repeats)


async def listing(place: Path, repeats: int = 9) -> dict[str, Any]:
    db = await connect(place)

    async def work() -> int:
        return len(list(db.execute("SELECT id, title, used FROM sessions ORDER BY used DESC")))

    return await clock.repeat(work, repeats)


async def index(place: Path) -> dict[str, Any]:
    """SQLite's own full-text index over the rows, with its default tokenizer and positions."""
    db = await connect(place)
    before = clock.now()
    db.execute(
        "CREATE VIRTUAL TABLE found USING fts5(body, content='messages', content_rowid='id')"
    )
    db.execute("INSERT INTO found(found) VALUES ('rebuild')")
    done = clock.now()
    db.close()
    return {"wall": done.wall - before.wall, "cpu": done.cpu - before.cpu}


async def search(place: Path, words: str, how: str, repeats: int = 9) -> dict[str, Any]:
    db = await connect(place)
    match = (
        "SELECT rowid, snippet(found, 0, '[', ']', '…', 20) FROM found"
        " WHERE found MATCH ? ORDER BY rowid DESC LIMIT 20"
    )
    scan = "SELECT id, body FROM messages WHERE body LIKE ? ORDER BY id DESC LIMIT 20"
    query, given = (match, f'"{words}"') if how == "match" else (scan, f"%{words}%")

    async def work() -> int:
        return len(list(db.execute(query, (given,))))

    return await clock.repeat(work, repeats)


async def write_with_others(place: Path, number: int, n: int, start_at: float) -> dict[str, Any]:
    payloads = conversation.payloads(n, number * n)
    db = await connect(place)
    session = f"{number:032x}"
    clock.settle()
    time.sleep(max(0.0, start_at - time.time()))
    began = time.time()
    for body in payloads:
        db.execute("BEGIN IMMEDIATE")
        db.execute(_INSERT, (session, body))
        db.execute("COMMIT")
    ended = time.time()
    db.close()
    return {"began": began, "ended": ended}


async def count(place: Path) -> dict[str, Any]:
    db = await connect(place)
    ((found,),) = db.execute("SELECT count(*) FROM messages")
    db.close()
    return {"count": found}

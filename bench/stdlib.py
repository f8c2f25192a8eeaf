"""The same through Python's own `sqlite3`, which is what most peers stand on.

It opens a transaction and commits it by two more calls, and carries another SQLite than apsw does,
so it stands in the table as a second measure.
"""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

from bench import clock, conversation

_INSERT = "INSERT INTO messages(session, body) VALUES ('raw', ?)"


def connect(place: Path) -> sqlite3.Connection:
    db = sqlite3.connect(place / "stdlib.db")
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON"):
        db.execute(f"PRAGMA {pragma}")
    db.execute(
        "CREATE TABLE IF NOT EXISTS messages(id INTEGER PRIMARY KEY, session TEXT, body TEXT)"
    )
    return db


async def append(place: Path, n: int) -> dict[str, Any]:
    values = [json.loads(body) for body in conversation.payloads(n)]
    db = connect(place)
    clock.settle()
    before = clock.now()
    for value in values:
        db.execute(_INSERT, (json.dumps(value),))
        db.commit()
    acknowledged = clock.now()
    db.close()
    return clock.spans(before, acknowledged, clock.now(), place)


async def batch(place: Path, batches: int, size: int) -> dict[str, Any]:
    values = [json.loads(body) for body in conversation.payloads(batches * size)]
    db = connect(place)
    clock.settle()
    before = clock.now()
    for first in range(0, len(values), size):
        db.executemany(_INSERT, ((json.dumps(v),) for v in values[first : first + size]))
        db.commit()
    acknowledged = clock.now()
    db.close()
    return clock.spans(before, acknowledged, clock.now(), place)


async def load(place: Path, n: int, repeats: int = 5, **_: Any) -> dict[str, Any]:
    db = connect(place)
    db.executemany(_INSERT, ((body,) for body in conversation.payloads(n)))
    db.commit()

    async def work() -> int:
        return len([json.loads(body) for (body,) in db.execute("SELECT body FROM messages")])

    found = await clock.repeat(work, repeats)
    db.close()
    return found

"""The steps of `recollect demo`: real calls, and lines made from what they returned.

Each part is a generator. What stands between two yields is shown to the reader as it is written
here, so what is shown is what was run.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import NamedTuple

from recollect.cli.text import one_line
from recollect.cli.transcript import role_of, summary
from recollect.entries import Entry
from recollect.errors import HeadMoved
from recollect.store.contract import Hit, Query, Session
from recollect.store.doctor import examine
from recollect.store.sqlite import SqliteStore
from recollect.testing import model, user
from recollect.transcripts.importing import export_session, import_file


class Step(NamedTuple):
    says: str
    lines: list[str]


async def writing(store: SqliteStore) -> AsyncIterator[Step]:
    session = await store.create()
    asked, answered = await store.append(
        session.id,
        [user("Why does the limiter drop requests?"), model("refillTokens runs once a minute.")],
        parent=None,
    )
    yield Step("Append two messages. When this returns they are on disk.", shown(asked, answered))

    path = await store.path(session.id)
    yield Step("Read the session back, every hash checked.", shown(*path))

    fork = await store.fork(session.id, at=asked.id, title="Second opinion")
    await store.append(fork.id, [model("补充令牌太慢：每分钟一次。")], parent=asked.id)
    yield Step(
        "Fork after the question, and let the fork answer in its own way. Nothing is copied.",
        listed(await store.sessions()),
    )

    try:
        await store.append(session.id, [user("Fix it.")], parent=asked.id)
    except HeadMoved as moved:
        told = str(moved)
    yield Step("A writer that has not seen the answer is told so. Nothing interleaves.", [told])

    await store.rewind(session.id, asked.id)
    await store.append(session.id, [model("The clock jumps. See MonotonicClock.")], parent=asked.id)
    kept = await store.tree(session.id)
    yield Step("Rewind and answer again. The first answer is off the path, but kept.", shown(*kept))


async def finding(store: SqliteStore) -> AsyncIterator[Step]:
    words = ["dropping requests", "drop requests", "令牌", "refill", "clock -monotonic"]
    found = [(word, await store.search(Query(words=word))) for word in words]
    yield Step("Search: words, Chinese, parts of identifiers.", hits(found))


async def carrying(store: SqliteStore, folder: Path) -> AsyncIterator[Step]:
    newest, *_ = await store.sessions()
    name, data = await export_session(store, newest.id, "gemini")
    file = folder / name
    file.write_bytes(data)
    yield Step("Export a session as another program's file.", [f"{name}: {len(data):,} bytes"])

    once = await import_file(store, file)
    twice = await import_file(store, file)
    yield Step(
        "Import it back, twice: the second time adds nothing.",
        [f"{i.added} added, {i.already} known" for i in (once, twice)],
    )

    report = examine(store.file)
    facts = [f"{name}: {value}" for name, value in report.facts.items()]
    yield Step(f"Ask the doctor: {len(report.findings)} findings.", facts)


def shown(*entries: Entry) -> list[str]:
    return [f"{entry.id}  {role_of(entry.body):5}  {summary(entry.body)}" for entry in entries]


def listed(sessions: tuple[Session, ...]) -> list[str]:
    return [f"{s.id}  {s.entries} entries  {one_line(s.title)}" for s in sessions]


def hits(found: list[tuple[str, tuple[Hit, ...]]]) -> list[str]:
    lines = []
    for word, several in found:
        lines += [f"{word:20} {one_line(hit.snippet)}" for hit in several]
        if not several:
            lines.append(f"{word:20} (nothing)")
    return lines

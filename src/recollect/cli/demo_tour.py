"""The steps of `recollect demo --tour`: real calls, and lines made from their results.

Each part is a generator. The statements between two yields are printed as they are written here, so
the tour shows exactly the code that ran.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import NamedTuple

from recollect.cli.display_text import display_width, one_line, pad
from recollect.cli.entry_display import role_of, summarize
from recollect.entries import Entry
from recollect.errors import HeadMoved
from recollect.store.contract import SearchHit, SearchQuery, SessionInfo
from recollect.store.recovery.store_doctor import DoctorReport, examine_store
from recollect.store.sqlite import SqliteStore
from recollect.testing import model, user
from recollect.text import format_size
from recollect.transcripts.session_export import export_session
from recollect.transcripts.session_import import import_file


class TourStep(NamedTuple):
    title: str
    lines: list[str]


async def tour_writing(store: SqliteStore) -> AsyncIterator[TourStep]:
    session = await store.create()
    question = user("Why does the limiter drop requests?")
    answer = model("refillTokens runs once a minute.")
    first, second = await store.append(session.id, [question, answer], parent=None)
    yield TourStep(
        "Append two messages. When append returns, they are on disk.",
        entry_summaries(first, second),
    )

    path = await store.path(session.id)
    yield TourStep("Read the session back; every hash is checked.", entry_summaries(*path))

    fork = await store.fork(session.id, at=first.id, title="Second opinion")
    other = model("补充令牌太慢：每分钟一次。")
    await store.append(fork.id, [other], parent=first.id)
    sessions = await store.sessions()
    yield TourStep(
        "Fork after the question and give another answer. Nothing is copied.",
        session_summaries(sessions),
    )

    try:
        await store.append(session.id, [user("Fix it.")], parent=first.id)
    except HeadMoved as error:
        moved = str(error)
    yield TourStep("A writer that has not seen the answer is refused.", [moved])

    await store.rewind(session.id, first.id)
    better = model("The clock jumps. See MonotonicClock.")
    await store.append(session.id, [better], parent=first.id)
    kept = await store.tree(session.id)
    yield TourStep(
        "Rewind and answer again. The first answer is kept on its branch.", entry_summaries(*kept)
    )


async def tour_search(store: SqliteStore) -> AsyncIterator[TourStep]:
    words = ["drop requests", "令牌", "refill", "monotonicClock", "clock -jumps"]
    found = [(word, await store.search(SearchQuery(words=word))) for word in words]
    yield TourStep(
        "Search for words, Chinese, identifiers and parts of them.", hit_summaries(found)
    )


async def tour_transfer(store: SqliteStore, folder: Path) -> AsyncIterator[TourStep]:
    newest, *_ = await store.sessions()
    name, data = await export_session(store, newest.id, "gemini")
    file = folder / name
    file.write_bytes(data)
    yield TourStep("Export a session as another program's file.", [f"{name}: {len(data):,} bytes"])

    once = await import_file(store, file)
    twice = await import_file(store, file)
    yield TourStep(
        "Import it back twice: the second import adds nothing.",
        [f"{each.added} entries added to {each.session}" for each in (once, twice)],
    )

    report = await asyncio.to_thread(examine_store, store.file)
    yield TourStep("Check the store with the doctor.", health_summary(report))


def entry_summaries(*entries: Entry) -> list[str]:
    return [f"{entry.id}  {role_of(entry.body):5}  {summarize(entry.body)}" for entry in entries]


def session_summaries(sessions: tuple[SessionInfo, ...]) -> list[str]:
    return [f"{s.id}  {s.entries} entries  {one_line(s.title)}" for s in sessions]


def hit_summaries(found: list[tuple[str, tuple[SearchHit, ...]]]) -> list[str]:
    width = max(display_width(word) for word, _ in found)
    return [
        f"{pad(word, width)}  {one_line(hits[0].snippet) if hits else '(nothing)'}"
        for word, hits in found
    ]


def health_summary(report: DoctorReport) -> list[str]:
    wrong = [f"{finding.what} ({finding.place})" for finding in report.findings]
    facts = report.facts
    counts = f"{facts['sessions']} sessions, {facts['entries']} entries"
    return [*(wrong or ["healthy"]), f"{counts}, {format_size(facts['bytes_on_disk'])} on disk"]

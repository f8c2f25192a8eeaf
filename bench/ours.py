"""Recollect, through the names a user has, except where it says otherwise."""

from __future__ import annotations

import asyncio
import json
import resource
import statistics
import time
from pathlib import Path
from typing import Any

import apsw

from bench import clock, conversation
from recollect import Message, Text
from recollect.codecs.provider_rules import GEMINI_RULES
from recollect.codecs.repair import repair
from recollect.engine import SearchQuery, Store, open_store
from recollect.entries import Compaction
from recollect.view_loader import load_view

SESSION = f"{1:032x}"
_WARM_UP = f"{2:032x}"
_FILE = "store.db"


async def append(place: Path, n: int, start: int = 0) -> dict[str, Any]:
    messages = conversation.messages(n, start)
    async with open_store(place / _FILE) as store:
        parent = await _head(store, start)
        clock.settle()
        before = clock.now()
        for message in messages:
            (entry,) = await store.append(SESSION, [message], parent=parent)
            parent = entry.id
        acknowledged = clock.now()
    return clock.spans(before, acknowledged, clock.now(), place)


async def _head(store: Store, start: int) -> str | None:
    if not start:
        await store.create(id=SESSION)
    return (await store.session(SESSION)).head


async def batch(place: Path, batches: int, size: int) -> dict[str, Any]:
    messages = conversation.messages(batches * size)
    async with open_store(place / _FILE) as store:
        parent = await _head(store, 0)
        clock.settle()
        before = clock.now()
        for first in range(0, len(messages), size):
            entries = await store.append(SESSION, messages[first : first + size], parent=parent)
            parent = entries[-1].id
        acknowledged = clock.now()
    return clock.spans(before, acknowledged, clock.now(), place)


async def fill(place: Path, n: int, size: int = 1_000) -> dict[str, Any]:
    """A store as it is in use: it has seen another session and has made its dictionary."""
    async with open_store(place / _FILE) as store:
        trained = await _warm_up(store, place)
        await store.create(id=SESSION)
        parent = None
        before = clock.now()
        for first in range(0, n, size):
            more = conversation.messages(min(size, n - first), first)
            parent = (await store.append(SESSION, more, parent=parent))[-1].id
        await store.index_now()
        done = clock.now()
    return {"trained": trained, "wall": done.wall - before.wall, "cpu": done.cpu - before.cpu}


async def _warm_up(store: Store, place: Path) -> bool:
    await store.create(id=_WARM_UP)
    await store.append(_WARM_UP, conversation.messages(*conversation.WARM_UP), parent=None)
    return await _dictionary(place)


async def _dictionary(place: Path) -> bool:
    """Whether the store made its dictionary within some seconds (looks into the file)."""
    for _ in range(50):
        await asyncio.sleep(0.2)
        db = apsw.Connection(str(place / _FILE), flags=apsw.SQLITE_OPEN_READONLY)
        try:
            if list(db.execute("SELECT 1 FROM dictionaries LIMIT 1")):
                return True
        finally:
            db.close()
    return False


async def fill_compacted(place: Path, n: int, every: int, kept: int) -> dict[str, Any]:
    """A session of n entries, or up to three more. The newest `kept` come after a compaction that
    keeps as many before it; older ones lie `every` apart: all sessions show equally much."""
    older, first = divmod(n - kept - 1, every + 1)
    made, parent = 0, None
    async with open_store(place / _FILE) as store:
        trained = await _warm_up(store, place)
        await store.create(id=SESSION)
        for length in (first + -first % 4, *[every] * older):  # whole turns
            more = conversation.messages(length, made)
            entries = await store.append(SESSION, more, parent=parent)
            body = _compaction(more, entries[-min(kept, length)].id)
            (entry,) = await store.append(SESSION, [body], parent=entries[-1].id)
            made, parent = made + length, entry.id
        await store.append(SESSION, conversation.messages(kept, made), parent=parent)
        await store.index_now()
        entries_written = (await store.session(SESSION)).entries
    return {"trained": trained, "entries": entries_written}


def _compaction(messages: list[Message], first_kept: str) -> Compaction:
    """With a snapshot as long as those that people's agents write."""
    texts = [part.text for m in messages for part in m.parts if isinstance(part, Text)]
    snapshot = "\n".join(texts)[:14_600]
    return Compaction(status="COMPRESSED", snapshot=snapshot, first_kept=first_kept)


async def resuming(place: Path, repeats: int) -> dict[str, Any]:
    """From a closed database to what a provider may be sent; closing is not counted."""
    walls, shown = [], {}
    for _ in range(repeats):
        began = time.perf_counter()
        async with open_store(place / _FILE) as store:
            view = await load_view(store, SESSION)
            items, tokens = view.items, view.tokens
            sendable = repair(view.messages, GEMINI_RULES).messages
            walls.append(time.perf_counter() - began)
        shown = {"items": len(items), "tokens": tokens, "messages": len(sendable)}
        shown["read"] = len(view.entries)
    return {"first": walls[0], "best": min(walls), "walls": walls, **shown}


async def load(place: Path, last: int | None = None, repeats: int = 5, **_: Any) -> dict[str, Any]:
    async with open_store(place / _FILE) as store:

        async def work() -> int:
            return len(await store.path(SESSION, last=last))

        return await clock.repeat(work, repeats)


async def fill_sessions(place: Path, n: int) -> dict[str, Any]:
    messages = conversation.messages(4)
    async with open_store(place / _FILE) as store:
        for i in range(n):
            session = await store.create(title=f"session {i}")
            await store.append(session.id, messages, parent=None)
    return {}


async def opening(place: Path, repeats: int = 9) -> dict[str, Any]:
    async def work() -> int:
        async with open_store(place / _FILE):
            return 1

    return await clock.repeat(work, repeats)


async def listing(place: Path, repeats: int = 9) -> dict[str, Any]:
    async with open_store(place / _FILE) as store:

        async def work() -> int:
            return len(await store.sessions())

        return await clock.repeat(work, repeats)


async def search(place: Path, words: str, repeats: int = 9, ranked: bool = False) -> dict[str, Any]:
    query = SearchQuery(words=f'"{words}"' if " " in words and not ranked else words)
    async with open_store(place / _FILE) as store:

        async def work() -> int:
            if ranked:
                return len((await store.rank(query)).hits)
            return len(await store.search(query))

        return await clock.repeat(work, repeats)


async def paced(place: Path, n: int, pause: float, index: bool) -> dict[str, Any]:
    """Appends with a pause between them, as an agent makes them; how long each took.

    Without `index` the background task is kept from starting. That reaches into the store, because
    recollect has no such switch: nobody should want one.
    """
    messages = conversation.messages(n)
    async with open_store(place / _FILE) as store:
        parent = await _head(store, 0)
        if not index:
            assert hasattr(store, "_wake"), "the store's indexing is started elsewhere now"
            store._wake = lambda: None  # type: ignore[method-assign]
        clock.settle()
        took, before = [], clock.now()
        for message in messages:
            began = time.perf_counter()
            (entry,) = await store.append(SESSION, [message], parent=parent)
            took.append(time.perf_counter() - began)
            parent = entry.id
            await asyncio.sleep(pause)
        cpu = clock.now().cpu - before.cpu
        assert index or store._upkeep is None, "the index was kept up all the same"
    took.sort()
    return {
        "mean": statistics.fmean(took),
        "median": took[n // 2],
        "p99": took[n * 99 // 100],
        "cpu": cpu,
    }


async def write_with_others(place: Path, number: int, n: int, start_at: float) -> dict[str, Any]:
    messages = conversation.messages(n, number * n)
    session = f"{number:032x}"
    async with open_store(place / _FILE) as store:
        clock.settle()
        await asyncio.sleep(max(0.0, start_at - time.time()))
        began, parent = time.time(), None
        for message in messages:
            (entry,) = await store.append(session, [message], parent=parent)
            parent = entry.id
        ended = time.time()
    return {"began": began, "ended": ended}


async def create_sessions(place: Path, n: int) -> dict[str, Any]:
    async with open_store(place / _FILE) as store:
        for number in range(n):
            await store.create(id=f"{number:032x}")
    return {}


async def count(place: Path) -> dict[str, Any]:
    async with open_store(place / _FILE) as store:
        found = [len(await store.path(session.id)) for session in await store.sessions()]
    return {"count": sum(found)}


async def import_speed(place: Path, path: str) -> dict[str, Any]:
    """MB of a file for each second of processor time, and MB that the process grew by."""
    from recollect.transcripts.session_import import import_file

    file = Path(path)
    size, started = file.stat().st_size / 1e6, time.process_time()
    with file.open(encoding="utf-8") as stream:
        for line in stream:
            json.loads(line)
    alone, before = time.process_time() - started, _peak_memory()
    async with open_store(place / _FILE) as store:
        started = time.process_time()
        await import_file(store, file)
        taken = time.process_time() - started
    grown = _peak_memory() - before
    return {"speed": size / taken, "json": size / alone, "grown": grown}


def _peak_memory() -> float:
    """In MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


async def import_transcripts(place: Path, paths: list[str]) -> dict[str, Any]:
    try:
        from recollect.transcripts.session_import import import_file
    except ImportError:
        return {"missing": True}
    async with open_store(place / _FILE) as store:
        for path in paths:
            await import_file(store, Path(path))
        await store.index_now()
    return {"bytes": sum(p.stat().st_size for p in place.glob(f"{_FILE}*"))}

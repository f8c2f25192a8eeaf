"""Real sessions of Claude Code, imported once into one store; `RECOLLECT_TRANSCRIPTS` has them."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from recollect.entries import Compaction, Note, Source, ToolCall, ToolResult
from recollect.store.open_store import open_store
from recollect.store.sqlite import SqliteStore
from recollect.transcripts.import_result import ImportResult
from recollect.transcripts.record_format import get_tag
from recollect.transcripts.session_import import import_file
from tests.transcripts.file_builders import messages_of
from tests.transcripts.whole_files import load_original

_PLACE = os.environ.get("RECOLLECT_TRANSCRIPTS", "")
REAL = sorted(Path(_PLACE).glob("claude-code/*.jsonl")) if _PLACE else []
LONG = [file for file in REAL if file.stat().st_size > 1_000_000]
pytestmark = pytest.mark.skipif(not REAL, reason="RECOLLECT_TRANSCRIPTS is not set")


class RealSessions(NamedTuple):
    folder: Path
    results: dict[Path, ImportResult]
    long_size: int  # of the store when it held the long sessions only

    def use(self, work: Callable[[SqliteStore], Awaitable[None]]) -> None:
        async def run() -> None:
            async with open_store(self.folder / "store.db") as store:
                await work(store)

        asyncio.run(run())


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> RealSessions:
    folder = tmp_path_factory.mktemp("real")

    async def bring(files: list[Path]) -> dict[Path, ImportResult]:
        async with open_store(folder / "store.db") as store:
            results = {file: await import_file(store, file) for file in files}
            await store.index_now()
        return results

    results = asyncio.run(bring(LONG))
    size = sum(path.stat().st_size for path in folder.iterdir())
    return RealSessions(folder, results | asyncio.run(bring([*set(REAL) - set(LONG)])), size)


@pytest.mark.parametrize("file", REAL, ids=lambda path: path.stem[:8])
def test_a_real_session_is_imported_whole(real: RealSessions, file: Path) -> None:
    async def work(store: SqliteStore) -> None:
        imported = real.results[file]
        path, tree = await store.path(imported.session), await store.tree(imported.session)
        assert path == tree
        source = next(entry for entry in path if isinstance(entry.body, Source))
        assert await load_original(store, source, tree) == file.read_bytes()
        parts = [part for message in messages_of(path) for part in message.parts]
        calls = Counter(part.id for part in parts if isinstance(part, ToolCall))
        assert Counter(part.call_id for part in parts if isinstance(part, ToolResult)) == calls
        assert set(calls.values()) <= {1}

    real.use(work)


@pytest.mark.parametrize("file", REAL, ids=lambda path: path.stem[:8])
def test_a_real_session_that_is_imported_again_adds_nothing(real: RealSessions, file: Path) -> None:
    async def work(store: SqliteStore) -> None:
        first, again = real.results[file], await import_file(store, file)
        assert (again.added, again.already) == (0, first.added - 1 - len(again.subagents))
        assert [each.added for each in again.subagents] == [0] * len(first.subagents)

    real.use(work)


def test_the_subagents_of_real_sessions_are_imported_with_them(real: RealSessions) -> None:
    async def work(store: SqliteStore) -> None:
        for imported in real.results.values():
            parts = [p for m in messages_of(await store.path(imported.session)) for p in m.parts]
            calls = {p.id for p in parts if isinstance(p, ToolCall) and p.name == "Task"}
            assert len(imported.subagents) == len(calls)
            for agent in imported.subagents:
                path = await store.path(agent.session)
                tags = [get_tag("claude-code", e.body) for e in path if isinstance(e.body, Note)]
                links = [(tag["parent"], tag["call"] in calls) for tag in tags]
                assert links == [(imported.session, True)]
                assert len(messages_of(path)) > 3
                assert agent.problems == ()

    real.use(work)


def test_long_real_sessions_take_a_quarter_of_their_files_size(real: RealSessions) -> None:
    assert real.long_size < 0.25 * sum(file.stat().st_size for file in LONG)


def test_real_sessions_continue_after_their_compaction(real: RealSessions) -> None:
    async def work(store: SqliteStore) -> None:
        for file in LONG:
            bodies = [entry.body for entry in await store.path(real.results[file].session)]
            ((at, found),) = [(n, b) for n, b in enumerate(bodies) if isinstance(b, Compaction)]
            assert 0 < at < len(bodies) - 1
            assert len(found.snapshot) > 1_000
            assert found.tokens_before > 100_000

    real.use(work)

"""When mirrors are written: after turns, by the timer, one after the other."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from recollect.agent.hooks import Hooks
from recollect.agent.mirror_hook import mirror_hook
from recollect.entries import Entry
from recollect.errors import BadInput
from recollect.hook_events import BeforeAgent
from recollect.store.contract import SessionInfo
from recollect.store.open_store import open_store
from recollect.store.sqlite import SqliteStore
from recollect.transcripts.mirror import Mirror
from tests.transcripts.mirror_builders import (
    append_texts,
    contents,
    exported,
    files,
    run_prompts,
    said_in,
    start_session,
    until,
)

PAGE = Path(__file__).parent.parent.parent / "docs" / "mirrors.md"


class Watched(SqliteStore):
    """A store that counts lookups of a session and of its whole path, and may hold the latter."""

    paths = lookups = 0
    hold: asyncio.Event | None = None

    async def session(self, prefix: str) -> SessionInfo:
        self.lookups += 1
        return await super().session(prefix)

    async def path(self, session: str, **more: Any) -> tuple[Entry, ...]:
        self.paths += 1
        found = await super().path(session, **more)
        if self.hold is not None:
            await self.hold.wait()
        return found


def watched(path: Path, story: Callable[[Watched], Awaitable[None]]) -> None:
    async def opened() -> None:
        store = Watched(path / "s.db")
        try:
            await story(store)
        finally:
            await store.close()

    asyncio.run(opened())


def test_a_turn_does_not_wait_for_its_mirror_and_closing_does(tmp_path: Path) -> None:
    async def story(store: Watched) -> None:
        session = await start_session(store)
        mirror = Mirror(store, "gemini", tmp_path / "m")
        store.hold = asyncio.Event()
        async for _ in run_prompts(mirror, session, ["one", "two"], ["1", "2"]):
            assert not (tmp_path / "m").exists()
        store.hold.set()
        await mirror.close()
        assert contents(tmp_path / "m") == [await exported(store, session, "gemini")]

    watched(tmp_path, story)


def test_many_writes_requested_together_are_two_at_most(tmp_path: Path) -> None:
    async def story(store: Watched) -> None:
        session, mirror = await start_session(store), Mirror(store, "gemini", tmp_path / "m")
        store.hold = asyncio.Event()
        first = asyncio.create_task(mirror.write(session))
        await until(lambda: store.paths == 1)
        await append_texts(store, session, "new")
        others = [asyncio.create_task(mirror.write(session)) for _ in range(50)]
        await asyncio.sleep(0)  # all of them begin
        store.hold.set()
        found = {await first, *[await each for each in others]}
        assert (len(found), store.paths) == (1, 2)
        assert said_in(found.pop()) == ["hello", "new"]

    watched(tmp_path, story)


def test_a_state_that_was_read_earlier_does_not_replace_a_later_one(tmp_path: Path) -> None:
    async def story(slow: Watched) -> None:
        session = await start_session(slow)
        slow.hold = asyncio.Event()
        late = asyncio.create_task(Mirror(slow, "gemini", tmp_path / "m").write(session))
        await until(lambda: slow.paths == 1)
        async with open_store(slow.file) as quick:  # as another process would
            await append_texts(quick, session, "new")
            file = await Mirror(quick, "gemini", tmp_path / "m").write(session)
        slow.hold.set()
        assert await late == file
        assert said_in(file) == ["hello", "new"]

    watched(tmp_path, story)


def test_a_write_continues_when_its_caller_is_cancelled(tmp_path: Path) -> None:
    async def story(store: Watched) -> None:
        session, mirror = await start_session(store), Mirror(store, "gemini", tmp_path / "m")
        store.hold = asyncio.Event()
        caller = asyncio.create_task(mirror.write(session))
        await until(lambda: store.paths == 1)
        caller.cancel()
        with pytest.raises(asyncio.CancelledError):
            await caller
        store.hold.set()
        await mirror.close()
        assert (store.paths, len(files(tmp_path / "m"))) == (1, 1)

    watched(tmp_path, story)


def test_the_timer_writes_what_has_changed_and_nothing_else(tmp_path: Path) -> None:
    async def story(store: Watched) -> None:
        session, idle = await start_session(store), await start_session(store, "idle")

        async def assert_timer_writes(paths: int) -> None:
            await until(lambda: store.paths == paths)
            enough = store.lookups + 5
            await until(lambda: store.lookups >= enough)
            assert store.paths == paths

        async with Mirror(store, "gemini", tmp_path / "m", autosave_seconds=0.005) as mirror:
            await Hooks([mirror_hook(mirror)]).fire(BeforeAgent(session=session, time=0))
            await assert_timer_writes(1)
            await store.rename(session, "another title")
            await assert_timer_writes(2)
            mirror.follow(idle)
            await append_texts(store, session, "while it ends")
        assert mirror.warnings == []
        written = [said_in(tmp_path / "m" / name) for name in files(tmp_path / "m")]
        assert sorted(written) == [["hello", "while it ends"], ["idle"]]

    watched(tmp_path, story)


def test_only_a_session_that_has_changed_is_written_if_changed(tmp_path: Path) -> None:
    async def story(store: Watched) -> None:
        session, mirror = await start_session(store), Mirror(store, "gemini", tmp_path / "m")
        await mirror.write_if_changed(session)
        await mirror.write_if_changed(session)
        assert store.paths == 1
        await store.rewind(session, None)
        await mirror.write_if_changed(session)
        (name,) = files(tmp_path / "m")
        assert said_in(tmp_path / "m" / name) == []

    watched(tmp_path, story)


@pytest.mark.parametrize("seconds", [-1.0, float("nan"), float("inf")])
def test_an_impossible_interval_is_refused(seconds: float) -> None:
    with pytest.raises(BadInput, match="autosave_seconds"):
        Mirror(SqliteStore.__new__(SqliteStore), "gemini", autosave_seconds=seconds)


def test_the_program_in_the_documentation_does_what_the_page_says(tmp_path: Path) -> None:
    ((program, printed),) = re.findall(
        r"```python\n(.*?)```\n\n```\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.S
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={"RECOLLECT_HOME": str(tmp_path), "PYTHONUTF8": "1"},
        capture_output=True,
        encoding="utf-8",
        timeout=60,
    )
    assert (done.stdout, done.stderr) == (printed, "")
    assert len(files(tmp_path / "mirrors")) == 1

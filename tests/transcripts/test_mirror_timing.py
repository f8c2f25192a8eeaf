"""When mirrors are written: after turns, at times, at switches, one after the other."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from recollect.agent.events import RunFinished
from recollect.agent.hook_events import BeforeAgent
from recollect.agent.hooks import Hooks
from recollect.agent.loop import Agent
from recollect.agent.mirroring import Mirror
from recollect.entries import Entry
from recollect.errors import BadInput
from recollect.session import Session
from recollect.store.sqlite import SqliteStore, open_store
from recollect.testing import ScriptedModel
from recollect.view.view import View
from tests.transcripts.test_mirror import begun, exported, files, grown, said_in

PAGE = Path(__file__).parent.parent.parent / "docs" / "mirrors.md"


class Watched(SqliteStore):
    """A store that counts how often a whole path was read, and may be held after reading one."""

    paths = 0
    hold: asyncio.Event | None = None

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


async def until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not true():
            await asyncio.sleep(0.01)


def test_a_turn_does_not_wait_for_its_mirror_and_closing_does(tmp_path: Path) -> None:
    async def story(store: Watched) -> None:
        session = await begun(store)
        talk = Session(store, session, View.fold(await store.path(session)))
        mirror, store.hold = Mirror(store, "gemini", tmp_path / "m"), asyncio.Event()
        agent = Agent(model=ScriptedModel(["one", "two"]), hooks=Hooks([mirror.hook()]))
        for prompt in ("1", "2"):
            done = [event async for event in agent.run(prompt, talk)][-1]
            assert isinstance(done, RunFinished)
            talk = done.session
        assert not (tmp_path / "m").exists()
        store.hold.set()
        await mirror.close()
        (name,) = files(tmp_path / "m")
        assert (tmp_path / "m" / name).read_bytes() == await exported(store, session, "gemini")

    watched(tmp_path, story)


def test_writes_that_are_asked_for_together_are_two_at_most(tmp_path: Path) -> None:
    async def story(store: Watched) -> None:
        session, mirror = await begun(store), Mirror(store, "gemini", tmp_path / "m")
        store.hold = asyncio.Event()
        first = asyncio.create_task(mirror.write(session))
        await until(lambda: store.paths == 1)
        await grown(store, session, "new")
        others = [asyncio.create_task(mirror.write(session)) for _ in range(50)]
        await asyncio.sleep(0.05)
        store.hold.set()
        found = {await first, *[await each for each in others]}
        assert (len(found), store.paths) == (1, 2)
        assert said_in(found.pop()) == ["hello", "new"]

    watched(tmp_path, story)


def test_a_state_that_was_read_earlier_does_not_replace_a_later_one(tmp_path: Path) -> None:
    async def story(slow: Watched) -> None:
        session = await begun(slow)
        slow.hold = asyncio.Event()
        late = asyncio.create_task(Mirror(slow, "gemini", tmp_path / "m").write(session))
        await until(lambda: slow.paths == 1)
        async with open_store(slow.file) as quick:  # as another process would
            await grown(quick, session, "new")
            file = await Mirror(quick, "gemini", tmp_path / "m").write(session)
        slow.hold.set()
        assert await late == file
        assert said_in(file) == ["hello", "new"]

    watched(tmp_path, story)


def test_whoever_is_cancelled_does_not_end_the_write(tmp_path: Path) -> None:
    async def story(store: Watched) -> None:
        session, mirror = await begun(store), Mirror(store, "gemini", tmp_path / "m")
        store.hold = asyncio.Event()
        asking = asyncio.create_task(mirror.write(session))
        await until(lambda: store.paths == 1)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        store.hold.set()
        await mirror.close()
        assert (store.paths, len(files(tmp_path / "m"))) == (1, 1)

    watched(tmp_path, story)


def test_the_timer_writes_what_has_changed_and_nothing_else(tmp_path: Path) -> None:
    async def story(store: Watched) -> None:
        session, idle = await begun(store), await begun(store, "idle")
        async with Mirror(store, "gemini", tmp_path / "m", autosave_seconds=0.02) as mirror:
            await Hooks([mirror.hook()]).fire(BeforeAgent(session=session, time=0))
            await until(lambda: (tmp_path / "m").exists() and bool(files(tmp_path / "m")))
            await until(lambda: store.paths == 1)
            await asyncio.sleep(0.2)
            assert store.paths == 1
            await store.rename(session, "another title")
            await until(lambda: store.paths == 2)
            await asyncio.sleep(0.1)
            assert store.paths == 2
            mirror.follow(idle)
            await grown(store, session, "while it ends")
        assert mirror.warnings == []
        written = [said_in(tmp_path / "m" / name) for name in files(tmp_path / "m")]
        assert sorted(written) == [["hello", "while it ends"], ["idle"]]

    watched(tmp_path, story)


def test_a_switch_of_sessions_writes_the_one_that_is_left(tmp_path: Path) -> None:
    async def story(store: Watched) -> None:
        session, mirror = await begun(store), Mirror(store, "gemini", tmp_path / "m")
        await mirror.switched(session)
        await mirror.switched(session)
        assert store.paths == 1
        await store.rewind(session, None)
        await mirror.switched(session)
        (name,) = files(tmp_path / "m")
        assert said_in(tmp_path / "m" / name) == []

    watched(tmp_path, story)


@pytest.mark.parametrize("seconds", [-1.0, float("nan"), float("inf")])
def test_a_timer_without_sense_is_refused(seconds: float) -> None:
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

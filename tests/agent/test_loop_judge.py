"""A model judges whether a run is looping."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from recollect.agent.run_events import LoopFound
from recollect.entries import Message
from recollect.store.sqlite import SqliteStore
from recollect.testing import call, says
from tests.agent.harness import in_store, new_session
from tests.agent.test_loop import agent, finished, run


def test_the_judge_is_called_after_the_set_turn_and_every_tenth_from_there(tmp_path: Path) -> None:
    shown: list[str] = []

    async def judge(messages: Sequence[Message], instruction: str) -> str:
        assert "stuck" in instruction
        shown.append(str(messages))
        return '{"why": "it looks at everything and decides nothing", "stuck": 0.95}'

    async def story(store: SqliteStore) -> None:
        session = await new_session(store)
        different = [says(call("look", id=f"c{n}", what=f"file {n}")) for n in range(40)]
        events = await run(agent(*different, summarizer=judge, judge_after=5), session)
        loops = [event for event in events if isinstance(event, LoopFound)]
        assert [(each.loop.kind, each.stopped) for each in loops] == [
            ("judged", False),
            ("judged", True),
        ]
        assert finished(events).turns == 15
        assert len(shown) == 2
        assert "file 4" in shown[0]

    in_store(tmp_path, story)


def test_without_the_setting_no_judge_is_called(tmp_path: Path) -> None:
    async def judge(messages: Sequence[Message], instruction: str) -> str:
        raise AssertionError("no judge was configured")

    async def story(store: SqliteStore) -> None:
        different = [says(call("look", id=f"c{n}", what=f"file {n}")) for n in range(12)]
        events = await run(agent(*different, "done", summarizer=judge), await new_session(store))
        assert finished(events).reason == "answered"

    in_store(tmp_path, story)

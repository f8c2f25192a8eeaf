"""Long sessions with large outputs, edits, failures and interruptions: after each turn every
provider's request is valid, every request fits the window, and the log is complete."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Sequence
from contextlib import aclosing
from pathlib import Path

import pytest

from recollect.agent.fit_context import ContextReduced
from recollect.agent.loop import Agent
from recollect.agent.run_events import AgentEvent, RunFinished
from recollect.agent.tool_calls import ToolStarted
from recollect.compaction.budget import Budget
from recollect.entries import Compaction, Entry, Message, Text, ToolCall, ToolResult
from recollect.errors import ModelError
from recollect.session import Session
from recollect.store.open_store import open_store
from recollect.store.sqlite import SqliteStore
from recollect.testing import ScriptedModel, call, says
from recollect.tokens import ESTIMATE
from recollect.view.elision_rules import ElisionRules
from recollect.view.view import View
from recollect.view_loader import load_view
from tests.agent.harness import allow_all
from tests.agent.long_session import TOOLS, PlannedTurn, Played, Script, make_files
from tests.agent.valid_requests import Providers

WINDOW = 12_000  # tokens; the largest output alone has four times as many
BUDGET = Budget(WINDOW, 8_000, 6_000, 1_200)


async def write_poorly(messages: Sequence[Message], instruction: str) -> str:
    """Writes snapshots, and half of the time something else."""
    match len(messages) % 4:
        case 0:
            raise ModelError("the writer is down")
        case 1:
            return "I would rather not."
        case _:
            return "<state_snapshot><overall_goal>Go on.</overall_goal></state_snapshot>"


class Log:
    """What is in the store, read as it grows."""

    def __init__(self, store: SqliteStore, session: str) -> None:
        self._store, self._session = store, session
        self.entries: list[Entry] = []
        self.texts: Counter[str] = Counter()  # each text's first words
        self.calls: Counter[str] = Counter()
        self.results: Counter[str] = Counter()

    async def catch_up(self) -> None:
        since = self.entries[-1].id if self.entries else None
        for entry in await self._store.path(self._session, since=since):
            assert entry.parent == (self.entries[-1].id if self.entries else None)
            self.entries.append(entry)
            if isinstance(entry.body, Message):
                self._take(entry.body)

    def _take(self, message: Message) -> None:
        for part in message.parts:
            if isinstance(part, Text):
                self.texts[part.text.split(":")[0]] += 1
            elif isinstance(part, ToolCall):
                self.calls[part.id] += 1
            elif isinstance(part, ToolResult):
                assert part.call_id in self.calls, "a result came before its call"
                self.results[part.call_id] += 1


class CheckedSession:
    """The session with all that is checked after each turn."""

    def __init__(self, store: SqliteStore, session: str, root: Path, seed: int) -> None:
        self.session = Session(store, session, View.fold())
        self.log = Log(store, session)
        self.script, self.chance = Script(seed), random.Random(seed)
        self.providers = Providers(tuple(tool.declaration for tool in TOOLS))
        self.root = root
        self.unsent: set[int] = set()  # prompts that were stopped before they were appended
        self.given: list[Message] = []
        self.counted: Counter[str] = Counter()

    async def turn(self, number: int) -> None:
        planned = self.script.turn(number)
        model = Played(ScriptedModel(planned.lines, piece=48), self.given)
        agent = Agent(
            model=model,
            tools=TOOLS,
            roots=(self.root,),
            permission_check=allow_all,
            rules=ElisionRules(root=str(self.root)),
            budget=BUDGET,
            summarizer=write_poorly,
        )
        last = await self._play_session(agent, planned)
        if last is None:
            self.unsent.add(number)
        for request in model.scripted.requests:
            sent = sum(ESTIMATE.message(message) for message in request.messages)
            assert sent <= WINDOW, f"{sent} tokens were sent in turn {number}"
        if isinstance(last, RunFinished):
            self.session = last.session
        else:  # as a later process does
            # writes come one after the other: this one ends after one that was cancelled
            await self.session.store.create()
            view = await load_view(self.session.store, self.session.id)
            self.session = Session(self.session.store, self.session.id, view)

    async def _play_session(self, agent: Agent, planned: PlannedTurn) -> AgentEvent | None:
        last: AgentEvent | None = None

        async def listen() -> None:
            nonlocal last
            seen, called = 0, list[AgentEvent]()
            async with aclosing(agent.stream(planned.said, self.session)) as events:
                async for event in events:
                    last, seen = event, seen + 1
                    self.counted["reduced"] += isinstance(event, ContextReduced)
                    if planned.stop == "close" and seen == planned.after:
                        return
                    if planned.stop == "event" and seen == planned.after:
                        task.cancel()
                    if planned.stop == "tool" and isinstance(event, ToolStarted) and not called:
                        called.append(event)
                        asyncio.get_running_loop().call_later(planned.after / 1_000, task.cancel)

        task = asyncio.create_task(listen())
        if planned.stop == "moment":
            asyncio.get_running_loop().call_later(planned.after / 1_000, task.cancel)
        try:
            await task
        except asyncio.CancelledError:
            self.counted["cancelled"] += 1
        except ModelError:
            self.counted["failed"] += 1
        return last

    async def check(self, number: int, *, whole: bool) -> None:
        await self.log.catch_up()
        texts, calls, results = self.log.texts, self.log.calls, self.log.results
        times = {n: texts[f"prompt {n}"] for n in range(number + 1)}
        assert [n for n, count in times.items() if count != 1 and n not in self.unsent] == []
        assert max(times.values()) == 1
        assert results == calls, f"without one result: {(calls - results) + (results - calls)}"
        assert set(calls.values()) <= {1}
        for message in self.given:
            for part in message.parts:
                if isinstance(part, Text):
                    assert texts[part.text.split(":")[0]] == 1, part.text[:40]
        self.given.clear()
        assert self.session.view().head == self.log.entries[-1].id
        self.providers.check(self.session.view(), types=whole)
        if whole:
            fold = View.fold(self.log.entries)
            assert fold.messages == self.session.view().messages


async def play_session(folder: Path, seed: int, turns: int) -> CheckedSession:
    make_files(folder)
    async with open_store(folder / "s.db") as store:
        session = CheckedSession(store, (await store.create()).id, folder, seed)
        for number in range(turns):
            await session.turn(number)
            await session.check(number, whole=number % 25 == 24)
        assert tuple(session.log.entries) == await store.path(session.session.id)
        return session


def test_sixty_turns(tmp_path: Path) -> None:
    session = asyncio.run(play_session(tmp_path, seed=5, turns=60))
    compactions = [e for e in session.log.entries if isinstance(e.body, Compaction)]
    # the session has what it was made for
    assert len(compactions) > 5
    assert session.counted["cancelled"] > 5
    assert session.counted["failed"] > 2
    assert session.counted["reduced"] > 5


@pytest.mark.long
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("seed", range(10))
def test_five_hundred_turns(tmp_path: Path, seed: int) -> None:
    session = asyncio.run(play_session(tmp_path, seed=1_000 + seed, turns=500))
    assert session.counted["reduced"] > 50


@pytest.mark.parametrize("size", [100_000, 1_000_000])
def test_a_result_that_alone_is_larger_than_the_window_is_shortened(
    tmp_path: Path, size: int
) -> None:
    async def story() -> tuple[list[int], str]:
        async with open_store(tmp_path / "s.db") as store:
            session = Session(store, (await store.create()).id, View.fold())
            first = says("I look.", call("print_much", id="a", size=size, key="a"))
            model = ScriptedModel([first, "I see."])
            agent = Agent(model=model, tools=TOOLS, permission_check=allow_all, budget=BUDGET)
            async for _ in agent.stream("Look.", session):
                pass
            kept = await store.path(session.id)
            (whole,) = [
                block.text
                for entry in kept
                if isinstance(entry.body, Message)
                for part in entry.body.parts
                if isinstance(part, ToolResult)
                for block in part.content
                if isinstance(block, Text)
            ]
            sent = [sum(map(ESTIMATE.message, request.messages)) for request in model.requests]
            return sent, whole

    sent, whole = asyncio.run(story())
    assert max(sent) <= WINDOW
    assert len(whole) == size  # in the log

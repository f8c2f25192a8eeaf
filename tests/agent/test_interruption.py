"""Runs that are stopped at every single step of the event loop: no message is lost, and no call
is left without its one result."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import aclosing
from pathlib import Path
from typing import Any, Literal

import pytest

from recollect.agent.exchange import ReplyFinished
from recollect.agent.loop import Agent
from recollect.agent.run_events import AgentEvent
from recollect.agent.tool_calls import ToolFinished
from recollect.codecs.anthropic import AnthropicWire
from recollect.codecs.gemini import GeminiWire
from recollect.codecs.openai import OpenAIWire
from recollect.codecs.wire_protocol import Wire
from recollect.entries import Entry, Message, Text, ToolCall, ToolResult
from recollect.errors import ContextOverflow
from recollect.session import Session
from recollect.store.open_store import open_store
from recollect.store.sqlite import SqliteStore
from recollect.testing import ScriptedModel, ScriptLine, call, fails, says
from recollect.tools.tool import tool
from recollect.view.view import View
from tests.agent.harness import allow_all
from tests.agent.long_session import Played
from tests.agent.valid_requests import Providers, check_pairs

How = Literal["cancel", "cancel twice", "close"]
MAX_STEPS = 300  # a run takes 80; more when commits are slow and move to a thread
ran: list[str] = []


@tool("read")
async def look(what: str) -> str:
    """Looks."""
    await asyncio.sleep(0)
    ran.append(what)
    return f"saw {what}"


@tool("write")
async def change(what: str) -> str:
    """Changes."""
    ran.append(what)
    await asyncio.sleep(0)
    return f"changed {what}"


def lines() -> tuple[ScriptLine, ...]:
    both = call("look", id="a", what="a"), call("look", id="b", what="b")
    return (
        says("I look.", *both, call("change", id="c", what="c")),
        fails(ContextOverflow("too long", 400, 9_000)),
        says("I change.", call("change", id="d", what="d")),
        "Done.",
    )


class Stopped:
    """One prompt, stopped after so many steps of the event loop, or after so many events."""

    def __init__(self, store: SqliteStore, session: str) -> None:
        self.store, self.session = store, session
        self.given: list[Message] = []
        self.events: list[AgentEvent] = []
        self.raised: BaseException | None = None

    async def play(self, how: How, steps: int) -> bool:
        """Whether it was stopped before its end."""
        ran.clear()
        model = Played(ScriptedModel(lines(), piece=4), self.given)
        agent = Agent(
            model=model, tools=(look, change), permission_check=allow_all, roots=(Path("/work"),)
        )
        task = asyncio.create_task(self._listen(agent, steps if how == "close" else -1))
        if how != "close":
            for _ in range(steps):
                await asyncio.sleep(0)
            task.cancel()
        if how == "cancel twice":  # an impatient user
            await asyncio.sleep(0)
            task.cancel()
        await asyncio.wait([task])
        # writes come one after the other: this one ends after the one that was cancelled
        await self.store.create()
        if task.cancelled():
            return True
        self.raised = task.exception()
        return how == "close" and len(self.events) == steps

    async def _listen(self, agent: Agent, most: int) -> None:
        session = Session(self.store, self.session, View.fold())
        async with aclosing(agent.stream("go", session)) as events:
            async for event in events:
                self.events.append(event)
                if len(self.events) == most:
                    return


def said(entries: tuple[Entry, ...]) -> list[str]:
    parts = [p for e in entries if isinstance(e.body, Message) for p in e.body.parts]
    return [part.text for part in parts if isinstance(part, Text)]


def check(stopped: Stopped, entries: tuple[Entry, ...]) -> None:
    assert stopped.raised is None
    parts = [p for e in entries if isinstance(e.body, Message) for p in e.body.parts]
    texts = said(entries)
    if entries:
        assert texts[0] == "go"
    if stopped.events:
        assert texts.count("go") == 1
    for message in stopped.given:
        assert [e for e in entries if e.body == message], "a whole reply was lost"
    calls = Counter(part.id for part in parts if isinstance(part, ToolCall))
    results = Counter(part.call_id for part in parts if isinstance(part, ToolResult))
    assert results == calls
    stored = [part for part in parts if isinstance(part, ToolResult)]
    for event in stopped.events:
        if isinstance(event, ToolFinished):
            assert event.result in stored, "a result that was shown was lost"
        if isinstance(event, ReplyFinished):
            assert event.session.view().head in [entry.id for entry in entries]
    assert max(Counter(ran).values(), default=1) == 1
    assert {part.call_id for part in stored} >= set(ran), "it ran and is not in the log"


WRONG: dict[str, tuple[Wire, dict[str, Any]]] = {
    "openai without a result": (
        OpenAIWire(model="m"),
        {"messages": [{"role": "assistant", "tool_calls": [{"id": "a"}]}, {"role": "user"}]},
    ),
    "openai with a result too many": (
        OpenAIWire(model="m"),
        {"messages": [{"role": "user"}, {"role": "tool", "tool_call_id": "a"}]},
    ),
    "anthropic with an open call": (
        AnthropicWire(model="m"),
        {
            "messages": [
                {"role": "user", "content": []},
                {"role": "assistant", "content": [{"type": "tool_use", "id": "a"}]},
            ]
        },
    ),
    "anthropic with two of one role": (
        AnthropicWire(model="m"),
        {"messages": [{"role": "user", "content": []}, {"role": "user", "content": []}]},
    ),
    "gemini with an open call": (
        GeminiWire(model="m"),
        {
            "contents": [
                {"role": "user", "parts": []},
                {"role": "model", "parts": [{"functionCall": {"name": "a"}}]},
                {"role": "user", "parts": [{"text": "x"}]},
            ]
        },
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_the_check_of_pairs_rejects_invalid_requests(name: str) -> None:
    with pytest.raises((AssertionError, ValueError)):
        check_pairs(*WRONG[name])


@pytest.mark.parametrize("how", ["cancel", "cancel twice", "close"])
def test_stopped_at_any_step_the_session_is_whole(tmp_path: Path, how: How) -> None:
    providers = Providers((look.declaration, change.declaration))

    async def story() -> int:
        async with open_store(tmp_path / "s.db") as store:
            wrong = []
            for steps in range(1, MAX_STEPS):
                stopped = Stopped(store, (await store.create()).id)
                early = await stopped.play(how, steps)
                entries = await store.path(stopped.session)
                try:
                    check(stopped, entries)
                except AssertionError as error:
                    wrong.append((steps, str(error).splitlines()[0]))
                if entries:
                    providers.check(View.fold(entries), types=False)
                if not early:
                    break
            assert wrong == []
            return steps

    assert asyncio.run(story()) > 20


def test_a_session_continues_wherever_it_was_stopped(tmp_path: Path) -> None:
    async def story() -> None:
        async with open_store(tmp_path / "s.db") as store:
            for steps in range(3, 80, 4):
                stopped = Stopped(store, (await store.create()).id)
                await stopped.play("cancel", steps)
                entries = await store.path(stopped.session)
                before = list(ran)
                session = Session(store, stopped.session, View.fold(entries))
                model = ScriptedModel(["And on."])
                again = Agent(model=model, tools=(look, change), permission_check=allow_all)
                events = [event async for event in again.stream("and now?", session)]
                assert events
                assert ran == before  # nothing is run again by itself
                assert said(await store.path(stopped.session))[-2:] == ["and now?", "And on."]

    asyncio.run(story())

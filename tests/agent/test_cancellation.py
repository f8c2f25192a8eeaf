"""Whoever cancels the loop, at whichever step of the event loop: every call has one result."""

from __future__ import annotations

import asyncio
from pathlib import Path

from recollect import Message, Store, ToolCall, ToolResult, View, open_store
from recollect.agent.exchange import Session
from recollect.agent.loop import Agent
from recollect.testing import ScriptedModel, call, model
from recollect.tools.tool import Tool, tool

STEPS = 300  # more than the whole story takes


@tool("read")
async def look(n: int) -> str:
    """Looks."""
    await asyncio.sleep(0)
    return f"saw {n}"


@tool("write")
async def change(n: int) -> str:
    """Changes."""
    await asyncio.sleep(0)
    return f"changed {n}"


async def everything(tool: Tool, call: ToolCall) -> str:
    del tool, call
    return ""


def script() -> ScriptedModel:
    several = [call("look", id="1", n=1), call("look", id="2", n=2), call("change", id="3", n=3)]
    again = call("change", id="4", n=4)
    return ScriptedModel([model("I look.", *several), model("Again.", again), model("Done.")])


async def cancelled_after(store: Store, steps: int) -> tuple[str, bool]:
    """The session, and whether the agent had ended by itself."""
    session = await store.create()
    agent = Agent(model=script(), tools=(look, change), permission_check=everything)

    async def play() -> None:
        async for _ in agent.run("Go.", Session(store, session.id, View.fold())):
            pass

    playing = asyncio.ensure_future(play())
    for _ in range(steps):
        await asyncio.sleep(0)
    ended = playing.done()
    playing.cancel()
    await asyncio.wait((playing,))
    assert playing.cancelled() or playing.exception() is None
    return session.id, ended


def test_no_call_is_left_without_a_result_wherever_the_loop_is_cancelled(tmp_path: Path) -> None:
    async def story() -> None:
        endings = set()
        async with open_store(tmp_path / "s.db") as store:
            for steps in range(STEPS):
                session, ended = await cancelled_after(store, steps)
                endings.add(ended)
                bodies = [entry.body for entry in await store.path(session)]
                parts = [part for b in bodies if isinstance(b, Message) for part in b.parts]
                calls = [part.id for part in parts if isinstance(part, ToolCall)]
                results = [part.call_id for part in parts if isinstance(part, ToolResult)]
                assert sorted(results) == calls, f"cancelled after {steps} steps"
        assert endings == {True, False}

    asyncio.run(story())

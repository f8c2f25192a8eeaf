"""Sub-agents that end without an answer: failure, cancellation, a kill."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from contextlib import aclosing
from pathlib import Path

import msgspec
import pytest

from recollect.agent.subagents import read_subagent_usage
from recollect.agent.tool_calls import UNKNOWN_OUTCOME, ToolStopped
from recollect.codecs.anthropic import AnthropicWire
from recollect.codecs.encoder import encode
from recollect.codecs.gemini import GeminiWire
from recollect.codecs.openai import OpenAIWire
from recollect.codecs.wire_protocol import RequestOptions
from recollect.entries import ToolCall
from recollect.errors import BadReply
from recollect.session import Session
from recollect.store.sqlite import SqliteStore
from recollect.testing import ScriptedModel, ScriptLine, call, fails, says
from recollect.tools.tool import ToolBroken, tool
from recollect.transcripts.subagent_links import SessionLink
from recollect.view.view import View
from tests.agent.harness import in_store, result_text, stored_results
from tests.agent.test_subagents import (
    HERE,
    caller,
    links,
    main_session,
    run,
    subagent_sessions,
    task,
)


@pytest.mark.parametrize(
    ("script", "status", "why"),
    [
        ([fails(BadReply("a page"))], "error", "the sub-agent failed: got a page instead"),
        ([says(call("look", what="1")), says(call("look", what="2"))], "turns", "within 2 turns"),
        ([says("", finish="stop")] * 3, "empty", "gave no answer in 3 replies in a row"),
    ],
)
def test_a_sub_agents_failure_is_the_tools_error_and_the_caller_continues(
    tmp_path: Path, script: list[ScriptLine], status: str, why: str
) -> None:
    async def story(store: SqliteStore) -> None:
        session = await main_session(store)
        done = await run(caller(says(task()), *script, "I see.", turns=2), session)
        assert done.reason == "answered"
        (subagent,) = await subagent_sessions(store, session.id)
        (result,) = await stored_results(store, session.id)
        assert (result.is_error, result.status) == (True, status)
        assert why in result_text(result)
        assert subagent.id in result_text(result)
        assert read_subagent_usage(result) is not None
        assert f"[sub-agent {subagent.id} ended" in result_text(result)

    in_store(tmp_path, story)


def test_a_sub_agent_that_repeats_itself_is_stopped(tmp_path: Path) -> None:
    async def story(store: SqliteStore) -> None:
        session = await main_session(store)
        same = [says(call("look", id=f"c{n}", what="x")) for n in range(10)]
        await run(caller(says(task()), *same, "I see."), session)
        (result,) = await stored_results(store, session.id)
        assert (result.is_error, result.status) == (True, "loop")

    in_store(tmp_path, story)


def test_a_broken_machine_in_a_sub_agent_stops_the_caller_as_well(tmp_path: Path) -> None:
    async def story(store: SqliteStore) -> None:
        @tool("read")
        async def fill() -> str:
            """Fills the disk."""
            raise ToolBroken("no space left")

        session = await main_session(store)
        agent = caller(says(task()), says(call("fill")), tools=(fill,))
        with pytest.raises(ToolStopped, match="no space left"):
            await run(agent, session)
        (result,) = await stored_results(store, session.id)
        assert (result.is_error, result.status) == (True, "broken")

    in_store(tmp_path, story)


@pytest.mark.parametrize("where", ["tool", "model"])
def test_cancelling_the_caller_ends_the_sub_agent_cleanly(tmp_path: Path, where: str) -> None:
    async def story(store: SqliteStore) -> None:
        session = await main_session(store)
        started = asyncio.Event()

        @tool("read")
        async def sleep() -> str:
            """Sleeps."""
            started.set()
            await asyncio.sleep(60)
            return "awake"

        first = says("I begin.", call("sleep", id="s"))
        slow = says("never", delay=60)
        script = [first] if where == "tool" else [slow]
        agent = caller(says(task(), task("t2", "Find y.")), *script * 2, tools=(sleep,))

        async def listen() -> None:
            async with aclosing(agent.stream("go", session)) as events:
                async for _ in events:
                    pass

        working = asyncio.create_task(listen())
        if where == "tool":
            await started.wait()
        else:
            assert isinstance(agent.model, ScriptedModel)
            while len(agent.model.requests) < 3:
                await asyncio.sleep(0.01)
        working.cancel()
        async with asyncio.timeout(30):  # the tool and the model would take 60 seconds
            await asyncio.gather(working, return_exceptions=True)
        unknown = [f"Error: {UNKNOWN_OUTCOME}"]
        assert [result_text(r) for r in await stored_results(store, session.id)] == unknown * 2
        for subagent in await subagent_sessions(store, session.id):
            kept = View.fold(await store.path(subagent.id))
            calls = [p for m in kept.messages for p in m.parts if isinstance(p, ToolCall)]
            answers = await stored_results(store, subagent.id)
            assert [r.call_id for r in answers] == [c.id for c in calls]
            assert [r.status for r in answers] == ["interrupted"] * len(calls)
        kept = View.fold(await store.path(session.id))
        later = msgspec.structs.replace(agent, model=ScriptedModel(["I go on."]))
        assert (await run(later, Session(store, session.id, kept))).reason == "answered"

    in_store(tmp_path, story)


KILLED = """
import asyncio, os, signal, sys
from pathlib import Path
from tests.agent.test_subagents import main_session, caller, task
from recollect.store.open_store import open_store
from recollect.testing import call, says
from recollect.tools.tool import tool

@tool("read")
async def die() -> str:
    "Ends the program."
    os.kill(os.getpid(), signal.SIGKILL)
    return ""

async def main() -> None:
    async with open_store(Path(sys.argv[1])) as store:
        session = await main_session(store)
        agent = caller(says(task()), says(call("die", id="d")), tools=(die,))
        async for _ in agent.stream("go", session):
            pass

asyncio.run(main())
"""


def test_after_a_kill_the_sub_agent_is_found_by_its_link_and_not_run_again(tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", KILLED, str(tmp_path / "s.db")],
        cwd=Path(__file__).parents[2],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        check=False,
        timeout=60,
    )
    assert ended.returncode == -signal.SIGKILL

    async def story(store: SqliteStore) -> None:
        (main,) = [s for s in await store.sessions(project=HERE) if s.title == "main"]
        (subagent,) = await subagent_sessions(store, main.id)
        assert await links(store, main.id) == [SessionLink("subagent", subagent.id, "t1")]
        assert await links(store, subagent.id) == [SessionLink("parent", main.id, "t1")]
        assert await stored_results(store, main.id) == []
        before = subagent.entries
        session = Session(store, main.id, View.fold(await store.path(main.id)))
        agent = caller("I go on.")
        done = await run(agent, session, "and?")
        assert done.reason == "answered"
        for wire in (GeminiWire(model="m"), OpenAIWire(model="m"), AnthropicWire(model="m")):
            encode(wire, done.session.view(), RequestOptions(model="m"))
        assert (await store.session(subagent.id)).entries == before
        assert len(await subagent_sessions(store, main.id)) == 1

    in_store(tmp_path, story)

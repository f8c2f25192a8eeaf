"""How sub-agents end when they do not answer: failure, cancellation, a kill."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from contextlib import aclosing
from pathlib import Path

import msgspec
import pytest

from recollect.agent.exchange import Session
from recollect.agent.subagents import SessionLink, read_subagent_usage
from recollect.agent.tool_calls import UNKNOWN_OUTCOME, ToolStopped
from recollect.codecs.anthropic import AnthropicWire
from recollect.codecs.encoder import encode
from recollect.codecs.gemini import GeminiWire
from recollect.codecs.openai import OpenAIWire
from recollect.codecs.wire_protocol import RequestOptions
from recollect.entries import ToolCall
from recollect.errors import BadReply
from recollect.store.sqlite import SqliteStore
from recollect.testing import ScriptedModel, ScriptLine, call, fails, says
from recollect.tools.tool import ToolBroken, tool
from recollect.view.view import View
from tests.agent.test_subagents import (
    HERE,
    begun,
    caller,
    helpers,
    in_store,
    links,
    played,
    results,
    task,
    text_of,
)


@pytest.mark.parametrize(
    ("script", "status", "why"),
    [
        ([fails(BadReply("a page"))], "error", "the sub-agent failed: got a page instead"),
        ([says(call("look", what="1")), says(call("look", what="2"))], "turns", "within 2 turns"),
        ([says("", finish="stop")], "empty", "without an answer"),
    ],
)
def test_what_goes_wrong_in_a_sub_agent_is_the_tools_error_and_the_caller_goes_on(
    tmp_path: Path, script: list[ScriptLine], status: str, why: str
) -> None:
    async def story(store: SqliteStore) -> None:
        talk = await begun(store)
        done = await played(caller(says(task()), *script, "I see.", turns=2), talk)
        assert done.why == "answered"
        (helper,) = await helpers(store, talk.session)
        (result,) = await results(store, talk.session)
        assert (result.is_error, result.status) == (True, status)
        assert why in text_of(result)
        assert helper.id in text_of(result)
        spent = read_subagent_usage(result)
        assert spent is not None
        assert spent.session == helper.id

    in_store(tmp_path, story)


def test_a_sub_agent_that_repeats_itself_is_stopped(tmp_path: Path) -> None:
    async def story(store: SqliteStore) -> None:
        talk = await begun(store)
        same = [says(call("look", id=f"c{n}", what="x")) for n in range(10)]
        await played(caller(says(task()), *same, "I see."), talk)
        (result,) = await results(store, talk.session)
        assert (result.is_error, result.status) == (True, "loop")

    in_store(tmp_path, story)


def test_a_machine_at_fault_in_a_sub_agent_stops_the_caller_as_well(tmp_path: Path) -> None:
    async def story(store: SqliteStore) -> None:
        @tool("read")
        async def fill() -> str:
            """Fills the disk."""
            raise ToolBroken("no space left")

        talk = await begun(store)
        agent = caller(says(task()), says(call("fill")), tools=(fill,))
        with pytest.raises(ToolStopped, match="no space left"):
            await played(agent, talk)
        (result,) = await results(store, talk.session)
        assert (result.is_error, result.status) == (True, "broken")

    in_store(tmp_path, story)


@pytest.mark.parametrize("where", ["tool", "model"])
def test_who_cancels_the_caller_ends_the_sub_agent_at_a_clean_point(
    tmp_path: Path, where: str
) -> None:
    async def story(store: SqliteStore) -> None:
        talk = await begun(store)
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
            async with aclosing(agent.run("go", talk)) as events:
                async for _ in events:
                    pass

        working = asyncio.create_task(listen())
        if where == "tool":
            await started.wait()
        else:
            assert isinstance(agent.model, ScriptedModel)
            while len(agent.model.requests) < 3:
                await asyncio.sleep(0.01)
        began = time.monotonic()
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)
        assert time.monotonic() - began < 1
        unknown = [f"Error: {UNKNOWN_OUTCOME}"]
        assert [text_of(r) for r in await results(store, talk.session)] == unknown * 2
        for helper in await helpers(store, talk.session):
            kept = View.fold(await store.path(helper.id))
            calls = [p for m in kept.messages for p in m.parts if isinstance(p, ToolCall)]
            answers = await results(store, helper.id)
            assert [r.call_id for r in answers] == [c.id for c in calls]
            assert [r.status for r in answers] == ["interrupted"] * len(calls)
        kept = View.fold(await store.path(talk.session))
        later = msgspec.structs.replace(agent, model=ScriptedModel(["I go on."]))
        assert (await played(later, Session(store, talk.session, kept))).why == "answered"

    in_store(tmp_path, story)


KILLED = """
import asyncio, os, signal, sys
from pathlib import Path
from tests.agent.test_tasks import begun, caller, task
from recollect.store.sqlite import open_store
from recollect.testing import call, says
from recollect.tools.contract import tool

@tool("read")
async def die() -> str:
    "Ends the program."
    os.kill(os.getpid(), signal.SIGKILL)
    return ""

async def main() -> None:
    async with open_store(Path(sys.argv[1])) as store:
        talk = await begun(store)
        agent = caller(says(task()), says(call("die", id="d")), tools=(die,))
        async for _ in agent.run("go", talk):
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
        (helper,) = await helpers(store, main.id)
        assert await links(store, main.id) == [SessionLink("subagent", helper.id, "t1")]
        assert await links(store, helper.id) == [SessionLink("parent", main.id, "t1")]
        assert await results(store, main.id) == []
        before = helper.entries
        talk = Session(store, main.id, View.fold(await store.path(main.id)))
        agent = caller("I go on.")
        done = await played(agent, talk, "and?")
        assert done.why == "answered"
        for wire in (GeminiWire(model="m"), OpenAIWire(model="m"), AnthropicWire(model="m")):
            encode(wire, done.talk.view, RequestOptions(model="m"))
        assert (await store.session(helper.id)).entries == before
        assert len(await helpers(store, main.id)) == 1

    in_store(tmp_path, story)

"""A process in which an agent works and says so, to be killed by its parent.

Run as `python agent_worker.py … MODE STORE SESSION ROOT ARGUMENT`, where the dots are the two words
that `children.Child` puts before a worker's own. Facts go out as `worker.py` sends them: `try`
before a prompt, `prompt` when the agent has told of anything after it, `ok` when a reply is kept,
`ran` when a result is, `stage` when the moment is there at which the parent wants to kill.
Each run of `work_slowly` is one line in the file `runs` in ROOT.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import AsyncGenerator
from pathlib import Path
from zlib import crc32

from recollect.agent.exchange import ReplyFinished
from recollect.agent.loop import Agent
from recollect.agent.run_events import AgentEvent
from recollect.agent.tool_calls import CallPermission, ToolFinished, ToolStarted
from recollect.codecs.wire_protocol import Delta, RequestOptions
from recollect.compaction.budget import Budget
from recollect.entries import Message, Text, ToolCall
from recollect.errors import ModelError
from recollect.models.model_protocol import Model, ModelEvent, RequestMessages
from recollect.session import Session
from recollect.store.open_store import open_store
from recollect.store.sqlite import SqliteStore
from recollect.testing import ScriptedModel, call, says
from recollect.tools.tool import Tool, ToolContext, tool
from recollect.view.elision_rules import ElisionRules
from recollect.view_loader import load_view
from tests.agent.long_session import TOOLS, Script
from tests.reliability.worker import say

BUDGET = Budget(12_000, 8_000, 6_000, 1_200)
STAGES = ("call-stored", "tool-running", "result-stored", "before-the-reply", "mid-stream")
parking: set[str] = set()  # the stages at which tools stop


async def park(stage: str) -> None:
    say("stage", stage=stage, time=time.time())
    await asyncio.sleep(600)


@tool("run")
async def work_slowly(milliseconds: int, key: str, place: ToolContext) -> str:
    """Works for a while, and leaves a line for each time it does."""
    file = os.open(place.root / "runs", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.write(file, f"{key}\n".encode())
    os.close(file)
    if parking:
        await park("tool-running")
    await asyncio.sleep(milliseconds / 1_000)
    return f"worked for {key}"


TOOLS_HERE = tuple(work_slowly if one.name == work_slowly.name else one for one in TOOLS)


async def everything(tool: Tool, call: ToolCall) -> CallPermission:
    return CallPermission()


def agent_for(model: Model, root: Path) -> Agent:
    return Agent(
        model=model,
        tools=TOOLS_HERE,
        roots=(root,),
        permission_check=everything,
        rules=ElisionRules(root=str(root)),
        budget=BUDGET,
    )


async def conversation(store: SqliteStore, session: str) -> Session:
    return Session(store, session, await load_view(store, session))


def tell(event: AgentEvent) -> None:
    if isinstance(event, ReplyFinished):
        say("ok", ids=[event.session.view().head])
    elif isinstance(event, ToolFinished):
        say("ran", call=event.call.id)


async def prompted(agent: Agent, talk: Session, said: str, stage: str = "") -> None:
    name = said.split(":", maxsplit=1)[0]
    say("try", prompt=name)
    heard = False
    async for event in agent.stream(said, talk):
        if not heard:
            say("prompt", prompt=name)
            heard = True
        tell(event)
        if stage == "call-stored" and isinstance(event, ToolStarted):
            await park(stage)
        if stage == "result-stored" and isinstance(event, ToolFinished):
            await park(stage)


async def session(store: SqliteStore, name: str, root: Path, mark: str) -> None:
    """Turns as chance has them, for ever."""
    script, number = Script(crc32(f"{name}{mark}".encode()), largest=60_000, mark=f"{mark}."), 0
    while True:
        planned, number = script.turn(number), number + 1
        agent = agent_for(ScriptedModel(planned.lines, piece=48), root)
        try:
            await prompted(agent, await conversation(store, name), planned.said)
        except ModelError as error:
            say("failed", text=str(error))


class Parking:
    """Stops before its last reply, or speaks slowly and says every word that it gave."""

    name = "parking"

    def __init__(self, mark: str, stage: str) -> None:
        self._mark, self._stage, self._asked = mark, stage, 0

    async def stream(
        self, messages: RequestMessages, prompt: RequestOptions
    ) -> AsyncGenerator[ModelEvent, None]:
        self._asked += 1
        if self._asked == 1 and self._stage != "mid-stream":
            key = f"{self._mark}.work"
            call_of = call("work_slowly", id=key, milliseconds=1, key=key)
            other = call("work_slowly", id=f"{key}2", milliseconds=1, key=f"{key}2")
            parts = (Text(text=f"reply {self._mark}.0: I work."), call_of, other)
            yield Message(role="model", parts=parts, model=self.name, finish="calls")
            return
        if self._stage != "mid-stream":
            await park("before-the-reply")
        said = f"reply {self._mark}.1:"
        yield Delta("text", said)
        for number in range(100_000):
            said += f" w{number}"
            yield Delta("text", f" w{number}")
            say("piece", text=said, time=time.time())
            await asyncio.sleep(0.02)


async def staged(store: SqliteStore, name: str, root: Path, mark: str, stage: str) -> None:
    """An ordinary turn, then one that stops at the stage."""
    ordinary = agent_for(ScriptedModel([says(f"reply {mark}.o: yes")]), root)
    await prompted(ordinary, await conversation(store, name), f"prompt {mark}.0: begin")
    parking.update({stage} & {"tool-running"})
    agent = agent_for(Parking(mark, stage), root)
    await prompted(agent, await conversation(store, name), f"prompt {mark}.1: work", stage)


async def main(mode: str, path: str, name: str, root: str, mark: str, *rest: str) -> None:
    async with open_store(Path(path)) as store:
        say("ready", pid=os.getpid(), warnings=store.warnings)
        work = session if mode == "session" else staged
        await work(store, name, Path(root), mark, *rest)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[3:]))

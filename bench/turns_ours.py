"""The agent's turn as a user has it: a store on disk, rules, view, budget, the request's bytes.

The model takes no time and answers from a script, but everything up to the bytes of the request is
done by `HttpModel` itself: the prompt, the wire, the encoder that remembers, and every piece of the
body as the connection would be handed it. Nothing is sent. What was measured is checked in the same
process: the last request has every message, and the store too.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Iterator
from contextlib import AsyncExitStack, aclosing
from pathlib import Path
from typing import Any

from bench import conversation
from bench.turns_script import Script, Watch
from recollect.agent.loop import Agent
from recollect.agent.run_events import RunFinished
from recollect.codecs.wire_protocol import Delta, RequestOptions
from recollect.compaction.proposal import Budget
from recollect.engine import open_store
from recollect.entries import Message, Text, ToolCall
from recollect.models.http_model import HttpModel
from recollect.models.model_protocol import ModelEvent, RequestMessages
from recollect.models.resolve import look_up_model
from recollect.session import Session
from recollect.settings import Settings
from recollect.tokens import counter_for
from recollect.tools.tool import Tool, tool
from recollect.view_loader import load_view

MODEL = "gpt-4o"
SESSION = f"{1:032x}"
_FILE = "store.db"
_BATCH = 1_000
# everything is sent, as the peers send everything: no compaction in what is measured
_ENDLESS = Budget(100_000_000, 90_000_000, 80_000_000, 10_000)


async def prepare(place: Path, n: int) -> dict[str, Any]:
    """A session that already has n messages."""
    async with open_store(place / _FILE) as store:
        await store.create(id=SESSION)
        parent = None
        for first in range(0, n, _BATCH):
            more = conversation.messages(min(_BATCH, n - first), first)
            parent = (await store.append(SESSION, more, parent=parent))[-1].id
        await store.index_now()
    return {"messages": n}


class _Encoding:
    """Writes each request as `HttpModel` would send it, and answers from a script at once."""

    def __init__(self, replies: Iterator[Message], piece: int) -> None:
        self._http = HttpModel(look_up_model(MODEL, Settings(), lambda _: None))
        self._replies, self._piece = replies, piece
        self.pages: list[bytes] = []
        self.name = self._http.name

    async def stream(
        self, messages: RequestMessages, prompt: RequestOptions
    ) -> AsyncGenerator[ModelEvent, None]:
        prompt = self._http.options(prompt)
        body = self._http.encoded(self._http.wire(prompt), messages, prompt)
        self.pages = list(body.pages())
        reply = next(self._replies)
        for part in reply.parts:
            if isinstance(part, Text):
                size = self._piece or len(part.text)
                for start in range(0, len(part.text), size):
                    yield Delta("text", part.text[start : start + size])
            elif isinstance(part, ToolCall):
                yield Delta("call", part.arguments, part.name)
        yield reply


def _reader(outputs: Iterator[str]) -> Tool:
    @tool("read")
    async def read_file(path: str, limit: int) -> str:
        """Read a file.

        path: which one
        limit: how many lines
        """
        del path, limit
        return next(outputs)

    return read_file


async def turns(
    place: Path, sizes: tuple[int, ...], count: int, warm_up: int, piece: int = 0
) -> dict[str, Any]:
    """Sessions of several lengths in turn, so that what the machine does hits all of them."""
    async with AsyncExitStack() as stack:
        sessions = []
        for n in sizes:
            store = await stack.enter_async_context(open_store(place / str(n) / _FILE))
            view = await load_view(store, SESSION, counter=counter_for(MODEL))
            talk, script = Session(store, SESSION, view), Script(n, warm_up + count)
            sessions.append(_Session(n, talk, script, Watch(warm_up), piece))
        for number in range(warm_up + count):
            for session in sessions:
                await session.turn(number)
        return {str(session.n): await session.checked() for session in sessions}


class _Session:
    def __init__(self, n: int, talk: Session, script: Script, watch: Watch, piece: int) -> None:
        self.n, self.talk, self.script, self.watch = n, talk, script, watch
        self.model = _Encoding(iter(script.replies), piece)
        tools = (_reader(iter(script.outputs)),)
        self.agent = Agent(model=self.model, tools=tools, budget=_ENDLESS)

    async def turn(self, number: int) -> None:
        with self.watch.turn():
            prompt = self.script.questions[number]
            async with aclosing(self.agent.stream(prompt, self.talk)) as events:
                async for event in events:
                    if isinstance(event, RunFinished):
                        assert (event.reason, event.turns) == ("answered", 2)
                        self.talk = event.session

    async def checked(self) -> dict[str, Any]:
        entries = await self.talk.store.path(SESSION)
        kept = sum(isinstance(entry.body, Message) for entry in entries)
        expected = self.n + 4 * len(self.script.questions)
        assert kept == expected, f"{kept} messages were kept, not {expected}"
        body = b"".join(self.model.pages)
        sent = len(json.loads(body)["messages"])
        assert sent == expected - 1, f"{sent} messages were sent, not {expected - 1}"
        return self.watch.found() | {"bytes": len(body)}

"""The peers' own agents on the same turns: their runner, their session on disk, a scripted model.

What a model says is built as the peer's own value before the clock starts, and comes whole. The
model gets what the peer's runner hands it and takes no time: nothing is turned into a provider's
bytes, which ours does. Tracing is off, where it would send to a server. Each keeps its defaults.
"""

from __future__ import annotations

import importlib.util
from collections.abc import AsyncGenerator, Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar, Protocol

from bench import conversation, peers, views_peers
from bench.peers import SESSION, Task, pieces
from bench.turns_script import Script, Watch
from recollect.entries import Message

_AGENT = "model"
_NAMED = {"app_name": SESSION, "user_id": SESSION, "session_id": SESSION}


class Peer(Protocol):
    module: ClassVar[str]
    package: ClassVar[str]
    does: ClassVar[str]  # for the notes

    async def prepare(self, place: Path, n: int) -> None:
        """A session that already has n messages."""

    async def begin(self, place: Path, n: int, script: Script) -> None: ...

    async def turn(self, question: str) -> str:
        """Until the model has answered; the answer."""

    def messages_sent(self) -> int:
        """How many messages, calls and results the model was given the last time."""


class OpenAIAgents:
    module, package = "agents", "openai-agents"
    does = "Runner.run with a SQLiteSession on disk (WAL, FULL), a scripted Model, tracing off"

    async def prepare(self, place: Path, n: int) -> None:
        session = peers.OpenAIAgents()
        await session.open(place)
        await session.fill(session.convert(conversation.messages(n)))
        await session.close()

    async def begin(self, place: Path, n: int, script: Script) -> None:
        from agents import Agent, ModelResponse, RunConfig, SQLiteSession, Usage, function_tool
        from agents.models.interface import Model

        del n
        replies = iter(
            [
                ModelResponse(output=_items(one), usage=Usage(), response_id=None)
                for one in script.replies
            ]
        )
        outputs, peer = iter(script.outputs), self

        class Scripted(Model):
            async def get_response(self, *_: Any, **request: Any) -> Any:
                peer.last = len(request["input"])
                return next(replies)

            def stream_response(self, *_: Any, **__: Any) -> Any:
                raise NotImplementedError

        agent: Any = Agent(name=_AGENT, model=Scripted(), tools=[function_tool(_reader(outputs))])
        self.session = SQLiteSession(SESSION, place / "agents.db")
        self.run: dict[str, Any] = {
            "session": self.session,
            "run_config": RunConfig(tracing_disabled=True),
        }
        self.agent, self.last = agent, 0

    async def turn(self, question: str) -> str:
        from agents import Runner

        return str((await Runner.run(self.agent, question, **self.run)).final_output)

    def messages_sent(self) -> int:
        return self.last


def _items(message: Message) -> list[Any]:
    from openai.types.responses import (
        ResponseFunctionToolCall,
        ResponseOutputMessage,
        ResponseOutputText,
    )

    _, text, call, _ = pieces(message)
    said = ResponseOutputText(text=text, type="output_text", annotations=[])
    known: dict[str, Any] = {"role": "assistant", "status": "completed", "type": "message"}
    items: list[Any] = [ResponseOutputMessage(id="said", content=[said], **known)]
    if call:
        named = {"call_id": call.id, "name": call.name, "arguments": call.arguments}
        items.append(ResponseFunctionToolCall(type="function_call", **named))
    return items


def _reader(outputs: Iterator[str]) -> Callable[..., Any]:
    async def read_file(path: str, limit: int) -> str:
        """Read a file."""
        del path, limit
        return next(outputs)

    return read_file


class AdkSqlite:
    module, package = "google.adk", "google-adk"
    does = "Runner.run_async with its SqliteSessionService on disk and a scripted BaseLlm"

    def service(self, place: Path) -> Any:
        from google.adk.sessions.sqlite_session_service import SqliteSessionService

        return SqliteSessionService(str(place / "adk.db"))

    async def prepare(self, place: Path, n: int) -> None:
        await self.fill(self.service(place), n)

    async def fill(self, service: Any, n: int) -> None:
        session, made = await service.create_session(**_NAMED), views_peers.GoogleAdk()
        for number, message in enumerate(conversation.messages(n)):
            event = made._event(number, message)
            event.timestamp = session.last_update_time + 0.001
            await service.append_event(session, event)

    async def opened(self, place: Path, n: int) -> Any:
        del n
        return self.service(place)

    async def begin(self, place: Path, n: int, script: Script) -> None:
        from google.adk.agents import LlmAgent
        from google.adk.models.base_llm import BaseLlm
        from google.adk.models.llm_response import LlmResponse
        from google.adk.runners import Runner
        from google.genai import types

        made, peer = views_peers.GoogleAdk(), self
        said = [made._event(0, one).content for one in script.replies]
        # without usage it would write a line to its log for each reply
        used = types.GenerateContentResponseUsageMetadata(prompt_token_count=1, total_token_count=1)
        known: dict[str, Any] = {"partial": False, "usage_metadata": used}
        replies = iter([LlmResponse(content=content, **known) for content in said])

        class Scripted(BaseLlm):
            async def generate_content_async(
                self, llm_request: Any, stream: bool = False
            ) -> AsyncGenerator[Any, None]:
                del stream
                peer.last = len(llm_request.contents)
                yield next(replies)

        tool = _reader(iter(script.outputs))
        agent = LlmAgent(name=_AGENT, model=Scripted(model="scripted"), tools=[tool])
        service = await self.opened(place, n)
        self.runner = Runner(app_name=SESSION, agent=agent, session_service=service)
        self.last = 0

    async def turn(self, question: str) -> str:
        from google.genai import types

        said = types.Content(role="user", parts=[types.Part(text=question)])
        known = {"user_id": SESSION, "session_id": SESSION}
        text = ""
        async for event in self.runner.run_async(**known, new_message=said):
            if event.is_final_response() and event.content:
                text = "".join(part.text or "" for part in event.content.parts)
        return text

    def messages_sent(self) -> int:
        return self.last


class AdkMemory(AdkSqlite):
    does = "the same Runner with its InMemorySessionService: nothing is kept on disk"

    async def prepare(self, place: Path, n: int) -> None:
        pass

    async def opened(self, place: Path, n: int) -> Any:
        from google.adk.sessions import InMemorySessionService

        del place
        service = InMemorySessionService()
        await self.fill(service, n)
        return service


PEERS: dict[str, Any] = {  # a Peer each
    "openai-agents": OpenAIAgents,
    "google-adk": AdkSqlite,
    "google-adk in memory": AdkMemory,
}


def installed(name: str) -> bool:
    try:
        return importlib.util.find_spec(PEERS[name].module) is not None
    except ImportError:
        return False


def task(name: str, what: str) -> Task:
    peer = PEERS[name]()

    async def prepare(place: Path, n: int) -> dict[str, Any]:
        await peer.prepare(place, n)
        return {"messages": n}

    async def turns(place: Path, n: int, count: int, warm_up: int, **_: Any) -> dict[str, Any]:
        script, watch = Script(n, warm_up + count), Watch(warm_up)
        await peer.begin(place, n, script)
        answered = []
        for question in script.questions:
            with watch.turn():
                answered.append(await peer.turn(question))
        assert answered == [pieces(one)[1] for one in script.replies[1::2]], "other answers"
        least = n + 4 * len(script.questions) - 1
        assert peer.messages_sent() >= least, (
            f"{peer.messages_sent()} of {least} messages were sent"
        )
        return watch.found() | {"messages_sent": peer.messages_sent()}

    return {"prepare": prepare, "turns": turns}[what]

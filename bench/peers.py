"""The peers, each as it comes: its own defaults for journal and sync, its own calls.

An adapter turns our messages into the peer's own (beforehand, outside the clock) and then appends
them one by one, as a whole, or reads them back. A peer that is not installed is left out.
"""

from __future__ import annotations

import importlib.util
import json
import sqlite3
import uuid
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, ClassVar, Protocol

from bench import clock, conversation
from recollect.entries import Message, Text, ToolCall, ToolResult

SESSION = "bench"
Task = Callable[..., Coroutine[Any, Any, dict[str, Any]]]


class Peer(Protocol):
    module: ClassVar[str]
    package: ClassVar[str]
    settings: ClassVar[str]  # the peer's defaults, for the notes
    most: ClassVar[int]  # messages; more would take minutes

    def convert(self, messages: list[Message]) -> list[Any]: ...
    async def open(self, place: Path) -> None: ...
    async def append(self, items: list[Any]) -> None: ...
    async def fill(self, items: list[Any]) -> None: ...
    async def load(self) -> int: ...
    async def close(self) -> None: ...


def pieces(message: Message) -> tuple[str, str, ToolCall | None, ToolResult | None]:
    """A message as the peers know it: role, text, call, result."""
    text, call, result = "", None, None
    for part in message.parts:
        if isinstance(part, Text):
            text += part.text
        elif isinstance(part, ToolCall):
            call = part
        elif isinstance(part, ToolResult):
            result = part
            text += "".join(c.text for c in part.content if isinstance(c, Text))
    role = "tool" if result else "assistant" if message.role == "model" else "user"
    return role, text, call, result


class OpenAIAgents:
    module, package, most = "agents", "openai-agents", 100_000
    settings = "WAL, synchronous=FULL (the default of sqlite3); neither hashed nor indexed"

    def convert(self, messages: list[Message]) -> list[Any]:
        return [self._items(message) for message in messages]

    def _items(self, message: Message) -> list[dict[str, Any]]:
        role, text, call, result = pieces(message)
        if result:
            return [{"type": "function_call_output", "call_id": result.call_id, "output": text}]
        items: list[dict[str, Any]] = [{"role": role, "content": text}]
        if call:
            named = {"call_id": call.id, "name": call.name, "arguments": call.arguments}
            items.append({"type": "function_call", **named})
        return items

    async def open(self, place: Path) -> None:
        from agents import SQLiteSession

        self.session = SQLiteSession(SESSION, place / "agents.db")

    async def append(self, items: list[Any]) -> None:
        for item in items:
            await self.session.add_items(item)

    async def fill(self, items: list[Any]) -> None:
        await self.session.add_items([one for item in items for one in item])

    async def load(self) -> int:
        return len(await self.session.get_items())

    async def close(self) -> None:
        self.session.close()


class Hermes:
    module, package, most = "hermes_state", "hermes-agent", 100_000
    settings = "WAL, synchronous=FULL (the default of sqlite3); two full-text indexes"

    def convert(self, messages: list[Message]) -> list[Any]:
        return [self._arguments(message) for message in messages]

    def _arguments(self, message: Message) -> dict[str, Any]:
        role, text, call, result = pieces(message)
        given: dict[str, Any] = {"role": role, "content": text}
        if call:
            function = {"name": call.name, "arguments": call.arguments}
            given["tool_calls"] = [{"id": call.id, "type": "function", "function": function}]
        if result:
            given |= {"tool_call_id": result.call_id, "tool_name": result.name}
        return given

    async def open(self, place: Path) -> None:
        from hermes_state import SessionDB

        self.db = SessionDB(db_path=place / "hermes.db")
        self.db.create_session(SESSION, source="cli")

    async def append(self, items: list[Any]) -> None:
        for item in items:
            self.db.append_message(SESSION, **item)

    fill = append  # it has no call for several that adds to what is there

    async def load(self) -> int:
        return len(self.db.get_messages_as_conversation(SESSION))

    async def close(self) -> None:
        self.db.close()


class Adk:
    module, package, most = "google.adk", "google-adk", 10_000
    settings = "rollback journal, synchronous=FULL (the defaults of sqlite3); a connection per call"

    def convert(self, messages: list[Message]) -> list[Any]:
        return [self._event(message) for message in messages]

    def _event(self, message: Message) -> Any:
        from google.adk.events import Event
        from google.genai import types

        role, text, call, result = pieces(message)
        if result:
            parts = [types.Part.from_function_response(name=result.name, response={"output": text})]
        else:
            parts = [types.Part(text=text)]
        if call:
            arguments = json.loads(call.arguments)
            parts.append(types.Part.from_function_call(name=call.name, args=arguments))
        who = "model" if role == "assistant" else "user"
        content = types.Content(role=who, parts=parts)
        return Event(author=who, invocation_id=SESSION, content=content)

    async def open(self, place: Path) -> None:
        from google.adk.sessions.sqlite_session_service import SqliteSessionService

        self.service = SqliteSessionService(str(place / "adk.db"))
        self.named = {"app_name": SESSION, "user_id": SESSION, "session_id": SESSION}
        self.session = await self.service.get_session(**self.named)
        self.session = self.session or await self.service.create_session(**self.named)

    async def append(self, items: list[Any]) -> None:
        for item in items:
            item.timestamp = self.session.last_update_time + 0.001
            await self.service.append_event(self.session, item)

    fill = append

    async def load(self) -> int:
        session = await self.service.get_session(**self.named)
        return len(session.events) if session else 0

    async def close(self) -> None:
        pass


class OpenHands:
    module, package, most = "openhands.sdk", "openhands-sdk", 1_000
    settings = (
        "a file per event, not synced, and the directory is listed at each append (1,000 is the "
        "most that ends in bearable time); text-only MessageEvents; needs Python 3.12"
    )

    def convert(self, messages: list[Message]) -> list[Any]:
        return [self._event(message) for message in messages]

    def _event(self, message: Message) -> Any:
        from openhands.sdk.event import MessageEvent
        from openhands.sdk.llm import Message as LlmMessage
        from openhands.sdk.llm import TextContent

        role, text, call, _ = pieces(message)
        text += f" {call.name} {call.arguments}" if call else ""
        said = LlmMessage(
            role="assistant" if role == "assistant" else "user", content=[TextContent(text=text)]
        )
        return MessageEvent(source="agent" if role == "assistant" else "user", llm_message=said)

    async def open(self, place: Path) -> None:
        from openhands.sdk.conversation.event_store import EventLog
        from openhands.sdk.io import LocalFileStore

        self.place = place / "openhands"
        self.log = EventLog(LocalFileStore(str(self.place)))

    async def append(self, items: list[Any]) -> None:
        for item in items:
            self.log.append(item)

    fill = append

    async def load(self) -> int:
        await self.open(self.place.parent)  # an open log hands out what is in memory
        return len(list(self.log))

    async def close(self) -> None:
        pass


class LangGraph:
    module, package, most = "langgraph.checkpoint.sqlite", "langgraph-checkpoint-sqlite", 1_000
    settings = "WAL, synchronous=FULL (the default of sqlite3); the whole state at each step"

    def convert(self, messages: list[Message]) -> list[Any]:
        return [self._message(message) for message in messages]

    def _message(self, message: Message) -> Any:
        from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

        role, text, call, result = pieces(message)
        known = {"content": text, "id": uuid.uuid4().hex}
        if result:
            return ToolMessage(tool_call_id=result.call_id, name=result.name, **known)
        if role == "user":
            return HumanMessage(**known)
        calls = []
        if call:
            calls = [{"id": call.id, "name": call.name, "args": json.loads(call.arguments)}]
        return AIMessage(tool_calls=calls, **known)

    async def open(self, place: Path) -> None:
        from langgraph.checkpoint.sqlite import SqliteSaver
        from langgraph.graph import MessagesState, StateGraph

        self.connection = sqlite3.connect(place / "langgraph.db", check_same_thread=False)
        graph = StateGraph(MessagesState)
        graph.add_node("agent", lambda _: {})
        graph.set_entry_point("agent")
        graph.set_finish_point("agent")
        self.graph = graph.compile(checkpointer=SqliteSaver(self.connection))
        self.thread: Any = {"configurable": {"thread_id": SESSION}}

    async def append(self, items: list[Any]) -> None:
        for item in items:
            self.graph.update_state(self.thread, {"messages": [item]}, as_node="agent")

    async def fill(self, items: list[Any]) -> None:
        self.graph.update_state(self.thread, {"messages": items}, as_node="agent")

    async def load(self) -> int:
        return len(self.graph.get_state(self.thread).values["messages"])

    async def close(self) -> None:
        self.connection.close()


PEERS: dict[str, Any] = {  # a Peer each
    "SQLiteSession": OpenAIAgents,
    "hermes": Hermes,
    "OpenHands": OpenHands,
    "ADK": Adk,
    "LangGraph": LangGraph,
}
_BATCHING = ("SQLiteSession", "LangGraph")


def installed(name: str) -> bool:
    try:
        return importlib.util.find_spec(PEERS[name].module) is not None
    except ImportError:
        return False


def can(name: str, task: str, count: int) -> bool:
    """Whether a peer has such a call, and finishes in bearable time."""
    peer = PEERS[name]()
    if name in _BATCHING and task in ("batch", "load"):
        return True
    return task != "batch" and count <= peer.most


def task(name: str, what: str) -> Task:
    peer = PEERS[name]()

    async def append(place: Path, n: int) -> dict[str, Any]:
        return await _write(peer, place, [peer.convert(conversation.messages(n))], peer.append)

    async def batch(place: Path, batches: int, size: int) -> dict[str, Any]:
        items = peer.convert(conversation.messages(batches * size))
        parts = [items[first : first + size] for first in range(0, len(items), size)]
        return await _write(peer, place, parts, peer.fill)

    async def load(place: Path, n: int, repeats: int = 5, **_: Any) -> dict[str, Any]:
        await peer.open(place)
        await peer.fill(peer.convert(conversation.messages(n)))
        found = await clock.repeat(peer.load, repeats)
        await peer.close()
        return found

    tasks: dict[str, Task] = {"append": append, "batch": batch, "load": load}
    return tasks[what]


async def _write(
    peer: Peer, place: Path, parts: list[list[Any]], write: Callable[[list[Any]], Any]
) -> dict[str, Any]:
    await peer.open(place)
    clock.settle()
    before = clock.now()
    for part in parts:
        await write(part)
    acknowledged = clock.now()
    await peer.close()
    return clock.spans(before, acknowledged, clock.now(), place)

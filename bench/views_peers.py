"""The peers that make a list of messages ready for a model, through the functions they call for it.

Their items are built before the clock starts and the whole history is handed over each time, which
is how they work: they keep no view from one request to the next. The functions are internal to
their packages, so another version may not have them; then the peer is left out with a note.
"""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar, Protocol

from bench import clock, peers, views_ours
from bench.peers import Task, pieces
from recollect.entries import Message

_AGENT = "model"


class Peer(Protocol):
    module: ClassVar[str]
    does: ClassVar[str]  # for the notes

    def prepare(self, messages: list[Message]) -> Callable[[], int]:
        """What makes them ready and says how many there are."""


class OpenAIAgents:
    module = "agents"
    does = (
        "normalize_input_items_for_api, drop_orphan_function_calls, ToolOutputTrimmer with its "
        "defaults; nothing is counted"
    )

    def prepare(self, messages: list[Message]) -> Callable[[], int]:
        from agents import Agent
        from agents.extensions.tool_output_trimmer import ToolOutputTrimmer
        from agents.run_config import CallModelData, ModelInputData
        from agents.run_internal.items import (
            drop_orphan_function_calls,
            normalize_input_items_for_api,
        )

        items = [item for items in peers.OpenAIAgents().convert(messages) for item in items]
        agent, trim = Agent(name=_AGENT), ToolOutputTrimmer()

        def ready() -> int:
            kept = drop_orphan_function_calls(normalize_input_items_for_api(items))
            given = ModelInputData(input=kept, instructions=None)
            return len(trim(CallModelData(model_data=given, agent=agent, context=None)).input)

        return ready


class GoogleAdk:
    module = "google.adk"
    does = "_get_contents: pairs calls with responses, drops orphans, copies; nothing is counted"

    def prepare(self, messages: list[Message]) -> Callable[[], int]:
        from google.adk.flows.llm_flows.contents import _get_contents

        events = [self._event(number, message) for number, message in enumerate(messages)]
        return lambda: len(_get_contents(None, events, _AGENT))

    def _event(self, number: int, message: Message) -> Any:
        from google.adk.events import Event
        from google.genai import types

        role, text, call, result = pieces(message)
        parts = [types.Part(text=text)]
        if result:
            answer = {"id": result.call_id, "name": result.name, "response": {"output": text}}
            parts = [types.Part(function_response=types.FunctionResponse(**answer))]
        if call:
            fields = {"id": call.id, "name": call.name, "args": json.loads(call.arguments)}
            parts.append(types.Part(function_call=types.FunctionCall(**fields)))
        author = _AGENT if role == "assistant" else "user"
        content = types.Content(role=author, parts=parts)
        return Event(author=author, invocation_id=f"turn {number // 4}", content=content)


PEERS: dict[str, Any] = {"openai-agents": OpenAIAgents, "google-adk": GoogleAdk}  # a Peer each


def installed(name: str) -> bool:
    try:
        return importlib.util.find_spec(PEERS[name].module) is not None
    except ImportError:
        return False


def task(name: str, what: str) -> Task:
    async def ready(_: Path, n: int, working: bool, repeats: int = 5) -> dict[str, Any]:
        work = PEERS[name]().prepare(views_ours.messages(n, working=working))

        async def once() -> int:
            return int(work())

        return await clock.repeat(once, repeats)

    return {"ready": ready}[what]

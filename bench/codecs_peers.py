"""The peers that turn a history into a provider's messages, through the functions they call for it.

Their messages are built before the clock starts, and the whole history is mapped each time, which
is how they work: they remember nothing of the request before. They end with Python objects; what
their SDK or client does next, `json.dumps`, is timed as well. The functions are internal to their
packages: where another version does not have them, the peer is left out with a note.
"""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Protocol

from bench import clock, conversation
from bench.codecs_ours import MODELS
from bench.peers import Task, pieces
from recollect.entries import Message

Mapping = Callable[[], Awaitable[list[Any]]]


class Peer(Protocol):
    package: ClassVar[str]
    does: ClassVar[str]  # for the notes
    wires: ClassVar[tuple[str, ...]]

    def prepare(self, wire: str, messages: list[Message]) -> Mapping:
        """What maps them all."""


class PydanticAI:
    package = "pydantic-ai-slim"
    does = "_map_messages of its OpenAI chat, Anthropic and Google models"
    wires = ("openai", "anthropic", "gemini")

    def prepare(self, wire: str, messages: list[Message]) -> Mapping:
        from pydantic_ai.models import ModelRequestParameters

        history, parameters = [self._message(one) for one in messages], ModelRequestParameters()
        model = self._model(wire)

        async def openai() -> list[Any]:
            found: list[Any] = await model._map_messages(history, parameters)
            return found

        async def anthropic() -> list[Any]:
            _, found = await model._map_message(history, parameters, {})
            return list(found)

        async def gemini() -> list[Any]:
            _, found = await model._map_messages(history, parameters)
            return list(found)

        return {"openai": openai, "anthropic": anthropic, "gemini": gemini}[wire]

    def _model(self, wire: str) -> Any:
        name, key = MODELS[wire], {"api_key": "none"}
        if wire == "openai":
            from pydantic_ai.models.openai import OpenAIChatModel
            from pydantic_ai.providers.openai import OpenAIProvider

            return OpenAIChatModel(name, provider=OpenAIProvider(**key))
        if wire == "anthropic":
            from pydantic_ai.models.anthropic import AnthropicModel
            from pydantic_ai.providers.anthropic import AnthropicProvider

            return AnthropicModel(name, provider=AnthropicProvider(**key))
        from pydantic_ai.models.google import GoogleModel
        from pydantic_ai.providers.google import GoogleProvider

        return GoogleModel(name, provider=GoogleProvider(**key))

    def _message(self, message: Message) -> Any:
        from pydantic_ai import messages as theirs

        role, text, call, result = pieces(message)
        if result:
            given = {"tool_name": result.name, "content": text, "tool_call_id": result.call_id}
            return theirs.ModelRequest(parts=[theirs.ToolReturnPart(**given)])
        if role == "user":
            return theirs.ModelRequest(parts=[theirs.UserPromptPart(content=text)])
        parts: list[Any] = [theirs.TextPart(content=text)]
        if call:
            arguments = {"tool_name": call.name, "args": call.arguments, "tool_call_id": call.id}
            parts.append(theirs.ToolCallPart(**arguments))
        return theirs.ModelResponse(parts=parts, model_name=message.model)


class LiteLLM:
    package = "litellm"
    does = (
        "anthropic_messages_pt and gemini_convert_messages_with_history; the OpenAI format is what "
        "it is given"
    )
    wires = ("anthropic", "gemini")

    def prepare(self, wire: str, messages: list[Message]) -> Mapping:
        os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # it would fetch one when imported
        history = [self._message(one) for one in messages]
        convert = {"anthropic": self._anthropic, "gemini": self._gemini}[wire]()

        async def mapped() -> list[Any]:
            return list(convert(messages=list(history), model=MODELS[wire]))

        return mapped

    def _anthropic(self) -> Callable[..., list[Any]]:
        from litellm.litellm_core_utils.prompt_templates.factory import anthropic_messages_pt

        return partial(anthropic_messages_pt, llm_provider="anthropic")

    def _gemini(self) -> Callable[..., list[Any]]:
        from litellm.llms.vertex_ai.gemini.transformation import (
            gemini_convert_messages_with_history,
        )

        found: Callable[..., list[Any]] = gemini_convert_messages_with_history
        return found

    def _message(self, message: Message) -> dict[str, Any]:
        role, text, call, result = pieces(message)
        mapped: dict[str, Any] = {"role": role, "content": text}
        if result:
            mapped |= {"tool_call_id": result.call_id, "name": result.name}
        if call:
            function = {"name": call.name, "arguments": call.arguments}
            mapped["tool_calls"] = [{"id": call.id, "type": "function", "function": function}]
        return mapped


PEERS: dict[str, Any] = {"pydantic-ai": PydanticAI, "litellm": LiteLLM}  # a Peer each


def python(name: str) -> str:
    """The interpreter that has this peer: pydantic-ai wants newer SDKs than the others allow."""
    given = os.environ.get("RECOLLECT_PYDANTIC_AI") if name == "pydantic-ai" else None
    return given or sys.executable


def version(name: str) -> str:
    """Empty where it is not installed."""
    ask = "import importlib.metadata, sys; print(importlib.metadata.version(sys.argv[1]))"
    call = [python(name), "-c", ask, PEERS[name].package]
    return subprocess.run(call, check=False, capture_output=True, text=True).stdout.strip()


def task(name: str, what: str) -> Task:
    async def mapped(_: Path, n: int, wire: str, joined: bool, repeats: int = 5) -> dict[str, Any]:
        work = PEERS[name]().prepare(wire, conversation.messages(n))

        async def once() -> int:
            found = await work()
            return len(_dumped(found)) if joined else len(found)

        found = await clock.repeat(once, repeats)
        assert len(await work()) == n, "messages are missing"
        return found

    return {"whole": mapped}[what]


def _dumped(found: list[Any]) -> bytes:
    """As httpx does it; pydantic-ai puts bytes where Gemini wants base64."""
    text = json.dumps(found, ensure_ascii=False, separators=(",", ":"), default=_base64)
    return text.encode()


def _base64(value: Any) -> str:
    return base64.b64encode(value).decode()

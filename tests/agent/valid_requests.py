"""Checks that a provider would accept a request: by the official SDKs' types, and by rules that
types do not state, such as the order of roles and one result for each call."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from recollect.codecs.anthropic import AnthropicWire
from recollect.codecs.encoder import Encoder
from recollect.codecs.gemini import GeminiWire
from recollect.codecs.openai import OpenAIWire
from recollect.codecs.text_tools import TextToolsWire
from recollect.codecs.wire_protocol import Declaration, RequestOptions, Wire
from recollect.entries import Message
from recollect.view.view import View
from tests.codecs.test_changing_provider import check as check_types

__all__ = ["Providers", "check_pairs", "check_types", "wires"]


def wires(tools: tuple[Declaration, ...]) -> tuple[Wire, ...]:
    return (
        GeminiWire(model="gemini-2.5-pro"),
        OpenAIWire(model="gpt-5"),
        AnthropicWire(model="claude-sonnet-4-5"),
        TextToolsWire(wire=OpenAIWire(model="smollm2"), tools=tools),
    )


class Providers:
    """Every provider's request for a session that grows."""

    def __init__(self, tools: tuple[Declaration, ...]) -> None:
        self._encoders = [Encoder(wire) for wire in wires(tools)]
        self._tools = tools

    def check(self, shown: View | Sequence[Message], *, types: bool) -> None:
        for encoder in self._encoders:
            wire = encoder.wire
            body = encoder.encode(shown, RequestOptions(model="m", tools=self._tools)).body
            check_pairs(wire, json.loads(body))
            if types:
                check_types(wire, body)


def check_pairs(wire: Wire, request: dict[str, Any]) -> None:
    if isinstance(wire, TextToolsWire):
        roles = [message["role"] for message in request["messages"]]
        assert "tool" not in roles
        assert not any("tool_calls" in message for message in request["messages"])
    elif wire.name == "openai":
        _check_openai(request["messages"])
    elif wire.name == "anthropic":
        _check_anthropic(request["messages"])
    else:
        _check_gemini(request["contents"])


def _check_openai(messages: list[dict[str, Any]]) -> None:
    open_calls: list[str] = []
    for message in messages:
        if message["role"] == "tool":
            open_calls.remove(message["tool_call_id"])
            continue
        assert not open_calls, f"{open_calls} have no result"
        open_calls = [call["id"] for call in message.get("tool_calls", ())]
        assert len(set(open_calls)) == len(open_calls)
    assert not open_calls


def _check_anthropic(messages: list[dict[str, Any]]) -> None:
    roles = [message["role"] for message in messages]
    assert roles == ["user" if n % 2 == 0 else "assistant" for n in range(len(roles))]
    open_calls: list[str] = []
    for message in messages:
        blocks = message["content"]
        answered = [b["tool_use_id"] for b in blocks if b["type"] == "tool_result"]
        assert sorted(answered) == sorted(open_calls)
        # results come first, the words after them
        assert all(b["type"] == "tool_result" for b in blocks[: len(answered)])
        open_calls = [b["id"] for b in blocks if b["type"] == "tool_use"]
        assert len(set(open_calls)) == len(open_calls)
    assert not open_calls


def _check_gemini(contents: list[dict[str, Any]]) -> None:
    assert contents[0]["role"] == "user"
    open_calls: list[str] = []
    for content in contents:
        parts = content["parts"]
        answers = [p["functionResponse"]["name"] for p in parts if "functionResponse" in p]
        assert answers == open_calls
        open_calls = [p["functionCall"]["name"] for p in parts if "functionCall" in p]
        assert not (open_calls and content["role"] != "model")
    assert not open_calls

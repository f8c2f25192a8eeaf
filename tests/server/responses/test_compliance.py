"""What the compliance suite of Open Responses checks, in our words, over every provider's format.

The types below are the standard's response object and its events, as far as they are required; they
are read strictly, so a missing field or one of another type fails.
"""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any, Literal

import httpx2
import msgspec
import pytest

from recollect.testing import ProviderLine, call, says
from tests.server.responses.harness import ServerThread, stage

WIRES = ["openai", "anthropic", "gemini"]
TERMINAL = ("response.completed", "response.failed", "response.incomplete")


class TokenDetails(msgspec.Struct):
    cached_tokens: int


class ReasoningDetails(msgspec.Struct):
    reasoning_tokens: int


class TokenUsage(msgspec.Struct):
    input_tokens: int
    output_tokens: int
    total_tokens: int
    input_tokens_details: TokenDetails
    output_tokens_details: ReasoningDetails


class OutputText(msgspec.Struct, tag_field="type", tag="output_text"):
    text: str
    annotations: list[Any]


class SummaryText(msgspec.Struct, tag_field="type", tag="summary_text"):
    text: str


class MessageItem(msgspec.Struct, tag_field="type", tag="message"):
    id: str
    status: Literal["in_progress", "completed", "incomplete"]
    role: Literal["assistant"]
    content: list[OutputText]


class CallItem(msgspec.Struct, tag_field="type", tag="function_call"):
    id: str
    call_id: str
    name: str
    arguments: str
    status: Literal["in_progress", "completed", "incomplete"]


class ReasoningItem(msgspec.Struct, tag_field="type", tag="reasoning"):
    id: str
    summary: list[SummaryText]


Item = MessageItem | CallItem | ReasoningItem


class FunctionTool(msgspec.Struct, tag_field="type", tag="function"):
    name: str
    description: str | None
    parameters: dict[str, Any] | None
    strict: bool | None


class ApiFailure(msgspec.Struct):
    code: str
    message: str


class ResponseResource(msgspec.Struct):
    id: str
    object: Literal["response"]
    created_at: int
    completed_at: int | None
    status: str
    incomplete_details: dict[str, str] | None
    model: str
    previous_response_id: str | None
    instructions: str | None
    output: list[Item]
    error: ApiFailure | None
    tools: list[FunctionTool]
    tool_choice: str | dict[str, Any]
    truncation: Literal["auto", "disabled"]
    parallel_tool_calls: bool
    text: dict[str, Any]
    top_p: float
    presence_penalty: float
    frequency_penalty: float
    top_logprobs: int
    temperature: float
    reasoning: dict[str, Any] | None
    usage: TokenUsage | None
    max_output_tokens: int | None
    max_tool_calls: int | None
    store: bool
    background: bool
    service_tier: str
    metadata: dict[str, str]
    user: str | None
    safety_identifier: str | None
    prompt_cache_key: str | None


class _Event(msgspec.Struct, tag_field="type"):
    sequence_number: int


class Created(_Event, tag="response.created"):
    response: ResponseResource


class InProgress(_Event, tag="response.in_progress"):
    response: ResponseResource


class Completed(_Event, tag="response.completed"):
    response: ResponseResource


class Incomplete(_Event, tag="response.incomplete"):
    response: ResponseResource


class Failed(_Event, tag="response.failed"):
    response: ResponseResource


class ItemAdded(_Event, tag="response.output_item.added"):
    output_index: int
    item: Item


class ItemDone(_Event, tag="response.output_item.done"):
    output_index: int
    item: Item


class PartAdded(_Event, tag="response.content_part.added"):
    item_id: str
    output_index: int
    content_index: int
    part: OutputText


class PartDone(_Event, tag="response.content_part.done"):
    item_id: str
    output_index: int
    content_index: int
    part: OutputText


class TextDelta(_Event, tag="response.output_text.delta"):
    item_id: str
    output_index: int
    content_index: int
    delta: str


class TextDone(_Event, tag="response.output_text.done"):
    item_id: str
    output_index: int
    content_index: int
    text: str


class ArgumentsDelta(_Event, tag="response.function_call_arguments.delta"):
    item_id: str
    output_index: int
    delta: str


class ArgumentsDone(_Event, tag="response.function_call_arguments.done"):
    item_id: str
    output_index: int
    arguments: str


Event = (
    Created
    | InProgress
    | Completed
    | Incomplete
    | Failed
    | ItemAdded
    | ItemDone
    | PartAdded
    | PartDone
    | TextDelta
    | TextDone
    | ArgumentsDelta
    | ArgumentsDone
)

WEATHER = {
    "type": "function",
    "name": "get_weather",
    "description": "Current weather of a place",
    "parameters": {
        "type": "object",
        "properties": {"location": {"type": "string", "description": "City and state"}},
        "required": ["location"],
    },
}


def ask(server: ServerThread, **body: Any) -> ResponseResource:
    answer = _post(server, body)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "application/json"
    return msgspec.json.decode(answer.content, type=ResponseResource)


def ask_streamed(server: ServerThread, **body: Any) -> list[Any]:
    """The events; each block names its type, and the last one is the literal end."""
    answer = _post(server, body | {"stream": True})
    assert answer.headers["content-type"].startswith("text/event-stream")
    *blocks, last, rest = answer.text.split("\n\n")
    assert (last, rest) == ("data: [DONE]", "")
    events: list[Any] = []
    for block in blocks:
        name, data = block.split("\n")
        event = msgspec.json.decode(data.removeprefix("data: "), type=Event)
        assert name == f"event: {json.loads(data[6:])['type']}"
        events.append(event)
    return events


def _post(server: ServerThread, body: dict[str, Any]) -> httpx2.Response:
    headers = {"authorization": "Bearer token-of-ann"}
    return httpx2.post(
        f"{server.url}/responses", json={"model": "mine"} | body, headers=headers, timeout=60
    )


def said(role: str, content: Any) -> dict[str, Any]:
    return {"type": "message", "role": role, "content": content}


@pytest.mark.parametrize("wire", WIRES)
def test_texts_and_turns_are_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wire: Any
) -> None:
    inputs: list[list[dict[str, Any]]] = [
        [said("user", "Greet me in three words.")],
        [said("system", "You are a pirate."), said("user", "Greet me.")],
        [said("developer", "You are a pirate."), said("user", "Greet me.")],
        [
            said("user", "I am Alice."),
            said("assistant", "Hello Alice!"),
            said("user", "Who am I?"),
        ],
    ]
    with stage(
        tmp_path, monkeypatch, ["Ahoy there, friend."], wire, repeat=True, validate=True
    ) as of:
        server = of.serve()
        for items in inputs:
            response = ask(server, input=items)
            assert (response.status, response.error) == ("completed", None)
            assert response.output
            assert response.usage is not None


@pytest.mark.parametrize("wire", WIRES)
def test_a_stream_validates_and_ends_with_the_response(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wire: Any
) -> None:
    with stage(tmp_path, monkeypatch, ["1 2 3 4 5"], wire, validate=True) as of:
        events = ask_streamed(of.serve(), input=[said("user", "Count from 1 to 5.")])
        assert isinstance(events[-1], Completed)
        assert [type(e) for e in events if not isinstance(e, TextDelta)] == [
            Created,
            InProgress,
            ItemAdded,
            PartAdded,
            TextDone,
            PartDone,
            ItemDone,
            Completed,
        ]
        assert events[-1].response.status == "completed"
        assert events[-1].response.output == [events[-2].item]


@pytest.mark.parametrize("wire", WIRES)
def test_a_function_is_called_and_its_output_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wire: Any
) -> None:
    called = says(call("get_weather", location="San Francisco, CA"))
    script: list[ProviderLine] = [called, called, called, "64 degrees."]
    choice = {"type": "function", "name": "get_weather"}
    with stage(tmp_path, monkeypatch, script, wire, validate=True) as of:
        server = of.serve()
        events = ask_streamed(server, input="Weather?", tools=[WEATHER])
        added = [e for e in events if isinstance(e, ItemAdded)]
        done = [e for e in events if isinstance(e, ItemDone)]
        assert [type(e.item) for e in added] == [type(e.item) for e in done] == [CallItem]
        assert any(isinstance(e, ArgumentsDelta) for e in events)
        assert any(isinstance(e, ArgumentsDone) for e in events)
        free = ask(server, input=[said("user", "Weather?")], tools=[WEATHER])
        assert [type(item) for item in free.output] == [CallItem]
        first = ask(server, input="Weather?", tools=[WEATHER], tool_choice=choice)
        (item,) = first.output
        assert isinstance(item, CallItem)
        answered = {"type": "function_call_output", "call_id": item.call_id, "output": "64"}
        second = ask(server, input=[answered], previous_response_id=first.id, tools=[WEATHER])
        assert second.status == "completed"
        assert second.output


@pytest.mark.parametrize("wire", WIRES)
def test_images_files_and_previous_responses_are_accepted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wire: Any
) -> None:
    image = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(30)).decode()
    file = base64.b64encode(b"%PDF-1.1\n%%EOF").decode()
    text = {"type": "input_text", "text": "What is it?"}
    contents: list[Any] = [
        [text, {"type": "input_image", "image_url": f"data:image/png;base64,{image}"}],
        [
            text,
            {
                "type": "input_file",
                "filename": "fixture.pdf",
                "file_data": f"data:application/pdf;base64,{file}",
            },
        ],
    ]
    with stage(
        tmp_path, monkeypatch, ["OK"], wire, window=200_000, repeat=True, validate=True
    ) as of:
        server = of.serve()
        for content in contents:
            assert ask(server, input=[said("user", content)]).status == "completed"
        first = ask(server, input="Remember the word papaya.")
        second = ask(server, input="Which word?", previous_response_id=first.id)
        assert (second.status, second.previous_response_id) == ("completed", first.id)
        assert "papaya" in of.provider.requests[-1].body.decode()

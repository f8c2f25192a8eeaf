"""Every encoded request, reply and chunk fits the types of OpenAI's own library."""

from __future__ import annotations

import types
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any, Union, get_args, get_origin

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.chat.completion_create_params import (
    CompletionCreateParamsNonStreaming,
    CompletionCreateParamsStreaming,
)
from pydantic import ConfigDict, TypeAdapter, ValidationError
from typing_extensions import TypedDict, get_type_hints, is_typeddict

from recollect.codecs.openai import OpenAIWire
from recollect.codecs.repair import repair
from recollect.codecs.wire_protocol import RequestOptions
from recollect.entries import Message, Usage
from tests import strategies
from tests.codecs.conversations import Messages
from tests.codecs.openai.test_encode_request import anything, body_of, request_options

WIRES = (
    OpenAIWire(model="this", thinking_switch="reasoning_effort"),
    OpenAIWire(model="this", system_role="developer", media=("image/", "audio/", "application/")),
)


def strict(kind: Any) -> Any:
    """The type with lists for what pydantic would only look at when it is iterated, and with every
    field forbidden that the library does not name."""
    if is_typeddict(kind):
        return _strict_dict(kind)
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return Union[tuple(strict(one) for one in inner)]  # noqa: UP007
    if origin in (Iterable, Sequence) or getattr(origin, "__name__", "") == "SequenceNotStr":
        return list[strict(inner[0])]  # type: ignore[misc]
    return kind


@cache
def _strict_dict(kind: Any) -> Any:
    hints = get_type_hints(kind, include_extras=True)
    fields = {name: _strict_field(hint) for name, hint in hints.items()}
    make: Any = TypedDict  # a type checker wants its fields spelt out
    made = make(kind.__name__, fields, total=False)
    made.__pydantic_config__ = ConfigDict(extra="forbid")
    return made


def _strict_field(hint: Any) -> Any:
    origin = get_origin(hint)
    if getattr(origin, "_name", "") in ("Required", "NotRequired"):
        return origin[strict(get_args(hint)[0])]
    return strict(hint)


STREAMING: TypeAdapter[Any] = TypeAdapter(strict(CompletionCreateParamsStreaming))
IN_ONE_PIECE: TypeAdapter[Any] = TypeAdapter(strict(CompletionCreateParamsNonStreaming))


@pytest.mark.parametrize(
    "wrong",
    [
        {"role": "user", "content": "x", "invented": 1},
        {"role": "user", "content": [{"type": "text", "txt": "x"}]},
        {"role": "tool", "content": "x"},
        {"role": "assistant", "tool_calls": [{"id": "a", "type": "function"}]},
    ],
)
def test_the_check_itself_refuses_what_is_wrong(wrong: dict[str, Any]) -> None:
    body = {"model": "m", "stream": True, "messages": [wrong]}
    with pytest.raises(ValidationError):
        STREAMING.validate_python(body)


@given(anything, request_options(), st.sampled_from(WIRES))
def test_every_request_is_one_of_the_librarys(
    messages: Messages, options: RequestOptions, wire: OpenAIWire
) -> None:
    repaired = repair(messages, wire.rules).messages
    body = msgspec.json.decode(body_of(wire, repaired, options))
    (STREAMING if options.stream else IN_ONE_PIECE).validate_python(body)


replies = st.builds(
    Message,
    role=st.just("model"),
    parts=st.lists(strategies.parts, max_size=4).map(tuple),
    model=strategies.text,
    finish=st.sampled_from(["", "stop", "length", "calls", "safety", "other", "interrupted"]),
    usage=st.none()
    | st.builds(
        Usage,
        input=st.integers(0, 2**20),
        output=st.integers(0, 2**20),
        cached=st.integers(0, 9),
        thoughts=st.integers(0, 9),
    ),
)


@given(replies)
def test_every_reply_is_one_of_the_librarys(reply: Message) -> None:
    made = ChatCompletion.model_validate_json(
        OpenAIWire(model="m").encode_reply(reply), strict=True
    )
    assert made.choices[0].message.role == "assistant"


@given(replies)
def test_every_event_of_a_stream_is_one_of_the_librarys(reply: Message) -> None:
    events = [*OpenAIWire(model="m").encode_stream(reply)]
    if reply.finish not in ("", "interrupted"):
        assert events.pop() == b"data: [DONE]\n\n"
    for event in events:
        assert event.startswith(b"data: ")
        assert event.endswith(b"\n\n")
        assert b"\n" not in event[:-2]
        ChatCompletionChunk.model_validate_json(event[6:-2], strict=True)

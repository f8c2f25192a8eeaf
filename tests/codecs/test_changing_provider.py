"""One log, every provider: after any change of provider the request fits the official SDK."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.codecs.anthropic import AnthropicWire
from recollect.codecs.encoder import encode
from recollect.codecs.gemini import GeminiWire
from recollect.codecs.openai import OpenAIWire
from recollect.codecs.text_tools import TextToolsWire
from recollect.codecs.think_tags import ThinkTagsWire
from recollect.codecs.wire_protocol import Declaration, RequestOptions, Wire
from recollect.entries import Entry, Message, Text, Thought, ToolCall
from recollect.errors import BadReply
from recollect.testing import call, result, user
from recollect.view.view import View
from tests.codecs.anthropic.sdk_oracle import check_request as check_anthropic
from tests.codecs.conversations import Messages, conversations
from tests.codecs.gemini.sdk_oracle import check_request as check_gemini
from tests.codecs.openai.test_sdk import STREAMING
from tests.view.logs import name

SCHEMA = {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]}
GREP = Declaration(name="grep", description="Find text.", parameters=json.dumps(SCHEMA))
PROMPT = RequestOptions(model="m", tools=(GREP,))


def in_text(wire: Wire) -> Wire:
    return TextToolsWire(wire=ThinkTagsWire(wire=wire), tools=(GREP,))


ROUND: tuple[Wire, ...] = (
    GeminiWire(model="gemini-2.5-pro"),
    OpenAIWire(model="gpt-5"),
    AnthropicWire(model="claude-sonnet-4-5"),
    in_text(OpenAIWire(model="smollm2")),
    in_text(GeminiWire(model="gemma-3")),
    in_text(AnthropicWire(model="claude-2")),
)


def check(wire: Wire, body: bytes) -> None:
    value: dict[str, Any] = json.loads(body)
    if wire.name == "gemini":
        check_gemini(body)
    elif wire.name == "anthropic":
        check_anthropic(body)
    else:
        STREAMING.validate_python(value)


def answer(wire: Wire, number: int, question: str) -> Message:
    """As the provider would stream it: a thought, words and a call."""
    asked = call("grep", id=f"toolu_{number}", q=question)
    made = Message(
        role="model",
        parts=(Thought(text="hm", signature="c2lnbmVk"), Text(text="Let me look."), asked),
        model=wire.rules.model,
        finish="calls",
    )
    decoder = wire.stream_decoder()
    for event in wire.encode_stream(made):
        decoder.feed(event)
    decoder.close()
    read = decoder.message()
    assert [part.name for part in read.parts if isinstance(part, ToolCall)] == ["grep"]
    return Message(role="model", parts=read.parts, model=wire.rules.model, finish=read.finish)


def test_a_session_goes_from_provider_to_provider_and_every_request_is_valid() -> None:
    view, n = View.fold(), 0

    def add(message: Message) -> None:
        nonlocal view, n
        view = view.append(Entry(name(n), name(n - 1) if n else None, n, message))
        n += 1

    add(Message(role="system", parts=(Text(text="Be brief."),)))
    for number, wire in enumerate((*ROUND, *ROUND)):
        add(user(f"question {number}"))
        check(wire, encode(wire, view, PROMPT).body)
        reply = answer(wire, number, f"q{number}")
        add(reply)
        (asked,) = [part for part in reply.parts if isinstance(part, ToolCall)]
        add(result(asked, f"found {number}"))
        for other in ROUND:
            body = encode(other, view, PROMPT).body
            check(other, body)
            for earlier in range(number + 1):
                assert f"question {earlier}".encode() in body
                assert f"found {earlier}".encode() in body
        add(Message(role="model", parts=(Text(text="Done."),), model=wire.rules.model))


@given(conversations, st.sampled_from(ROUND))
def test_any_conversation_is_a_valid_request_for_every_provider(
    messages: Messages, wire: Wire
) -> None:
    check(wire, encode(wire, (*messages, user("now")), PROMPT).body)


@pytest.mark.parametrize("wire", ROUND, ids=lambda wire: type(wire).__name__)
@pytest.mark.parametrize("beginning", [b"x", b"<html>", b'{"a":', b"data: {"])
def test_a_line_of_five_megabytes_that_is_not_a_reply_is_one_sentence(
    wire: Wire, beginning: bytes
) -> None:
    with pytest.raises(BadReply) as caught:
        read(wire, beginning + b"x" * 5_000_000)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("wire", ROUND, ids=lambda wire: type(wire).__name__)
def test_a_comment_of_five_megabytes_adds_nothing(wire: Wire) -> None:
    assert not read(wire, b": " + b"x" * 5_000_000).parts


def read(wire: Wire, data: bytes) -> Message:
    decoder = wire.stream_decoder()
    for at in range(0, len(data), 65_536):
        decoder.feed(data[at : at + 65_536])
    decoder.close()
    return decoder.message()

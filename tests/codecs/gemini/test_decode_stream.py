"""Any chunking of a stream gives the same reply, and encoded replies are decoded as they were."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import reduce

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from recollect.codecs.gemini import GeminiWire
from recollect.codecs.wire_protocol import Delta
from recollect.entries import (
    FileRef,
    InlineData,
    Message,
    Part,
    Text,
    Thought,
    ToolCall,
    Unknown,
    Usage,
)
from recollect.errors import ProviderFailed
from tests.codecs.gemini.sdk_oracle import SdkReply
from tests.codecs.gemini.test_decode_reply import EXAMPLES, WIRE
from tests.codecs.gemini.test_encode_request import SIGNATURE, signed
from tests.strategies import text as any_text

GEMINI = GeminiWire()
_counts = st.integers(0, 10**7)
_signatures = st.sampled_from(["", SIGNATURE])
_long = st.sampled_from(["x" * 400, "ab " * 500, "é" * 801])
_parts: st.SearchStrategy[Part] = st.one_of(
    st.builds(Text, text=any_text | _long, extra=_signatures.map(signed)),
    st.builds(Thought, text=any_text | _long, signature=_signatures),
    st.builds(
        ToolCall,
        id=st.text("abc", min_size=1, max_size=6),
        name=st.sampled_from(["read", "grep"]),
        arguments=st.sampled_from(['{"a": 1.0}', '{\n"b":"é\\n"\r\n}', "{}", "[1]", "{broken"]),
        signature=_signatures,
    ),
    st.sampled_from(
        [
            InlineData(mime="image/png", data=b"png"),
            FileRef(mime="video/mp4", uri="https://youtu.be/x"),
            Unknown(data='{"executableCode":{"language":"PYTHON","code":"1"}}'),
        ]
    ),
)


@st.composite
def _replies(draw: st.DrawFn) -> Message:
    parts = draw(st.lists(_parts, max_size=5))
    finish, reason = draw(
        st.sampled_from(
            [
                *(("", ""), ("stop", ""), ("length", ""), ("safety", ""), ("malformed_call", "")),
                *(("safety", "RECITATION"), ("malformed_call", "UNEXPECTED_TOOL_CALL")),
                *(("other", "OTHER"), ("other", "LANGUAGE")),
            ]
        )
    )
    return Message(
        role="model",
        parts=tuple(p for n, p in enumerate(parts) if not _repeats_an_id(p, parts[:n])),
        model=draw(st.sampled_from(["", "gemini-3-flash"])),
        finish=finish,
        usage=draw(
            st.none()
            | st.builds(
                Usage, input=_counts, output=_counts, cached=_counts, thoughts=_counts, tool=_counts
            )
        ),
        extra=f'{{"finish_reason":"{reason}"}}' if reason else "",
    )


def _repeats_an_id(part: Part, before: Sequence[Part]) -> bool:
    return isinstance(part, ToolCall) and any(
        isinstance(other, ToolCall) and other.id == part.id for other in before
    )


def fed(pieces: Sequence[bytes]) -> tuple[Message, list[Delta]]:
    decoder = GEMINI.stream_decoder()
    deltas = [delta for piece in pieces for delta in decoder.feed(piece)]
    deltas += decoder.close()
    return decoder.message(), deltas


def _cut(data: bytes, places: Sequence[int]) -> list[bytes]:
    ends = sorted({place % (len(data) + 1) for place in places})
    return [data[a:b] for a, b in zip([0, *ends], [*ends, len(data)], strict=True)]


def normal_reply(reply: Message) -> Message:
    """As the format can carry it: whole characters, no empty text, `calls` for a stop with calls,
    every call's arguments without white space around them."""
    parts = tuple(part for part in map(_normal_part, reply.parts) if part is not None)
    calls = any(isinstance(part, ToolCall) for part in parts)
    finish = "calls" if calls and reply.finish == "stop" else reply.finish
    return replace(reply, parts=parts, finish=finish)


def _normal_part(part: Part) -> Part | None:
    if isinstance(part, Text | Thought):
        text = re.sub("[\ud800-\udfff]", "\ufffd", part.text)
        if isinstance(part, Text) and not text and part.extra:
            return Thought(text="", signature=SIGNATURE)  # nothing but a signature
        bears = part.extra if isinstance(part, Text) else part.signature
        return replace(part, text=text) if text or bears else None
    return part


def normal_stream(reply: Message) -> Message:
    """Of a stream also: neighbouring texts are one, thoughts until one is signed, and arguments
    have spaces for line breaks."""
    reply = normal_reply(reply)
    nothing: tuple[Part, ...] = ()
    return replace(reply, parts=reduce(_joined, reply.parts, nothing))


def _joined(parts: tuple[Part, ...], part: Part) -> tuple[Part, ...]:
    last = parts[-1] if parts else None
    match last, part:
        case Text(extra=""), Text(extra=""):
            return (*parts[:-1], Text(text=last.text + part.text))
        case Thought(signature=""), Thought():
            return (*parts[:-1], replace(part, text=last.text + part.text))
        case _, ToolCall():
            spaced = part.arguments.replace("\r", " ").replace("\n", " ")
            return (*parts, replace(part, arguments=spaced))
        case _:
            return (*parts, part)


@given(_replies())
def test_a_reply_in_one_piece_is_read_as_it_was(reply: Message) -> None:
    body = GEMINI.encode_reply(reply)
    read = SdkReply.model_validate_json(body)
    assert read.model_version == (reply.model or None)
    assert GEMINI.decode_reply(body) == normal_reply(reply)


@given(_replies(), st.lists(st.integers(0, 10**6), max_size=30))
def test_a_streamed_reply_is_read_as_it_was_however_it_is_cut(
    reply: Message, places: list[int]
) -> None:
    events = list(GEMINI.encode_stream(reply))
    for event in events:
        data = event.removeprefix(b"data: ").removesuffix(b"\r\n\r\n")
        assert b"\n" not in data
        SdkReply.model_validate_json(data)
    message, deltas = fed(_cut(b"".join(events), places))
    assert message == normal_stream(reply)
    texts = "".join(p.text for p in message.parts if isinstance(p, Text))
    assert "".join(delta.text for delta in deltas if delta.kind == "text") == texts
    thoughts = "".join(p.text for p in message.parts if isinstance(p, Thought))
    assert "".join(delta.text for delta in deltas if delta.kind == "thought") == thoughts
    calls = [(p.name, p.arguments) for p in message.parts if isinstance(p, ToolCall)]
    assert [(d.name, d.text) for d in deltas if d.kind == "call"] == calls


@pytest.mark.parametrize("name", EXAMPLES)
@given(places=st.lists(st.integers(0, 10**6), max_size=12))
def test_an_example_is_the_same_however_it_is_cut(name: str, places: list[int]) -> None:
    data = (WIRE / name).read_bytes()
    outcomes = []
    for pieces in ([data], _cut(data, places), [data[i : i + 1] for i in range(len(data))]):
        decoder, deltas, failed = GEMINI.stream_decoder(), list[Delta](), ""
        try:
            for piece in pieces:
                deltas += decoder.feed(piece)
            deltas += decoder.close()
        except ProviderFailed as error:
            failed, deltas = str(error), []  # those of the same piece went with the error
        outcomes.append((decoder.message(), "".join(d.text for d in deltas), failed))
    assert outcomes[0] == outcomes[1] == outcomes[2]


@pytest.mark.parametrize("ending", [b"\n", b"\r", b"\r\n"])
def test_any_end_of_line_will_do(ending: bytes) -> None:
    reply = Message(role="model", parts=(Text(text="one\ntwo"),), finish="stop")
    data = b"".join(GEMINI.encode_stream(reply)).replace(b"\r\n", ending)
    assert fed([data[i : i + 1] for i in range(len(data))])[0] == reply


def test_comments_and_a_done_mark_are_not_part_of_a_reply() -> None:
    reply = Message(role="model", parts=(Text(text="hi"),), finish="stop")
    data = b"".join(GEMINI.encode_stream(reply))
    assert fed([b": wait\n\n", data, b"data: [DONE]\n\n"])[0] == reply


def test_the_requested_model_stands_in_for_a_missing_name() -> None:
    data = b'{"candidates": [{"content": {"parts": [{"text": "hi"}]}, "finishReason": "STOP"}]}'
    assert GeminiWire(model="asked").decode_reply(data).model == "asked"
    decoder = GeminiWire(model="asked").stream_decoder()
    decoder.feed(b"data: " + data + b"\n\n")
    assert decoder.message().model == "asked"

"""Any chunking of a stream gives the same reply, and encoded replies are decoded as they were."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.codecs.foreign_json import join_and_replace_surrogates, join_surrogates
from recollect.codecs.openai import OpenAIWire
from recollect.codecs.openai.encode_message import describe_unsent_media
from recollect.codecs.wire_protocol import Delta
from recollect.entries import (
    FileRef,
    InlineData,
    Message,
    Part,
    Text,
    Thought,
    ToolCall,
    Usage,
)
from recollect.errors import RecollectError
from recollect.tokens import believe_usage
from tests import strategies

WIRE = Path(__file__).parent.parent / "wire"
STREAMS = sorted(WIRE.glob("openai-*.txt"))
wire = OpenAIWire(model="m")


def decoded(pieces: Sequence[bytes]) -> tuple[Message, list[Delta], str]:
    """The message, neighbouring deltas of one kind as one, and the error if there was one."""
    decoder = wire.stream_decoder()
    deltas: list[Delta] = []
    error = ""
    try:
        for piece in pieces:
            deltas += decoder.feed(piece)
        deltas += decoder.close()
    except RecollectError as raised:
        error = f"{type(raised).__name__}: {raised}"
    return decoder.message(), concatenated(deltas), error


def concatenated(deltas: Sequence[Delta]) -> list[Delta]:
    """Neighbouring deltas of one kind as one; a name begins another call."""
    found: list[Delta] = []
    for delta in deltas:
        if found and found[-1].kind == delta.kind and not delta.name:
            found[-1] = found[-1]._replace(text=found[-1].text + delta.text)
        else:
            found.append(delta)
    return found


def cut(data: bytes, places: Sequence[int]) -> list[bytes]:
    edges = sorted({0, len(data), *(place % (len(data) + 1) for place in places)})
    return [data[a:b] for a, b in pairwise(edges)]


cuts = st.lists(st.integers(0, 10_000), max_size=30)


@pytest.mark.parametrize("path", STREAMS, ids=lambda path: path.stem)
@given(places=cuts)
def test_any_cutting_of_a_recorded_stream_gives_the_same(path: Path, places: list[int]) -> None:
    data = path.read_bytes()
    assert decoded(cut(data, places)) == decoded([data])


@pytest.mark.parametrize("path", STREAMS, ids=lambda path: path.stem)
def test_a_recorded_stream_byte_by_byte_gives_the_same(path: Path) -> None:
    data = path.read_bytes()
    assert decoded([data[i : i + 1] for i in range(len(data))]) == decoded([data])


# --- what we write we read -------------------------------------------------------------------


def sound(text: str) -> str:
    clean: str = join_and_replace_surrogates(text)[0]
    return clean


def normal_parts(reply: Message) -> list[Part]:
    """What the format has no field for is gone; neighbouring texts are one, and so are thoughts."""
    found: list[Part] = []
    for part in reply.parts:
        last = found[-1] if found else None
        if isinstance(part, ToolCall):
            call_id = sound(part.id)
            made = ToolCall(
                id=call_id, name=sound(part.name), arguments=sound(part.arguments) or "{}"
            )
            found.append(made)
            continue
        if isinstance(part, Thought):
            text, kind = sound(part.text), cast("type[Text | Thought]", Thought)
        elif isinstance(part, InlineData | FileRef):
            text, kind = sound(describe_unsent_media(part, ("image/",), "a model's reply")), Text
        elif isinstance(part, Text):
            text, kind = sound(part.text), Text
        else:
            continue
        if not text:
            continue
        if isinstance(last, kind):
            found[-1] = kind(text=last.text + text)
        else:
            found.append(kind(text=text))
    return found


def normal_usage(usage: Usage | None) -> Usage | None:
    if usage is None:
        return None
    return believe_usage(
        Usage(
            input=usage.input,
            output=usage.output,
            cached=usage.cached,
            written=usage.written,
            thoughts=usage.thoughts,
            total=usage.total or usage.input + usage.output,
        )
    )


def normal_finish(reply: Message) -> str:
    has_calls = any(isinstance(part, ToolCall) for part in reply.parts)
    known = "" if reply.finish == "interrupted" else reply.finish
    if known in ("stop", "calls"):
        return "calls" if has_calls else "malformed_call" if known == "calls" else "stop"
    return known


_ids = st.integers(0, 10**9).map("id-{}".format)
_calls = st.builds(ToolCall, id=_ids, name=strategies.text, arguments=strategies.text)
_parts = st.lists(
    st.builds(Text, text=strategies.text)
    | st.builds(Thought, text=strategies.text, subject=strategies.text)
    | _calls
    | st.builds(InlineData, mime=st.just("image/png"), data=st.binary(max_size=9)),
    max_size=5,
    unique_by=lambda part: part.id if isinstance(part, ToolCall) else id(part),
).map(tuple)
_counts = st.integers(0, 2**40)
replies = st.builds(
    Message,
    role=st.just("model"),
    parts=_parts,
    model=st.sampled_from(["gpt", "other"]),
    finish=st.sampled_from(["", "stop", "length", "calls", "safety", "interrupted"]),
    usage=st.none()
    | st.builds(
        Usage,
        input=_counts,
        output=_counts,
        cached=_counts,
        written=_counts,
        thoughts=_counts,
    ),
)


@given(replies, cuts)
def test_a_stream_that_we_write_is_read_as_the_reply_it_was(
    reply: Message, places: list[int]
) -> None:
    message, deltas, error = decoded(cut(b"".join(wire.encode_stream(reply)), places))
    assert error == ""
    assert list(message.parts) == normal_parts(reply)
    assert (message.finish, message.usage) == (normal_finish(reply), normal_usage(reply.usage))
    assert message.model == reply.model
    shown = "".join(delta.text for delta in deltas if delta.kind == "text")
    assert shown == "".join(part.text for part in message.parts if isinstance(part, Text))


@given(replies)
def test_a_reply_that_we_write_is_read_as_it_was(reply: Message) -> None:
    """In one piece, thoughts come first, then words, then calls."""
    ordered = sorted(
        reply.parts,
        key=lambda p: 0 if isinstance(p, Thought) else 2 if isinstance(p, ToolCall) else 1,
    )
    message = wire.decode_reply(wire.encode_reply(reply))
    expected = normal_parts(Message(role="model", parts=tuple(ordered)))
    assert list(message.parts) == expected
    finish = normal_finish(reply) or normal_finish(stopped(reply))
    assert (message.finish, message.usage) == (finish, normal_usage(reply.usage))


def stopped(reply: Message) -> Message:
    """A reply in one piece cannot say that its end never came."""
    return Message(role="model", parts=reply.parts, finish="stop")


@given(st.text(st.characters(exclude_categories=()), max_size=20), st.integers(0, 20))
def test_halves_of_a_pair_in_two_events_are_one_character(text: str, place: int) -> None:
    events = [
        b"data: " + json.dumps({"choices": [{"index": 0, "delta": {"content": half}}]}).encode()
        for half in (text[:place] + "\ud83d", "\ude00" + text[place:])
    ]
    message, _, _ = decoded([b"\n\n".join(events)])
    assert message.parts == (Text(text=join_surrogates(text[:place] + "😀" + text[place:])),)

"""The guarantees of an encoder, for every wire: the same bytes, at the cost of what is new."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.codecs.anthropic import AnthropicWire
from recollect.codecs.body_hash import DIGEST_LENGTH
from recollect.codecs.encoder import Encoder, encode, encode_segments
from recollect.codecs.gemini import GeminiWire
from recollect.codecs.openai import OpenAIWire
from recollect.codecs.provider_rules import ProviderRules
from recollect.codecs.text_tools.text_tools_wire import TextToolsWire
from recollect.codecs.wire_protocol import (
    Declaration,
    DecodedRequest,
    Decoder,
    EncodedMessage,
    RequestFrame,
    RequestOptions,
    Wire,
)
from recollect.entries import Elide, Elided, Entry, Message, Text, Thought
from recollect.testing import call, model, result, user
from recollect.view.view import View
from tests.transcripts.whole_files import read_transcript
from tests.view.logs import logs, name

TOOLS = (
    Declaration(name="grep", parameters='{"type":"object","properties":{"q":{"type":"string"}}}'),
)
PROMPT = RequestOptions(model="m", tools=TOOLS)
WIRES: list[Wire] = [
    GeminiWire(model="m"),
    OpenAIWire(model="m"),
    OpenAIWire(model="m", reasoning="reasoning_content"),
    OpenAIWire(model="m", alternating_roles=True),
    TextToolsWire(wire=OpenAIWire(model="m", alternating_roles=True), tools=TOOLS),
    AnthropicWire(model="m"),
    TextToolsWire(wire=OpenAIWire(model="m"), tools=TOOLS),
    TextToolsWire(wire=GeminiWire(model="m"), tools=TOOLS),
]
each_wire = pytest.mark.parametrize("wire", WIRES, ids=lambda w: f"{w.name}-{type(w).__name__}")
wires = st.sampled_from(WIRES)


class Counting:
    """A wire that counts the messages it writes."""

    def __init__(self, wire: Wire) -> None:
        self._wire, self.written = wire, 0

    @property
    def name(self) -> str:
        return self._wire.name

    @property
    def rules(self) -> ProviderRules:
        return self._wire.rules

    def encode_options(self, options: RequestOptions, system: Sequence[Message]) -> RequestFrame:
        return self._wire.encode_options(options, system)

    def encode_message(self, message: Message) -> EncodedMessage:
        self.written += 1
        return self._wire.encode_message(message)

    def decode_request(self, body: bytes) -> DecodedRequest:
        return self._wire.decode_request(body)

    def stream_decoder(self) -> Decoder:
        return self._wire.stream_decoder()

    def decode_reply(self, body: bytes) -> Message:
        return self._wire.decode_reply(body)

    def encode_reply(self, reply: Message) -> bytes:
        return self._wire.encode_reply(reply)

    def encode_stream(self, reply: Message) -> Iterator[bytes]:
        return self._wire.encode_stream(reply)


def exchange(number: int) -> list[Message]:
    """A turn as it usually is: a question, a thought and a call, its result, an answer."""
    asked = call("grep", id=f"c{number}", q=f"word {number}")
    thinking = Thought(text="look", signature="c2ln")
    return [
        user(f"question {number}"),
        Message(role="model", parts=(thinking, Text(text="let me see"), asked), model="m"),
        result(asked, f"found {number}" * 20),
        Message(role="model", parts=(Text(text=f"answer {number}"),), model="m"),
    ]


def entries(messages: Sequence[Message], start: int = 0) -> list[Entry]:
    return [
        Entry(name(n), name(n - 1) if n else None, n, message)
        for n, message in enumerate(messages, start)
    ]


@given(logs(), wires, st.data())
def test_a_growing_view_is_encoded_as_if_it_were_encoded_at_once(
    log: tuple[Entry, ...], wire: Wire, data: st.DataObject
) -> None:
    encoder, view, n = Encoder(wire), View.fold(), 0
    while n < len(log):
        step = data.draw(st.integers(1, len(log) - n))
        view, n = view.append(*log[n : n + step]), n + step
        made, whole = encoder.encode(view, PROMPT), encode(wire, view.messages, PROMPT)
        assert made.body == whole.body
        assert sorted(f.text for f in made.fixes) == sorted(f.text for f in whole.fixes)
        assert made.size == len(made.body)
        assert made.digest == whole.digest == sha256(made.body).hexdigest()[:DIGEST_LENGTH]
        assert encode_segments(wire, view.messages, PROMPT).body == made.body


@given(logs(), logs(), wires)
def test_an_encoder_can_be_handed_another_branch(
    one: tuple[Entry, ...], other: tuple[Entry, ...], wire: Wire
) -> None:
    encoder = Encoder(wire)
    for log in (one, other, one):
        view = View.fold(log)
        made = encoder.encode(view, PROMPT)
        assert made.body == encode(wire, view, PROMPT).body
        assert made.digest == sha256(made.body).hexdigest()[:DIGEST_LENGTH]


@given(logs(), wires)
def test_a_digest_is_that_of_the_bytes_also_with_other_options(
    log: tuple[Entry, ...], wire: Wire
) -> None:
    encoder = Encoder(wire)
    for options in (PROMPT, RequestOptions(model="m"), PROMPT):
        made = encoder.encode(View.fold(log), options)
        assert made.digest == sha256(made.body).hexdigest()[:DIGEST_LENGTH]


@each_wire
def test_the_unchanged_prefix_of_two_requests_is_byte_identical_over_a_whole_session(
    wire: Wire,
) -> None:
    messages = [m for n in range(12) for m in exchange(n)]
    encoder, view, before = Encoder(wire), View.fold(), b""
    for n in range(0, len(messages), 2):  # a request follows the user's words, or a result
        view = view.append(*entries(messages[n : n + 1], n))
        made = encoder.encode(view, PROMPT)
        after = encoder.wire.encode_options(PROMPT, ()).after
        if before:
            kept = before.removesuffix(after)
            assert made.body.startswith(kept)
        before = made.body
        view = view.append(*entries(messages[n + 1 : n + 2], n + 1))


@each_wire
def test_one_more_message_writes_a_few_messages_however_long_the_session_is(wire: Wire) -> None:
    def writes(turns: int) -> int:
        counting = Counting(wire)
        encoder = Encoder(counting)
        view = View.fold(entries([m for n in range(turns) for m in exchange(n)]))
        encoder.encode(view, PROMPT)
        counting.written = 0
        encoder.encode(view.append(*entries([user("next")], 4 * turns)), PROMPT)
        return counting.written

    assert writes(500) == writes(5) <= 3


@each_wire
def test_an_elision_of_something_old_is_in_the_next_request(wire: Wire) -> None:
    encoder = Encoder(wire)
    view = View.fold(entries([*exchange(1), *exchange(2), user("next")]))
    assert b"found 1" in encoder.encode(view, PROMPT).body
    out = Elide(rule="drop", items=(Elided(entry=name(2), placeholder="[left out]"),))
    view = view.append(Entry(name(9), name(8), 9, out))
    body = encoder.encode(view, PROMPT).body
    assert b"found 1" not in body
    assert b"[left out]" in body


@each_wire
def test_a_provider_can_be_changed_in_the_middle(wire: Wire) -> None:
    view = View.fold(entries([*exchange(1), model("by hand"), *exchange(2)]))
    for other in (*WIRES, wire):
        body = encode(other, view, PROMPT).body
        asked = other.decode_request(body)
        assert [t.name for t in asked.options.tools] in ([], ["grep"])
        assert b"question 1" in body
        assert b"found 2" in body


@pytest.mark.skipif(not os.environ.get("RECOLLECT_TRANSCRIPTS"), reason="no transcripts given")
@each_wire
def test_a_real_session_keeps_its_prefix_and_its_bytes(wire: Wire) -> None:
    folder = Path(os.environ["RECOLLECT_TRANSCRIPTS"])
    file = min(folder.rglob("*.jsonl"), key=lambda path: path.stat().st_size)
    log = read_transcript(file.read_bytes(), file.name).path
    encoder, view = Encoder(wire), View.fold()
    for n, entry in enumerate(log):
        view = view.append(entry)
        if n % 7 == 0 or n == len(log) - 1:
            assert encoder.encode(view, PROMPT).body == encode(wire, view, PROMPT).body


@each_wire
def test_a_system_message_behind_an_open_call_takes_no_message_away(wire: Wire) -> None:
    """Only what leads is sent as instructions; everything else keeps its place."""
    shown = (
        Message(role="model", parts=(call("grep", q="x"),)),
        Message(role="system", parts=(Text(text="Be brief."),)),
    )
    body = encode(wire, shown, PROMPT).body
    assert b"Be brief." in body
    assert body.count(b"grep") > encode(wire, shown[1:], PROMPT).body.count(b"grep")
    assert body == encode_segments(wire, shown, PROMPT).body

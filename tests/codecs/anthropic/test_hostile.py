"""Any input from a provider or a client raises only our own errors, and soon."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.codecs.anthropic import AnthropicWire
from recollect.entries import Message, encode
from recollect.errors import BadInput, BadReply, RecollectError
from recollect.testing import call, model, user
from tests import strategies
from tests.codecs.anthropic.test_decode_stream import STREAMS, WIRE
from tests.codecs.anthropic.test_encode_request import PROMPT, body_of
from tests.growth import is_linear

anthropic = AnthropicWire(model="this")
REQUEST = body_of(anthropic, [user("hi"), model("x", call("read", path="a"))], PROMPT)
REPLY = (WIRE / "anthropic-calls.json").read_bytes()
DEEP = b"[" * 10_000 + b"]" * 10_000


def decode(data: bytes) -> Message:
    decoder = anthropic.stream_decoder()
    decoder.feed(data)
    decoder.close()
    return decoder.message()


def read_messages(data: bytes) -> tuple[Message, ...]:
    return anthropic.decode_request(data).messages


def try_all(data: bytes) -> None:
    """Every reader; what is read can be stored and sent again."""
    for read in (decode, anthropic.decode_reply, read_messages):
        try:
            found = read(data)
        except RecollectError as error:
            told = str(error)
        else:
            told = ""
            for message in found if isinstance(found, tuple) else (found,):
                encode(message)
                anthropic.encode_message(message)
        assert told.isprintable()
        assert len(told) < 900


@given(st.binary(max_size=300))
def test_random_bytes_raise_only_our_own_errors(data: bytes) -> None:
    try_all(data)
    try_all(b"data: " + data + b"\n\n")


@given(st.sampled_from(STREAMS), st.data())
def test_mutated_streams_raise_only_our_own_errors(name: str, data: st.DataObject) -> None:
    stream = bytearray((WIRE / name).read_bytes())
    for _ in range(data.draw(st.integers(1, 5))):
        at = data.draw(st.integers(0, len(stream) - 1))
        stream[at : at + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=3))
    try_all(bytes(stream))


def _places(value: Any) -> list[tuple[Any, Any]]:
    """Every container in it, with each of its keys."""
    found: list[tuple[Any, Any]] = []
    if isinstance(value, dict | list):
        for key in list(value) if isinstance(value, dict) else range(len(value)):
            found += [(value, key), *_places(value[key])]
    return found


EVENTS = [
    line.removeprefix(b"data: ")
    for name in STREAMS
    for line in (WIRE / name).read_bytes().splitlines()
    if line.startswith(b"data: ")
]


@given(st.sampled_from([REQUEST, REPLY, *EVENTS]), st.data(), strategies.json_values)
def test_wrong_types_everywhere_raise_only_our_own_errors(
    body: bytes, data: st.DataObject, wrong: Any
) -> None:
    value = json.loads(body)
    holder, key = data.draw(st.sampled_from(_places(value)))
    holder[key] = wrong
    changed = json.dumps(value).encode()
    try_all(changed)
    try_all(b"data: " + changed + b"\n\n" + b"".join(b"data: %b\n\n" % e for e in EVENTS[:9]))


@pytest.mark.parametrize(
    "body",
    [
        DEEP,
        b'{"type":"message","content":' + DEEP + b"}",
        b'{"type":"message","content":[{"type":"new","x":' + DEEP + b"}]}",
        b'{"type":"message","content":[{"type":"tool_use","input":' + DEEP + b"}]}",
        b'{"type":"content_block_start","content_block":{"type":"new","x":' + DEEP + b"}}",
        b'{"model":"m","messages":[{"role":"user","content":[' + DEEP + b"]}]}",
        b'{"model":"m","messages":[],"tools":[{"name":"t","input_schema":' + DEEP + b"}]}",
        b'{"type":"message","content":[{"type":"new","x":' + b"9" * 5_000 + b"}]}",
        b'{"type":"message","content":[{"type":"new","x":1e999}]}',
        b'{"type":"message","usage":{"input_tokens":' + b"9" * 400 + b"}}",
    ],
)
def test_deep_nesting_and_endless_numbers_raise_only_our_own_errors(body: bytes) -> None:
    try_all(body)
    try_all(b"data: " + body + b"\n\n")


def test_json_nested_too_deeply_to_be_kept_is_refused() -> None:
    deep = b"[" * 150 + b"]" * 150
    with pytest.raises(BadReply, match="nested deeper"):
        anthropic.decode_reply(
            b'{"type":"message","content":[{"type":"tool_use","input":' + deep + b"}]}"
        )
    with pytest.raises(BadInput, match="in message 0, JSON nested deeper"):
        anthropic.decode_request(
            b'{"model":"m","messages":[{"role":"user","content":[{"type":"x","y":' + deep + b"}]}]}"
        )


def test_anything_but_a_request_is_refused_with_a_sentence() -> None:
    for body, why in (
        (b"", "not a request"),
        (b"<html>", "not a request"),
        (b"[]", "Expected `object`"),
        (b'{"model":"m"}', "messages"),
        (b'{"model":"m","messages":[{"role":"robot","content":""}]}', "robot"),
        (
            b'{"model":"m","messages":[{"role":"user","content":[5]}]}',
            "in message 0, a JSON object is expected in place of 5",
        ),
        (b'{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":5}]}]}', "str"),
    ):
        with pytest.raises(BadInput, match=why):
            anthropic.decode_request(body)


def test_a_line_of_five_megabytes_is_read_in_small_pieces_without_trouble() -> None:
    text = "x" * 5_000_000
    stream = b"".join(anthropic.encode_stream(model(text)))
    decoder = anthropic.stream_decoder()
    for start in range(0, len(stream), 1_000):
        decoder.feed(stream[start : start + 1_000])
    decoder.close()
    assert decoder.message().parts == model(text).parts
    with pytest.raises(BadReply, match=r"text \(xxx"):
        decode(text[:3_000_000].encode())


@pytest.mark.parametrize(
    "delta",
    [
        b'{"type":"signature_delta","signature":"0123456789"}',
        b'{"type":"thinking_delta","thinking":"0123456789"}',
        b'{"type":"text_delta","text":"0123456789"}',
    ],
)
def test_many_pieces_cost_as_much_each_as_few(delta: bytes) -> None:
    event = b'data: {"type":"content_block_delta","index":0,"delta":' + delta + b"}\n\n"
    assert is_linear(lambda times: partial(decode, event * times), 4_000, 40_000)


def test_ids_that_are_chosen_to_collide_cost_no_more_than_others() -> None:
    def stream(ids: list[str]) -> bytes:
        start = '{"type":"content_block_start","index":%d,"content_block":%s}'
        blocks = [json.dumps({"type": "tool_use", "id": i, "name": "t"}) for i in ids]
        return "".join(f"data: {start % (n, block)}\n\n" for n, block in enumerate(blocks)).encode()

    many = 500
    message = decode(stream([f"call-{many + n}" for n in range(many)] + [""] * many))
    assert len({part.id for part in message.parts if hasattr(part, "id")}) == 2 * many

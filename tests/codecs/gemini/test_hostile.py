"""Any input raises only our own errors, and the cost is linear in the bytes."""

from __future__ import annotations

import time
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.codecs.gemini import GeminiWire
from recollect.codecs.gemini.openapi_schema import fits_openapi
from recollect.codecs.wire_protocol import DecodedRequest, RequestOptions
from recollect.entries import Message, Text, ToolCall, check, decode, json_text
from recollect.errors import BadInput, BadReply, RecollectError
from tests.codecs.gemini.test_decode_reply import EXAMPLES, WIRE
from tests.codecs.gemini.test_encode_request import request, turns
from tests.growth import is_linear

GEMINI = GeminiWire(model="this")
DEEP = b"[" * 10_000 + b"]" * 10_000
_WORDS = """
    candidates content parts text thought thoughtSignature functionCall functionResponse args id
    name response output error inlineData mimeType data fileData fileUri finishReason index type
    usageMetadata promptTokenCount modelVersion promptFeedback blockReason code message status
    contents role systemInstruction tools functionDeclarations parameters parametersJsonSchema
    toolConfig functionCallingConfig mode allowedFunctionNames generationConfig temperature
    stopSequences seed thinkingConfig thinkingBudget responseSchema properties items anyOf
    executableCode videoMetadata
"""
_KEYS = _WORDS.split()
_leaves = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from(
        ["", "user", "model", "STOP", "ANY", "object", "OBJECT", "call", "\ud800", "=="]
    ),
)
_nonsense: st.SearchStrategy[Any] = st.recursive(
    _leaves,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(_KEYS), inner, max_size=4)
    ),
    max_leaves=25,
)
# nonsense in every place where something is expected
_responses = st.one_of(
    _nonsense,
    st.builds(lambda x: {"candidates": [{"content": {"parts": [x]}}]}, _nonsense),
    st.builds(lambda x: {"candidates": [{"content": {"parts": [{"functionCall": x}]}}]}, _nonsense),
    st.builds(lambda x: {"error": x, "usageMetadata": x}, _nonsense),
)
_requests = st.one_of(
    _nonsense,
    st.builds(lambda x: {"contents": [{"parts": [x]}]}, _nonsense),
    st.builds(lambda x: {"contents": [{"parts": [{"functionResponse": x}]}]}, _nonsense),
    st.builds(lambda x: {"contents": x, "tools": [{"functionDeclarations": [x]}]}, _nonsense),
    st.builds(lambda x: {"tools": x, "toolConfig": x, "generationConfig": x}, _nonsense),
)


def _decode(data: bytes, step: int = 7) -> Message | None:
    decoder = GEMINI.stream_decoder()
    try:
        for start in range(0, len(data), step):
            decoder.feed(data[start : start + step])
        decoder.close()
    except RecollectError as error:
        said = str(error)
    else:
        return decoder.message()
    assert len(said) < 1_000
    return None


def _decode_reply(data: bytes) -> Message | None:
    try:
        return GEMINI.decode_reply(data)
    except RecollectError as error:
        said = str(error)
    assert len(said) < 1_000
    return None


@given(st.binary(max_size=300))
def test_random_bytes_raise_nothing_foreign(data: bytes) -> None:
    for prefix in (b"", b"data: ", b"data: {", b'{"candidates": '):
        _decode(prefix + data)
        _decode_reply(prefix + data)
        with pytest.raises(BadInput):
            GEMINI.decode_request(prefix + data + b"!")


@given(_responses)
def test_a_reply_of_the_wrong_types_is_refused_or_can_be_stored(value: Any) -> None:
    data = json_text(value).encode("utf-8", "surrogatepass")
    for message in (_decode_reply(data), _decode(b"data: " + data + b"\n\n")):
        if message is not None:
            check(message)
            GEMINI.encode_message(message)


@given(_requests)
def test_a_request_of_the_wrong_types_is_refused_or_can_be_stored(value: Any) -> None:
    try:
        decoded = GEMINI.decode_request(json_text(value).encode("utf-8", "surrogatepass"))
    except BadInput as error:
        said = str(error)
    else:
        _check_decoded(decoded)
        return
    assert len(said) < 1_000


def _check_decoded(decoded: DecodedRequest) -> None:
    """It can be stored, and sent again."""
    for message in decoded.messages:
        check(message)
    body, repaired, _ = request(GEMINI, decoded.messages, decoded.options)
    assert len(GEMINI.decode_request(body).messages) <= len(repaired)


@given(st.sampled_from(EXAMPLES), st.data())
def test_a_damaged_stream_raises_nothing_foreign(name: str, data: st.DataObject) -> None:
    stream = bytearray((WIRE / name).read_bytes())
    for _ in range(data.draw(st.integers(1, 6))):
        at = data.draw(st.integers(0, len(stream) - 1))
        match data.draw(st.sampled_from(["set", "cut", "repeat"])):
            case "set":
                stream[at] = data.draw(st.integers(0, 255))
            case "cut":
                del stream[at : at + data.draw(st.integers(1, 20))]
                stream += b" "
            case _:
                stream[at:at] = stream[at : at + 40]
    message = _decode(bytes(stream))
    if message is not None:
        check(message)


@given(turns, st.data())
def test_a_damaged_request_is_refused_in_one_sentence_or_can_be_sent_again(
    messages: tuple[Message, ...], data: st.DataObject
) -> None:
    body = bytearray(request(GEMINI, messages, RequestOptions(model=""))[0])
    body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    try:
        decoded = GEMINI.decode_request(bytes(body))
    except BadInput as error:
        said = str(error)
    else:
        _check_decoded(decoded)
        return
    assert len(said) < 1_000


@pytest.mark.parametrize(
    "value",
    [
        DEEP,
        b'{"candidates":[{"content":{"parts":[{"functionCall":{"name":"a","args":%b}}]}}]}' % DEEP,
        b'{"candidates":[{"content":{"parts":[{"hologram":%b}]}}]}' % DEEP,
        b'{"candidates":[{"content":{"parts":[{"hologram":%b}]}}]}' % (b"[" * 400 + b"]" * 400),
        b'{"error":%b}' % DEEP,
    ],
)
def test_a_reply_of_ten_thousand_levels_is_refused(value: bytes) -> None:
    with pytest.raises(BadReply):
        GEMINI.decode_reply(value)
    decoder = GEMINI.stream_decoder()
    with pytest.raises(BadReply):
        decoder.feed(b"data: " + value + b"\n\n")


@pytest.mark.parametrize("where", ["contents", "tools", "generationConfig", "x"])
def test_a_request_of_ten_thousand_levels_is_refused(where: str) -> None:
    for deep in (DEEP, b'{"a":' * 10_000 + b"1" + b"}" * 10_000):
        with pytest.raises(BadInput):
            GEMINI.decode_request(b'{"%b":%b}' % (where.encode(), deep))


@pytest.mark.parametrize("kind", ["text", "call", "$unknown", "hologram"])
def test_an_unknown_part_that_looks_like_one_of_ours_can_be_stored(kind: str) -> None:
    part = json_text({"type": kind, "x": 1}).encode()
    message = GEMINI.decode_reply(b'{"candidates":[{"content":{"parts":[%b]}}]}' % part)
    assert decode(check(message)) == message


def test_a_schema_of_any_depth_is_judged() -> None:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(50_000):
        schema = {"type": "array", "items": schema}
    assert fits_openapi(schema)


def test_one_line_of_five_megabytes_is_read() -> None:
    reply = b'{"candidates":[{"content":{"parts":[{"text":"%b"}]}}]}' % (b"x" * 5_000_000)
    message = _decode(b"data: " + reply + b"\n\n", step=1_000)
    assert message is not None
    assert message.parts == (Text(text="x" * 5_000_000),)


def test_many_calls_of_one_id_cost_in_proportion() -> None:
    part = b'{"functionCall":{"id":"a","name":"n"}}'
    reply = b'{"candidates":[{"content":{"parts":[%b]}}]}' % b",".join([part] * 1_000)
    started = time.process_time()
    found = {p.id for p in GEMINI.decode_reply(reply).parts if isinstance(p, ToolCall)}
    assert len(found) == 1_000
    assert time.process_time() - started < 5


def test_ten_times_the_bytes_cost_about_ten_times_as_much() -> None:
    event = b'data: {"candidates":[{"content":{"parts":[{"text":"some words"}]}}]}\n\n'

    assert is_linear(lambda count: partial(_decode, event * count, step=20), 2_000, 20_000)

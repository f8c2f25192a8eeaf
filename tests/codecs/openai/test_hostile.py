"""Any input raises only our own errors, in bounded time, or gives messages that can be stored."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from recollect.codecs.openai import OpenAIWire
from recollect.entries import Message, Text, ToolCall, Usage, check
from recollect.errors import BadInput, BadReply, RecollectError
from tests import strategies

WIRE = Path(__file__).parent.parent / "wire"
STREAMS = [path.read_bytes() for path in sorted(WIRE.glob("openai-*.txt"))]
BODIES = [path.read_bytes() for path in sorted(WIRE.glob("openai-*.json"))]
wire = OpenAIWire(model="m")
DEEP = b"[" * 10_000 + b"]" * 10_000


def streamed(data: bytes) -> Message:
    decoder = wire.stream_decoder()
    decoder.feed(data)
    decoder.close()
    return decoder.message()


def storable(message: Message) -> None:
    check(message)
    assert msgspec.json.encode(message.usage)


def kept_or_refused(read: Callable[[bytes], Any], data: bytes) -> None:
    """Reads; our own errors are fine, and so is a message that a store takes."""
    try:
        found = read(data)
    except RecollectError as error:
        said = str(error)
    else:
        said = ""
        for message in found.messages if not isinstance(found, Message) else (found,):
            storable(message)
    assert len(said) < 1_500
    assert not said or said.isprintable()


@given(st.binary(max_size=200))
def test_random_bytes(data: bytes) -> None:
    kept_or_refused(streamed, data)
    kept_or_refused(streamed, b"data: " + data + b"\n\n")
    kept_or_refused(wire.decode_reply, data)
    kept_or_refused(wire.decode_request, data)


@given(
    st.sampled_from(STREAMS + BODIES),
    st.lists(
        st.tuples(st.integers(0, 5_000), st.binary(max_size=4), st.integers(0, 9)), max_size=5
    ),
)
def test_damaged_streams_and_bodies(data: bytes, wounds: list[tuple[int, bytes, int]]) -> None:
    for place, new, length in wounds:
        at = place % (len(data) + 1)
        data = data[:at] + new + data[at + length :]
    kept_or_refused(streamed, data)
    kept_or_refused(wire.decode_reply, data)
    kept_or_refused(wire.decode_request, data)


# Every field the format has, with any value in it.
FIELDS = [
    *("id", "object", "model", "choices", "index", "delta", "message", "content", "role"),
    *("tool_calls", "function", "name", "arguments", "finish_reason", "usage"),
    *("prompt_tokens", "completion_tokens_details", "reasoning_tokens"),
    *("error", "code", "type", "metadata", "raw", "refusal", "reasoning"),
    *("reasoning_content", "reasoning_details", "signature", "text", "images"),
    *("image_url", "url", "input_audio", "data", "format", "file", "file_data", "file_id"),
    *("function_call", "messages", "tools", "parameters", "tool_choice"),
    *("temperature", "max_tokens", "stop", "seed", "response_format", "json_schema"),
    *("schema", "tool_call_id", "stream", "enable_thinking"),
    *("chat_template_kwargs", "reasoning_effort", "functions", "thinking"),
]
_words = st.sampled_from(
    [
        *("text", "file", "image_url", "input_audio", "thinking", "refusal", "function", "error"),
        *("user", "assistant", "tool", "system", "stop", "tool_calls", "json_schema", "call"),
        *("data:image/png;base64,cG5n", "data:image/png;base64,!", "$unknown", "1e400", ""),
    ]
)
_leaves = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.sampled_from([0.5, -1e300, 10**400])
    | _words
    | strategies.text
)
values: st.SearchStrategy[Any] = st.recursive(
    _leaves,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(FIELDS), inner, max_size=4)
    ),
    max_leaves=12,
)


@st.composite
def replies(draw: st.DrawFn) -> dict[str, Any]:
    """Right on the outside, anything inside."""
    inner = draw(st.dictionaries(st.sampled_from(FIELDS), values, max_size=4))
    key = draw(st.sampled_from(["delta", "message"]))
    choice = {key: inner, "finish_reason": draw(values), "index": draw(st.sampled_from([0, None]))}
    return {"choices": [choice], "usage": draw(values), "model": draw(values)}


@given(st.lists(replies() | values, min_size=1, max_size=4))
def test_wrong_types_everywhere_in_a_reply(found: list[Any]) -> None:
    events = b"".join(b"data: " + json.dumps(one).encode() + b"\n\n" for one in found)
    kept_or_refused(streamed, events)
    kept_or_refused(wire.decode_reply, json.dumps(found[0]).encode())
    raw = json.dumps(found[0], ensure_ascii=False).encode("utf-8", "surrogatepass")
    kept_or_refused(wire.decode_reply, raw)


_spoken = st.fixed_dictionaries(
    {"role": st.sampled_from(["user", "assistant", "system", "tool"])},
    optional={
        "content": strategies.text
        | st.lists(st.dictionaries(st.sampled_from(FIELDS), values, max_size=3), max_size=3),
        "tool_calls": st.lists(
            st.fixed_dictionaries({"function": st.fixed_dictionaries({"arguments": values})}),
            max_size=2,
        ),
        "tool_call_id": strategies.text,
        "reasoning_content": strategies.text,
    },
)


@example([{"role": "user", "content": [{"type": []}]}], {})
@example([{"role": "user", "content": [{"type": "file", "file": 1}, {"type": "call"}]}], {})
@given(st.lists(_spoken, max_size=4), st.dictionaries(st.sampled_from(FIELDS), values, max_size=3))
def test_wrong_types_everywhere_in_a_request(messages: list[Any], more: dict[str, Any]) -> None:
    for body in ({**more, "messages": messages}, {"messages": messages}):
        kept_or_refused(wire.decode_request, json.dumps(body).encode())


@pytest.mark.parametrize(
    "around",
    [
        b"%s",
        b'{"choices":%s}',
        b'{"choices":[{"delta":{"content":%s}}]}',
        b'{"choices":[{"delta":{"tool_calls":[{"function":{"arguments":{"a":%s}}}]}}]}',
        b'{"error":%s}',
        b'{"error":{"message":%s}}',
        b'{"ignored":%s}',
        b'{"messages":[{"role":"user","content":[{"type":"x","y":%s}]}]}',
        b'{"messages":[{"role":"assistant","tool_calls":[{"function":{"arguments":%s}}]}]}',
        b'{"messages":[],"tools":[{"function":{"name":"a","parameters":{"a":%s}}}]}',
        b'{"messages":[],"tool_choice":%s}',
    ],
)
@pytest.mark.parametrize("depth", [150, 900, 10_000])
def test_nesting_that_no_reader_should_follow(around: bytes, depth: int) -> None:
    data = around % (b"[" * depth + b"]" * depth)
    kept_or_refused(streamed, b"data: " + data + b"\n\n")
    kept_or_refused(streamed, data)
    kept_or_refused(wire.decode_reply, data)
    kept_or_refused(wire.decode_request, data)


def test_nesting_is_refused_by_its_name() -> None:
    with pytest.raises(BadReply, match="nested deeper than 100 levels"):
        wire.decode_reply(b'{"choices":' + DEEP + b"}")
    with pytest.raises(BadInput, match="nested deeper than 100 levels"):
        wire.decode_request(b'{"messages":' + DEEP + b"}")


@pytest.mark.parametrize("junk", [b"x", b"data: x", b'data: {"choices":[', b"<html>", b":"])
def test_a_line_of_five_megabytes(junk: bytes) -> None:
    begin = time.process_time()
    kept_or_refused(streamed, junk + b"x" * 5_000_000)
    kept_or_refused(streamed, junk + b"x" * 5_000_000 + b"\n\n")
    assert time.process_time() - begin < 5


def test_numbers_that_cannot_be_token_counts() -> None:
    usage = b'{"prompt_tokens":-1,"completion_tokens":1e999,"total_tokens":"many"}'
    message = streamed(b'data: {"choices":[],"usage":' + usage + b"}\n\n")
    assert message.usage is None
    storable(message)


def test_an_impossible_count_does_not_replace_a_possible_one() -> None:
    usage = b'{"prompt_tokens":100000000000000000000000000,"total_tokens":-5}'
    event = b'data: {"choices":[],"usage":%b}\n\n'
    assert streamed(event % b'{"prompt_tokens":3}' + event % usage).usage == Usage(input=3)


def test_nesting_is_refused_where_the_text_itself_would_be_kept() -> None:
    deep = b'{"a":' + b"[" * 150 + b"]" * 150 + b"}"
    call = b'{"role":"assistant","tool_calls":[{"function":{"arguments":%s}}]}' % deep
    with pytest.raises(BadInput, match="a call's arguments: nested deeper"):
        wire.decode_request(b'{"messages":[%s]}' % call)
    tool = b'{"function":{"name":"a","parameters":%s}}' % deep
    with pytest.raises(BadInput, match="a tool's parameters: nested deeper"):
        wire.decode_request(b'{"messages":[],"tools":[%s]}' % tool)


def test_a_bad_request_says_where() -> None:
    with pytest.raises(BadInput, match=r"\$\.messages\[0\]\.role"):
        wire.decode_request(b'{"messages":[{"role":5}]}')
    with pytest.raises(BadInput, match="message 0 has the role 'oracle'"):
        wire.decode_request(b'{"messages":[{"role":"oracle"}]}')
    with pytest.raises(BadInput, match="missing required field `messages`"):
        wire.decode_request(b"{}")
    with pytest.raises(BadInput, match="not readable JSON"):
        wire.decode_request(b"{")


def test_text_that_utf_8_has_not_is_read_from_a_request() -> None:
    asked = wire.decode_request(b'{"messages":[{"role":"user","content":"a\\ud800b"}]}')
    assert asked.messages == (Message(role="user", parts=(Text(text="a\ufffdb"),)),)


def test_ten_thousand_pieces_of_a_named_call_cost_what_they_should() -> None:
    """A server that repeats the name must not make us look at everything again and again."""
    one = {"index": 0, "function": {"name": "a", "arguments": "x" * 100}}
    event = b"data: " + json.dumps({"choices": [{"delta": {"tool_calls": [one]}}]}).encode()
    begin = time.process_time()
    (call,) = streamed((event + b"\n\n") * 10_000).parts
    assert isinstance(call, ToolCall)
    assert len(call.arguments) == 1_000_000
    assert time.process_time() - begin < 5

"""Whatever a model wrote as arguments, a server gets a JSON object, and we get the text back."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.codecs.call_arguments import unwrap_arguments, wrap_arguments
from recollect.codecs.encoder import encode
from recollect.codecs.wire_protocol import RequestOptions
from recollect.codecs.wires import WIRES
from recollect.entries import Message, ToolCall
from recollect.profiles import WireName, find_profile
from recollect.testing import result, user
from tests.strategies import text as any_text

FORMS: tuple[WireName, ...] = ("gemini", "openai", "anthropic")
BROKEN = (
    '{"a": ',
    "[]",
    '"x"',
    "null",
    "3",
    "NaN",
    '{"a": NaN}',
    '{"a": Infinity}',
    '{"a": 1e999}',
    '{"a": 1, "a": 2}',
    '{"b": {"a": 1, "a": 2}}',
    '{"malformed_arguments": "x"}',
    '{"malformed_arguments": {"a": 1}}',
    '{"a": "\\ud800"}',
    '{"a":' * 200 + "1" + "}" * 200,
    "{" * 20_000,
    "rm -rf /",
)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=10,
)


def called(arguments: str) -> ToolCall:
    return ToolCall(id="c", name="read", arguments=arguments)


@given(any_text | st.sampled_from(BROKEN) | values.map(json.dumps))
def test_arguments_are_sent_as_an_object_and_come_back(text: str) -> None:
    fixes: list[Any] = []
    sent = wrap_arguments(called(text), fixes)
    assert isinstance(json.loads(sent, parse_constant=pytest.fail), dict)
    assert unwrap_arguments(sent) == text or not text.strip()
    assert bool(fixes) == (sent != text and bool(text.strip()))


@given(st.dictionaries(st.text(max_size=5), values, max_size=4).map(json.dumps))
def test_an_object_is_sent_as_it_was_written(text: str) -> None:
    assert wrap_arguments(called(text), []) == text


def arguments_in(form: WireName, body: dict[str, Any]) -> Any:
    if form == "openai":
        return json.loads(body["messages"][1]["tool_calls"][0]["function"]["arguments"])
    if form == "anthropic":
        return body["messages"][1]["content"][0]["input"]
    return body["contents"][1]["parts"][0]["functionCall"]["args"]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("text", [*BROKEN, "", " ", '{"a": 1}'])
def test_every_wire_sends_an_object_and_reads_the_text_back(form: WireName, text: str) -> None:
    wire = WIRES[form].build("m", find_profile("m"))
    broken = called(text)
    history = [user("go"), Message(role="model", parts=(broken,)), result(broken, "no")]
    encoded = encode(wire, history, RequestOptions(model="m"))
    body = json.loads(encoded.body)
    assert isinstance(arguments_in(form, body), dict)
    back = wire.decode_request(encoded.body).messages[1].parts[0]
    assert isinstance(back, ToolCall)
    assert back.arguments == (text if text.strip() else "{}")
    reported = [fix for fix in encoded.fixes if fix.call == "c"]
    assert bool(reported) == (text in BROKEN)


@pytest.mark.parametrize("form", FORMS)
def test_a_model_that_copies_the_wrapper_is_understood(form: WireName) -> None:
    wire = WIRES[form].build("m", find_profile("m"))
    copied = called(json.dumps({"malformed_arguments": '{"path": "a.py"}'}))
    reply = Message(role="model", parts=(copied,), finish="calls")
    if form != "openai":  # its replies carry text, so nothing is wrapped a second time
        reply = Message(role="model", parts=(called('{"path": "a.py"}'),), finish="calls")
    (part,) = wire.decode_reply(wire.encode_reply(reply)).parts
    assert isinstance(part, ToolCall)
    assert part.arguments == '{"path": "a.py"}'

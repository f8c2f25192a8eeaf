"""Every request to Anthropic is one that the official SDK has types for."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from pydantic import ValidationError

from recollect.codecs.anthropic import AnthropicWire
from recollect.codecs.wire_protocol import Declaration, Generation, RequestOptions
from recollect.testing import user
from tests import strategies
from tests.codecs.anthropic.sdk_oracle import check_request
from tests.codecs.anthropic.test_encode_request import PROMPT, anthropic, body_of
from tests.codecs.conversations import Messages, conversations

request_options = st.builds(
    RequestOptions,
    model=st.just("this"),
    tools=st.lists(
        st.builds(
            Declaration,
            name=st.sampled_from(["read", "write"]),
            description=strategies.text,
            parameters=st.sampled_from(["{}", '{"type":"object"}', "[]", "", "{", '{"a":[1]}']),
        ),
        max_size=3,
    ).map(tuple),
    tool_choice=st.sampled_from(["auto", "none", "required", "read"]),
    generation=st.builds(
        Generation,
        temperature=st.none() | st.floats(),
        top_p=st.none() | st.floats(),
        max_output=st.none() | st.integers(1, 100_000),
        stop=st.lists(strategies.text, max_size=2).map(tuple),
        seed=st.none() | st.integers(),
        effort=st.sampled_from(["", "none", "low", "medium", "high"]),
        schema=st.sampled_from(["", "{", '{"type":"object"}']),
    ),
    stream=st.booleans(),
)
wires = st.builds(
    AnthropicWire,
    model=st.just("this"),
    cache=st.booleans(),
    media=st.sampled_from([(), ("image/",), ("image/", "application/pdf", "text/")]),
    sampling=st.just(False),
    thinking=st.sampled_from(["budget", "adaptive"]),
)
hostile = st.lists(
    strategies.messages.flatmap(
        lambda message: st.sampled_from([message, replace(message, model="this")])
    ),
    max_size=5,
).map(tuple)


@given(conversations | hostile, request_options, wires)
def test_every_request_is_one_that_the_official_sdk_has_types_for(
    messages: Messages, options: RequestOptions, wire: AnthropicWire
) -> None:
    request = check_request(body_of(wire, messages, options))
    assert all(message["content"] for message in request["messages"])


@given(request_options)
def test_temperature_and_top_p_are_all_that_goes_beyond_the_sdk_and_never_both(
    options: RequestOptions,
) -> None:
    # The SDK of API version 2026-10-21 has no field for them; older models still take them.
    request = json.loads(body_of(anthropic, [user("hi")], options))
    sampling = {key: request.pop(key) for key in ("temperature", "top_p") if key in request}
    check_request(json.dumps(request).encode())
    assert len(sampling) < 2
    assert all(0 <= value <= 1 for value in sampling.values())


def test_the_oracle_refuses_what_is_not_in_the_api() -> None:
    wrong: list[dict[str, Any]] = [
        {"seed": 1},
        {"messages": [{"role": "user", "content": [{"type": "hologram"}]}]},
        {"messages": [{"role": "user", "content": [{"type": "text", "text": "a", "b": 1}]}]},
    ]
    good = json.loads(body_of(anthropic, [user("hi")], PROMPT))
    check_request(json.dumps(good).encode())
    for change in wrong:
        with pytest.raises(ValidationError):
            check_request(json.dumps(good | change).encode())

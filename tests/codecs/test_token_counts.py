"""Token counts that no window could hold are not believed, whoever reports them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.codecs.wires import WIRES
from recollect.entries import Usage
from recollect.profiles import WireName, find_profile
from recollect.tokens import MAX_REPORT, add_usage, believe_usage

NAMES: dict[WireName, tuple[str, ...]] = {
    "openai": ("prompt_tokens", "completion_tokens", "total_tokens"),
    "anthropic": ("input_tokens", "output_tokens", "cache_read_input_tokens"),
    "gemini": ("promptTokenCount", "candidatesTokenCount", "totalTokenCount"),
}


def reply(wire: WireName, usage: dict[str, Any]) -> dict[str, Any]:
    match wire:
        case "openai":
            choice = {"message": {"content": "hi"}, "finish_reason": "stop"}
            return {"choices": [choice], "usage": usage}
        case "anthropic":
            content = [{"type": "text", "text": "hi"}]
            return {"type": "message", "content": content, "usage": usage}
        case "gemini":
            candidate = {"content": {"parts": [{"text": "hi"}]}, "finishReason": "STOP"}
            return {"candidates": [candidate], "usageMetadata": usage}


def usage_of(wire: WireName, usage: dict[str, Any]) -> Usage | None:
    body = json.dumps(reply(wire, usage)).encode()
    message = WIRES[wire].build("m", find_profile("m")).decode_reply(body)
    assert message.parts, "a reply is not refused because of its counts"
    return message.usage


@pytest.mark.parametrize("wire", NAMES)
@pytest.mark.parametrize("absurd", [10**30, 10**400, MAX_REPORT + 1, 1e30, 2**63, -1, -1e9])
def test_a_report_with_an_impossible_count_is_none(wire: WireName, absurd: float) -> None:
    for name in NAMES[wire]:
        assert usage_of(wire, dict.fromkeys(NAMES[wire], 7) | {name: absurd}) is None


@pytest.mark.parametrize("wire", NAMES)
def test_a_count_that_is_a_round_float_is_a_count(wire: WireName) -> None:
    found = usage_of(wire, {NAMES[wire][0]: 12.0, NAMES[wire][1]: 3})
    assert found is not None
    assert (found.input, found.output) == (12, 3)


counts = (
    st.integers()
    | st.floats()
    | st.text(max_size=5)
    | st.none()
    | st.booleans()
    | st.just(10**40)
    | st.lists(st.integers(), max_size=2)
)


@pytest.mark.parametrize("wire", NAMES)
@given(data=st.data())
def test_whatever_is_reported_is_possible_or_not_believed(
    wire: WireName, data: st.DataObject
) -> None:
    found = usage_of(wire, {name: data.draw(counts) for name in NAMES[wire]})
    assert found is None or believe_usage(found) == found


def test_a_sum_leaves_out_what_an_older_log_believed() -> None:
    good = Usage(input=5, output=2, total=7)
    assert add_usage(good, Usage(input=10**30)) == good
    assert add_usage(good, Usage(output=-5)) == good
    assert add_usage(good, good).input == 10

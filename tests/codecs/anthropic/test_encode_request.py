"""Requests to Anthropic, and what is left out of them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from recollect.codecs.anthropic import AnthropicWire
from recollect.codecs.fixes import Fix
from recollect.codecs.repair import repair
from recollect.codecs.tool_names import sent_tool_name
from recollect.codecs.wire_protocol import Declaration, Generation, RequestOptions, Wire
from recollect.entries import FileRef, InlineData, Message, Text, Thought, ToolCall, Unknown
from recollect.testing import call, model, result, user
from tests.codecs.anthropic.sdk_oracle import check_request

READ = Declaration(
    name="read", description="Reads.", parameters='{"type":"object","properties":{}}'
)
PROMPT = RequestOptions(model="this", tools=(READ,))
anthropic = AnthropicWire(model="this")


def body_of(wire: Wire, messages: Sequence[Message], options: RequestOptions) -> bytes:
    repaired = repair(messages, wire.rules).messages
    system = [message for message in repaired if message.role == "system"]
    frame = wire.encode_options(options, system)
    written = [wire.encode_message(message).data for message in repaired[len(system) :]]
    return frame.before + b",".join(written) + frame.after


def test_the_codec_is_a_wire() -> None:
    wire: Wire = AnthropicWire(model="m")
    assert (wire.name, wire.rules.provider, wire.rules.model) == ("anthropic", "anthropic", "m")


def test_everything_but_the_messages_stands_before_them_with_marks_at_stable_places() -> None:
    instructions = Message(role="system", parts=(Text(text="Be brief."), Text(text="Be kind.")))
    request = check_request(body_of(anthropic, [instructions, user("hi")], PROMPT))
    mark = {"type": "ephemeral"}
    assert list(request)[-1] == "messages"
    assert request["cache_control"] == mark
    assert request["tools"][-1]["cache_control"] == mark
    assert [block.get("cache_control") for block in request["system"]] == [None, mark]
    assert b"cache_control" not in anthropic.encode_message(user("hi")).data
    plain = body_of(AnthropicWire(model="this", cache=False), [instructions, user("hi")], PROMPT)
    assert b"cache_control" not in plain


def test_two_requests_of_a_session_begin_with_the_same_bytes() -> None:
    asked = call("read", path="a.py")
    session = [user("hi"), model("ho", asked), result(asked, "text"), model("done"), user("more")]
    shorter = body_of(anthropic, session[:3], PROMPT)
    longer = body_of(anthropic, session, PROMPT)
    assert longer.startswith(shorter.removesuffix(b"]}"))


def frame_of(generation: Generation, wire: AnthropicWire = anthropic, **more: Any) -> Any:
    options = RequestOptions(model="this", generation=generation, **more)
    frame = wire.encode_options(options, [])
    return json.loads(frame.before + frame.after), frame.fixes


@pytest.mark.parametrize(
    ("effort", "most", "thinking"),
    [
        ("", None, None),
        ("none", None, {"type": "disabled"}),
        ("low", None, {"type": "enabled", "budget_tokens": 2_048}),
        ("high", None, {"type": "enabled", "budget_tokens": 8_191}),
        ("high", 64_000, {"type": "enabled", "budget_tokens": 16_384}),
        ("low", 1_025, {"type": "enabled", "budget_tokens": 1_024}),
        ("low", 1_024, None),
    ],
)
def test_effort_is_a_budget_below_the_output_limit(effort: Any, most: Any, thinking: Any) -> None:
    request, fixes = frame_of(Generation(effort=effort, max_output=most))
    assert request.get("thinking") == thinking
    assert request["max_tokens"] == (most or 8_192)
    assert bool(fixes) == (most == 1_024)


def test_a_model_that_thinks_adaptively_is_sent_its_effort() -> None:
    wire = AnthropicWire(model="this", thinking="adaptive")
    request, fixes = frame_of(Generation(effort="low", schema='{"type":"object"}'), wire)
    assert request["thinking"] == {"type": "adaptive"}
    assert request["output_config"] == {
        "format": {"type": "json_schema", "schema": {"type": "object"}},
        "effort": "low",
    }
    assert fixes == ()


def test_options_that_the_provider_refuses_are_left_out_and_reported() -> None:
    generation = Generation(temperature=0.5, top_p=0.5, effort="low", seed=7, stop=(" ", "END"))
    request, fixes = frame_of(generation)
    assert not {"temperature", "top_p", "seed"} & set(request)
    assert request["stop_sequences"] == ["END"]
    assert [(fix.kind, fix.message) for fix in fixes] == [("uncarried", -1)] * 4
    request, fixes = frame_of(Generation(temperature=1.7, top_p=0.9, schema="{"))
    assert request["temperature"] == 1
    assert "top_p" not in request
    assert len(fixes) == 3
    request, fixes = frame_of(Generation(effort="low"), tool_choice="required", tools=(READ,))
    assert request["tool_choice"] == {"type": "any"}
    assert "thinking" not in request
    assert len(fixes) == 1


def test_instructions_that_are_not_text_are_reported() -> None:
    picture = InlineData(mime="image/png", data=b"png")
    frame = anthropic.encode_options(
        PROMPT, [Message(role="system", parts=(picture, Text(text="\ud800")))]
    )
    assert json.loads(frame.before + frame.after)["system"][0]["text"] == "\ufffd"
    assert len(frame.fixes) == 2


def content_of(message: Message, wire: AnthropicWire = anthropic) -> tuple[Any, tuple[Fix, ...]]:
    written = wire.encode_message(message)
    return json.loads(written.data)["content"], written.fixes


def test_a_file_that_the_model_does_not_take_is_named_in_its_place() -> None:
    picture = InlineData(mime="image/png", data=b"x" * 12_345)
    content, fixes = content_of(user("see", picture), AnthropicWire(model="this", media=()))
    text = "[image/png, 12,345 bytes: this model takes no images]"
    assert content[1] == {"type": "text", "text": text}
    assert [fix.kind for fix in fixes] == ["uncarried"]


@pytest.mark.parametrize(
    ("part", "why"),
    [
        (InlineData(mime="image/bmp", data=b"x"), "does not take this format"),
        (InlineData(mime="image/png", data=b""), "nothing in it"),
        (InlineData(mime="text/plain", data=b"\xff"), "no UTF-8"),
        (InlineData(mime="audio/wav", data=b"x"), "takes no such files"),
        (FileRef(mime="image/png", uri="file:///a\u202e"), "only fetch from the web"),
        (FileRef(mime="text/html", uri="https://a"), "does not fetch this format"),
    ],
)
def test_a_file_that_the_api_would_refuse_is_named_in_its_place(
    part: InlineData | FileRef, why: str
) -> None:
    content, fixes = content_of(user("see", part))
    assert why in content[1]["text"]
    assert fixes[0].text.isprintable()
    content, fixes = content_of(model("see", part))
    assert "only a user's message takes files" in content[1]["text"]


def test_arguments_that_are_not_an_object_are_wrapped_and_others_sent_as_they_are() -> None:
    good = ToolCall(id="a", name="read", arguments='{"n": 1.50, "m":2}')
    assert b'"input":{"n": 1.50, "m":2}' in anthropic.encode_message(model("x", good)).data
    for arguments in (
        "[1]",
        "{",
        '"a"',
        '{"a":' + "[" * 200 + "]" * 200 + "}",
        "NaN",
        '{"n":1,"n":2}',
    ):
        content, fixes = content_of(model("x", replace(good, arguments=arguments)))
        assert content[1]["input"] == {"malformed_arguments": arguments}
        assert [fix.call for fix in fixes] == ["a"]


def test_content_without_a_field_is_reported() -> None:
    odd = ToolCall(id="a", name="mcp.server/read", arguments="{}", signature="s")
    thought = Thought(text="hm", subject="sums", signature="s")
    content, fixes = content_of(model("x", thought, odd, Unknown(data='{"type":"hologram"}')))
    assert [block["type"] for block in content] == ["text", "thinking", "tool_use"]
    assert content[2]["name"] == sent_tool_name("mcp.server/read", "anthropic")
    assert len(fixes) == 4
    alone, fixes = content_of(Message(role="user", parts=(Unknown(data='{"type":"hologram"}'),)))
    assert alone == [{"type": "text", "text": "[what was here cannot be sent]"}]
    assert len(fixes) == 1


def test_a_result_without_text_has_no_content() -> None:
    asked = call("read")
    assert content_of(result(asked, ""))[0] == [{"type": "tool_result", "tool_use_id": "call-1"}]
    blank, fixes = content_of(result(asked, " \n", is_error=True))
    assert blank == [{"type": "tool_result", "tool_use_id": "call-1", "is_error": True}]
    assert [fix.kind for fix in fixes] == ["empty"]


def test_text_that_utf_8_cannot_carry_is_replaced_and_reported() -> None:
    content, fixes = content_of(user("a\ud800b"))
    assert content[0]["text"] == "a\ufffdb"
    assert [fix.kind for fix in fixes] == ["uncarried"]

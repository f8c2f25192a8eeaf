"""Streams and replies as providers document them, each with the message it means."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from recollect.codecs.openai import OpenAIWire
from recollect.codecs.wire_protocol import Declaration, Delta, Generation, RequestOptions
from recollect.entries import (
    FileRef,
    InlineData,
    Message,
    Text,
    Thought,
    ToolCall,
    ToolResult,
    Unknown,
    Usage,
)
from recollect.errors import ApiKeyRefused, BadReply, ContextOverflow, ProviderBusy, ProviderFailed

WIRE = Path(__file__).parent.parent / "wire"
wire = OpenAIWire(model="m")


def recorded(name: str) -> bytes:
    return (WIRE / f"openai-{name}").read_bytes()


def reply(name: str) -> Message:
    return streamed(recorded(f"{name}.txt"))


def streamed(data: bytes) -> Message:
    decoder = wire.stream_decoder()
    decoder.feed(data)
    decoder.close()
    return decoder.message()


def events(*values: Any) -> bytes:
    return b"".join(b"data: " + json.dumps(value).encode() + b"\n\n" for value in values)


def delta(finish: str | None = None, **fields: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": fields, "finish_reason": finish}]}


def piece(index: int | None = None, **fields: Any) -> dict[str, Any]:
    function = {key: fields.pop(key) for key in ("name", "arguments") if key in fields}
    named = {} if index is None else {"index": index}
    return {**named, **fields, "function": function}


def test_a_call_that_arrives_in_pieces() -> None:
    assert reply("calls-in-pieces") == Message(
        role="model",
        parts=(ToolCall(id="call_weather", name="get_weather", arguments='{"city": "Paris"}'),),
        model="gpt-4o",
        finish="calls",
    )


def test_the_first_delta_of_a_call_names_the_tool() -> None:
    assert list(wire.stream_decoder().feed(recorded("calls-in-pieces.txt"))) == [
        Delta("call", "", "get_weather"),
        Delta("call", '{"ci'),
        Delta("call", 'ty": "Paris"}'),
    ]


def test_parallel_calls_and_usage_in_the_last_chunk_alone() -> None:
    assert reply("parallel-calls") == Message(
        role="model",
        parts=(
            Text(text="Both at once."),
            ToolCall(id="call_a", name="read", arguments='{"path":"a.py"}'),
            ToolCall(id="call_b", name="grep", arguments='{"word":"x"}'),
        ),
        model="gpt-4o",
        finish="calls",
        usage=Usage(input=82, output=17, cached=64, thoughts=5, total=99),
    )


def test_thoughts_with_a_signature() -> None:
    assert reply("thoughts") == Message(
        role="model",
        parts=(Thought(text="First, think.", signature="EqMBsig=="), Text(text="Four.")),
        model="anthropic/claude",
        finish="stop",
    )


def test_thoughts_of_deepseek_and_its_count_of_cached_tokens() -> None:
    assert reply("deepseek-thoughts") == Message(
        role="model",
        parts=(Thought(text="Two and two."), Text(text="Four.")),
        model="deepseek-reasoner",
        finish="stop",
        usage=Usage(input=10, output=6, cached=8, thoughts=4, total=16),
    )


@pytest.mark.parametrize(
    ("reported", "cached"),
    [
        ("{}", None),
        ('{"prompt_tokens_details": null}', None),
        ('{"prompt_tokens_details": {}}', None),
        ('{"prompt_tokens_details": {"cached_tokens": 0}}', 0),
        ('{"prompt_tokens_details": {"cached_tokens": 0}, "prompt_cache_hit_tokens": 8}', 8),
        ('{"prompt_cache_hit_tokens": 0}', 0),
        ('{"prompt_tokens": "many"}', None),
        ('{"prompt_tokens": "many", "prompt_cache_hit_tokens": "few"}', 0),
    ],
)
def test_what_was_cached_is_unknown_unless_the_server_reports_it(
    reported: str, cached: int | None
) -> None:
    body = '{"choices":[{"message":{"content":"hi"}}],"usage":' + reported + "}"
    usage = wire.decode_reply(body.encode()).usage
    assert usage is not None
    assert usage.cached == cached


def test_a_stop_for_safety() -> None:
    message = reply("safety-stop")
    assert (message.parts, message.finish) == ((Text(text="I will"),), "safety")


def test_a_refusal_is_text_that_ended_for_safety() -> None:
    message = reply("refusal")
    assert message.parts == (Text(text="I cannot help with that."),)
    assert message.finish == "safety"


def test_an_unknown_end_is_kept_in_the_providers_word() -> None:
    message = streamed(events(delta("MOON_PHASE", content="hm")))
    assert (message.finish, message.extra) == ("other", '{"finish_reason":"moon_phase"}')


def test_a_reply_that_the_provider_gave_up_has_no_end() -> None:
    message = reply("unknown-finish")
    assert (message.parts, message.finish) == ((Text(text="Half an"),), "")
    assert json.loads(message.extra) == {"finish_reason": "insufficient_system_resource"}


def test_an_error_in_the_stream_is_raised_after_the_deltas_before_it() -> None:
    decoder = wire.stream_decoder()
    assert list(decoder.feed(recorded("error-in-stream.txt"))) == [Delta("text", "Let me")]
    with pytest.raises(ProviderBusy, match="The server had an error") as raised:
        decoder.close()
    assert raised.value.status == 0
    assert decoder.message().parts == (Text(text="Let me"),)
    assert decoder.message().finish == ""


def test_too_many_tokens_are_an_overflow_with_the_window() -> None:
    with pytest.raises(ContextOverflow) as raised:
        reply("overflow-in-stream")
    assert (raised.value.limit, raised.value.status) == (8192, 400)


def test_whole_calls_that_all_have_index_zero() -> None:
    assert reply("whole-calls-index-zero") == Message(
        role="model",
        parts=(
            ToolCall(id="call_x", name="read", arguments='{"path":"a"}'),
            ToolCall(id="call_y", name="read", arguments='{"path":"b"}'),
        ),
        model="llama3.1",
        finish="calls",
    )


def test_calls_without_id_and_index_and_with_an_object_for_arguments() -> None:
    assert reply("calls-without-id") == Message(
        role="model",
        parts=(
            ToolCall(id="call-1", name="read", arguments='{"path":"a"}'),
            ToolCall(id="call-2", name="grep", arguments="{}"),
        ),
        model="local",
        finish="calls",
    )


def test_content_null_beside_a_call_in_one_piece() -> None:
    assert wire.decode_reply(recorded("reply-null-content.json")) == Message(
        role="model",
        parts=(ToolCall(id="call_abc", name="get_weather", arguments='{\n"city": "Paris"\n}'),),
        model="gpt-4o-2024-08-06",
        finish="calls",
        usage=Usage(input=82, output=17, total=99),
    )


@pytest.mark.parametrize(
    "pieces",
    [
        # index 0 for all and no ids: whole calls
        [piece(0, name="a", arguments="{}"), piece(0, name="b", arguments="{}")],
        # no index, the id in each first piece
        [piece(id="x", name="a", arguments="{"), piece(arguments="}"), piece(id="y", name="b")],
        # no index, the id in every piece, interleaved
        [
            piece(id="x", name="a", arguments="{"),
            piece(id="y", name="b", arguments="{}"),
            piece(id="x", arguments="}"),
        ],
        # one id for both
        [piece(0, id="x", name="a", arguments="{}"), piece(1, id="x", name="b", arguments="{}")],
        # another id with every piece: only a name begins a call
        [
            piece(0, id="x", name="a", arguments="{"),
            piece(0, id="z", arguments="}"),
            piece(1, name="b"),
        ],
        # the name in every piece
        [
            piece(0, id="x", name="a", arguments="{"),
            piece(0, id="x", name="a", arguments="}"),
            piece(1, id="y", name="b", arguments="{}"),
        ],
    ],
)
def test_two_calls_however_a_server_distinguishes_them(pieces: list[dict[str, Any]]) -> None:
    apart = streamed(events(*[delta(tool_calls=[one]) for one in pieces], delta("stop")))
    together = streamed(events(delta("stop", tool_calls=pieces)))
    assert apart == together
    calls = [(part.name, part.arguments) for part in apart.parts if isinstance(part, ToolCall)]
    assert calls == [("a", "{}"), ("b", "{}")]
    assert apart.finish == "calls"


def test_an_id_made_by_position_is_never_one_that_the_server_gave() -> None:
    pieces = [piece(0, name="a"), piece(1, id="call-1", name="b"), piece(2, name="c")]
    ids = [part.id for part in streamed(events(delta(tool_calls=pieces))).parts]  # type: ignore[union-attr]
    assert ids == ["call-1.1", "call-1", "call-3"]


def test_a_function_call_from_before_there_were_tools() -> None:
    message = streamed(
        events(
            delta(function_call={"name": "read", "arguments": "{"}),
            delta("function_call", function_call={"arguments": "}"}),
        )
    )
    assert message.parts == (ToolCall(id="call-1", name="read", arguments="{}"),)
    assert message.finish == "calls"


def test_content_as_a_list_of_parts() -> None:
    parts = [
        {"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]},
        {"type": "text", "text": "Yes"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,cG5n"}},
        {"type": "hologram"},
    ]
    assert streamed(events(delta("stop", content=parts))).parts == (
        Thought(text="Hm."),
        Text(text="Yes"),
        InlineData(mime="image/png", data=b"png"),
        Unknown(data='{"type":"hologram"}'),
    )


def test_an_image_that_is_no_base64_is_not_an_empty_image() -> None:
    broken = "data:image/png;base64,!!!!"
    parts = [
        {"type": "image_url", "image_url": {"url": broken}},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,cG\n5n"}},
    ]
    link, image = streamed(events(delta("stop", content=parts))).parts
    assert link == FileRef(mime="image/*", uri=broken)
    assert image == InlineData(mime="image/png", data=b"png")


def test_only_the_first_choice_is_read() -> None:
    other = {"choices": [{"index": 1, "delta": {"content": "no"}, "finish_reason": "length"}]}
    message = streamed(events(delta(content="yes"), other, delta("stop")))
    assert (message.parts, message.finish) == ((Text(text="yes"),), "stop")


def test_a_stream_that_just_ends_has_no_finish() -> None:
    assert streamed(events(delta(content="and then"))).finish == ""
    assert streamed(b"") == Message(role="model")


def test_an_end_for_calls_without_a_call_is_not_believed() -> None:
    message = streamed(events(delta("tool_calls", content="hm")))
    assert message.finish == "malformed_call"


def test_the_end_marker_alone_is_an_end() -> None:
    whole = events(delta(content="hm")) + b"data: [DONE]\n\n"
    assert streamed(whole).finish == "stop"


def test_a_server_that_does_not_stream_is_understood() -> None:
    message = streamed(recorded("reply-null-content.json"))
    assert message == wire.decode_reply(recorded("reply-null-content.json"))


@pytest.mark.parametrize(
    ("data", "kind", "words"),
    [
        (b'{"error":{"message":"no such model","code":404}}', ProviderFailed, "no such model"),
        (b'{\n "error": "Incorrect API key provided"\n}', ApiKeyRefused, "Incorrect API key"),
        (b'data: {"error":"slow down: rate limit"}\n\n', ProviderBusy, "slow down"),
        (b'data: {"object":"error","message":"bad","code":400}\n\n', ProviderFailed, "400"),
        (
            b'data: {"error":{"message":"no","metadata":{"raw":"prompt is too long: 9000"}}}\n\n',
            ContextOverflow,
            "prompt is too long",
        ),
        (b"<!DOCTYPE html>\n<html>\x07\n", BadReply, r"a web page \(<!DOCTYPE html> <html>\\x07"),
        (b"Bad Gateway", BadReply, r"text \(Bad Gateway\)"),
        (b'data: {"choices":[{"delta":{"content":"x', BadReply, "incomplete JSON"),
        (b'{"choices":[{"message":{"cont', BadReply, "incomplete JSON"),
        (b"data: <html>busy</html>\n\n", BadReply, "a web page"),
    ],
)
def test_anything_but_a_reply_is_named(data: bytes, kind: type[Exception], words: str) -> None:
    with pytest.raises(kind, match=words):
        streamed(data)


def test_anything_but_a_whole_reply_is_named() -> None:
    for body, words in ((b"<html>", "web page"), (b'{"a":', "incomplete JSON"), (b"", "nothing")):
        with pytest.raises(BadReply, match=words):
            wire.decode_reply(body)
    with pytest.raises(BadReply, match="without a choice"):
        wire.decode_reply(b'{"choices":[]}')


def test_an_error_line_without_the_word_data_after_events() -> None:
    decoder = wire.stream_decoder()
    decoder.feed(events(delta(content="x")) + b'{"error":{"message":"gone","code":503}}\n')
    with pytest.raises(ProviderBusy, match="gone"):
        decoder.close()


def test_a_request_with_everything_the_documentation_allows() -> None:
    asked = wire.decode_request(recorded("request.json"))
    assert asked.options == RequestOptions(
        model="gpt-4o",
        tools=(
            Declaration(
                name="look",
                description="Looks.",
                parameters='{"type": "object", "properties": {"at": {"type": "integer"}}}',
            ),
        ),
        tool_choice="look",
        generation=Generation(
            temperature=0.5, max_output=100, stop=("END",), effort="low", schema='{"type":"object"}'
        ),
    )
    system, question, calling, answer, thinking, last = asked.messages
    assert system == Message(role="system", parts=(Text(text="Be brief."),))
    assert question.parts == (
        Text(text="What is this?"),
        InlineData(mime="image/png", data=b"png"),
        FileRef(mime="image/jpeg", uri="https://example.org/cat.JPG?x=1"),
        InlineData(mime="audio/wav", data=b"wav"),
        InlineData(mime="application/pdf", data=b"pdf"),
        FileRef(mime="application/octet-stream", uri="file-6F2ksmvXxt4VdoqmHRw6kL"),
        Unknown(data='{"type":"video_url","video_url":{"url":"https://example.org/v.mp4"}}'),
    )
    assert calling.parts == (ToolCall(id="call_1", name="look", arguments='{"at":1}'),)
    assert answer == Message(
        role="user",
        parts=(ToolResult(call_id="call_1", name="look", content=(Text(text="a cat"),)),),
    )
    assert thinking.parts == (Thought(text="It has whiskers."), Text(text="A cat."))
    assert last == Message(role="user", parts=(Text(text="Sure?"),))

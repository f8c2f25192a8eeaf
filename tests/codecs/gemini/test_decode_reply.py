"""Replies as the API's documentation shows them, made by hand, and the messages they are."""

from __future__ import annotations

from pathlib import Path

import pytest

from recollect.codecs.gemini import GeminiWire
from recollect.codecs.wire_protocol import Delta
from recollect.entries import (
    InlineData,
    Message,
    Text,
    Thought,
    ToolCall,
    Unknown,
    Usage,
)
from recollect.errors import ApiKeyRefused, BadReply, ContextOverflow, ProviderBusy, ProviderFailed

WIRE = Path(__file__).parent.parent / "wire"
EXAMPLES = sorted(path.name for path in WIRE.glob("gemini-*.txt"))


def example(name: str) -> bytes:
    return (WIRE / f"gemini-{name}").read_bytes()


def decoded(data: bytes) -> Message:
    decoder = GeminiWire().stream_decoder()
    decoder.feed(data)
    decoder.close()
    return decoder.message()


def test_texts_of_a_stream_are_one_and_the_last_count_stands() -> None:
    usage = Usage(input=7, output=5, cached=0, total=12)
    message = decoded(example("text.txt"))
    assert message.usage == usage
    assert message.parts == (Text(text="The sky is blue."),)
    assert (message.finish, message.model) == ("stop", "gemini-2.5-flash")


def test_thoughts_are_one_and_the_signature_in_an_empty_text_stays() -> None:
    message = decoded(example("thoughts.txt"))
    assert message.parts == (
        Thought(text="**Weighing**\n\nFirst, the units."),
        Text(text="They weigh the same."),
        Thought(text="", signature="RXJyYXRh"),
    )
    assert message.usage == Usage(input=20, output=5, cached=0, thoughts=60, total=85)


def test_the_signature_of_a_reply_goes_back_in_an_empty_text() -> None:
    wire = GeminiWire(model="gemini-3-pro-preview")
    written = wire.encode_message(decoded(example("thoughts.txt")))
    assert written.data.endswith(b',{"text":"","thoughtSignature":"RXJyYXRh"}]}')
    assert not written.fixes


def test_parallel_calls_keep_their_text_and_get_ids_by_position() -> None:
    message = decoded(example("parallel-calls.txt"))
    paris = '{"city": "Paris", "days": 1.0}'
    assert message.parts == (
        Thought(text="Looking both up."),
        ToolCall(id="call-1", name="get_weather", arguments=paris, signature="UGFyaXM="),
        ToolCall(id="call-2", name="get_weather", arguments='{"city": "東京"}'),
        ToolCall(id="fc-9", name="now", arguments="{}"),
    )
    assert message.finish == "calls"


def test_calls_are_shown_while_they_arrive() -> None:
    deltas = GeminiWire().stream_decoder().feed(example("parallel-calls.txt"))
    assert deltas[0] == Delta("thought", "Looking both up.")
    assert deltas[2] == Delta("call", '{"city": "東京"}', "get_weather")


def test_a_reply_that_was_stopped_for_safety_keeps_its_text() -> None:
    message = decoded(example("safety.txt"))
    assert (message.parts, message.finish) == ((Text(text="Take the "),), "safety")


def test_a_blocked_prompt_is_a_reply_of_nothing() -> None:
    message = decoded(example("blocked.txt"))
    assert (message.parts, message.finish) == ((), "safety")
    assert message.usage == Usage(input=8, cached=0, total=8)


def test_an_error_in_mid_stream_is_raised_and_the_text_before_it_stays() -> None:
    decoder = GeminiWire().stream_decoder()
    with pytest.raises(ProviderBusy) as caught:
        decoder.feed(example("error.txt"))
    assert caught.value.status == 503
    assert caught.value.said == "The model is overloaded. Please try again later."
    assert decoder.message().parts == (Text(text="Once upon"),)
    assert decoder.message().finish == ""


def test_too_many_tokens_are_an_overflow_with_the_window() -> None:
    with pytest.raises(ContextOverflow) as caught:
        decoded(example("overflow.txt"))
    assert caught.value.limit == 1_048_576


def test_an_unknown_finish_is_kept_in_its_own_words() -> None:
    message = decoded(example("unknown-finish.txt"))
    assert (message.finish, message.extra) == ("other", '{"finish_reason":"TIRED"}')


def test_usage_may_come_last_and_alone() -> None:
    message = decoded(example("last-usage.txt"))
    assert message.usage == Usage(input=5, output=1, cached=4, tool=2, total=8)
    assert (message.finish, message.model) == ("length", "")


def test_code_that_google_ran_is_kept_and_a_signed_text_stays_apart() -> None:
    message = decoded(example("code.txt"))
    code = '{"executableCode":{"language":"PYTHON","code":"print(sum(range(9)))"}}'
    ran = '{"codeExecutionResult":{"outcome":"OUTCOME_OK","output":"36\\n"}}'
    assert message.parts == (
        Text(text="Let me count."),
        Unknown(data=code),
        Unknown(data=ran),
        Text(text="It is 36.", extra='{"thoughtSignature":"Q29kZQ=="}'),
        InlineData(mime="image/png", data=b"png"),
    )


def test_a_malformed_call_is_an_end_of_its_own() -> None:
    message = decoded(example("malformed-call.txt"))
    assert message.finish == "malformed_call"


def test_a_reply_in_one_piece_keeps_its_parts_apart() -> None:
    message = GeminiWire().decode_reply(example("reply.json"))
    arguments = '{\n                "a": 1,\n                "b": 2\n              }'
    assert message == Message(
        role="model",
        parts=(
            Thought(text="Adding them. ", signature="QWRk"),
            Text(text="One"),
            Text(text=" and two:"),
            ToolCall(id="fc-1", name="add", arguments=arguments),
        ),
        model="gemini-2.5-pro",
        finish="calls",
        usage=Usage(input=40, output=10, cached=0, thoughts=6, total=56),
    )


@pytest.mark.parametrize("whole", [True, False])
def test_an_error_as_a_list_is_understood(whole: bool) -> None:
    read = GeminiWire().decode_reply if whole else decoded
    with pytest.raises(ApiKeyRefused) as caught:
        read(example("error.json"))
    assert caught.value.said.startswith("API key not valid.")


def test_an_error_in_one_piece_is_raised() -> None:
    with pytest.raises(ProviderFailed) as caught:
        GeminiWire().decode_reply(b'{"error": {"code": 404, "message": "no such model"}}')
    assert (caught.value.status, caught.value.said) == (404, "no such model")


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"<html><body>502 Bad Gateway\x1b[2J" + b" " * 500, "a web page (<html><body>502"),
        (b"<html>short", "a web page (<html>short)"),
        (b"upstream connect error", "text (upstream connect error)"),
        (b'{"id": "chatcmpl-1"}', "JSON of another kind"),
        (b'data: {"choices": []}\n\n', "JSON of another kind"),
        (b"data: <html>\n\n", "a web page"),
        (b'data: {"candidates": 5}\n\n', "JSON of another kind"),
        (b'data: {"candidates": [{"content": {"par', "incomplete JSON"),
    ],
)
def test_anything_but_a_stream_is_named(data: bytes, says: str) -> None:
    with pytest.raises(BadReply) as caught:
        decoded(data)
    assert says in caught.value.what
    assert len(caught.value.what) < 300
    assert caught.value.what.isprintable()


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "nothing at all"),
        (b"<!DOCTYPE html>", "a web page"),
        (b'{"candidates": [', "incomplete JSON"),
        (b'{"choices": []}', "JSON of another kind"),
    ],
)
def test_anything_but_a_reply_is_named(data: bytes, says: str) -> None:
    with pytest.raises(BadReply) as caught:
        GeminiWire().decode_reply(data)
    assert says in caught.value.what


def test_a_stream_that_just_ends_has_no_finish() -> None:
    first = example("text.txt").split(b"\r\n\r\n")[0] + b"\r\n\r\n"
    message = decoded(first)
    assert (message.parts, message.finish) == ((Text(text="The sky "),), "")


def test_ids_are_unique_also_when_the_provider_repeats_them() -> None:
    call = b'{"functionCall": {"id": "%b", "name": "a"}}'
    ids = [b"call-2", b"", b"a", b"a", b"", b"a-2", b"a"]
    parts = b",".join(call % id_ for id_ in ids)
    data = b'data: {"candidates": [{"content": {"parts": [' + parts + b"]}}]}\n\n"
    found = [part.id for part in decoded(data).parts if isinstance(part, ToolCall)]
    assert found == ["call-2", "call-3", "a", "a-2", "call-5", "a-2-2", "a-3"]


def test_odd_json_is_read_all_the_same() -> None:
    part = rb'{"text": "half \ud83d"}, {"text": "bytes ' + b"\xff" + b'"}'
    count = b'"usageMetadata": {"promptTokenCount": "many"}'
    data = b'data: {"candidates": [{"content": {"parts": [' + part + b"]}}], " + count + b"}\n\n"
    message = decoded(data)
    assert message.parts == (Text(text="half \ufffdbytes \ufffd"),)
    assert message.usage is None

"""Streamed replies as the API's documentation shows them, and in any pieces."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.codecs.anthropic import AnthropicWire
from recollect.codecs.wire_protocol import Delta
from recollect.entries import Message, Text, Thought, ToolCall, Unknown, Usage, json_text
from recollect.errors import BadReply, ContextOverflow, ProviderBusy

WIRE = Path(__file__).parent.parent / "wire"
MODEL = "claude-sonnet-4-5"
STREAMS = sorted(path.name for path in WIRE.glob("anthropic-*.txt"))
anthropic = AnthropicWire(model=MODEL)


def recorded(name: str) -> bytes:
    return (WIRE / f"anthropic-{name}").read_bytes()


def decoded(*pieces: bytes) -> tuple[Message, list[Delta]]:
    decoder = anthropic.stream_decoder()
    deltas = [delta for piece in pieces for delta in decoder.feed(piece)]
    deltas += decoder.close()
    return decoder.message(), deltas


def reply(*parts: Text | Thought | ToolCall | Unknown, finish: str, output: int) -> Message:
    usage = Usage(input=25, output=output, total=25 + output)
    return Message(role="model", parts=parts, model=MODEL, finish=finish, usage=usage)


def test_a_call_whose_arguments_come_in_pieces_is_one_call_with_the_very_text() -> None:
    message, deltas = decoded(recorded("call-in-pieces.txt"))
    arguments = '{"location": "San Francisco, CA", "unit": "c"}'
    call = ToolCall(id="toolu_01", name="get_weather", arguments=arguments)
    assert message == reply(Text(text="Okay let me look."), call, finish="calls", output=89)
    assert deltas[:3] == [
        Delta("text", "Okay"),
        Delta("text", " let me look."),
        Delta("call", "", "get_weather"),
    ]
    assert "".join(delta.text for delta in deltas[3:]) == arguments


def test_parallel_calls_stay_apart_and_one_without_an_id_gets_one_by_its_position() -> None:
    message, _ = decoded(recorded("parallel-calls.txt"))
    assert message == reply(
        ToolCall(id="toolu_01", name="read", arguments='{"path": "a"}'),
        ToolCall(id="toolu_02", name="list", arguments="{}"),
        ToolCall(id="call-3", name="read", arguments='{"path":"b"}'),
        finish="calls",
        output=61,
    )


def test_usage_that_comes_only_at_the_end_counts_what_was_cached_as_input() -> None:
    message, _ = decoded(recorded("usage-in-last.txt"))
    assert message.parts == (Text(text="Hello!"),)
    assert message.finish == "stop"
    assert message.usage == Usage(
        input=2112, output=15, cached=2000, written=100, thoughts=4, total=2127
    )


def test_a_zero_at_the_end_of_a_stream_does_not_undo_the_count_at_its_start() -> None:
    end = b'"usage": {"input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": 89}'
    stream = recorded("call-in-pieces.txt").replace(b'"usage": {"output_tokens": 89}', end)
    assert end in stream
    message, _ = decoded(stream)
    assert message.usage == Usage(input=25, output=89, cached=0, total=114)


def test_what_was_cached_is_unknown_where_the_server_does_not_report_it() -> None:
    message, _ = decoded(recorded("call-in-pieces.txt"))
    assert message.usage is not None
    assert message.usage.cached is None


def test_thoughts_keep_their_signatures_and_redacted_ones_are_marked() -> None:
    message, deltas = decoded(recorded("thoughts.txt"))
    assert message == reply(
        Thought(text="First, divide.", signature="EqQBCgIYABK=="),
        Thought(text="", signature="EmwKAhgB", extra='{"redacted":true}'),
        Thought(text="", signature="only-signed"),
        Text(text="The answer is 21."),
        finish="stop",
        output=40,
    )
    assert [delta.kind for delta in deltas] == ["thought", "thought", "text"]


def test_a_refusal_is_an_end_for_safety() -> None:
    message, _ = decoded(recorded("refusal.txt"))
    assert message == reply(Text(text="Hello.."), finish="safety", output=3)


def test_an_unknown_reason_stays_in_the_message() -> None:
    message, _ = decoded(recorded("unknown-finish.txt"))
    assert message.finish == "other"
    assert message.extra == '{"finish_reason":"moon_phase"}'


def test_blocks_of_the_providers_own_tools_are_kept_whole() -> None:
    message, _ = decoded(recorded("server-tool.txt"))
    assert [type(part) for part in message.parts] == [Text, Unknown, Unknown, Text]
    assert message.parts[1] == Unknown(
        data=json_text(
            {
                "type": "server_tool_use",
                "id": "srvtoolu_1",
                "name": "web_search",
                "input": {"query": "weather"},
            }
        )
    )
    assert message.parts[3] == Text(text="Sunny.")
    assert (message.finish, message.extra) == ("pause", "")


def test_an_error_in_mid_stream_is_raised_and_the_reply_so_far_can_be_read() -> None:
    decoder = anthropic.stream_decoder()
    with pytest.raises(ProviderBusy, match="Overloaded") as caught:
        decoder.feed(recorded("overloaded.txt"))
    assert caught.value.status == 529
    assert decoder.message().parts == (Text(text="Half an "),)


def test_a_web_page_instead_of_events_is_named() -> None:
    with pytest.raises(BadReply, match=r"a web page \(<!DOCTYPE html> <html>"):
        decoded(recorded("web-page.txt"))


def test_a_whole_reply_instead_of_events_is_read_as_one() -> None:
    message, deltas = decoded(recorded("calls.json"))
    assert message == anthropic.decode_reply(recorded("calls.json"))
    assert deltas == [Delta("text", "Let me see."), Delta("call", '{"path": "a.py"}', "read")]


def test_an_error_instead_of_events_is_raised() -> None:
    with pytest.raises(ContextOverflow, match="prompt is too long") as caught:
        decoded(recorded("too-long.json"))
    assert caught.value.limit == 200_000


def test_a_stream_that_breaks_off_inside_an_event_is_incomplete_json() -> None:
    whole = recorded("call-in-pieces.txt")
    cut = whole[: whole.index(b"San Fra")]
    with pytest.raises(BadReply, match="incomplete JSON"):
        decoded(cut)


def test_a_stream_that_just_ends_has_no_finish() -> None:
    whole = recorded("call-in-pieces.txt")
    message, _ = decoded(whole[: whole.index(b"event: ping")])
    assert message.parts == (Text(text="Okay let me look."),)
    assert message.finish == ""
    assert decoded() == (Message(role="model"), [])


def test_arguments_in_the_start_event_of_a_call_are_not_lost() -> None:
    begin = (
        b'data: {"type":"content_block_start","index":0,"content_block":'
        b'{"type":"tool_use","id":"a","name":"read","input":{"path": "x"}}}\n\n'
    )
    for end in (b"", b'data: {"type":"content_block_stop","index":0}\n\n'):
        message, deltas = decoded(begin + end)
        assert message.parts == (ToolCall(id="a", name="read", arguments='{"path": "x"}'),)
        assert deltas == [Delta("call", "", "read"), Delta("call", '{"path": "x"}')]


def test_half_a_surrogate_pair_in_an_event_is_read_as_a_replacement() -> None:
    event = b'{"type":"content_block_delta","delta":{"type":"text_delta","text":"a\\ud83d b"}}'
    message, _ = decoded(b"data: " + event + b"\n\n")
    assert message.parts == (Text(text="a\ufffd b"),)


def test_events_that_are_not_known_are_passed_over() -> None:
    odd = b'event: x\ndata: {"type":"news","delta":"paper","index":"front"}\n\ndata: [DONE]\n\n'
    assert decoded(odd + recorded("refusal.txt")) == decoded(recorded("refusal.txt"))


def outcome(pieces: list[bytes]) -> tuple[object, ...]:
    try:
        message, deltas = decoded(*pieces)
    except (BadReply, ProviderBusy) as error:
        return (type(error), str(error))
    shown = {kind: "".join(d.text for d in deltas if d.kind == kind) for kind in ("text", "call")}
    return (message, shown, [delta.name for delta in deltas if delta.name])


@given(st.sampled_from(STREAMS), st.data())
def test_any_chunking_gives_the_same_outcome(name: str, data: st.DataObject) -> None:
    whole = (WIRE / name).read_bytes()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=40)))
    pieces = [whole[a:b] for a, b in zip([0, *cuts], [*cuts, len(whole)], strict=True)]
    assert outcome(pieces) == outcome([whole])


@pytest.mark.parametrize("name", STREAMS)
def test_a_stream_fed_byte_by_byte_gives_the_same_outcome(name: str) -> None:
    whole = (WIRE / name).read_bytes()
    assert outcome([whole[i : i + 1] for i in range(len(whole))]) == outcome([whole])


def test_a_reply_in_one_piece_may_have_no_content() -> None:
    message = anthropic.decode_reply(recorded("content-null.json"))
    usage = Usage(input=3, output=1, total=4)
    assert message == Message(role="model", model=MODEL, finish="stop", usage=usage)


def test_a_reply_in_one_piece_holds_text_and_calls() -> None:
    assert anthropic.decode_reply(recorded("calls.json")) == Message(
        role="model",
        parts=(
            Text(text="Let me see."),
            ToolCall(id="toolu_9", name="read", arguments='{"path": "a.py"}'),
        ),
        model=MODEL,
        finish="calls",
        usage=Usage(input=10, output=5, cached=7, total=15),
    )


def test_a_block_ends_where_the_next_begins_even_without_a_stop_event() -> None:
    start = b'data: {"type":"content_block_start","index":%d,"content_block":%b}\n\n'
    words = [b'{"type":"text","text":"one"}', b'{"type":"text","text":"two"}']
    message, _ = decoded(*(start % (n, block) for n, block in enumerate(words)))
    assert message.parts == (Text(text="one"), Text(text="two"))


def test_argument_deltas_replace_arguments_in_the_start_event() -> None:
    stream = (
        b'data: {"type":"content_block_start","index":0,"content_block":'
        b'{"type":"tool_use","id":"a","name":"read","input":{"path":"x"}}}\n\n'
        b'data: {"type":"content_block_delta","index":0,"delta":'
        b'{"type":"input_json_delta","partial_json":"{}"}}\n\n'
        b'data: {"type":"content_block_stop","index":0}\n\n'
    )
    assert decoded(stream)[0].parts == (ToolCall(id="a", name="read", arguments="{}"),)


def test_bytes_that_are_not_utf_8_in_arguments_are_replaced() -> None:
    block = b'{"type":"tool_use","id":"a","name":"read","input":{"path":"\xff"}}'
    message = anthropic.decode_reply(b'{"type":"message","content":[' + block + b"]}")
    assert message.parts == (ToolCall(id="a", name="read", arguments='{"path":"\ufffd"}'),)

"""Messages encoded in Anthropic's format are decoded the same, up to the normal forms below."""

from __future__ import annotations

import json

import msgspec
import pytest
from anthropic.types import Message as SdkMessage
from anthropic.types import RawMessageStreamEvent
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from pydantic import TypeAdapter

from recollect.codecs.anthropic import AnthropicWire
from recollect.codecs.repair import repair
from recollect.codecs.tool_names import sent_tool_name
from recollect.codecs.wire_protocol import Declaration, Generation, RequestOptions
from recollect.entries import (
    Content,
    FileRef,
    InlineData,
    Message,
    Part,
    Text,
    Thought,
    ToolCall,
    ToolResult,
    Unknown,
    Usage,
)
from recollect.testing import call, model, result, user
from tests import strategies
from tests.codecs.anthropic.test_encode_request import body_of
from tests.codecs.conversations import Messages, conversations

anthropic = AnthropicWire(model="this")
REDACTED = '{"redacted":true}'
SEARCH = '{"type":"server_tool_use","id":"s1","name":"web_search","input":{"query":"x"}}'
# files as they were, and as they come back from a user's message; None: only a text tells of them
FILES: dict[InlineData | FileRef, InlineData | FileRef | None] = {
    InlineData(mime="image/png", data=b"png"): InlineData(mime="image/png", data=b"png"),
    InlineData(mime="image/jpg", data=b"j"): InlineData(mime="image/jpeg", data=b"j"),
    InlineData(mime="application/pdf", data=b"%"): InlineData(mime="application/pdf", data=b"%"),
    InlineData(mime="text/plain", data=b"a"): InlineData(mime="text/plain", data=b"a"),
    InlineData(mime="text/csv", data=b"a,b"): InlineData(mime="text/plain", data=b"a,b"),
    InlineData(mime="video/mp4", data=b"v"): None,
    FileRef(mime="image/png", uri="https://a/b"): FileRef(mime="image/*", uri="https://a/b"),
    FileRef(mime="application/pdf", uri="https://a"): FileRef(
        mime="application/pdf", uri="https://a"
    ),
    FileRef(mime="text/plain", uri="file:///notes"): None,
}
ARGUMENTS = ("{}", '{"a": [1, {"b": "ü"}]}', '{"a":1,"a":2}', "", "{", "[]", '{"a":"\ud800"}')

texts = st.builds(Text, text=strategies.text)
files = st.sampled_from(list(FILES))
calls = st.builds(
    ToolCall,
    id=st.sampled_from(["a", "b", "c d", ""]),
    name=st.sampled_from(["read", "a.b"]),
    arguments=st.sampled_from(ARGUMENTS),
)
results = st.builds(
    ToolResult,
    call_id=st.sampled_from(["a", "b"]),
    name=st.sampled_from(["read", "a.b"]),
    content=st.lists(texts | files, max_size=3).map(tuple),
    is_error=st.booleans(),
)
thoughts = st.builds(
    Thought, text=strategies.text, signature=st.sampled_from(["", "sig"]), subject=st.just("")
) | st.just(Thought(text="", signature="hidden", extra=REDACTED))
histories = st.lists(
    st.builds(
        Message,
        role=st.sampled_from(["user", "model", "system"]),
        parts=st.lists(texts | files | calls | results | thoughts, max_size=4).map(tuple),
        model=st.sampled_from(["this", "other"]),
    ),
    max_size=6,
).map(tuple)


def sound(text: str) -> str:
    return "".join("\ufffd" if "\ud800" <= c <= "\udfff" else c for c in text)


def normal(message: Message) -> Message:
    """A sent message as it comes back. Not carried: who made it, unless it holds thoughts; how it
    ended; whatever is in `extra`, but for the mark of a hidden thought."""
    role = message.role
    parts = tuple(_normal(part, of_user=role == "user") for part in message.parts)
    found = tuple(part for part in parts if part is not None) or (Text(text="…"),)
    thinks = any(isinstance(part, Thought) for part in found)
    return Message(role=role, parts=found, model="this" if thinks and role == "model" else "")


def _normal(part: Part, *, of_user: bool) -> Part | None:
    if isinstance(part, ToolCall):
        arguments = sound(part.arguments) or "{}"
        return ToolCall(id=part.id, name=part.name.replace(".", "_"), arguments=arguments)
    if isinstance(part, ToolResult):
        content = tuple(_content(item) for item in part.content if not _is_blank(item))
        name = part.name.replace(".", "_")
        return replace(part, content=content, name=name, status="")
    if isinstance(part, Thought):
        return replace(part, text=sound(part.text))
    if isinstance(part, Unknown):
        return None
    return _content(part) if of_user or isinstance(part, Text) else Text(text="…")


def _content(part: Content) -> Content:
    if isinstance(part, InlineData | FileRef):
        return FILES[part] or Text(text="…")
    return Text(text=sound(part.text)) if isinstance(part, Text) else part


def _is_blank(part: Content) -> bool:
    return isinstance(part, Text) and not part.text.strip()


def without_notes(message: Message) -> Message:
    """What stands in a file's place is for the model: here, only that it is there."""
    return replace(message, parts=tuple(_without_note(part) for part in message.parts))


def _without_note(part: Part) -> Part:
    if isinstance(part, ToolResult):
        content = [_without_note(item) for item in part.content]
        return replace(part, content=tuple(content))
    is_note = isinstance(part, Text) and part.text.startswith(
        ("[video", "[image", "[text/", "[app")
    )
    what = isinstance(part, Text) and part.text == "[what was here cannot be sent]"
    return Text(text="…") if is_note or what else part


@given(histories)
def test_messages_are_read_back_as_they_were_sent(messages: Messages) -> None:
    sent = repair(messages, anthropic.rules).messages
    asked = anthropic.decode_request(body_of(anthropic, messages, RequestOptions(model="this")))
    back = [m for m in asked.messages if m.role != "system"]
    assert [without_notes(m) for m in back] == [normal(m) for m in sent if m.role != "system"]
    instructions = [p for m in sent if m.role == "system" for p in m.parts if isinstance(p, Text)]
    read = [part for m in asked.messages if m.role == "system" for part in m.parts]
    assert read == [Text(text=sound(part.text)) for part in instructions]


@given(conversations)
def test_damaged_conversations_are_read_back_as_they_were_repaired(messages: Messages) -> None:
    sent = repair(messages, anthropic.rules).messages
    body = body_of(anthropic, messages, RequestOptions(model="this"))
    back = [m for m in anthropic.decode_request(body).messages if m.role != "system"]
    expected = [_named(normal(m)) for m in sent if m.role != "system"]
    assert [without_notes(m) for m in back] == expected


def _named(message: Message) -> Message:
    """A tool needs a name there."""
    parts = tuple(
        replace(p, name=sent_tool_name(p.name, "anthropic"))
        if isinstance(p, ToolCall | ToolResult)
        else p
        for p in message.parts
    )
    return replace(message, parts=parts)


def kept(message: Message) -> tuple[Part, ...]:
    """What must not be lost in silence: everything but records, and words for nothing at all."""
    parts: list[Part] = []
    for part in message.parts:
        if isinstance(part, ToolResult):
            said = tuple(c for c in part.content if not isinstance(c, Text) or c.text)
            parts.append(replace(part, status="", content=said))
        elif isinstance(part, ToolCall):
            parts.append(replace(part, arguments=part.arguments or "{}"))
        else:
            parts.append(part)
    return tuple(parts)


@given(histories)
def test_whatever_does_not_come_back_has_a_line_in_the_trace(messages: Messages) -> None:
    same_file = {
        InlineData(mime="image/jpg", data=b"j"),
        FileRef(mime="image/png", uri="https://a/b"),
    }
    names = {"a": "read", "b": "read"}
    for message in repair(messages, anthropic.rules).messages:
        if message.role == "system" or any(part in same_file for part in _flat(message)):
            continue  # their types are spelt otherwise; nothing is lost
        written = anthropic.encode_message(message)
        frame = anthropic.encode_options(RequestOptions(model="this"), [])
        body = frame.before + written.data + frame.after
        back = anthropic.decode_request(body).messages[0]
        named = tuple(
            replace(p, name=names.get(p.call_id, "")) if isinstance(p, ToolResult) else p
            for p in kept(message)
        )
        unnamed = tuple(
            replace(p, name=names.get(p.call_id, "")) if isinstance(p, ToolResult) else p
            for p in back.parts
        )
        assert written.fixes or unnamed == named


def _flat(message: Message) -> list[Part]:
    inner = [c for p in message.parts if isinstance(p, ToolResult) for c in p.content]
    return [*message.parts, *inner]


@given(
    st.builds(
        RequestOptions,
        model=st.just("this"),
        tools=st.lists(
            st.builds(
                Declaration,
                name=st.sampled_from(["read", "grep"]),
                description=st.text(max_size=9),
                parameters=st.sampled_from(['{"type":"object"}', '{ "type": "object", "x": [1]}']),
            ),
            min_size=1,
            max_size=3,
        ).map(tuple),
        tool_choice=st.sampled_from(["auto", "none", "required", "read"]),
        generation=st.builds(
            Generation,
            temperature=st.none() | st.floats(0, 1),
            max_output=st.integers(20_000, 30_000),  # without one, the wire's own comes back
            stop=st.lists(st.text("ab", min_size=1), max_size=2).map(tuple),
            effort=st.sampled_from(["", "none", "low", "medium", "high"]),
            schema=st.sampled_from(["", '{"type": "object"}']),
        ),
        stream=st.booleans(),
    ),
    st.sampled_from(["budget", "adaptive"]),
)
def test_options_are_decoded_as_they_were_unless_the_trace_says_otherwise(
    options: RequestOptions, thinking: str
) -> None:
    wire = msgspec.convert({"model": "this", "thinking": thinking}, AnthropicWire)
    frame = wire.encode_options(options, [])
    back = wire.decode_request(frame.before + frame.after).options
    assert (back == options) == (frame.fixes == ())
    assert (back.tools, back.tool_choice, back.stream) == (
        options.tools,
        options.tool_choice,
        options.stream,
    )


# --- replies -----------------------------------------------------------------------------------

SDK_REPLY: TypeAdapter[SdkMessage] = TypeAdapter(SdkMessage)
SDK_EVENT: TypeAdapter[RawMessageStreamEvent] = TypeAdapter(RawMessageStreamEvent)
usages = st.none() | st.builds(
    lambda fresh, cached, written, output, thoughts: Usage(
        input=fresh + cached + written,
        output=output,
        cached=cached,
        written=written,
        thoughts=thoughts,
        total=fresh + cached + written + output,
    ),
    *(st.integers(0, 2**20) for _ in range(5)),
)
replies = st.builds(
    Message,
    role=st.just("model"),
    parts=st.lists(
        texts | thoughts | calls.map(lambda c: replace(c, id=c.id or "d")), max_size=4
    ).map(tuple)
    | st.just((Text(text="a"), Unknown(data=SEARCH), Text(text="b"))),
    model=st.sampled_from(["", "this"]),
    finish=st.sampled_from(["", "stop", "length", "calls", "safety"]),
    usage=usages,
)


def normal_reply(message: Message) -> Message:
    """Not carried: empty parts, ids used twice, a usage of nothing, and the difference between a
    stop with calls and a stop for them."""
    parts: list[Part] = []
    used: set[str] = set()
    for part in message.parts:
        if isinstance(part, ToolCall):
            number, given = 1, part.id
            while given in used:
                number, given = number + 1, f"{part.id}-{number + 1}"
            used.add(given)
            parts.append(replace(part, id=given, arguments=sound(part.arguments) or "{}"))
        elif isinstance(part, Text | Thought):
            if part.text or (isinstance(part, Thought) and part.signature):
                parts.append(replace(part, text=sound(part.text)))
        else:
            parts.append(part)
    finish, extra = message.finish, ""
    if finish == "stop" and used:
        finish = "calls"
    elif finish == "calls" and not used:
        finish, extra = "malformed_call", '{"finish_reason":"tool_use"}'
    usage = message.usage if message.usage not in (Usage(), Usage(cached=0)) else None
    return replace(message, parts=tuple(parts), finish=finish, usage=usage, extra=extra)


@given(replies)
def test_a_reply_in_one_piece_is_read_back_as_it_was_and_is_one_of_the_sdk(reply: Message) -> None:
    body = anthropic.encode_reply(reply)
    SDK_REPLY.validate_python(json.loads(body))
    assert anthropic.decode_reply(body) == normal_reply(reply)


@given(replies, st.integers(1, 200))
def test_a_streamed_reply_is_read_back_as_it_was_and_its_events_are_the_sdk_s(
    reply: Message, size: int
) -> None:
    events = list(anthropic.encode_stream(reply))
    for event in events:
        kind, data = event.removeprefix(b"event: ").removesuffix(b"\n\n").split(b"\ndata: ")
        assert SDK_EVENT.validate_python(json.loads(data)).type == kind.decode()
    decoder, whole = anthropic.stream_decoder(), b"".join(events)
    for start in range(0, len(whole), size):
        decoder.feed(whole[start : start + size])
    decoder.close()
    assert decoder.message() == normal_reply(reply)


@pytest.mark.parametrize("told", ["pause_turn", "moon_phase"])
def test_a_reason_that_the_api_has_comes_back_and_no_other_is_made_up(told: str) -> None:
    reply = replace(model("a"), finish="other", extra=json.dumps({"finish_reason": told}))
    sdk = SDK_REPLY.validate_python(json.loads(anthropic.encode_reply(reply)))
    assert sdk.stop_reason == ("pause_turn" if told == "pause_turn" else "end_turn")


def test_a_result_finds_its_tool_s_name_by_the_call() -> None:
    asked = call("read", path="a")
    picture = InlineData(mime="image/png", data=b"png")
    session = [user("hi"), model("x", asked), result(asked, "text", picture, is_error=True)]
    back = anthropic.decode_request(
        body_of(anthropic, session, RequestOptions(model="this"))
    ).messages
    assert back == tuple(session)


def test_a_client_may_send_everything_that_the_documentation_allows() -> None:
    body = b"""{"model":"m","max_tokens":9,"system":"Be brief.","metadata":{"user_id":"u"},
      "tools":[{"type":"custom","name":"t","input_schema":{"type":"object"}},
               {"type":"web_search_20250305","name":"web_search"},{"name":"n"}],
      "messages":[{"role":"user","content":"hi"},
        {"role":"assistant","content":[{"type":"tool_use","name":"t","input":{}},
          {"type":"text","text":"x","cache_control":{"type":"ephemeral"}}]},
        {"role":"user","content":[{"type":"tool_result","tool_use_id":"call-1","content":"out"},
          {"type":"image","source":{"type":"file","file_id":"f1"}},{"type":"new","x":[1]}]},
        {"role":"system","content":"Now be long."}]}"""
    options, messages = anthropic.decode_request(body)
    assert [tool.name for tool in options.tools] == ["t", "n"]
    assert not options.stream
    assert [message.role for message in messages] == ["system", "user", "model", "user", "system"]
    answer = ToolResult(call_id="call-1", name="t", content=(Text(text="out"),))
    image = Unknown(data='{"type":"image","source":{"type":"file","file_id":"f1"}}')
    assert messages[3].parts == (answer, image, Unknown(data='{"type":"new","x":[1]}'))
    assert image.data.encode() in anthropic.encode_message(messages[3]).data

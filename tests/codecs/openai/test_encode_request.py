"""Requests in the OpenAI format, with a fix for everything that the format cannot carry."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from recollect.codecs.call_arguments import wrap_arguments
from recollect.codecs.foreign_json import join_and_replace_surrogates
from recollect.codecs.openai import OpenAIWire
from recollect.codecs.openai.decode_request import JSON_MODE
from recollect.codecs.openai.encode_message import describe_unsent_media
from recollect.codecs.repair import repair
from recollect.codecs.tool_names import sent_tool_name
from recollect.codecs.wire_protocol import Declaration, Generation, RequestOptions, Wire
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
)
from recollect.testing import call, model, result, user
from tests import strategies
from tests.codecs.conversations import Messages, conversations

PROMPT = RequestOptions(model="this")
WIRES = (
    OpenAIWire(model="this"),
    OpenAIWire(
        model="this", reasoning="reasoning_content", media=("image/", "audio/", "application/")
    ),
    OpenAIWire(model="this", system_role="developer", media=()),
)
hostile = st.lists(strategies.messages, max_size=5).map(tuple)
media = st.sampled_from(
    [
        InlineData(mime="image/png", data=b"png"),
        InlineData(mime="audio/wav", data=b"wav"),
        InlineData(mime="audio/flac", data=b"flac"),
        InlineData(mime="application/pdf", data=b"pdf"),
        InlineData(mime="image/png,;", data=b"png"),
        FileRef(mime="image/png", uri="https://example.org/a.png"),
        FileRef(mime="image/png", uri="file:///a.png"),
        FileRef(mime="application/octet-stream", uri="file-1"),
    ]
)
pictures = st.lists(
    st.builds(
        Message,
        role=st.sampled_from(["user", "model", "system"]),
        parts=st.lists(media | st.builds(Text, text=strategies.text), max_size=4).map(tuple),
    ),
    max_size=4,
).map(tuple)
anything: st.SearchStrategy[Messages] = conversations | hostile | pictures
wires = st.sampled_from(WIRES)


def body_of(wire: Wire, messages: Sequence[Message], options: RequestOptions = PROMPT) -> bytes:
    """A whole request, as a caller puts it together."""
    system: list[Message] = []
    rest = list(messages)
    while rest and rest[0].role == "system":
        system.append(rest.pop(0))
    frame = wire.encode_options(options, system)
    elements = [data for data in (wire.encode_message(message).data for message in rest) if data]
    between = b"," if frame.opened and elements else b""
    return frame.before + between + b",".join(elements) + frame.after


# --- what the format cannot carry ----------------------------------------------------------------


def sound(text: str) -> str:
    clean: str = join_and_replace_surrogates(text)[0]
    return clean


def normal_content(part: Content, wire: OpenAIWire, place: str) -> Content | None:
    """A part as it is read back. Media that are not taken are a line of text."""
    if isinstance(part, Unknown):
        return None
    if isinstance(part, Text):
        return Text(text=sound(part.text))
    if is_carried(part, wire) and not place:
        return msgspec.structs.replace(part, extra="")
    return Text(text=sound(describe_unsent_media(part, wire.media if place == "" else (), place)))


def is_carried(part: InlineData | FileRef, wire: OpenAIWire) -> bool:
    """Of those that the strategies make."""
    known = {"image/png", "audio/wav", "application/pdf", "application/octet-stream"}
    if not part.mime.startswith(wire.media) or part.mime not in known:
        return False
    return isinstance(part, InlineData) or part.uri in ("https://example.org/a.png", "file-1")


def normal_result(part: ToolResult, wire: OpenAIWire) -> ToolResult:
    """Text only, in one piece; whether it was an error and how long it took stands nowhere."""
    content = [normal_content(inner, wire, "a tool's result") for inner in part.content]
    text = "\n".join(inner.text for inner in content if isinstance(inner, Text))
    texts = (Text(text=text),) if text else ()
    name = sent_tool_name(part.name, "openai")
    return ToolResult(call_id=part.call_id, name=name, content=texts)


def normal(message: Message, wire: OpenAIWire) -> Message | None:
    """Thoughts first and as one, then words, then calls; no records of ours."""
    place = {"system": "an instruction", "model": "a model's message", "user": ""}[message.role]
    thoughts = [sound(part.text) for part in message.parts if isinstance(part, Thought)]
    parts: list[Part] = []
    if wire.reasoning and any(thoughts):
        parts.append(Thought(text="\n".join(thoughts)))
    by_model = "this" if parts else ""
    for part in message.parts:
        if not isinstance(part, Thought | ToolCall | ToolResult):
            found = normal_content(part, wire, place)
            parts += [found] if found is not None else []
    for part in message.parts:
        if isinstance(part, ToolCall):
            arguments = sound(part.arguments) or "{}"
            name = sent_tool_name(part.name, "openai")
            parts.append(ToolCall(id=part.id, name=name, arguments=arguments))
        elif isinstance(part, ToolResult):
            parts.append(normal_result(part, wire))
    if not parts and not any(isinstance(part, Thought) for part in message.parts):
        return None
    return Message(role=message.role, parts=tuple(parts), model=by_model)


def losses(message: Message, wire: OpenAIWire) -> int:
    """How many things of a repaired message are content and are not carried."""
    lost = 0
    for part in message.parts:
        inner = part.content if isinstance(part, ToolResult) else (part,)
        place = message.role != "user" or isinstance(part, ToolResult)
        for one in inner:
            if isinstance(one, InlineData | FileRef):
                lost += place or not is_carried(one, wire)
            lost += isinstance(one, Unknown)
        lost += isinstance(part, ToolResult) and part.is_error
        lost += isinstance(part, Thought) and bool(part.subject or part.signature)
        if isinstance(part, ToolCall):
            lost += bool(part.signature)
            lost += part.name != sent_tool_name(part.name, "openai")
            lost += wrap_arguments(part, []) not in (part.arguments, "{}")
    return lost


@given(anything, wires)
def test_a_request_is_read_back_as_the_messages_that_were_repaired(
    messages: Messages, wire: OpenAIWire
) -> None:
    repaired = repair(messages, wire.rules).messages
    asked = wire.decode_request(body_of(wire, repaired))
    expected = [found for m in repaired if (found := normal(m, wire)) is not None]
    assert list(asked.messages) == expected


@given(anything, wires)
def test_everything_that_is_content_and_not_carried_has_its_line(
    messages: Messages, wire: OpenAIWire
) -> None:
    for message in repair(messages, wire.rules).messages:
        fixes = wire.encode_message(message).fixes
        replaced = [fix for fix in fixes if "surrogate" in fix.text]
        assert len(fixes) - len(replaced) == losses(message, wire)
        assert all(fix.kind in ("uncarried", "name") and len(fix.text) < 500 for fix in fixes)
        assert all(fix.text.isprintable() for fix in fixes)


@given(anything, wires)
def test_a_message_is_the_same_bytes_whatever_is_around_it(
    messages: Messages, wire: OpenAIWire
) -> None:
    repaired = repair(messages, wire.rules).messages
    whole = body_of(wire, repaired)
    for length in range(len(repaired)):
        part = body_of(wire, repaired[:length])
        assert whole.startswith(part[: -len(b"]}")])


_tools = st.builds(
    Declaration,
    name=st.from_regex(r"[a-z]{1,9}", fullmatch=True),
    description=st.text(max_size=20),
    parameters=st.sampled_from(['{"type":"object","properties":{}}', '{ "type" : "object" }']),
)
_generations = st.builds(
    Generation,
    temperature=st.none() | st.floats(0, 2),
    top_p=st.none() | st.floats(0, 1),
    max_output=st.none() | st.integers(1, 10**6),
    stop=st.lists(st.text(max_size=9), max_size=4).map(tuple),
    seed=st.none() | st.integers(-(2**63), 2**63 - 1),
    effort=st.sampled_from(["", "none", "low", "medium", "high"]),
    schema=st.sampled_from(["", JSON_MODE, '{"type": "object"}']),
)


@st.composite
def request_options(draw: st.DrawFn) -> RequestOptions:
    tools = tuple(draw(st.lists(_tools, max_size=3)))
    words = ["auto", "none", "required"] if tools else ["auto"]
    choice = draw(st.sampled_from([*words, *(tool.name for tool in tools)]))
    generation, stream = draw(_generations), draw(st.booleans())
    return RequestOptions(
        model="this", tools=tools, tool_choice=choice, generation=generation, stream=stream
    )


@given(request_options())
def test_a_prompt_is_read_back_as_it_was(options: RequestOptions) -> None:
    wire = OpenAIWire(model="this", thinking_switch="reasoning_effort")
    assert wire.encode_options(options, ()).fixes == ()
    assert wire.decode_request(body_of(wire, (), options)).options == options


# --- examples ------------------------------------------------------------------------------------


def test_options_and_tools_stand_before_the_messages() -> None:
    wire = OpenAIWire(model="gpt")
    options = RequestOptions(
        model="gpt", tools=(Declaration(name="read"),), generation=Generation(seed=1)
    )
    frame = wire.encode_options(options, [Message(role="system", parts=(Text(text="Be brief."),))])
    assert frame.before == (
        b'{"model":"gpt","stream":true,"stream_options":{"include_usage":true},"seed":1,'
        b'"tools":[{"type":"function","function":{"name":"read","parameters":'
        b'{"type":"object","properties":{}}}}],'
        b'"messages":[{"role":"system","content":"Be brief."}'
    )
    assert (frame.after, frame.opened, frame.fixes) == (b"]}", True, ())


def test_calls_stand_beside_the_text_and_each_result_is_a_message() -> None:
    one, two = call("read", id="a", path="x"), call("grep", id="b")
    answers = Message(role="user", parts=result(one, "X").parts + result(two, "Y").parts)
    wire = OpenAIWire()
    assert wire.encode_message(model("Both.", one, two)).data == (
        b'{"role":"assistant","content":"Both.","tool_calls":['
        b'{"id":"a","type":"function","function":{"name":"read","arguments":"{\\"path\\":\\"x\\"}"}},'
        b'{"id":"b","type":"function","function":{"name":"grep","arguments":"{}"}}]}'
    )
    assert wire.encode_message(answers).data == (
        b'{"role":"tool","tool_call_id":"a","content":"X"},'
        b'{"role":"tool","tool_call_id":"b","content":"Y"}'
    )


def test_content_is_null_beside_calls_alone() -> None:
    alone = Message(role="model", parts=(call("read"),))
    assert b'"content":null' in OpenAIWire().encode_message(alone).data


def test_a_call_carries_the_field_for_thoughts_also_when_nothing_was_thought() -> None:
    wire = OpenAIWire(model="deepseek", reasoning="reasoning_content")
    alone = Message(role="model", parts=(call("read"),), model="deepseek")
    assert b'"reasoning_content":""' in wire.encode_message(alone).data
    assert b"reasoning_content" not in wire.encode_message(model("no call")).data


def test_a_picture_for_a_model_without_eyes_is_named() -> None:
    shown = user("Look:", InlineData(mime="image/png", data=b"x" * 12_345))
    written = OpenAIWire(media=()).encode_message(shown)
    assert b"[image/png, 12,345 bytes: this model takes no images]" in written.data
    assert [fix.kind for fix in written.fixes] == ["uncarried"]


def test_halves_of_surrogate_pairs_become_the_replacement_character() -> None:
    written = OpenAIWire().encode_message(user("a\ud800b \ud83d\ude00"))
    assert msgspec.json.decode(written.data) == {"role": "user", "content": "a\ufffdb 😀"}
    assert len(written.fixes) == 1
    assert "1 characters" in written.fixes[0].text


def test_options_that_cannot_be_sent_are_reported() -> None:
    generation = Generation(
        temperature=float("nan"), stop=("a", "b", "c", "d", "e"), effort="none", schema="[1]"
    )
    bad = Declaration(name="bad", parameters="{not json")
    options = RequestOptions(model="m", tools=(bad,), tool_choice="other", generation=generation)
    frame = OpenAIWire().encode_options(
        options, [user("", InlineData(mime="video/mp4", data=b"v"))]
    )
    assert {fix.kind for fix in frame.fixes} == {"uncarried"}
    assert {fix.message for fix in frame.fixes} == {-1}
    told = " ".join(fix.text for fix in frame.fixes)
    for word in ("temperature", "'e'", "'none'", "schema", "'bad'", "'other'", "video/mp4"):
        assert word in told
    assert msgspec.json.decode(frame.before + frame.after)["stop"] == ["a", "b", "c", "d"]


def test_thinking_is_turned_off_the_way_the_server_wants_it() -> None:
    options = RequestOptions(model="m", generation=Generation(effort="none"))
    frame = OpenAIWire(thinking_switch="enable_thinking").encode_options(options, ())
    body = msgspec.json.decode(frame.before + frame.after)
    assert body["enable_thinking"] is False
    assert body["chat_template_kwargs"] == {"enable_thinking": False}
    frame = OpenAIWire(thinking_switch="reasoning_effort").encode_options(options, ())
    assert msgspec.json.decode(frame.before + frame.after)["reasoning_effort"] == "none"


def test_it_is_a_wire() -> None:
    wire: Wire = OpenAIWire(model="m")
    assert (wire.name, wire.rules.model, wire.rules.thoughts) == ("openai", "m", "none")
    thinking: Wire = OpenAIWire(model="m", reasoning="reasoning_content")
    assert thinking.rules.thoughts == "own"

"""Encoded requests are decoded as they were, except for what Gemini's format cannot carry."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from msgspec.structs import replace

from recollect.codecs.gemini import GeminiWire
from recollect.codecs.gemini.encode_message import NOTHING_LEFT
from recollect.codecs.wire_protocol import NO_PARAMETERS, Declaration, Generation, RequestOptions
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
from recollect.errors import BadInput
from recollect.testing import call, model, result, user
from tests.codecs.conversations import Messages, conversations
from tests.codecs.gemini.test_encode_request import (
    NAMES,
    SIGNATURE,
    THIS,
    request,
    request_options,
    signed,
    turns,
    wires,
)

PLACEHOLDER = Text(text="<placeholder>")
_PLACEHOLDER = re.compile(
    r"\[.{1,400}(takes no [a-z ]+( in a tool's result)?|cannot open it|sent after the results)\]"
)
WRITABLE_SIGNATURES = (SIGNATURE, "sig")


def _whole(text: str) -> str:
    return re.sub("[\ud800-\udfff]", "\ufffd", text)


def _taken(mime: str, prefixes: tuple[str, ...]) -> bool:
    return "\n" not in mime and mime.startswith(prefixes)


def normal_message(message: Message, wire: GeminiWire) -> Message:
    """The message as Gemini's format can carry it: without records (usage, times, extra), model
    names only of the model asked, unknown parts gone, refused media as placeholders."""
    own = wire.rules.is_own(message)
    found = [normal_part(part, wire, own) for part in message.parts]
    found += [
        InlineData(mime=block.mime, data=block.data)
        for part in message.parts
        if isinstance(part, ToolResult)
        for block in part.content
        if isinstance(block, InlineData)
        and _taken(block.mime, wire.media)
        and not _taken(block.mime, wire.result_media)
    ]
    parts = tuple(part for part in found if part is not None) or (Text(text=NOTHING_LEFT),)
    author = wire.model if message.role == "model" else ""
    return Message(role=message.role, parts=parts, model=author)


def normal_part(part: Part, wire: GeminiWire, own: bool) -> Part | None:
    match part:
        case Text():
            bears = own and any(signed(s) == part.extra for s in WRITABLE_SIGNATURES)
            return Text(text=_whole(part.text), extra=part.extra if bears else "")
        case Thought():
            signature = part.signature if part.signature in WRITABLE_SIGNATURES else ""
            said = part.text or signature
            return Thought(text=_whole(part.text), signature=signature) if said else None
        case ToolCall():
            return ToolCall(
                id=part.id,
                name=NAMES.get(part.name, part.name),
                arguments=normal_arguments(part.arguments),
                signature=part.signature if part.signature in WRITABLE_SIGNATURES else "",
            )
        case ToolResult():
            blocks = [normal_block(block, wire) for block in part.content]
            return ToolResult(
                call_id=part.call_id,
                name=NAMES.get(part.name, part.name),
                content=tuple(block for block in blocks if block is not None),
                is_error=part.is_error,
            )
        case Unknown():
            return part if '{"executableCode":{' in part.data else None
        case InlineData():
            return part if _taken(part.mime, wire.media) else PLACEHOLDER
        case FileRef():
            fits = part.mime == "" or _taken(part.mime, wire.media)
            return part if part.uri.startswith("https:") and fits else PLACEHOLDER


def normal_arguments(text: str) -> str:
    """No arguments are an empty object; white space around an object is not part of it."""
    whole = _whole(text)
    try:
        is_object = isinstance(json.loads(whole), dict)
    except (ValueError, RecursionError):
        is_object = False
    return (whole.strip() if is_object else whole) or "{}"


def normal_block(block: Content, wire: GeminiWire) -> Content | None:
    match block:
        case Text():
            return Text(text=_whole(block.text))
        case InlineData():
            return block if _taken(block.mime, wire.result_media) else PLACEHOLDER
        case FileRef():
            return PLACEHOLDER
        case Unknown():
            return None


def _with_placeholders(part: Part) -> Part:
    if isinstance(part, Text) and _PLACEHOLDER.fullmatch(part.text):
        return PLACEHOLDER
    if isinstance(part, ToolResult):
        content = [_with_placeholders(block) for block in part.content]
        kept = tuple(b for b in content if isinstance(b, Text | InlineData | FileRef | Unknown))
        return replace(part, content=kept)
    return part


def _read(body: bytes, wire: GeminiWire) -> Messages:
    return tuple(
        replace(message, parts=tuple(map(_with_placeholders, message.parts)))
        for message in wire.decode_request(body).messages
    )


@given(conversations | turns, wires)
def test_messages_come_back_as_they_were(messages: Messages, wire: GeminiWire) -> None:
    body, repaired, _ = request(wire, messages, RequestOptions(model=""))
    spoken = [message for message in repaired if message.role != "system"]
    assert [m for m in _read(body, wire) if m.role != "system"] == [
        normal_message(message, wire) for message in spoken
    ]


@given(turns)
def test_instructions_come_back_as_one_message(messages: Messages) -> None:
    body, repaired, _ = request(THIS, messages, RequestOptions(model=""))
    texts = [p for m in repaired if m.role == "system" for p in m.parts if isinstance(p, Text)]
    expected = tuple(Text(text=_whole(part.text)) for part in texts)
    found = [m.parts for m in THIS.decode_request(body).messages if m.role == "system"]
    assert found == ([expected] if expected else [])


@given(turns, wires)
def test_every_loss_of_a_message_is_reported(messages: Messages, wire: GeminiWire) -> None:
    _, repaired, _ = request(wire, messages, RequestOptions(model=""))
    for message in repaired:
        if message.role == "system":
            continue
        kept = normal_message(message, wire)
        if any(_says_less(old, new) for old, new in _pairs(message, kept)):
            assert wire.encode_message(message).fixes


def _pairs(old: Message, new: Message) -> list[tuple[Part, Part | None]]:
    same = len(old.parts) == len(new.parts)
    return [(part, new.parts[i] if same else None) for i, part in enumerate(old.parts)]


def _says_less(old: Part, new: Part | None) -> bool:
    """Whether more than records about a part is gone."""
    if isinstance(old, ToolResult):
        return new != replace(old, status="", duration=None)
    if isinstance(old, ToolCall) and isinstance(new, ToolCall):
        old = replace(old, arguments=normal_arguments(old.arguments))
        return new != old
    return new != old


@given(turns, wires)
def test_a_decoded_request_is_encoded_the_same(messages: Messages, wire: GeminiWire) -> None:
    body = request(wire, messages, RequestOptions(model=""))[0]
    again = wire.decode_request(body).messages
    assert request(wire, again, RequestOptions(model=""))[0] == body


def normal_prompt(options: RequestOptions, wire: GeminiWire) -> RequestOptions:
    """Without what frames leave out; every schema that is one as the same text."""
    generation = options.generation
    temperature = generation.temperature
    finite = temperature is not None and abs(temperature) < float("inf")
    has_schema = generation.schema.startswith("{")
    return RequestOptions(
        model="",
        tools=tuple(
            Declaration(
                name=tool.name,
                description=_whole(tool.description),
                parameters=tool.parameters if tool.parameters.startswith("{") else NO_PARAMETERS,
            )
            for tool in options.tools
        ),
        tool_choice=options.tool_choice if options.tools else "auto",
        generation=Generation(
            temperature=temperature if finite else None,
            top_p=generation.top_p,
            max_output=_32_bits(generation.max_output),
            stop=tuple(map(_whole, generation.stop[:5])),
            seed=_32_bits(generation.seed),
            effort=generation.effort if wire.thinking != "no" else "",
            schema=generation.schema if has_schema else "",
        ),
    )


def _32_bits(number: int | None) -> int | None:
    return number if number is not None and -(2**31) <= number < 2**31 else None


@given(request_options, wires)
def test_options_come_back_and_every_loss_is_reported(
    options: RequestOptions, wire: GeminiWire
) -> None:
    frame = wire.encode_options(options, ())
    found = wire.decode_request(frame.before + frame.after).options
    assert found == normal_prompt(options, wire)
    quiet = replace(
        options,
        tool_choice="auto"
        if not options.tools and options.tool_choice == "none"
        else options.tool_choice,
        tools=tuple(replace(t, parameters=t.parameters or NO_PARAMETERS) for t in options.tools),
    )
    if found != quiet and options.generation.effort != "none":
        assert frame.fixes


def test_a_request_in_the_documentations_own_spellings_is_read() -> None:
    body = b"""{
      "model": "models/gemini-2.5-flash",
      "system_instruction": {"parts": {"text": "You are a cat."}},
      "contents": [
        {"parts": [{"text": "What is this?"},
                   {"inline_data": {"mime_type": "image/png", "data": "cG5n"}},
                   {"file_data": {"file_uri": "https://youtu.be/x"},
                    "video_metadata": {"start_offset": "1s"}}]},
        {"role": "model", "parts": [{"function_call": {"name": "look", "args": {"at": 1.0}},
                                     "thought_signature": "c2ln"}]},
        {"role": "function", "parts": [{"function_response": {"name": "look",
                                        "response": {"seen": ["a", 2]}}}]},
        {"role": "model", "parts": [{"hologram": {"x": 1}}, {"text": null}]}
      ],
      "tools": [{"google_search": {}},
                {"function_declarations": [{"name": "look", "parameters":
                   {"type": "OBJECT", "properties": {"at": {"type": "NUMBER"}}}}]}],
      "tool_config": {"function_calling_config": {"mode": "any"}},
      "generationConfig": {"max_output_tokens": "9", "thinking_config": {"thinking_budget": -1}},
      "safetySettings": [{"category": "X"}]
    }"""
    options, messages = GeminiWire().decode_request(body)
    assert options == RequestOptions(
        model="gemini-2.5-flash",
        tools=(
            Declaration(
                name="look",
                parameters='{"type":"object","properties":{"at":{"type":"number"}}}',
            ),
        ),
        tool_choice="required",
        generation=Generation(max_output=9),
    )
    video = FileRef(
        mime="", uri="https://youtu.be/x", extra='{"videoMetadata":{"start_offset":"1s"}}'
    )
    looked = ToolCall(id="", name="look", arguments='{"at": 1.0}', signature="c2ln")
    seen = ToolResult(call_id="", name="look", content=(Text(text='{"seen": ["a", 2]}'),))
    asked: tuple[Part, ...] = (
        Text(text="What is this?"),
        InlineData(mime="image/png", data=b"png"),
        video,
    )
    assert messages == (
        Message(role="system", parts=(Text(text="You are a cat."),)),
        Message(role="user", parts=asked),
        Message(role="model", parts=(looked,), model="gemini-2.5-flash"),
        Message(role="user", parts=(seen,)),
        Message(
            role="model", parts=(Unknown(data='{"hologram":{"x":1}}'),), model="gemini-2.5-flash"
        ),
    )


def test_contents_may_be_one_text() -> None:
    assert GeminiWire().decode_request(b'{"contents": "hi"}').messages == (user("hi"),)


def test_half_a_surrogate_pair_in_a_request_is_read() -> None:
    body = rb'{"contents": [{"parts": [{"text": "\ud83d"}]}]}'
    assert GeminiWire().decode_request(body).messages == (user("\ufffd"),)


def test_code_execution_parts_go_back_word_for_word() -> None:
    code = Unknown(data='{"executableCode":{"language":"PYTHON","code":"print(1)"}}')
    ran = Unknown(data='{"codeExecutionResult":{"outcome":"OUTCOME_OK","output":"1\\n"}}')
    written = THIS.encode_message(model("so:", code, ran))
    assert not written.fixes
    body = b'{"contents":[' + written.data + b"]}"
    assert THIS.decode_request(body).messages[0].parts == (Text(text="so:"), code, ran)


def test_a_plain_exchange_loses_nothing() -> None:
    used = call("read", path="a.py")
    messages = (user("hi"), Message(role="model", parts=(used,)), result(used, "x"), model("done"))
    body, _, fixes = request(THIS, messages, RequestOptions(model=""))
    assert not fixes
    assert [m.parts for m in THIS.decode_request(body).messages] == [m.parts for m in messages]


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b"", "not a Gemini request"),
        (b"[]", "Expected `object`"),
        (b'{"contents": 5}', "contents[0]: Expected `object`, got `int`"),
        (b'{"contents": [{"role": "robot"}]}', "the role 'robot' is neither user nor model"),
        (b'{"contents": [{"parts": [{"text": 5}]}]}', "contents[0].parts[0]: Expected `str`"),
        (b'{"generationConfig": {"temperature": "hot"}}', "Expected `float`, got `str`"),
        (b'{"contents": ' + b"[" * 10_000 + b"]" * 10_000 + b"}", "nested deeper"),
    ],
)
def test_anything_but_a_request_is_refused_with_its_place(body: bytes, says: str) -> None:
    with pytest.raises(BadInput) as caught:
        GeminiWire().decode_request(body)
    assert says in str(caught.value)
    assert len(str(caught.value)) < 500

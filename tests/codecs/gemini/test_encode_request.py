"""Requests to Gemini, and what is left out of them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from recollect.codecs.fixes import Fix
from recollect.codecs.gemini import GeminiWire
from recollect.codecs.gemini.openapi_schema import fits_openapi
from recollect.codecs.repair import repair
from recollect.codecs.tool_names import sent_tool_name
from recollect.codecs.wire_protocol import (
    NO_PARAMETERS,
    Declaration,
    Generation,
    RequestOptions,
    Wire,
)
from recollect.entries import (
    FileRef,
    InlineData,
    Message,
    Part,
    Text,
    Thought,
    ToolCall,
    ToolResult,
    Unknown,
    json_text,
)
from recollect.testing import call, model, result, user
from tests.codecs.conversations import Messages
from tests.codecs.gemini.sdk_oracle import check_request
from tests.strategies import text as any_text

THIS = GeminiWire(model="this")
SIGNATURE = "c2lnbmVk"
# what is sent for a name that Gemini would refuse
NAMES = {name: sent_tool_name(name, "gemini") for name in ("read", "", "two words", "9lives")}
ARGUMENTS = (
    '{"n":1}',
    ' {"a" : [1.0, "\\u00e9\\n"]}\n',
    "{}",
    "",
    "null",
    "[1]",
    '"text"',
    '{"cut": "of',
    '{"half":"\\ud800"}',
    '{"raw":"\udc00"}',
    '{"malformed_arguments":"x"}',
    '{"n":' + "9" * 5_000 + "}",
    '{"deep":' + "[" * 200 + "]" * 200 + "}",
    "{" * 20_000,
)
WEB_FILE = FileRef(mime="application/pdf", uri="https://example.com/a.pdf")
OTHERS: tuple[Part, ...] = (
    InlineData(mime="image/png", data=b"png"),
    InlineData(mime="model/gltf", data=b"3d"),
    InlineData(mime="image/\n[x]", data=b""),
    WEB_FILE,
    FileRef(mime="", uri="https://youtu.be/x"),
    FileRef(mime="text/plain", uri="file:///notes"),
    Unknown(data='{"type":"hologram"}'),
    Unknown(data='{"executableCode":{"language":"PYTHON","code":"1"}}'),
    Unknown(data='{"executableCode":"not an object"}'),
)
_words = any_text.filter(bool) | st.just("word")
_signatures = st.sampled_from(["", SIGNATURE, "no base64!"])
_content = st.one_of(
    st.builds(Text, text=_words),
    st.sampled_from([p for p in OTHERS if isinstance(p, InlineData | FileRef | Unknown)]),
)


@st.composite
def _turn(draw: st.DrawFn) -> list[Message]:
    """A question, thoughts, calls, their results, an answer: each as odd as it can be."""
    made = draw(st.sampled_from(["this", "other"]))
    words = st.builds(Text, text=_words, extra=_signatures.map(signed))
    thoughts = st.builds(Thought, text=any_text, subject=any_text, signature=_signatures)
    said = draw(st.lists(words | thoughts | st.sampled_from(OTHERS), max_size=3))
    calls = [
        ToolCall(
            id=f"id{draw(st.integers(0, 99_999))}.{number}",
            name=draw(st.sampled_from(sorted(NAMES))),
            arguments=draw(st.sampled_from(ARGUMENTS)),
            signature=draw(_signatures),
        )
        for number in range(draw(st.integers(0, 3)))
    ]
    results = [
        ToolResult(
            call_id=made_call.id,
            name=made_call.name,
            content=tuple(draw(st.lists(_content, max_size=3))),
            is_error=draw(st.booleans()),
            status="done",
            duration=0.5,
        )
        for made_call in calls
    ]
    asked: list[Part] = draw(st.lists(words | st.sampled_from(OTHERS), min_size=1, max_size=3))
    return [
        Message(role="user", parts=tuple(asked)),
        Message(role="model", parts=(*said, *calls), model=made),
        Message(role="user", parts=tuple(results)),
        Message(role="model", parts=(draw(words),), model=made, finish="stop"),
    ]


def signed(signature: str) -> str:
    return json_text({"thoughtSignature": signature}) if signature else ""


_instructions = st.lists(st.builds(Text, text=any_text), max_size=2).map(
    lambda texts: [Message(role="system", parts=tuple(texts))]
)
turns: st.SearchStrategy[Messages] = st.builds(
    lambda system, found: (*system, *(message for turn in found for message in turn)),
    _instructions,
    st.lists(_turn(), min_size=1, max_size=2),
)

_schemas = st.sampled_from(
    [
        NO_PARAMETERS,
        "",
        "no JSON",
        "[]",
        '{"type":"object"}',
        '{"type": "object", "properties": {"path": {"type": "string", "enum": ["a"]}}}',
        '{"type":"object","properties":{"n":{"type":"integer","minimum":0,"nullable":true}}}',
        '{"type":"object","properties":{"n":{"$ref":"#/$defs/n"}},"$defs":{"n":{}}}',
        '{"type":"object","properties":{"n":{"type":["string","null"]}}}',
        '{"type":"object","properties":{"n":{"type":"array"}},"additionalProperties":false}',
    ]
)
request_options = st.builds(
    RequestOptions,
    model=st.just(""),
    tools=st.lists(
        st.builds(
            Declaration, name=st.sampled_from(["a", "b"]), description=any_text, parameters=_schemas
        ),
        max_size=2,
    ).map(tuple),
    tool_choice=st.sampled_from(["auto", "none", "required", "a"]),
    generation=st.builds(
        Generation,
        temperature=st.none() | st.floats(),
        top_p=st.none() | st.floats(0, 1),
        max_output=st.none() | st.integers(1, 2**40),
        stop=st.lists(any_text, max_size=7).map(tuple),
        seed=st.none() | st.integers(-(2**40), 2**40),
        effort=st.sampled_from(["", "none", "low", "medium", "high"]),
        schema=st.sampled_from(["", '{"type": "object"}', "no JSON"]),
    ),
)
wires = st.builds(
    GeminiWire,
    model=st.sampled_from(["", "this"]),
    media=st.sampled_from([(), ("image/",), GeminiWire().media]),
    result_media=st.sampled_from([(), ("image/",)]),
    thinking=st.sampled_from(["budget", "level", "no"]),
    stand_in_signature=st.sampled_from(["", "skip_thought_signature_validator"]),
)


def request(
    wire: GeminiWire, messages: Messages, options: RequestOptions
) -> tuple[bytes, Messages, tuple[Fix, ...]]:
    """The body, what was to be sent in it, and what was left out on the way."""
    repaired = repair(messages, wire.rules).messages
    count = next((i for i, m in enumerate(repaired) if m.role != "system"), len(repaired))
    frame = wire.encode_options(options, repaired[:count])
    written = [wire.encode_message(message) for message in repaired[count:]]
    body = frame.before + b",".join(w.data for w in written) + frame.after
    return body, repaired, (*frame.fixes, *(fix for w in written for fix in w.fixes))


def test_the_codec_is_a_wire() -> None:
    wire: Wire = GeminiWire(model="m")
    assert wire.name == "gemini"
    assert wire.rules.model == "m"


@given(turns, request_options)
def test_a_longer_session_begins_with_the_same_bytes(
    messages: Messages, options: RequestOptions
) -> None:
    shorter = request(THIS, messages, options)[0]
    longer = request(THIS, (*messages, user("more")), options)[0]
    assert longer.startswith(shorter.removesuffix(b"]}"))


def test_options_instructions_and_tools_stand_before_the_messages() -> None:
    tools = (Declaration(name="read", description="Reads."),)
    generation = Generation(temperature=0.5, effort="low", schema='{"type": "object"}')
    options = RequestOptions(model="m", tools=tools, tool_choice="read", generation=generation)
    frame = THIS.encode_options(options, [Message(role="system", parts=(Text(text="Be brief."),))])
    assert frame.after == b"]}"
    assert json.loads(frame.before + frame.after) == {
        "systemInstruction": {"parts": [{"text": "Be brief."}]},
        "tools": [{"functionDeclarations": [{"name": "read", "description": "Reads."}]}],
        "toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["read"]}},
        "generationConfig": {
            "temperature": 0.5,
            "thinkingConfig": {"includeThoughts": True, "thinkingBudget": 1_024},
            "responseMimeType": "application/json",
            "responseJsonSchema": {"type": "object"},
        },
        "contents": [],
    }


@pytest.mark.parametrize(
    ("schema", "plain"),
    [
        ({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}, True),
        ({"type": "object", "properties": {"a": {"anyOf": [{"type": "string"}]}}}, True),
        ({"type": "object", "properties": {}}, False),
        ({"type": "object", "properties": {"a": {"$ref": "#/x"}}}, False),
        ({"type": "object", "properties": {"a": {"oneOf": []}}}, False),
        ({"type": "object", "properties": {"a": {"type": ["string", "null"]}}}, False),
        ({"type": "object", "properties": {"a": {"enum": [1]}}}, False),
        ({"type": "object", "properties": {"a": {"type": "string", "format": "uri"}}}, False),
        ({"type": "object", "properties": {"a": True}}, False),
        ({"type": "object", "properties": [], "items": 5}, False),
        ({}, False),
    ],
)
def test_a_schema_that_openapi_cannot_express_is_sent_as_json_schema(
    schema: dict[str, Any], plain: bool
) -> None:
    assert fits_openapi(schema) is plain
    tools = (Declaration(name="a", parameters=json_text(schema)),)
    frame = THIS.encode_options(RequestOptions(model="m", tools=tools), ())
    declared = check_request(frame.before + frame.after)["tools"][0]["functionDeclarations"][0]
    assert ("parameters" in declared) is plain
    if schema != json.loads(NO_PARAMETERS):
        assert declared["parameters" if plain else "parametersJsonSchema"] == schema


def test_media_that_the_model_does_not_take_are_named() -> None:
    picture = InlineData(mime="image/png", data=b"x" * 12_345)
    written = replace(THIS, media=()).encode_message(Message(role="user", parts=(picture,)))
    line = "[image/png, 12,345 bytes: this model takes no images]"
    assert json.loads(written.data)["parts"] == [{"text": line}]
    assert [fix.kind for fix in written.fixes] == ["uncarried"]


def test_a_picture_in_a_result_rides_in_the_responses_parts() -> None:
    used = call("shot")
    picture = InlineData(mime="image/png", data=b"png")
    written = THIS.encode_message(result(used, "seen:", picture))
    found = json.loads(written.data)["parts"][0]["functionResponse"]
    assert found["response"] == {"output": ["seen:", {"part": 0}]}
    assert found["parts"] == [{"inlineData": {"mimeType": "image/png", "data": "cG5n"}}]
    assert not written.fixes


def test_a_failed_result_says_so_where_gemini_looks_for_it() -> None:
    written = THIS.encode_message(result(call("read"), "no such file", is_error=True))
    found = json.loads(written.data)["parts"][0]["functionResponse"]
    assert found == {"id": "call-1", "name": "read", "response": {"error": "no such file"}}


def test_arguments_are_sent_as_the_very_text_they_are() -> None:
    made = ToolCall(id="a", name="read", arguments='{"b" : 1.0,"a":[ ]}')
    assert (
        b'"args":{"b" : 1.0,"a":[ ]}'
        in THIS.encode_message(Message(role="model", parts=(made,))).data
    )


def test_signatures_go_only_to_the_model_that_made_them() -> None:
    parts = (Text(text="hi", extra=signed(SIGNATURE)), replace(call("a"), signature=SIGNATURE))
    own = THIS.encode_message(Message(role="model", parts=parts, model="this"))
    assert [p["thoughtSignature"] for p in json.loads(own.data)["parts"]] == [SIGNATURE] * 2
    foreign = THIS.encode_message(Message(role="model", parts=parts, model="other"))
    assert b"thoughtSignature" not in foreign.data
    assert [fix.kind for fix in foreign.fixes] == ["signature", "signature"]


def test_only_the_first_unsigned_call_gets_the_stand_in() -> None:
    wire = GeminiWire(model="this", stand_in_signature="skip_thought_signature_validator")
    calls = (call("a", id="1"), call("a", id="2"))
    found = json.loads(wire.encode_message(Message(role="model", parts=calls)).data)["parts"]
    assert [part.get("thoughtSignature") for part in found] == [wire.stand_in_signature, None]


def test_half_a_surrogate_pair_becomes_a_replacement_character() -> None:
    written = THIS.encode_message(model("half \ud83d"))
    assert json.loads(written.data)["parts"] == [{"text": "half \ufffd"}]
    assert [fix.kind for fix in written.fixes] == ["uncarried"]


def test_options_that_gemini_does_not_accept_are_reported() -> None:
    generation = Generation(stop=tuple("abcdefg"), seed=2**40, temperature=float("nan"))
    options = RequestOptions(model="m", tool_choice="required", generation=generation)
    picture = Message(role="system", parts=(InlineData(mime="image/png", data=b""),))
    frame = THIS.encode_options(options, [picture])
    assert {(fix.kind, fix.message) for fix in frame.fixes} == {("uncarried", -1)}
    assert len(frame.fixes) == 6

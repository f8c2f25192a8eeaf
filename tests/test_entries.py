from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.entries import (
    Body,
    Entry,
    Message,
    Note,
    Text,
    ToolResult,
    Unknown,
    UnknownBody,
    Usage,
    check,
    decode,
    encode,
    entry_from_json,
    entry_to_json,
)
from recollect.errors import BadInput, BadRole
from recollect.schema import json_schema
from tests.strategies import bodies, ids, json_values, numbers, text

VALIDATOR = jsonschema.Draft202012Validator(json_schema())
SCHEMA = Path(__file__).parent.parent / "docs" / "entry.schema.json"


@given(bodies)
def test_decoding_what_was_encoded_gives_the_same_value(body: Body) -> None:
    assert decode(encode(body)) == body


@given(bodies, ids, numbers)
def test_an_entry_survives_json(body: Body, entry_id: str, time: int) -> None:
    entry = Entry(entry_id, None, time, body)
    as_text = json.dumps(entry_to_json(entry))  # ASCII: lone surrogates as escapes
    if not _has_surrogate_pair(body):
        assert entry_from_json(json.loads(as_text)) == entry


def _has_surrogate_pair(body: Body) -> bool:
    """Two halves side by side are one character to JSON's escapes; `encode` keeps them apart."""
    whole = encode(body).decode("utf-8", "surrogatepass")
    return any("\ud800" <= a < "\udc00" <= b < "\ue000" for a, b in pairwise(whole))


@given(st.dictionaries(text, json_values, max_size=4), text)
def test_a_kind_of_a_newer_version_survives_a_round_trip(fields: dict[str, Any], kind: str) -> None:
    newer = {**fields, "kind": f"newer-{kind}"}
    body = decode(json.dumps(newer, ensure_ascii=False).encode("utf-8", "surrogatepass"))
    assert isinstance(body, UnknownBody)
    assert json.loads(encode(body).decode("utf-8", "surrogatepass")) == newer


def test_fields_and_parts_of_a_newer_version_survive_where_they_stood() -> None:
    newer = {
        "kind": "message",
        "role": "user",
        "parts": [
            {"type": "hologram", "depth": 3},
            {"type": "text", "text": "hi", "language": "de"},
            {"type": "result", "call_id": "1", "name": "x", "content": [{"type": "smell"}]},
        ],
        "usage": {"input": 3, "warp": [1]},
        "mood": {"good": True},
    }
    body = decode(json.dumps(newer).encode())
    assert isinstance(body, Message)
    assert isinstance(body.parts[0], Unknown)
    assert isinstance(body.parts[1], Text)
    assert body.parts[1].text == "hi"
    assert json.loads(encode(body)) == newer


@pytest.mark.parametrize("role", ["assistant", "tool", "", None, 3])
def test_another_role_is_refused_with_its_name_and_position(role: Any) -> None:
    with pytest.raises(BadRole, match=f"Role must be user or model, but got {role}") as caught:
        check(Message(role=role), 7)
    assert caught.value.position == 7


@pytest.mark.parametrize(
    "wrong",
    [
        "text",
        None,
        {"kind": "message"},
        Message(role="user", parts=({"type": "text", "text": "x"},)),  # type: ignore[arg-type]
        Message(role="user", parts=(Text(text=3),)),  # type: ignore[arg-type]
        Note(text="x", extra="[1]"),
        Note(text="x", extra="{"),
        Note(text="x", extra='{"level":"error"}'),
        Message(role="user", parts=[Text(text="a list")]),  # type: ignore[arg-type]
        Message(role="user", parts=(ToolResult(call_id="", name="", duration=float("nan")),)),
        UnknownBody(data='{"kind":"note","text":"known after all"}'),
        UnknownBody(data='{"kind":"new","deep":' + "[" * 120 + "]" * 120 + "}"),
        Note(text="x", extra='{"a":' * 2000 + "1" + "}" * 2000),
        Note(text="x", level="loud"),  # type: ignore[arg-type]
    ],
)
def test_an_invalid_body_is_refused_before_it_is_stored(wrong: Any) -> None:
    with pytest.raises(BadInput):
        check(wrong)


WRITTEN = st.dictionaries(
    st.sampled_from(["a", "kind", "level", "role", "$extra", "$unknown", "\ud800", "é"]),
    st.sampled_from([1, 1.0, 1e16, "", "\udfff", [{"type": "$unknown"}], {"$extra": "{}"}]),
    max_size=2,
)
BLANKS = st.sampled_from([(",", ":"), (", ", ": ")])


@given(WRITTEN, st.booleans(), BLANKS, st.sampled_from(["hi", "\ud800", '"$extra":', "$"]))
def test_a_body_is_stored_exactly_if_it_is_read_back_whatever_is_in_its_extra(
    value: dict[str, Any], ascii_only: bool, separators: tuple[str, str], said: str
) -> None:
    extra = json.dumps(value, ensure_ascii=ascii_only, separators=separators)
    for body in (Note(text=said, extra=extra), Message(role="user", parts=(Text(text=said),))):
        whole = msgspec.structs.replace(body, extra=extra)
        try:
            is_restored = decode(encode(whole)) == whole
        except (msgspec.MsgspecError, BadInput, ValueError):
            is_restored = False
        if is_restored:
            assert check(whole) == encode(whole)
        else:
            with pytest.raises(BadInput):
                check(whole)


def test_values_cannot_be_changed() -> None:
    message = Message(role="user", parts=(Text(text="hi"),))
    with pytest.raises(AttributeError):
        message.role = "model"  # type: ignore[misc]
    assert hash(message) == hash(Message(role="user", parts=(Text(text="hi"),)))


def test_usage_of_an_older_version_says_nothing_of_the_cache_and_a_reported_zero_is_kept() -> None:
    old = b'{"kind":"message","role":"model","usage":{"input":9,"output":1}}'
    body = decode(old)
    assert isinstance(body, Message)
    assert body.usage is not None
    assert body.usage.cached is None
    assert encode(body) == old
    known = Message(role="model", usage=Usage(input=9, cached=0))
    assert b'"cached":0' in encode(known)
    assert decode(encode(known)) == known


def test_the_published_schema_is_in_step() -> None:
    published = json.loads(SCHEMA.read_text(encoding="utf-8"))
    today = json.loads(json.dumps(json_schema()))
    assert published == today, "run: recollect schema > docs/entry.schema.json"


@given(bodies, ids, numbers)
def test_every_entry_fits_the_published_schema(body: Body, entry_id: str, time: int) -> None:
    VALIDATOR.validate(entry_to_json(Entry(entry_id, None, time, body)))


def test_an_unknown_field_beside_half_a_surrogate_pair_is_read_back() -> None:
    for said, was in (("\ud800", "a"), ("a", "\udfff"), ("\ud800", "\udfff")):
        extra = f'{{"gemini":{{"was":"{was}"}}}}'
        body = Message(role="user", parts=(Text(text=said),), extra=extra)
        assert decode(encode(body)) == body

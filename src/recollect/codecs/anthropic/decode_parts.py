"""Anthropic's content blocks as parts, and foreign JSON as typed values.

Guarantees: a block of an unknown type is kept whole, as `Unknown`; a call's arguments are the very
text that came. Broken text (halves of surrogate pairs, bytes that are not UTF-8) is read with
U+FFFD in its place. Anything that cannot be read is a `BadInput` that says why. Nothing here is
recursive, so deep nesting costs nothing but the refusal.
"""

from __future__ import annotations

import binascii
import json
from base64 import b64decode
from typing import TypeVar

import msgspec

from recollect.codecs.call_arguments import unwrap_arguments
from recollect.codecs.foreign_json import (
    JSON_ERRORS,
    NO_JSON,
    UnreadableJson,
    load_json,
    parse_object,
    repair_json_text,
)
from recollect.codecs.provider_errors import make_printable
from recollect.codecs.reply_assembly import CallIds
from recollect.entries import (
    FileRef,
    InlineData,
    Part,
    Text,
    Thought,
    ToolCall,
    Unknown,
    json_text,
)
from recollect.errors import BadInput
from recollect.json_depth import MAX_DEPTH

REDACTED = '{"redacted":true}'
_T = TypeVar("_T")


class BlockSource(msgspec.Struct, gc=False):
    type: str = ""
    media_type: str | None = None
    data: str | None = None
    url: str | None = None


class ContentBlock(msgspec.Struct, gc=False):
    """Every field that a block of a known type may have."""

    type: str = ""
    text: str | None = None
    thinking: str | None = None
    signature: str | None = None
    data: str | None = None
    id: str | None = None
    name: str | None = None
    input: msgspec.Raw = NO_JSON
    tool_use_id: str | None = None
    content: msgspec.Raw = NO_JSON
    is_error: bool | None = None
    source: BlockSource | None = None


_block_decoder = msgspec.json.Decoder(ContentBlock)
_CALL_NAMES = (b'"partial_json"', b'"tool_use"')
_SOURCES = frozenset({"base64", "text", "url"})
_KNOWN = frozenset(
    {"text", "thinking", "redacted_thinking", "tool_use", "tool_result", "image", "document"}
)


def decode_json(data: bytes, decoder: msgspec.json.Decoder[_T]) -> _T:
    try:
        return decoder.decode(data)
    except JSON_ERRORS:
        pass
    if any(name in data for name in _CALL_NAMES):
        raise BadInput("a damaged call")  # nothing in a call is guessed
    try:
        return decoder.decode(repair_json_text(data, _refuse_constant))
    except RecursionError as error:
        raise BadInput(f"JSON nested deeper than {MAX_DEPTH} levels is refused") from error
    except ValueError as error:
        raise BadInput(make_printable(str(error), 200)) from error


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a number in JSON")


def decode_block(data: bytes) -> ContentBlock | Unknown:
    """A block of a known type with its fields, or all of it as it came."""
    try:
        block = decode_json(data, _block_decoder)
        if block.type in _KNOWN and (block.source is None or block.source.type in _SOURCES):
            return block
    except BadInput:
        known = parse_object(data.decode("utf-8", "replace"))
        if known is not None and str(known.get("type")) in _KNOWN:
            raise
    return Unknown(data=object_text(msgspec.Raw(data)))


def object_text(raw: msgspec.Raw) -> str:
    """A foreign JSON object in the compact form in which it is stored."""
    text = raw_text(raw)
    try:
        value = json.loads(text, parse_constant=_refuse_constant)
        if isinstance(value, dict):
            return json_text(value)
    except (ValueError, RecursionError) as error:
        raise BadInput(f"JSON that cannot be stored: {make_printable(str(error), 200)}") from error
    raise BadInput(f"a JSON object is expected in place of {make_printable(text, 60)}")


def decode_part(block: ContentBlock, ids: CallIds) -> Part:
    """Anything but a result."""
    if block.type == "text":
        return Text(text=block.text or "")
    if block.type == "thinking":
        return Thought(text=block.thinking or "", signature=block.signature or "")
    if block.type == "redacted_thinking":
        return Thought(text="", signature=block.data or "", extra=REDACTED)
    if block.type == "tool_use":
        text = raw_text(block.input)
        if not text:  # the API always sends it: its name may be damaged
            raise BadInput("a call without its input")
        arguments = "{}" if text == "null" else unwrap_arguments(text)
        return ToolCall(id=ids.assign(block.id or ""), name=block.name or "", arguments=arguments)
    return _decode_file(block)


def raw_text(raw: msgspec.Raw) -> str:
    """Foreign JSON that is kept as text."""
    text = bytes(raw).decode("utf-8", "replace")
    if text.count("{") + text.count("[") <= MAX_DEPTH:
        return text
    try:
        load_json(bytes(raw))
    except UnreadableJson:
        why = f"JSON nested deeper than {MAX_DEPTH} levels is refused; flatten it"
        raise BadInput(why) from None
    return text


def _decode_file(block: ContentBlock) -> Part:
    source, is_image = block.source, block.type == "image"
    if source is None:
        raise BadInput(f"a block of type {block.type} has no source")
    mime = source.media_type or ""
    if source.type == "url":
        # the wire does not name the image's type
        return FileRef(mime="image/*" if is_image else "application/pdf", uri=source.url or "")
    if source.type == "text":
        return InlineData(mime="text/plain", data=(source.data or "").encode())
    try:
        return InlineData(mime=mime, data=b64decode(source.data or "", validate=True))
    except (binascii.Error, ValueError) as error:
        raise BadInput(f"the base64 of a block of type {block.type} is broken") from error

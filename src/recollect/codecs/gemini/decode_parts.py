"""Gemini's parts, decoded field by field, for requests and replies alike.

Guarantees: arguments and schemas are kept as the very text that came. Field names may be in camel
or snake case, one object may stand for a list of one, null counts as absent: the API accepts all of
that. Unknown fields are ignored, parts of an unknown kind are kept whole. Wrong types raise what
msgspec raises; the callers say where.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import TypeAlias

import msgspec

from recollect.codecs.call_arguments import unwrap_arguments
from recollect.codecs.foreign_json import encode, is_too_deep
from recollect.codecs.gemini.encode_message import decode_base64
from recollect.entries import (
    Content,
    FileRef,
    InlineData,
    Part,
    Text,
    Thought,
    ToolCall,
    ToolResult,
    Unknown,
    json_text,
)
from recollect.errors import BadInput

JsonFields: TypeAlias = dict[str, msgspec.Raw]
# The documentation offers these to clients that have no signature: no model made them.
STAND_INS = frozenset({"skip_thought_signature_validator", "context_engineering_is_the_way_to_go"})
_SNAKE = re.compile(r"_([a-z0-9])")
_KINDS = (
    "functionCall",
    "functionResponse",
    "inlineData",
    "fileData",
    "executableCode",
    "codeExecutionResult",
)
_METADATA = ("thoughtSignature", "videoMetadata")

_object = msgspec.json.Decoder(JsonFields).decode
_list = msgspec.json.Decoder(list[msgspec.Raw]).decode
_text = msgspec.json.Decoder(str).decode
_flag_or_text: Callable[[msgspec.Raw], bool | str] = msgspec.json.Decoder(bool | str).decode


def decode_fields(data: bytes | msgspec.Raw) -> JsonFields:
    """An object's fields in camel case, without those that are null."""
    found = _object(data)
    return {
        _SNAKE.sub(_capital, key) if "_" in key else key: value
        for key, value in found.items()
        if bytes(value) != b"null"
    }


def _capital(found: re.Match[str]) -> str:
    return found[1].upper()


def decode_items(data: bytes | msgspec.Raw) -> list[msgspec.Raw]:
    """A list's items; anything else is a list of one."""
    return _list(data) if bytes(data).startswith(b"[") else [msgspec.Raw(data)]


def get_fields(found: JsonFields, key: str) -> JsonFields:
    return decode_fields(found[key]) if key in found else {}


def get_items(found: JsonFields, key: str) -> list[msgspec.Raw]:
    return decode_items(found[key]) if key in found else []


def get_string(found: JsonFields, key: str) -> str:
    return _text(found[key]) if key in found else ""


def raw_text(data: msgspec.Raw) -> str:
    """JSON as the text it is. Only strings can hold bytes that are not UTF-8."""
    return bytes(data).decode("utf-8", "replace")


def decode_part(part: JsonFields) -> tuple[Part, ...]:
    """Usually one. None for an empty part; two for a text that a gateway put into the part of a
    call or of anything else."""
    kind = next((kind for kind in _KINDS if kind in part), "text")
    if kind == "text" or "text" not in part:
        found = _decode_one(part, kind)
        return () if found is None else (found,)
    beside: JsonFields = {key: part[key] for key in ("text", "thought") if key in part}
    rest = {key: value for key, value in part.items() if key not in beside}
    texts = decode_part(beside) if get_string(part, "text") else ()
    return (*texts, *decode_part(rest))


def _decode_one(part: JsonFields, kind: str) -> Part | None:
    match kind:
        case "functionCall":
            return _decode_call(part)
        case "functionResponse":
            return _decode_result(decode_fields(part["functionResponse"]))
        case "inlineData":
            inline = _decode_inline(decode_fields(part["inlineData"]), _metadata(part))
            return inline or unknown_part(part)
        case "fileData":
            found = decode_fields(part["fileData"])
            mime, uri = get_string(found, "mimeType"), get_string(found, "fileUri")
            return FileRef(mime=mime, uri=uri, extra=_metadata(part))
    if "text" in part:
        return _decode_text(part)
    if part.keys() - {"thought", *_METADATA}:
        return unknown_part(part)
    # nothing but a signature, as Gemini may send it instead of an empty text
    thought, signature = _thought(part), _signature(part)
    words = thought if isinstance(thought, str) else ""
    return Thought(text=words, signature=signature) if words or signature else None


def unknown_part(part: JsonFields) -> Unknown:
    value = json.loads(encode(part))
    if is_too_deep(value):
        raise BadInput("a part is nested too deeply")
    # our own kinds are told apart by this field: a part with it would be read as one of them
    return Unknown(data=json_text({"part": value} if "type" in value else value))


def _signature(part: JsonFields) -> str:
    signature = get_string(part, "thoughtSignature")
    return "" if signature in STAND_INS else signature


def _metadata(part: JsonFields) -> str:
    found = {key: json.loads(bytes(part[key])) for key in _METADATA if key in part}
    if is_too_deep(found):
        raise BadInput("a part's metadata is nested too deeply")
    return json_text(found) if found else ""


def _thought(part: JsonFields) -> bool | str:
    """Whether it is one; some gateways put its text here."""
    return _flag_or_text(part["thought"]) if "thought" in part else False


def _decode_text(part: JsonFields) -> Part:
    text, signature = get_string(part, "text"), _signature(part)
    if _thought(part) or (signature and not text):
        return Thought(text=text, signature=signature)
    return Text(text=text, extra=_metadata(part))


def _decode_call(part: JsonFields) -> ToolCall:
    found = decode_fields(part["functionCall"])
    if "args" not in found and found.keys() - {"id", "name"}:
        # the name of the arguments may be damaged, or they come in pieces
        raise BadInput("a call with something else instead of its arguments")
    arguments = raw_text(found["args"]) if "args" in found else "{}"
    return ToolCall(
        id=get_string(found, "id"),
        name=get_string(found, "name"),
        arguments=unwrap_arguments(arguments),
        signature=_signature(part),
    )


def _decode_result(found: JsonFields) -> ToolResult:
    response = _object(found["response"]) if "response" in found else {}
    blocks: list[Content | None] = [
        _decode_inline(get_fields(part, "inlineData"), "")
        if "inlineData" in part
        else unknown_part(part)
        for part in map(decode_fields, get_items(found, "parts"))
    ]
    is_error = "error" in response and "output" not in response
    content: list[Content] = []
    if len(response) == 1 and ("error" in response or "output" in response):
        content = _decode_output(response["error" if is_error else "output"], blocks)
    elif response:
        content = [Text(text=raw_text(found["response"]))]
    content += [block for block in blocks if block is not None]
    name, id_ = get_string(found, "name"), get_string(found, "id")
    return ToolResult(call_id=id_, name=name, content=tuple(content), is_error=is_error)


def _decode_output(value: msgspec.Raw, media: list[Content | None]) -> list[Content]:
    """The content of a result; media that it refers to are taken out of the list."""
    data = bytes(value)
    if data.startswith(b'"'):
        return [Text(text=_text(value))]
    if not data.startswith(b"["):
        return [Text(text=raw_text(value))]
    content: list[Content] = []
    for item in _list(value):
        if bytes(item).startswith(b'"'):
            content.append(Text(text=_text(item)))
            continue
        number = _part_number(item)
        block = media[number] if 0 <= number < len(media) else None
        if block is None:  # a list of something else: kept as it is
            return [Text(text=raw_text(value))]
        content.append(block)
        media[number] = None
    return content


def _part_number(item: msgspec.Raw) -> int:
    found = re.fullmatch(rb'\{\s?"part"\s?:\s?([0-9]{1,6})\s?\}', bytes(item))
    return int(found[1]) if found else -1


def _decode_inline(found: JsonFields, extra: str) -> InlineData | None:
    data = decode_base64(get_string(found, "data"))
    if data is None:
        return None
    return InlineData(mime=get_string(found, "mimeType"), data=data, extra=extra)

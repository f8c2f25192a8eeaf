"""Input items of OpenAI's Responses API as messages, and back, exactly.

Items of one speaker that follow each other become one message: what a model said, thought and
called; the results of its calls. Kinds that have no part of their own are kept as `Unknown`. Every
item is returned equal to what was given. A text or an image is stored once, in a part: the tag in
`extra` holds only the difference between an item and what `plain_item` writes for its parts, so
`plain_item` must always write the same.
"""

from __future__ import annotations

import binascii
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from recollect.codecs.foreign_json import is_too_deep
from recollect.codecs.openai.decode_parts import decode_part
from recollect.entries import (
    Content,
    Entry,
    FileRef,
    InlineData,
    Message,
    Part,
    Role,
    Text,
    Thought,
    ToolCall,
    ToolResult,
    Unknown,
    json_text,
)
from recollect.errors import BadInput
from recollect.json_depth import MAX_DEPTH
from recollect.transcripts.json_patch import apply_patch, make_patch
from recollect.transcripts.json_values import Json, objects_in, string_or_empty
from recollect.transcripts.record_format import get_tag, with_tag

TAG = "openai_agents"
MESSAGE, REASONING, SCREENSHOT = "message", "reasoning", "computer_call_output"
FUNCTION_CALL, FUNCTION_OUTPUT = "function_call", "function_call_output"
# by the type of a call: the type of its output, the tool's name where the item has none, and the
# field that holds the arguments
CALLS = {
    FUNCTION_CALL: (FUNCTION_OUTPUT, "", "arguments"),
    "custom_tool_call": ("custom_tool_call_output", "", "input"),
    "shell_call": ("shell_call_output", "shell", "action"),
    "local_shell_call": ("local_shell_call_output", "local_shell", "action"),
    "apply_patch_call": ("apply_patch_call_output", "apply_patch", "operation"),
    "computer_call": (SCREENSHOT, "computer", "action"),
}
OUTPUTS = frozenset(output for output, _, _ in CALLS.values())
_ROLES: dict[str, Role] = {
    "user": "user",
    "assistant": "model",
    "system": "system",
    "developer": "system",
}
_AUDIO_FORMATS = {"audio/wav": "wav", "audio/mpeg": "mp3"}


class ItemSpan(NamedTuple):
    """An item, and which parts of its message it comes from."""

    item: Json
    start: int
    end: int


class _Decoded(NamedTuple):
    role: Role
    parts: tuple[Part, ...]
    type: str
    row: Json  # of the tag


def to_messages(items: Sequence[Any], names: Mapping[str, str]) -> tuple[Message, ...]:
    """The items as messages; `names` are the tools of earlier calls, by the call's id."""
    called = dict(names)
    found: list[Message] = []
    group: list[_Decoded] = []
    for position, item in enumerate(items):
        decoded = _decode_item(_check_item(item, position), called)
        called |= {part.id: part.name for part in decoded.parts if isinstance(part, ToolCall)}
        if group and not _belong_together(group[-1], decoded):
            found.append(_make_message(group))
            group = []
        group.append(decoded)
    return (*found, _make_message(group)) if group else tuple(found)


def _check_item(item: object, position: int) -> Json:
    if not isinstance(item, dict) or not item:
        what = "empty" if item == {} else f"a {type(item).__name__}"
        raise BadInput(f"item {position} is {what}; items are JSON objects with content")
    try:
        if is_too_deep(item):
            raise BadInput(f"item {position} is nested deeper than {MAX_DEPTH} levels; flatten it")
        plain: Json = json.loads(json_text(item))
    except (TypeError, ValueError) as error:
        raise BadInput(f"item {position} is not JSON: {error}") from error
    return plain


def _belong_together(last: _Decoded, item: _Decoded) -> bool:
    if last.role != item.role:
        return False
    return item.role == "model" or (last.type in OUTPUTS and item.type in OUTPUTS)


def _make_message(group: Sequence[_Decoded]) -> Message:
    parts = tuple(part for item in group for part in item.parts)
    message = Message(role=group[0].role, parts=parts)
    tagged = with_tag(TAG, message, {"items": [item.row for item in group]})
    assert isinstance(tagged, Message)
    return tagged


def _decode_item(item: Json, names: Mapping[str, str]) -> _Decoded:
    type_ = string_or_empty(item.get("type"))
    role = _ROLES.get(string_or_empty(item.get("role")))
    parts: tuple[Part, ...] = ()
    if type_ in CALLS:
        parts = (_decode_call(item, type_),)
    elif type_ in OUTPUTS:
        role, parts = "user", (_decode_output(item, names),)
    elif type_ == REASONING:
        parts = (_decode_reasoning(item),)
    elif role is not None and type_ in ("", MESSAGE):
        type_, parts = MESSAGE, tuple(_decode_contents(item.get("content")))
    elif type_ == "mcp_approval_response":
        role = "user"
    if not parts:
        type_, parts = "", (decode_part(item),)
    role = role or "model"
    row: Json = {"type": type_, "parts": len(parts)}
    if isinstance(item.get("output" if type_ in OUTPUTS else "content"), list):
        row["list"] = True
    row["patch"] = make_patch(_item_of_row(row, role, parts), item)
    return _Decoded(role, parts, type_, row)


def _item_of_row(row: Json, role: Role, parts: Sequence[Part]) -> Json:
    return plain_item(string_or_empty(row.get("type")), role, parts, listed=row.get("list") is True)


def _decode_call(item: Json, type_: str) -> ToolCall:
    _, name, field = CALLS[type_]
    given = item.get(field)
    if type_ != FUNCTION_CALL or not isinstance(given, str):
        given = json_text({field: given} if isinstance(given, str) else given)
    name = string_or_empty(item.get("name")) or name
    return ToolCall(id=_call_id(item), name=name, arguments=given)


def _call_id(item: Json) -> str:
    return string_or_empty(item.get("call_id")) or string_or_empty(item.get("id"))


def _decode_output(item: Json, names: Mapping[str, str]) -> ToolResult:
    id_, output = _call_id(item), item.get("output")
    match output:
        case {"type": "computer_screenshot", "image_url": str(url)}:
            output = [{"type": "input_image", "image_url": url}]
        case [{"stdout": _}, *_]:
            streams = [(o.get("stdout"), o.get("stderr")) for o in objects_in(output)]
            output = [text for pair in streams for text in pair if isinstance(text, str)]
        case dict():
            output = [output]
    content = tuple(_decode_contents(output))
    return ToolResult(call_id=id_, name=names.get(id_, ""), content=content)


def _decode_reasoning(item: Json) -> Thought:
    blocks = objects_in(item.get("summary")) or objects_in(item.get("content"))
    texts = [string_or_empty(block.get("text")) for block in blocks]
    signature = string_or_empty(item.get("encrypted_content"))
    return Thought(text="\n\n".join(filter(None, texts)), signature=signature)


def _decode_contents(content: object) -> Iterator[Content]:
    """Without empty texts: a model's message that holds one is not sent."""
    values = content if isinstance(content, list) else [] if content is None else [content]
    for value in values:
        part = _decode_content(value)
        if not isinstance(part, Text) or part.text:
            yield part


def _decode_content(value: object) -> Content:
    match value:
        case {"type": "input_image", "image_url": str(url)}:
            return decode_part({"type": "image_url", "image_url": url})
        case {"type": "input_image", "file_id": str(id_)}:
            return FileRef(mime="image/*", uri=id_)
        case {"type": "input_file", "file_data": str(data), **more}:
            file = {"file_data": data, "filename": more.get("filename")}
            return decode_part({"type": "file", "file": file})
        case {"type": "input_file", "file_url": str(uri)} | {
            "type": "input_file",
            "file_id": str(uri),
        }:
            return FileRef(mime="application/octet-stream", uri=uri)
        case str() | dict():
            return decode_part(value)
    return Unknown(data=json_text({"value": value}))


# --- back to items -----------------------------------------------------------------------------


def read_items(message: Message) -> list[ItemSpan]:
    """The items of a message as they were given; of any other message, the plain ones."""
    rows = objects_in(get_tag(TAG, message).get("items"))
    counts = [row.get("parts") for row in rows]
    sizes = [count for count in counts if type(count) is int and count > 0]
    if len(sizes) < len(counts) or sum(sizes) != len(message.parts):
        rows = []  # something else changed the message
    if not rows:
        return list(_split_message(message))
    found, start = list[ItemSpan](), 0
    for row, size in zip(rows, sizes, strict=True):
        parts = message.parts[start : start + size]
        plain = _item_of_row(row, message.role, parts)
        item = apply_patch(plain, row.get("patch"))
        found.append(ItemSpan(item if isinstance(item, dict) else plain, start, start + size))
        start += size
    return found


def without_last_item(message: Message) -> Message | None:
    """The message before its last item was added; None if it was the only one."""
    spans = read_items(message)
    if len(spans) < 2:
        return None
    shorter = msgspec.structs.replace(message, parts=message.parts[: spans[-1].start])
    rows = objects_in(get_tag(TAG, message).get("items"))
    tagged = with_tag(TAG, shorter, {"items": rows[:-1]}) if rows else shorter
    assert isinstance(tagged, Message)
    return tagged


def _split_message(message: Message) -> Iterator[ItemSpan]:
    """For messages that no item was made of: thoughts and unknown parts are other providers', and
    instructions are another agent's."""
    start, parts = 0, () if message.context in ("initial", "memory") else message.parts
    while start < len(parts):
        end, kind = start + 1, MESSAGE
        match parts[start]:
            case ToolCall():
                kind = FUNCTION_CALL
            case ToolResult():
                kind = FUNCTION_OUTPUT
            case Thought() | Unknown():
                kind = ""
            case _:
                while end < len(parts) and isinstance(parts[end], Text | InlineData | FileRef):
                    end += 1
        if kind:
            yield ItemSpan(plain_item(kind, message.role, parts[start:end]), start, end)
        start = end


def plain_item(type_: str, role: Role, parts: Sequence[Part], *, listed: bool = False) -> Json:
    """The item of this type for these parts; `listed`: its content is a list although one text
    would do. Stored patches build on it: it must not change."""
    match parts[0]:
        case ToolCall(id=id_, name=name, arguments=arguments):
            return {"type": type_, "call_id": id_, "name": name, "arguments": arguments}
        case ToolResult(call_id=id_, content=content):
            output: object = write_content(content, "user", listed=listed)
            if type_ == SCREENSHOT and isinstance(output, list) and len(output) == 1:
                output = {"type": "computer_screenshot", "image_url": output[0].get("image_url")}
            return {"type": type_, "call_id": id_, "output": output}
        case Thought(text=text, signature=signature):
            summary = [{"type": "summary_text", "text": text}] if text else []
            return {"type": type_, "summary": summary, "encrypted_content": signature}
        case Unknown(data=data) if type_ != MESSAGE:
            found: Json = json.loads(data)
            return found
    contents = [part for part in parts if not isinstance(part, ToolCall | ToolResult | Thought)]
    name = {"user": "user", "model": "assistant", "system": "system"}[role]
    return {"role": name, "content": write_content(contents, role, listed=listed)}


def write_content(
    contents: Sequence[Content], role: Role, *, listed: bool = False
) -> str | list[Json]:
    """One text as a string, more as a list. Stored patches build on it: it must not change."""
    if not contents and not listed:
        return ""
    if not listed and len(contents) == 1 and isinstance(contents[0], Text):
        return contents[0].text
    return [_write_part(part, role) for part in contents]


def _write_part(part: Content, role: Role) -> Json:
    match part:
        case Text(text=text):
            return {"type": "output_text" if role == "model" else "input_text", "text": text}
        case Unknown(data=data):
            found: Json = json.loads(data)
            return found
        case FileRef(mime=mime, uri=uri):
            link = uri.startswith(("https://", "http://", "data:"))
            if mime.startswith("image/"):
                return {"type": "input_image", "image_url" if link else "file_id": uri}
            return {"type": "input_file", "file_url" if link else "file_id": uri}
        case InlineData(mime=mime, data=data):
            coded = binascii.b2a_base64(data, newline=False).decode()
            if mime in _AUDIO_FORMATS:
                audio = {"data": coded, "format": _AUDIO_FORMATS[mime]}
                return {"type": "input_audio", "input_audio": audio}
            url = f"data:{mime};base64,{coded}"
            if mime.startswith("image/"):
                return {"type": "input_image", "image_url": url}
            return {"type": "input_file", "file_data": url}


def tool_names(items: Sequence[Any], entries: Sequence[Entry]) -> dict[str, str]:
    """The tools of the earlier calls that these items answer, by the call's id."""
    known = [item for item in items if isinstance(item, dict)]
    wanted = {_call_id(item) for item in known if item.get("type") in OUTPUTS}
    wanted -= {_call_id(item) for item in known if item.get("type") in CALLS}
    found: dict[str, str] = {}
    for entry in reversed(entries):
        if len(found) == len(wanted):
            break
        if isinstance(entry.body, Message):
            calls = [part for part in entry.body.parts if isinstance(part, ToolCall)]
            for call in calls:
                if call.id in wanted:
                    found.setdefault(call.id, call.name)
    return found

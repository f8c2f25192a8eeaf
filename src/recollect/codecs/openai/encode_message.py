"""One message in the OpenAI chat format, as the same bytes whatever is around it.

Content that the model or the format does not accept is left out or replaced by a line of text that
names it, and reported as a `Fix`.
"""

from __future__ import annotations

import binascii
import re
from collections.abc import Sequence
from typing import Any

from recollect.codecs.call_arguments import wrap_arguments
from recollect.codecs.fixes import Fix, quote_text
from recollect.codecs.foreign_json import encode, encode_json
from recollect.codecs.provider_errors import make_printable
from recollect.codecs.provider_rules import OpenAIQuirks
from recollect.codecs.tool_names import name_fix, sent_tool_name
from recollect.codecs.wire_protocol import EncodedMessage
from recollect.entries import (
    Content,
    FileRef,
    InlineData,
    Message,
    Text,
    Thought,
    ToolCall,
    ToolResult,
    Unknown,
)

# the types of the file names that the format demands and sends
FILE_TYPES = {
    "gif": "image/gif",
    "jpeg": "image/jpeg",
    "jpg": "image/jpeg",
    "pdf": "application/pdf",
    "png": "image/png",
    "txt": "text/plain",
    "webp": "image/webp",
}
_MIME = re.compile(r"(?a:[\w.+-]{1,80}/[\w.+-]{1,80})")
# the two audio formats of the documentation; mp3 is registered as audio/mpeg
_AUDIO = {"audio/wav": "wav", "audio/x-wav": "wav", "audio/mpeg": "mp3", "audio/mp3": "mp3"}
_PLURALS = {"image": "images", "audio": "sound", "video": "video"}


def encode_message(quirks: OpenAIQuirks, message: Message) -> EncodedMessage:
    """The message as its elements; no bytes if nothing of it can be sent."""
    parts = message.parts
    if len(parts) == 1 and type(only := parts[0]) is Text and message.role != "system":
        role = b"user" if message.role == "user" else b"assistant"
        try:
            return EncodedMessage(b'{"role":"' + role + b'","content":' + encode(only.text) + b"}")
        except UnicodeEncodeError:
            pass  # `encode_json` below replaces what UTF-8 cannot carry
    fixes: list[Fix] = []
    elements = [_encode_result(part, fixes) for part in parts if isinstance(part, ToolResult)]
    encode_rest = _encode_assistant if message.role == "model" else _encode_user
    rest = encode_rest(message, quirks, fixes)
    if rest is not None:
        elements.append(rest)
    if not elements:
        return EncodedMessage(b"", tuple(fixes))
    data, more = encode_json(elements, "a message", 0)
    return EncodedMessage(data[1:-1], (*fixes, *more))


def _encode_user(message: Message, quirks: OpenAIQuirks, fixes: list[Fix]) -> dict[str, Any] | None:
    contents: list[Content] = []
    for part in message.parts:
        if isinstance(part, ToolCall | Thought):
            what = "call" if isinstance(part, ToolCall) else "thought"
            line = f"a {what} is left out: the message is the {message.role}'s, not a model's"
            fixes.append(Fix("misplaced" if what == "call" else "thought", 0, line))
        elif not isinstance(part, ToolResult):
            contents.append(part)
    text_only_in = "an instruction" if message.role == "system" else ""
    content = _encode_contents(contents, quirks, fixes, text_only_in)
    if content is None:
        return None
    role = quirks.system_role if message.role == "system" else "user"
    return {"role": role, "content": content}


def _encode_contents(
    contents: Sequence[Content], quirks: OpenAIQuirks, fixes: list[Fix], text_only_in: str
) -> str | list[dict[str, Any]] | None:
    """One text as a string; more as a list, so that decoding gives the same parts back. Strict
    servers get a string, which is all that their templates know."""
    if len(contents) == 1 and isinstance(contents[0], Text):
        return contents[0].text
    texts = [part.text for part in contents if isinstance(part, Text)]
    if quirks.alternating_roles and texts and len(texts) == len(contents):
        return "\n\n".join(texts)
    encoded = [
        encode_content(part, quirks.media, fixes, text_only_in=text_only_in) for part in contents
    ]
    return [part for part in encoded if part is not None] or None


def _encode_assistant(
    message: Message, quirks: OpenAIQuirks, fixes: list[Fix]
) -> dict[str, Any] | None:
    calls: list[dict[str, Any]] = []
    thoughts: list[str] = []
    contents: list[Content] = []
    for part in message.parts:
        if isinstance(part, ToolCall):
            calls.append(_encode_call(part, fixes))
        elif isinstance(part, Thought):
            _encode_thought(part, quirks, thoughts, fixes)
        elif not isinstance(part, ToolResult):
            contents.append(part)
    content = _encode_contents(contents, quirks, fixes, "a model's message")
    if content is None and not calls and not thoughts:
        return None
    body: dict[str, Any] = {"role": "assistant"}
    if thoughts or (quirks.reasoning and calls):
        # DeepSeek refuses a call without the field, even when nothing was thought
        # (deepseek-ai/deepseek-harness#739)
        body[quirks.reasoning] = "\n".join(thoughts)
    body["content"] = "" if content is None and not calls else content
    if calls:
        body["tool_calls"] = calls
    return body


def _encode_thought(
    thought: Thought, quirks: OpenAIQuirks, thoughts: list[str], fixes: list[Fix]
) -> None:
    if not quirks.reasoning:
        line = f"a thought of {len(thought.text):,} characters is left out: there is no field"
        fixes.append(Fix("thought", 0, line))
        return
    thoughts.append(thought.text)
    lost = [what for what in ("subject", "signature") if getattr(thought, what)]
    if lost:
        line = f"a thought's {' and '.join(lost)} left out: there is no field for it"
        fixes.append(Fix("uncarried", 0, line))


def _encode_call(call: ToolCall, fixes: list[Fix]) -> dict[str, Any]:
    if call.signature:
        line = f"the signature of call {quote_text(call.id)} is left out: there is no field for it"
        fixes.append(Fix("uncarried", 0, line, call.id))
    name = sent_tool_name(call.name, "openai")
    if name != call.name:
        fixes.append(name_fix(call.name, name, call=call.id))
    function = {"name": name, "arguments": wrap_arguments(call, fixes)}
    return {"id": call.id, "type": "function", "function": function}


def _encode_result(result: ToolResult, fixes: list[Fix]) -> dict[str, Any]:
    """Text only: few servers accept a list here, and none accepts images."""
    if result.is_error:
        line = (
            f"the error mark of result {quote_text(result.call_id)} is left out: there is no field"
        )
        fixes.append(Fix("uncarried", 0, line, result.call_id))
    encoded = [
        encode_content(part, (), fixes, text_only_in="a tool's result") for part in result.content
    ]
    text = "\n".join([part["text"] for part in encoded if part is not None])
    return {"role": "tool", "tool_call_id": result.call_id, "content": text}


def encode_content(
    part: Content, media: Sequence[str], fixes: list[Fix], *, text_only_in: str = ""
) -> dict[str, Any] | None:
    """None for a part that cannot be sent. `text_only_in` names a place that takes only text."""
    if isinstance(part, Text):
        return {"type": "text", "text": part.text}
    if isinstance(part, Unknown):
        line = f"a part of an unknown kind is left out ({len(part.data):,} characters)"
        fixes.append(Fix("uncarried", 0, line))
        return None
    encoded = None if text_only_in else _encode_media(part, media)
    if encoded is not None:
        return encoded
    text = describe_unsent_media(part, media, text_only_in)
    fixes.append(Fix("uncarried", 0, f"sent as a line of text: {text}"))
    return {"type": "text", "text": text}


def describe_unsent_media(
    part: InlineData | FileRef, media: Sequence[str], text_only_in: str = ""
) -> str:
    mime = make_printable(part.mime, 60) or "a file"
    if isinstance(part, FileRef):
        what = make_printable(part.uri, 200)
    else:
        what = f"{len(part.data):,} bytes"
    if text_only_in:
        why = f"{text_only_in} carries text only"
    elif _accepts(part.mime, media):
        why = "this format has no place for it"
    else:
        kind = _PLURALS.get(part.mime.partition("/")[0].lower(), "such files")
        why = f"this model takes no {kind}"
    return f"[{mime}, {what}: {why}]"


def _accepts(mime: str, media: Sequence[str]) -> bool:
    return mime.lower().startswith(tuple(media))


def _encode_media(part: InlineData | FileRef, media: Sequence[str]) -> dict[str, Any] | None:
    if not _accepts(part.mime, media) or not _MIME.fullmatch(part.mime):
        return None
    kind = part.mime.partition("/")[0].lower()
    if isinstance(part, FileRef):
        if kind == "image" and part.uri.startswith(("https://", "http://")):
            return {"type": "image_url", "image_url": {"url": part.uri}}
        # an uploaded file is named by an id, which is not an address
        if kind != "image" and part.uri and ":" not in part.uri:
            return {"type": "file", "file": {"file_id": part.uri}}
        return None
    data = binascii.b2a_base64(part.data, newline=False).decode()
    if kind == "audio":
        audio = {"data": data, "format": _AUDIO.get(part.mime)}
        return {"type": "input_audio", "input_audio": audio} if audio["format"] else None
    url = f"data:{part.mime};base64,{data}"
    if kind == "image":
        return {"type": "image_url", "image_url": {"url": url}}
    ending = next((e for e, mime in FILE_TYPES.items() if mime == part.mime), "bin")
    return {"type": "file", "file": {"filename": f"file.{ending}", "file_data": url}}

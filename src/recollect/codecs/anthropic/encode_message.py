"""Parts as Anthropic's content blocks: how each is written.

Guarantees: a part gives the same block whatever stands beside it; a block is one that the API
takes; what has no place in a block is left out, or named in a text that stands there instead, and
told as a `Fix`. A call's arguments go as the very text they are when that is a JSON object.
Otherwise they go as a string in an object under `MALFORMED`, and reading takes them out again.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Sequence
from functools import cache
from typing import Any, TypeAlias

import msgspec

from recollect.codecs.fixes import Fix, quote_text
from recollect.codecs.provider_errors import make_printable
from recollect.entries import (
    MAX_DEPTH,
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

MALFORMED = "malformed_arguments"
MEDIA = ("image/", "application/pdf", "text/")
NOTHING_LEFT = "[what was here cannot be sent]"
# What the API's own tools put into a message: these go back as they came.
OF_MODEL = frozenset(
    {
        "server_tool_use",
        "web_search_tool_result",
        "web_fetch_tool_result",
        "code_execution_tool_result",
        "bash_code_execution_tool_result",
        "text_editor_code_execution_tool_result",
        "tool_search_tool_result",
        "container_upload",
    }
)
OF_USER = frozenset({"search_result", "container_upload", "image", "document"})
OF_RESULT = frozenset({"search_result", "image", "document"})
_LONE = "[\ud800-\udfff]"
_IMAGES = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})
_NAME = r"[A-Za-z0-9_-]{1,128}"
_NOT_IN_NAME = r"[^A-Za-z0-9_-]"
_compiled = cache(re.compile)

RequestBlock: TypeAlias = (
    object  # one of the structs below, or the JSON of a block that came from outside
)


class _TypedBlock(msgspec.Struct, frozen=True, gc=False, omit_defaults=True, tag_field="type"):
    pass


class TextBlock(_TypedBlock, frozen=True, tag="text"):
    text: str


class ThinkingBlock(_TypedBlock, frozen=True, tag="thinking"):
    thinking: str
    signature: str


class RedactedThinkingBlock(_TypedBlock, frozen=True, tag="redacted_thinking"):
    data: str


class ToolUseBlock(_TypedBlock, frozen=True, tag="tool_use"):
    id: str
    name: str
    input: msgspec.Raw


class ToolResultBlock(_TypedBlock, frozen=True, tag="tool_result"):
    tool_use_id: str
    content: Sequence[RequestBlock] | None = None
    is_error: bool = False


class Base64Source(_TypedBlock, frozen=True, tag="base64"):
    media_type: str
    data: str


class PlainTextSource(_TypedBlock, frozen=True, tag="text"):
    media_type: str
    data: str


class UrlSource(_TypedBlock, frozen=True, tag="url"):
    url: str


class ImageBlock(_TypedBlock, frozen=True, tag="image"):
    source: Base64Source | UrlSource


class DocumentBlock(_TypedBlock, frozen=True, tag="document"):
    source: Base64Source | PlainTextSource | UrlSource


def encode_blocks(
    parts: Sequence[Part], *, of_model: bool, media: Sequence[str], fixes: list[Fix]
) -> list[RequestBlock]:
    """Never empty: a message without content is refused, and roles would no longer alternate."""
    blocks: list[RequestBlock] = []
    for part in parts:
        block = (
            TextBlock(part.text)
            if type(part) is Text
            else _block(part, of_model=of_model, media=media, fixes=fixes)
        )
        if block is not None:
            blocks.append(block)
    return blocks or [TextBlock(NOTHING_LEFT)]


def _block(
    part: Part, *, of_model: bool, media: Sequence[str], fixes: list[Fix]
) -> RequestBlock | None:
    if isinstance(part, ToolCall):
        return _call(part, fixes)
    if isinstance(part, ToolResult):
        return _result(part, media, fixes)
    if isinstance(part, Thought):
        if part.subject:
            fixes.append(_fix(f"the subject {quote_text(part.subject)} of a thought is left out"))
        return encode_thought(part)
    if isinstance(part, InlineData | FileRef) and of_model:
        # a document in an assistant's message is refused since API version 2026-10-21
        return describe_unsent_file(part, "only a user's message takes files", fixes)
    return _content(part, OF_MODEL if of_model else OF_USER, media, fixes)


def encode_thought(thought: Thought) -> RequestBlock:
    if thought.extra and is_redacted(thought):
        return RedactedThinkingBlock(thought.signature)
    return ThinkingBlock(thought.text, thought.signature)


def is_redacted(thought: Thought) -> bool:
    """Whether the provider hid what was thought: the signature is all there is of it."""
    extra = parse_object(thought.extra)
    return extra is not None and extra.get("redacted") is True


def _call(call: ToolCall, fixes: list[Fix]) -> RequestBlock:
    name = call.name
    if not _compiled(_NAME).fullmatch(name):
        # one such name in its history would make every request fail
        name = re.sub(_NOT_IN_NAME, "_", name[:128]) or "unnamed"
        fixes.append(_fix(f"a call of {quote_text(call.name)} is sent as one of {name!r}", call.id))
    if call.signature:
        fixes.append(_fix(f"the signature of call {quote_text(call.id)} is left out", call.id))
    return ToolUseBlock(call.id, name, encode_arguments(call, fixes))


def encode_arguments(call: ToolCall, fixes: list[Fix]) -> msgspec.Raw:
    text = call.arguments
    if parse_object(text) is not None:
        return msgspec.Raw(text.encode())
    if not text.strip():
        return msgspec.Raw(b"{}")
    line = (
        f"the arguments of call {quote_text(call.id)} are no JSON object: sent as a string in one"
    )
    fixes.append(_fix(line, call.id))
    return msgspec.Raw(msgspec.json.encode({MALFORMED: text}))


def _result(result: ToolResult, media: Sequence[str], fixes: list[Fix]) -> RequestBlock:
    blocks: list[RequestBlock] = []
    for item in result.content:
        if not isinstance(item, Text):
            block = _content(item, OF_RESULT, media, fixes)
            if block is not None:
                blocks.append(block)
        elif item.text and not item.text.isspace():
            blocks.append(TextBlock(item.text))
        elif item.text:
            line = f"a text of {len(item.text):,} blank characters in a result is left out"
            fixes.append(Fix("empty", 0, line, result.call_id))
    return ToolResultBlock(result.call_id, blocks or None, result.is_error)


def _content(
    part: Content, known: frozenset[str], media: Sequence[str], fixes: list[Fix]
) -> RequestBlock | None:
    if isinstance(part, Text):
        return TextBlock(part.text)
    if isinstance(part, Unknown):
        block = known_block(part, known)
        if block is None:
            fixes.append(
                _fix(f"a part of a type unknown here is left out: {quote_text(part.data)}")
            )
        return block
    if not part.mime.startswith(tuple(media)):
        return describe_unsent_file(part, f"this model takes no {_kind(part.mime)}", fixes)
    return _inline(part, fixes) if isinstance(part, InlineData) else _reference(part, fixes)


def known_block(part: Unknown, known: frozenset[str]) -> RequestBlock | None:
    """The block as it came, when it is of one of these types."""
    block = parse_object(part.data) or {}
    kind, source = block.get("type"), block.get("source")
    if not isinstance(kind, str) or kind not in known:
        return None
    if kind in ("image", "document") and not (
        isinstance(source, dict) and source.get("type") in ("file", "content")
    ):
        return None  # any other source has a part of its own
    return msgspec.Raw(part.data.encode())


def _inline(part: InlineData, fixes: list[Fix]) -> RequestBlock:
    mime = "image/jpeg" if part.mime == "image/jpg" else part.mime
    if not part.data:
        return describe_unsent_file(part, "there is nothing in it", fixes)
    if mime in _IMAGES:
        return ImageBlock(Base64Source(mime, b64encode(part.data).decode()))
    if mime == "application/pdf":
        return DocumentBlock(Base64Source(mime, b64encode(part.data).decode()))
    if not mime.startswith("text/"):
        return describe_unsent_file(part, "the provider does not take this format", fixes)
    try:
        text = part.data.decode()
    except UnicodeDecodeError:
        return describe_unsent_file(part, "it is no UTF-8", fixes)
    if text.isspace():
        return describe_unsent_file(part, "there is nothing but white space in it", fixes)
    if mime != "text/plain":
        fixes.append(_fix(f"a document of type {_short(mime)} is sent as text/plain"))
    return DocumentBlock(PlainTextSource("text/plain", text))


def _reference(part: FileRef, fixes: list[Fix]) -> RequestBlock:
    if not part.uri.startswith(("https://", "http://")):
        return describe_unsent_file(part, "the provider can only fetch from the web", fixes)
    if part.mime.startswith("image/"):
        return ImageBlock(UrlSource(part.uri))
    if part.mime == "application/pdf":
        return DocumentBlock(UrlSource(part.uri))
    return describe_unsent_file(part, "the provider does not fetch this format", fixes)


def describe_unsent_file(part: InlineData | FileRef, why: str, fixes: list[Fix]) -> TextBlock:
    """What stands in the place of a file that cannot be sent."""
    what = (
        f"{len(part.data):,} bytes"
        if isinstance(part, InlineData)
        else f"at {quote_text(part.uri)}"
    )
    text = f"{_short(part.mime)}, {what}: {why}"
    fixes.append(_fix(f"a file is not sent, only told of: {text}"))
    return TextBlock(f"[{text}]")


def _kind(mime: str) -> str:
    if mime.startswith("image/"):
        return "images"
    return "PDFs" if mime == "application/pdf" else "such files"


def _short(mime: str) -> str:
    return make_printable(mime, 80) or "a file of no type"


def replace_surrogates(text: str) -> str:
    """With U+FFFD for each half of a surrogate pair, which UTF-8 cannot carry."""
    return _compiled(_LONE).sub("\ufffd", text)


def replace_surrogates_in(message: Message) -> Message:
    """The same message in text that UTF-8 can carry."""
    try:
        msgspec.json.encode(message)
    except UnicodeEncodeError:
        return msgspec.convert(_sound(msgspec.to_builtins(message)), Message)
    return message


def _sound(value: Any) -> Any:
    """Calls itself on a message of our own, whose depth is fixed."""
    if isinstance(value, str):
        return replace_surrogates(value)
    if isinstance(value, dict):
        return {key: _sound(item) for key, item in value.items()}
    return [_sound(item) for item in value] if isinstance(value, list | tuple) else value


def parse_object(text: str) -> dict[str, Any] | None:
    """None as well for what is nested so deeply that other readers would stumble."""
    try:
        value = msgspec.json.decode(text)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return None
    return value if isinstance(value, dict) and is_shallow(text, value) else None


def is_shallow(text: str, value: object) -> bool:
    if text.count("{") + text.count("[") <= MAX_DEPTH:
        return True
    level = [value]
    for _ in range(MAX_DEPTH):
        below: list[Any] = []
        for item in level:
            if isinstance(item, dict):
                below += item.values()
            elif isinstance(item, list):
                below += item
        if not below:
            return True
        level = below
    return False


def _fix(text: str, call: str = "") -> Fix:
    return Fix("uncarried", 0, text, call)

"""A message as Anthropic's content blocks.

Guarantees: a part gives the same block whatever stands beside it, and the API accepts every block.
Content that fits into no block is left out, or replaced by a text that names it, and reported as a
`Fix`. A call's arguments are embedded as the very text they are if that is a JSON object
(`call_arguments.py`).
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from typing import TypeAlias

import msgspec

from recollect.codecs.call_arguments import wrap_arguments
from recollect.codecs.fixes import Fix, quote_text
from recollect.codecs.foreign_json import SURROGATES, encode, parse_object, replace_surrogates
from recollect.codecs.provider_errors import make_printable
from recollect.codecs.provider_rules import AnthropicQuirks
from recollect.codecs.tool_names import name_fix, sent_tool_name
from recollect.codecs.wire_protocol import EncodedMessage
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

NOTHING_LEFT = "[what was here cannot be sent]"
# Blocks of the API's own tools; they go back as they came.
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
_IMAGES = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})
_ROLES = {"user": "user", "model": "assistant", "system": "system"}
_TEXT_HEADS = {
    role: b'{"role":"%b","content":[{"type":"text","text":' % role.encode()
    for role in _ROLES.values()
}

# a struct below, a file as a dictionary, or the raw JSON of a block that came from outside
RequestBlock: TypeAlias = object


class _TypedBlock(msgspec.Struct, frozen=True, gc=False, omit_defaults=True, tag_field="type"):
    pass


class TextBlock(_TypedBlock, frozen=True, tag="text"):
    text: str


class ThinkingBlock(_TypedBlock, frozen=True, tag="thinking"):
    thinking: str
    signature: str


class ToolUseBlock(_TypedBlock, frozen=True, tag="tool_use"):
    id: str
    name: str
    input: msgspec.Raw


class ToolResultBlock(_TypedBlock, frozen=True, tag="tool_result"):
    tool_use_id: str
    content: Sequence[RequestBlock] | None = None
    is_error: bool = False


class _AnthropicMessage(msgspec.Struct, gc=False):
    role: str
    content: Sequence[RequestBlock]


def encode_message(quirks: AnthropicQuirks, message: Message) -> EncodedMessage:
    parts, role = message.parts, _ROLES[message.role]
    try:
        if len(parts) == 1 and type(parts[0]) is Text:  # nearly every message
            return EncodedMessage(_TEXT_HEADS[role] + encode(parts[0].text) + b"}]}")
        return _encode_parts(message, role, quirks, [])
    except UnicodeEncodeError:
        fixes = [_fix(SURROGATES)]
        return _encode_parts(replace_surrogates(message), role, quirks, fixes)


def _encode_parts(
    message: Message, role: str, quirks: AnthropicQuirks, fixes: list[Fix]
) -> EncodedMessage:
    of_model = message.role == "model"
    blocks: list[RequestBlock] = []
    for part in message.parts:
        block = _encode_part(part, quirks, fixes, of_model=of_model)
        if block is not None:
            blocks.append(block)
    # a message without content is refused, and without the message roles would not alternate
    data = encode(_AnthropicMessage(role, blocks or [TextBlock(NOTHING_LEFT)]))
    return EncodedMessage(data, tuple(fixes))


def _encode_part(
    part: Part, quirks: AnthropicQuirks, fixes: list[Fix], *, of_model: bool
) -> RequestBlock | None:
    if isinstance(part, Text):
        return TextBlock(part.text)
    if isinstance(part, ToolCall):
        return _encode_call(part, fixes)
    if isinstance(part, ToolResult):
        return _encode_result(part, quirks, fixes)
    if isinstance(part, Thought):
        if part.subject:
            fixes.append(_fix(f"the subject {quote_text(part.subject)} of a thought is left out"))
        return encode_thought(part)
    if isinstance(part, InlineData | FileRef) and of_model:
        # a document in an assistant's message is refused since API version 2026-10-21
        return describe_unsent_file(part, "only a user's message takes files", fixes)
    return _encode_content(part, OF_MODEL if of_model else OF_USER, quirks, fixes)


def encode_thought(thought: Thought) -> RequestBlock:
    if thought.extra and _is_redacted(thought):
        return {"type": "redacted_thinking", "data": thought.signature}
    return ThinkingBlock(thought.text, thought.signature)


def _is_redacted(thought: Thought) -> bool:
    """Whether the provider hid the thought and sent only a signature."""
    extra = parse_object(thought.extra)
    return extra is not None and extra.get("redacted") is True


def _encode_call(call: ToolCall, fixes: list[Fix]) -> RequestBlock:
    name = sent_tool_name(call.name, "anthropic")
    if name != call.name:
        fixes.append(name_fix(call.name, name, call=call.id))
    if call.signature:
        fixes.append(_fix(f"the signature of call {quote_text(call.id)} is left out", call.id))
    return ToolUseBlock(call.id, name, encode_arguments(call, fixes))


def encode_arguments(call: ToolCall, fixes: list[Fix]) -> msgspec.Raw:
    return msgspec.Raw(wrap_arguments(call, fixes).encode())


def _encode_result(result: ToolResult, quirks: AnthropicQuirks, fixes: list[Fix]) -> RequestBlock:
    blocks: list[RequestBlock] = []
    for item in result.content:
        if isinstance(item, Text) and not item.text.strip():
            if item.text:
                line = f"a text of {len(item.text):,} blank characters in a result is left out"
                fixes.append(Fix("empty", 0, line, result.call_id))
            continue
        block = _encode_content(item, OF_RESULT, quirks, fixes)
        if block is not None:
            blocks.append(block)
    return ToolResultBlock(result.call_id, blocks or None, result.is_error)


def _encode_content(
    part: Content, known: frozenset[str], quirks: AnthropicQuirks, fixes: list[Fix]
) -> RequestBlock | None:
    if isinstance(part, Text):
        return TextBlock(part.text)
    if isinstance(part, Unknown):
        block = encode_known_block(part, known)
        if block is None:
            fixes.append(_fix(f"a part of an unknown type is left out: {quote_text(part.data)}"))
        return block
    if not part.mime.startswith(quirks.media):
        why = f"this model takes no {_plural(part.mime)}"
        return describe_unsent_file(part, why, fixes)
    if isinstance(part, InlineData):
        return _encode_inline(part, fixes)
    return _encode_reference(part, fixes)


def encode_known_block(part: Unknown, known: frozenset[str]) -> RequestBlock | None:
    """The block as it came, if it is of one of these types."""
    block = parse_object(part.data) or {}
    kind, source = block.get("type"), block.get("source")
    if not isinstance(kind, str) or kind not in known:
        return None
    if kind in ("image", "document") and not (
        isinstance(source, dict) and source.get("type") in ("file", "content")
    ):
        return None  # any other source has a part of its own
    return msgspec.Raw(part.data.encode())


def _encode_inline(part: InlineData, fixes: list[Fix]) -> RequestBlock:
    mime = "image/jpeg" if part.mime == "image/jpg" else part.mime
    if not part.data:
        return describe_unsent_file(part, "there is nothing in it", fixes)
    if mime in _IMAGES or mime == "application/pdf":
        kind = "image" if mime in _IMAGES else "document"
        data = b64encode(part.data).decode()
        return {"type": kind, "source": {"type": "base64", "media_type": mime, "data": data}}
    if not mime.startswith("text/"):
        return describe_unsent_file(part, "the provider does not take this format", fixes)
    try:
        text = part.data.decode()
    except UnicodeDecodeError:
        return describe_unsent_file(part, "it is no UTF-8", fixes)
    if text.isspace():
        return describe_unsent_file(part, "there is nothing but white space in it", fixes)
    if mime != "text/plain":
        fixes.append(_fix(f"a document of type {_short_type(mime)} is sent as text/plain"))
    source = {"type": "text", "media_type": "text/plain", "data": text}
    return {"type": "document", "source": source}


def _encode_reference(part: FileRef, fixes: list[Fix]) -> RequestBlock:
    if not part.uri.startswith(("https://", "http://")):
        return describe_unsent_file(part, "the provider can only fetch from the web", fixes)
    is_image = part.mime.startswith("image/")
    if is_image or part.mime == "application/pdf":
        kind = "image" if is_image else "document"
        return {"type": kind, "source": {"type": "url", "url": part.uri}}
    return describe_unsent_file(part, "the provider does not fetch this format", fixes)


def describe_unsent_file(part: InlineData | FileRef, why: str, fixes: list[Fix]) -> RequestBlock:
    """The text that replaces a file which cannot be sent."""
    what = (
        f"at {quote_text(part.uri)}" if isinstance(part, FileRef) else f"{len(part.data):,} bytes"
    )
    text = f"{_short_type(part.mime)}, {what}: {why}"
    fixes.append(_fix(f"a file is not sent, only described: {text}"))
    return TextBlock(f"[{text}]")


def _plural(mime: str) -> str:
    if mime.startswith("image/"):
        return "images"
    return "PDFs" if mime == "application/pdf" else "such files"


def _short_type(mime: str) -> str:
    return make_printable(mime, 80) or "a file of no type"


def _fix(text: str, call: str = "") -> Fix:
    return Fix("uncarried", 0, text, call)

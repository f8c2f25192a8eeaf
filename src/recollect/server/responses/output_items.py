"""Messages of the log as items of the API, each with its id.

A reply's thoughts are `reasoning` items, its text is a `message`, a call that waits for the client
is a `function_call`. A call that the server answered is a `recollect:tool_call` with its output.
Items that a client sent come back as they were given, with ids of ours.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from recollect.adapters.response_items import TAG, read_items
from recollect.agent.exchange import describe_media
from recollect.entries import (
    Entry,
    FileRef,
    InlineData,
    Message,
    Part,
    Text,
    Thought,
    ToolCall,
    ToolResult,
)
from recollect.server.responses.item_ids import call_id, item_id
from recollect.transcripts.record_format import get_tag

Item = dict[str, Any]
TOOL_CALL = "recollect:tool_call"
MAX_OUTPUT = 100_000  # characters of a server tool's output that an item shows


class ShownItem(NamedTuple):
    """An item, and the parts of its message that it shows."""

    item: Item
    parts: tuple[int, ...]


def output_text(text: str) -> Item:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def message_item(id_: str, text: str, status: str = "completed", *, empty: bool = False) -> Item:
    content = [] if empty else [output_text(text)]
    return {
        "id": id_,
        "type": "message",
        "status": status,
        "role": "assistant",
        "content": content,
    }


def reasoning_item(id_: str, text: str, signature: str = "") -> Item:
    summary = [{"type": "summary_text", "text": text}] if text else []
    item: Item = {"id": id_, "type": "reasoning", "summary": summary}
    return item | {"encrypted_content": signature} if signature else item


def function_call_item(
    id_: str, call: str, name: str, arguments: str, status: str = "completed"
) -> Item:
    return {
        "id": id_,
        "type": "function_call",
        "status": status,
        "call_id": call,
        "name": name,
        "arguments": arguments,
    }


def tool_call_item(
    id_: str, name: str, arguments: str, result: ToolResult | None, status: str = "in_progress"
) -> Item:
    item = {"id": id_, "type": TOOL_CALL, "status": status, "name": name, "arguments": arguments}
    if result is None:
        return item | {"output": None, "is_error": None}
    texts = [part.text for part in result.content if isinstance(part, Text)]
    shown = "\n".join(texts)[:MAX_OUTPUT]
    return item | {"status": "completed", "output": shown, "is_error": result.is_error}


def reply_items(
    entry: str, reply: Message, results: Mapping[str, ToolResult], *, signatures: bool = False
) -> list[ShownItem]:
    """What the API shows of a reply; `results` are those of the calls that the server answered."""
    found: list[ShownItem] = []
    calls = 0
    for start, parts in _runs(reply.parts):
        first, position = parts[0], len(found)
        if isinstance(first, Thought):
            signature = first.signature if signatures else ""
            if not first.text and not signature:
                continue
            item = reasoning_item(item_id("reasoning", entry, position), first.text, signature)
        elif isinstance(first, ToolCall):
            item = _call_item(entry, position, calls, first, results)
            calls += 1
        else:
            status = "incomplete" if _is_cut(reply) else "completed"
            id_ = item_id("message", entry, position)
            item = message_item(id_, _text_of(parts), status)
        found.append(ShownItem(item, tuple(range(start, start + len(parts)))))
    return found


def _call_item(
    entry: str, position: int, number: int, call: ToolCall, results: Mapping[str, ToolResult]
) -> Item:
    result = results.get(call.id)
    if result is not None:
        id_ = item_id(TOOL_CALL, entry, position)
        return tool_call_item(id_, call.name, call.arguments, result)
    id_ = item_id("function_call", entry, position)
    return function_call_item(id_, call_id(entry, number), call.name, call.arguments)


def _is_cut(reply: Message) -> bool:
    return reply.finish in ("interrupted", "length", "safety", "")


def _runs(parts: Sequence[Part]) -> Iterator[tuple[int, Sequence[Part]]]:
    """Calls and thoughts one by one, neighbouring texts and media together."""
    start = 0
    while start < len(parts):
        end = start + 1
        if isinstance(parts[start], Text | InlineData | FileRef):
            while end < len(parts) and isinstance(parts[end], Text | InlineData | FileRef):
                end += 1
            yield start, parts[start:end]
        elif isinstance(parts[start], Thought | ToolCall):
            yield start, parts[start:end]
        start = end


def _text_of(parts: Sequence[Part]) -> str:
    shown: list[str] = []
    for part in parts:
        if isinstance(part, Text):
            shown.append(part.text)
        else:
            shown.append(describe_media(Message(role="model", parts=(part,))))
    return "".join(shown)


# --- items of any entry ------------------------------------------------------------------------


def entry_items(entry: Entry, results: Mapping[str, ToolResult]) -> list[ShownItem]:
    """The items of an entry, whoever appended it; none of what the program itself added."""
    message = entry.body
    if not isinstance(message, Message) or message.context:
        return []
    if message.role == "model" and message.model:
        return reply_items(entry.id, message, results)
    found = []
    for position, span in enumerate(read_items(message)):
        item = normal_item(span.item, entry.id, position)
        found.append(ShownItem(item, tuple(range(span.start, span.end))))
    return found


def normal_item(given: Item, entry: str, position: int) -> Item:
    """An item as the API returns it: with its type, an id, a status, and content as a list."""
    type_ = str(given.get("type") or "message")
    item = given | {"type": type_, "id": item_id(type_, entry, position)}
    if type_ == "message":
        kind = "output_text" if item.get("role") == "assistant" else "input_text"
        content = item.get("content")
        parts = [{"type": kind, "text": content}] if isinstance(content, str) else content or []
        item["content"] = [_normal_part(part) for part in parts]
    if type_ != "reasoning" or "status" in given:
        item["status"] = given.get("status") or "completed"
    return item


def _normal_part(part: Any) -> Any:
    if isinstance(part, dict) and part.get("type") == "output_text":
        return {"annotations": [], "logprobs": []} | part
    return part


def results_in(entries: Sequence[Entry]) -> dict[str, ToolResult]:
    """By call id, the results among these entries that the server itself stored."""
    found: dict[str, ToolResult] = {}
    for entry in entries:
        if isinstance(entry.body, Message) and not is_from_client(entry.body):
            parts = [part for part in entry.body.parts if isinstance(part, ToolResult)]
            found.update({part.call_id: part for part in parts})
    return found


def is_from_client(message: Message) -> bool:
    """Whether a client's items made it: they carry a tag."""
    return bool(get_tag(TAG, message))

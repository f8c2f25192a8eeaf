"""Pages of a session's history that always fit a frame: as JSON, or as the seed's readable text.

Pure. A record is a message with the results of its calls. A page holds whole records, the newest
of those asked for, as many as fit; a record that alone is too large is shortened, and says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from recollect.entries import Body, Entry, Message
from recollect.server.nplt.frame_writer import encode_json
from recollect.server.nplt.frames import MAX_PAYLOAD
from recollect.text import clip_middle
from recollect.transcripts.history_server import NAME, RECORD_FORMAT
from recollect.transcripts.json_patch import apply_patch
from recollect.transcripts.record_format import get_tag
from recollect.view.curation import is_tool_result

MAX_LIMIT = 500  # messages in one page
ENVELOPE = 512  # bytes of a page around its messages
TEXT_HEADER = "\n\n=== 对话历史 ===\n\n"
TEXT_EMPTY = "暂无对话历史"
TEXT_OLDER = '(更早的消息: {{"format": "text", "offset": {offset}}})\n\n'
ROLES = {"user": "用户", "system": "系统"}  # any other is the assistant
ASSISTANT = "助手"
_MAX_CALLS = 50  # of a record that is shortened
_FIELDS = ("role", "content", "timestamp", "tool_calls", "metadata")


class HistoryPayload(NamedTuple):
    """The payload, and how many records it holds."""

    payload: bytes
    taken: int
    shortened: bool = False


def starts_record(body: Body) -> bool:
    """Whether an entry is a message of its own: said by somebody, and not only a call's result."""
    return isinstance(body, Message) and not body.context and not is_tool_result(body)


def history_record(run: Sequence[Entry]) -> dict[str, Any]:
    """A message and, from the entries after it, the results of its calls."""
    first, answers = run[0], [entry for entry in run[1:] if isinstance(entry.body, Message)]
    message = first.body
    assert isinstance(message, Message)
    record = RECORD_FORMAT.write([first, *answers], "")
    if patch := get_tag(NAME, message).get("patch"):  # imported: as it was in its file
        patched = apply_patch(record, patch)
        record = patched if isinstance(patched, dict) else record
    else:
        own = {"id": first.id, "model": message.model, "finish": message.finish}
        record["metadata"] = {key: value for key, value in own.items() if value}
    return {field: record.get(field) for field in _FIELDS}


def json_page(
    session: str, count: int, offset: int, records: Sequence[dict[str, Any]], **more: object
) -> HistoryPayload:
    """`records` are in the order of the log; `offset` newer ones were left out."""
    room, taken, shortened = MAX_PAYLOAD - ENVELOPE, list[dict[str, Any]](), False
    for record in reversed(records):
        size = len(encode_json(record)) + 1
        if size <= room:
            taken.append(record)
            room -= size
            continue
        if not taken:
            taken, shortened = [shorten_record(record, room)], True
        break
    page: dict[str, object] = {"session_id": session, "message_count": count, "offset": offset}
    if offset + len(taken) < count:
        page["next_offset"] = offset + len(taken)
    page |= {"messages": taken[::-1], **more}
    return HistoryPayload(encode_json(page), len(taken), shortened)


def shorten_record(record: dict[str, Any], room: int) -> dict[str, Any]:
    """The record with its texts cut until it fits, and its whole size in its metadata."""
    size, limit = len(encode_json(record)), room
    calls = record["tool_calls"] if isinstance(record["tool_calls"], list) else []
    metadata = record["metadata"] if isinstance(record["metadata"], dict) else {}
    note = {"shortened": {"bytes": size, "calls": len(calls)}}
    while True:
        limit //= 2
        kept = {key: metadata[key] for key in ("id", "model", "finish") if key in metadata}
        cut = record | {
            "content": _cut(record["content"], limit),
            "timestamp": _cut(record["timestamp"], 100),
            "tool_calls": [_cut_call(call, limit) for call in calls[: min(_MAX_CALLS, limit // 8)]],
            "metadata": _cut_values(kept, 200) | note,
        }
        if len(encode_json(cut)) <= room or limit < 8:
            return cut


def _cut(value: object, limit: int) -> object:
    if value is None or isinstance(value, bool | float):
        return value
    if isinstance(value, int) and abs(value) < 2**63:
        return value
    text = value if isinstance(value, str) else encode_json(value).decode()
    return clip_middle(text, max(limit, 8))


def _cut_values(value: dict[str, Any], limit: int) -> dict[str, object]:
    return {key: _cut(item, limit) for key, item in value.items()}


def _cut_call(call: object, limit: int) -> object:
    each = max(limit // 16, 8)
    return (
        _cut_values(call, each) if isinstance(call, dict) and len(call) < 20 else _cut(call, each)
    )


def text_page(count: int, offset: int, records: Sequence[dict[str, Any]]) -> HistoryPayload:
    """The seed's readable text, of the newest records that fit."""
    if not records:
        return HistoryPayload(TEXT_EMPTY.encode(), 0)
    room, taken, shortened = MAX_PAYLOAD - ENVELOPE, list[str](), False
    for record in reversed(records):
        text = _record_text(record)
        size = len(text.encode("utf-8", "replace"))
        if size > room and not taken:
            text, shortened = _record_text(record, room // 4), True
            size = len(text.encode("utf-8", "replace"))
        if size > room:
            break
        taken.append(text)
        room -= size
    left = offset + len(taken)
    older = TEXT_OLDER.format(offset=left) if left < count else ""
    whole = TEXT_HEADER + older + "".join(reversed(taken))
    return HistoryPayload(whole.encode("utf-8", "replace"), len(taken), shortened)


def _record_text(record: dict[str, Any], limit: int | None = None) -> str:
    content = record["content"]
    text = content if isinstance(content, str) else encode_json(content).decode()
    if limit is not None:
        text = clip_middle(text, limit)
    return f"{ROLES.get(str(record['role']), ASSISTANT)}: {text}\n\n"

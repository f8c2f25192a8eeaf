"""How history reads when a model looks back: who said it, when, and its whole text.

Results of `recall` and `search_history` inside of history are replaced by a pointer to where they
came from, so a session that searches itself does not grow by its own echo.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from recollect.entries import (
    Body,
    Compaction,
    Content,
    FileRef,
    InlineData,
    Message,
    Note,
    Part,
    Text,
    Thought,
    ToolCall,
    ToolResult,
    Unknown,
)
from recollect.store.output_notes import output_part
from recollect.store.readable_text import NO_OUTPUT, returns_history
from recollect.text import one_line

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_RECALL_MARK = re.compile(r"\[history ([0-9a-f]{8,32}):")


def describe_origin(body: Body) -> str:
    """Who said it, in a few words."""
    if isinstance(body, Compaction):
        return "a summary of what was before"
    if not isinstance(body, Message):
        part = output_part(body)
        return "a record" if part is None else f"what {one_line(part.tool, 60)} gave, as it came"
    names = dict.fromkeys(part.name for part in body.parts if isinstance(part, ToolResult))
    if names:
        shown = ", ".join(one_line(name, 60) for name in list(names)[:5])
        return f"what {shown} gave"
    if body.role == "user" and body.context:
        return "added by the program, not said by the user"
    return {"user": "said by the user", "model": "said by you", "system": "instructions"}[body.role]


def format_time(time: int) -> str:
    try:
        return f"{_EPOCH + timedelta(milliseconds=time):%Y-%m-%d %H:%M} UTC"
    except OverflowError:
        return "at an unknown time"


def repeats_history(part: Part) -> bool:
    return isinstance(part, ToolResult) and returns_history(part.name)


def point_to_origin(part: ToolResult) -> str:
    """What replaces history inside history: where it came from, never the text again."""
    first = next((item.text for item in part.content if isinstance(item, Text)), "")
    if found := _RECALL_MARK.match(first):
        return f"[what recall {found[1]} gave; use that handle]"
    return f"[what {one_line(part.name, 60)} gave is not repeated; ask it again]"


def full_text(body: Body) -> str:
    """The whole text of a message, a snapshot or a note; empty for other entries."""
    if isinstance(body, Compaction):
        return body.snapshot
    if not isinstance(body, Message):
        return body.text if isinstance(body, Note) else ""
    alone = len(body.parts) == 1
    return "\n".join(filter(None, (_part_text(part, alone=alone) for part in body.parts)))


def _part_text(part: Part | Content, *, alone: bool) -> str:
    match part:
        case Text():
            return part.text
        case Thought():
            return f"[a thought] {part.text}" if part.text else ""
        case ToolCall():
            return f"[a call of {one_line(part.name, 60)}] {part.arguments}"
        case ToolResult():
            blocks = (_part_text(item, alone=False) for item in part.content)
            given = point_to_origin(part) if repeats_history(part) else "\n".join(blocks)
            given = given if given.strip() else NO_OUTPUT
            return given if alone else f"[what {one_line(part.name, 60)} gave]\n{given}"
        case InlineData():
            return f"[{one_line(part.mime, 60)}, {len(part.data):,} bytes]"
        case FileRef():
            return f"[{one_line(part.mime, 60)} at {one_line(part.uri, 200)}]"
        case Unknown():
            return part.data

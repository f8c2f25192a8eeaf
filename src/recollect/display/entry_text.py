"""The whole text of a message, with its calls and results, as a person reads it. Not sanitized."""

from __future__ import annotations

from recollect.display.entry_summary import describe_attachment, format_arguments
from recollect.entries import (
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


def message_text(message: Message) -> str:
    return "\n\n".join(filter(None, map(_part_text, message.parts)))


def _part_text(part: Part) -> str:
    match part:
        case Text(text=text):
            return text
        case Thought(text=text):
            return f"(thought)\n{text}"
        case ToolCall(name=name, arguments=arguments):
            return f"{name}({format_arguments(arguments)})"
        case ToolResult(name=name, content=content):
            texts = (c.text if isinstance(c, Text) else describe_attachment(c) for c in content)
            state = " failed" if part.is_error else ""
            return "\n".join((f"→ {name}{state}", *texts))
        case InlineData() | FileRef() | Unknown():
            return describe_attachment(part)

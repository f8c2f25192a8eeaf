"""Messages in one line: `user("hi")`, `assistant("hello")`, `system("Be brief.")`."""

from __future__ import annotations

import json

from recollect.entries import Content, Message, Part, Text, ToolCall, ToolResult


def user(text: str, *parts: Part) -> Message:
    """A message of the user; more parts, such as an image, may follow the text."""
    return Message(role="user", parts=_with_text(text, parts))


def assistant(text: str, *parts: Part) -> Message:
    """A reply of the model; its tool calls may follow the text."""
    return Message(role="model", parts=_with_text(text, parts))


def system(text: str) -> Message:
    """Instructions for the model. Append them first: they stay when a session is compacted."""
    return Message(role="system", parts=(Text(text=text),), context="initial")


def tool_result(call: ToolCall, output: object, *more: Content, is_error: bool = False) -> Message:
    """The result of a tool call: a text, or any value that JSON can hold."""
    text = output if isinstance(output, str) else json.dumps(output, ensure_ascii=False)
    content = (Text(text=text), *more)
    result = ToolResult(call_id=call.id, name=call.name, content=content, is_error=is_error)
    return Message(role="user", parts=(result,))


def _with_text(text: str, parts: tuple[Part, ...]) -> tuple[Part, ...]:
    return (Text(text=text), *parts) if text or not parts else parts

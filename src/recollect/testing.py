"""Builders for tests, ours and yours: one line per message, no mocks.

>>> await store.append(session.id, [user("hi"), model("hello")], parent=None)
"""

from __future__ import annotations

from recollect.entries import Content, Message, Part, Text, ToolCall, ToolResult, json_text


def user(text: str, *parts: Part) -> Message:
    return Message(role="user", parts=(Text(text=text), *parts))


def model(text: str, *parts: Part) -> Message:
    return Message(role="model", parts=(Text(text=text), *parts))


def call(name: str, /, id: str = "call-1", **arguments: object) -> ToolCall:  # noqa: A002
    return ToolCall(id=id, name=name, arguments=json_text(arguments))


def result(of: ToolCall, output: str, *more: Content, is_error: bool = False) -> Message:
    content = (Text(text=output), *more)
    answer = ToolResult(call_id=of.id, name=of.name, content=content, is_error=is_error)
    return Message(role="user", parts=(answer,))

"""A message as the view shows it: some of its parts replaced by placeholders.

`apply_elisions` returns a new message of the same shape: a result stays a result, so every call
keeps its answer. An elision that names a missing part has no effect. Positions always refer to the
stored message.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from recollect.entries import (
    Content,
    Elided,
    Message,
    Part,
    Text,
    Thought,
    ToolCall,
    ToolResult,
    json_text,
)

DEFAULT_PLACEHOLDER = "[left out]"


class ActiveElision(msgspec.Struct, frozen=True):
    """An elision in force, and the edit that made it."""

    what: Elided
    rule: str
    by: str  # the elide entry
    since: int


def apply_elisions(message: Message, cuts: Iterable[ActiveElision]) -> Message:
    """The message with the elisions applied; the earlier of two for the same part wins."""
    chosen: dict[int, list[Elided]] = {}
    for cut in cuts:
        for position in _target_positions(message, cut.what):
            chosen.setdefault(position, []).append(cut.what)
    shown = [
        _elide_part(part, chosen[position]) if position in chosen else part
        for position, part in enumerate(message.parts)
    ]
    return msgspec.structs.replace(message, parts=tuple(p for p in shown if p is not None))


def _target_positions(message: Message, what: Elided) -> Iterable[int]:
    if what.parts:
        return [position for position in what.parts if 0 <= position < len(message.parts)]
    # a call is left out only when named: without it, its result would answer nothing
    return [i for i, part in enumerate(message.parts) if not isinstance(part, ToolCall)]


def has_target(message: Message, what: Elided) -> bool:
    """Whether the message holds anything that this would leave out."""
    positions = list(_target_positions(message, what))
    if not what.blocks:
        return bool(positions)
    part = message.parts[positions[0]] if len(positions) == 1 else None
    count = len(part.content) if isinstance(part, ToolResult) else 0
    return any(0 <= block < count for block in what.blocks)


def _elide_part(part: Part, cuts: list[Elided]) -> Part | None:
    match part:
        case ToolResult():
            return _elide_result(part, cuts)
        case ToolCall():
            left_out = json_text({"left_out": cuts[0].placeholder or DEFAULT_PLACEHOLDER})
            return msgspec.structs.replace(part, arguments=left_out)
        case Thought():
            return None  # a changed thought is worse than none: its signature no longer fits
        case _:
            cut = cuts[0]
            text = _keep_ends(part.text, cut) if isinstance(part, Text) else cut.placeholder
            return Text(text=text) if text else None


def _elide_result(part: ToolResult, cuts: list[Elided]) -> ToolResult:
    whole = next((cut for cut in cuts if not cut.blocks), None)
    if whole is not None and not whole.head and not whole.tail:
        return msgspec.structs.replace(part, content=(_elide_block(None, whole),))
    of_block = {block: cut for cut in reversed(cuts) for block in cut.blocks}
    shown = [
        item if (cut := of_block.get(position, whole)) is None else _elide_block(item, cut)
        for position, item in enumerate(part.content)
    ]
    return msgspec.structs.replace(part, content=tuple(shown))


def _elide_block(item: Content | None, cut: Elided) -> Content:
    if isinstance(item, Text) and (cut.head or cut.tail):
        return Text(text=_keep_ends(item.text, cut))
    return Text(text=cut.placeholder or DEFAULT_PLACEHOLDER)


def _keep_ends(text: str, cut: Elided) -> str:
    head, tail = max(0, cut.head), max(0, cut.tail)
    if head + tail >= len(text):
        return text
    return text[:head] + cut.placeholder + (text[-tail:] if tail else "")


def results_as_text(message: Message) -> Message:
    """Results whose calls are not shown become text, or repair would drop them as orphans."""
    names = dict.fromkeys(part.name for part in message.parts if isinstance(part, ToolResult))
    tools = ", ".join(filter(None, names))[:200] or "a tool"
    parts: list[Part] = [Text(text=f"[result of {tools}, called before this]")]
    for part in message.parts:
        parts += part.content if isinstance(part, ToolResult) else (part,)
    return msgspec.structs.replace(message, parts=tuple(parts))

"""A message as the view shows it: some of its parts replaced by placeholders.

`apply_elisions` returns a new message of the same shape: a result stays a result, so every call
keeps its answer. An elision that names a missing part has no effect. Positions always refer to the
stored message. A placeholder that names entries as showing what was left out is used only while
they do: `with_true_text` puts its fallback in its place.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple, Protocol

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
from recollect.view.entry_log import EntryLog

DEFAULT_PLACEHOLDER = "[left out]"


class ActiveElision(msgspec.Struct, frozen=True):
    """An elision in force, and the edit that made it."""

    what: Elided
    rule: str
    by: str  # the elide entry
    since: int


class ChangedMessage(NamedTuple):
    """A message that is shown differently from how it was stored."""

    cuts: tuple[ActiveElision, ...]
    message: Message
    tokens: int


def is_whole(what: Elided) -> bool:
    """Whether nothing stays of the parts that an elision names."""
    return not (what.blocks or what.head or what.tail)


def apply_elisions(message: Message, cuts: Iterable[ActiveElision]) -> Message:
    """The message with the elisions applied. Of two for the same part or block, the one that leaves
    nothing wins over the one that leaves the ends, otherwise the earlier one."""
    chosen: dict[int, list[Elided]] = {}
    for cut in cuts:
        for position in _target_positions(message, cut.what):
            chosen.setdefault(position, []).append(cut.what)
    shown = [
        elide_part(part, chosen[position]) if position in chosen else part
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


def elide_part(part: Part, cuts: list[Elided]) -> Part | None:
    """A part with these cuts; None if nothing is shown of it."""
    match part:
        case ToolResult():
            return _elide_result(part, cuts)
        case ToolCall():
            left_out = json_text({"left_out": cuts[0].placeholder or DEFAULT_PLACEHOLDER})
            return msgspec.structs.replace(part, arguments=left_out)
        case Thought():
            return None  # a changed thought is worse than none: its signature no longer fits
        case _:
            cut = next((cut for cut in cuts if is_whole(cut)), cuts[0])
            text = _keep_ends(part.text, cut) if isinstance(part, Text) else cut.placeholder
            return Text(text=text) if text else None


def _elide_result(part: ToolResult, cuts: list[Elided]) -> ToolResult:
    gone = cuts[0] if is_whole(cuts[0]) else next((cut for cut in cuts if is_whole(cut)), None)
    if gone is not None:
        return msgspec.structs.replace(part, content=(_elide_block(None, gone),))
    whole = next((cut for cut in cuts if not cut.blocks), None)
    order = sorted(cuts, key=lambda cut: bool(cut.head or cut.tail)) if len(cuts) > 1 else cuts
    of_block = {block: cut for cut in reversed(order) for block in cut.blocks}
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


class ShownEntries(Protocol):
    """What a view, or one that is being folded, shows of its log."""

    @property
    def changed(self) -> Mapping[str, ChangedMessage]: ...
    @property
    def base(self) -> int: ...
    @property
    def kept(self) -> tuple[int, ...]: ...


def is_claim_true(log: EntryLog, state: ShownEntries, cut: ActiveElision) -> bool:
    """Whether the entries that a placeholder names are shown as they were when it was written."""
    made = log.at.get(cut.by, -1)
    for name in cut.what.shown_by:
        at = log.at.get(name, -1)
        if at < state.base and at not in state.kept:
            return False
        shown = state.changed.get(name)
        if shown is not None and any(log.at.get(c.by, made) > made for c in shown.cuts):
            return False
    return True


def with_true_text(
    log: EntryLog, state: ShownEntries, cuts: tuple[ActiveElision, ...]
) -> Iterable[ActiveElision]:
    """The elisions with the placeholders that are to be shown."""
    if not any(cut.what.shown_by for cut in cuts):
        return cuts
    return [
        msgspec.structs.replace(
            cut, what=msgspec.structs.replace(cut.what, placeholder=cut.what.fallback)
        )
        if cut.what.shown_by and not is_claim_true(log, state, cut)
        else cut
        for cut in cuts
    ]

"""How much of a list of messages needs no repair.

Guarantees: the beginning it measures can be sent as it is, ends with a complete exchange, and
nothing that follows can change it, because no call in it waits for a result. Most lists are sound
from end to end, so this is the road nearly every message takes: about two microseconds each.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple, TypeAlias

from recollect.codecs.call_pairing import is_accepted_id
from recollect.codecs.provider_rules import ProviderRules
from recollect.entries import Message, Part, Role, Text, Thought, ToolCall, ToolResult

# What may be merged stands in one lane; results that stand alone have their own.
MergeGroup: TypeAlias = Literal["user", "model", "system", "results"]


class ValidPrefix(NamedTuple):
    length: int
    ids: set[str]  # of the calls in it
    lane: MergeGroup | None  # of its last message
    spoken: bool  # whether it holds more than instructions


def merge_group_of(role: Role, *, results: bool, rules: ProviderRules) -> MergeGroup:
    return "results" if results and rules.results_stand_alone else role


def find_valid_prefix(
    messages: Sequence[Message], rules: ProviderRules, start: ValidPrefix
) -> ValidPrefix:
    """Goes on from a beginning that is known; the set of its ids grows with it."""
    due: Sequence[ToolCall] = ()
    first, ids, before, spoken = start
    safe = start
    for index in range(first, len(messages)):
        message = messages[index]
        calls = _calls_if_sound(message, due, rules)
        lane = merge_group_of(message.role, results=bool(due), rules=rules)
        if calls is None or not _may_follow(lane, before, rules, spoken=spoken):
            break
        if calls and not _add_new(calls, ids):
            break
        due, before, spoken = calls, lane, spoken or lane != "system"
        if not due:
            safe = ValidPrefix(index + 1, ids, before, spoken)
    ids.difference_update([call.id for call in due])
    return safe


def _may_follow(
    lane: MergeGroup, before: MergeGroup | None, rules: ProviderRules, *, spoken: bool
) -> bool:
    if lane == "system" and spoken and rules.system == "first":
        return False
    if not rules.alternate:
        return True
    return lane != before and (spoken or lane != "model")


def _add_new(calls: Sequence[ToolCall], ids: set[str]) -> bool:
    new = {call.id for call in calls}
    if len(new) < len(calls) or not new.isdisjoint(ids):
        return False
    ids |= new
    return True


def _calls_if_sound(
    message: Message, due: Sequence[ToolCall], rules: ProviderRules
) -> Sequence[ToolCall] | None:
    """The calls of a message that can follow these unanswered ones as it is, else None."""
    parts = message.parts
    if due:
        if message.role != "user" or not _answers(parts, due):
            return None
        parts = parts[len(due) :]
        if parts and rules.results_stand_alone:
            return None
    elif not parts:
        return None
    return _calls_if_sendable(parts, message, rules)


def _calls_if_sendable(
    parts: Sequence[Part], message: Message, rules: ProviderRules
) -> Sequence[ToolCall] | None:
    own = rules.made(message)
    calls: list[ToolCall] = []
    for part in parts:
        if isinstance(part, Text):
            sendable = rules.takes_text(part.text)
        elif isinstance(part, ToolCall):
            calls.append(part)
            sendable = message.role == "model" and _is_sound_call(part, rules, own=own)
        elif isinstance(part, Thought):
            sendable = rules.takes_thought(part, own=own)
        else:
            sendable = not isinstance(part, ToolResult)
        if not sendable:
            return None
    return calls


def _answers(parts: Sequence[Part], due: Sequence[ToolCall]) -> bool:
    if len(parts) < len(due):
        return False
    for part, call in zip(parts, due, strict=False):
        if not isinstance(part, ToolResult) or part.call_id != call.id or part.name != call.name:
            return False
    return True


def _is_sound_call(call: ToolCall, rules: ProviderRules, *, own: bool) -> bool:
    return (own or not call.signature) and is_accepted_id(call.id, rules)

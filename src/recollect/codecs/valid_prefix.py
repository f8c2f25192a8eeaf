"""How many messages at the start of a list need no repair.

Guarantees: this prefix can be sent as it is, ends with a complete exchange, and nothing that
follows can change it, because no call in it waits for a result. Most lists are valid from end to
end, so nearly every message passes here: about two microseconds each.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from recollect.codecs.provider_rules import MergeGroup, ProviderRules
from recollect.entries import Message, Part, Text, Thought, ToolCall, ToolResult


class ValidPrefix(NamedTuple):
    length: int
    ids: set[str]  # of its calls
    group: MergeGroup | None  # of its last message
    begun: bool  # whether it holds more than instructions


def find_valid_prefix(
    messages: Sequence[Message], rules: ProviderRules, start: ValidPrefix
) -> ValidPrefix:
    """Extends a known prefix; the set of its ids grows with it."""
    unanswered: Sequence[ToolCall] = ()
    first, ids, before, begun = start
    valid = start
    for index in range(first, len(messages)):
        message = messages[index]
        calls = _calls_if_valid(message, unanswered, rules)
        group = rules.merge_group(message.role, has_results=bool(unanswered))
        if calls is None or not _may_follow(group, before, rules, begun=begun):
            break
        if calls and not _add_new_ids(calls, ids):
            break
        unanswered, before, begun = calls, group, begun or group != "system"
        if not unanswered:
            valid = ValidPrefix(index + 1, ids, before, begun)
    ids.difference_update([call.id for call in unanswered])
    return valid


def _may_follow(
    group: MergeGroup, before: MergeGroup | None, rules: ProviderRules, *, begun: bool
) -> bool:
    if group == "system" and begun and rules.system == "first":
        return False
    if not rules.alternate:
        return True
    return group != before and (begun or group != "model")


def _add_new_ids(calls: Sequence[ToolCall], ids: set[str]) -> bool:
    new = {call.id for call in calls}
    if len(new) < len(calls) or not new.isdisjoint(ids):
        return False
    ids |= new
    return True


def _calls_if_valid(
    message: Message, unanswered: Sequence[ToolCall], rules: ProviderRules
) -> Sequence[ToolCall] | None:
    """The calls of a message that can follow these unanswered ones as it is, else None."""
    parts = message.parts
    if unanswered:
        if message.role != "user" or not _answer_all(parts, unanswered):
            return None
        parts = parts[len(unanswered) :]
        if parts and rules.results_stand_alone:
            return None
    elif not parts:
        return None
    return _calls_if_sendable(parts, message, rules)


def _calls_if_sendable(
    parts: Sequence[Part], message: Message, rules: ProviderRules
) -> Sequence[ToolCall] | None:
    own = rules.is_own(message)
    calls: list[ToolCall] = []
    for part in parts:
        if isinstance(part, Text):
            sendable = rules.accepts_text(part.text)
        elif isinstance(part, ToolCall):
            calls.append(part)
            signed_well = own or not part.signature
            sendable = message.role == "model" and signed_well and rules.accepts_id(part.id)
        elif isinstance(part, Thought):
            sendable = rules.accepts_thought(part, own=own)
        else:
            sendable = not isinstance(part, ToolResult)
        if not sendable:
            return None
    return calls


def _answer_all(parts: Sequence[Part], calls: Sequence[ToolCall]) -> bool:
    if len(parts) < len(calls):
        return False
    for part, call in zip(parts, calls, strict=False):
        if not isinstance(part, ToolResult) or part.call_id != call.id or part.name != call.name:
            return False
    return True

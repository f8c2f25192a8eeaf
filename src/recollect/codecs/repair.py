"""Messages as a provider accepts them: calls paired with results, roles in order, ids unique.

`repair` is pure and idempotent; it never changes its input, and messages that need no repair come
back as the same objects. Every change has a line in the trace, and nothing is lost that the trace
does not name. Every call has exactly one result right behind it, in call order; a missing one
becomes an error that says so. Messages up to the end of a complete exchange are repaired the same
way whatever follows, so a provider's prompt cache stays valid. The cost is linear.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from recollect.codecs.call_pairing import CallIdRegistry, CallPairing, PendingCall
from recollect.codecs.fixes import Fix, quote_text
from recollect.codecs.message_layout import MessageFragment, MessageLayout
from recollect.codecs.provider_rules import MergeGroup, ProviderRules
from recollect.entries import Message, Part, Text, Thought, ToolCall, ToolResult


class Repaired(msgspec.Struct, frozen=True):
    messages: tuple[Message, ...]
    trace: tuple[Fix, ...] = ()


def repair(messages: Sequence[Message], rules: ProviderRules) -> Repaired:
    """The messages of a view, oldest first, as they may be sent, and what was changed."""
    step = IncrementalRepair(rules).step(messages)
    return Repaired((*step.settled, *step.open), (*step.fixes, *step.open_fixes))


class RepairStep(msgspec.Struct, frozen=True):
    settled: list[Message]  # follow those of earlier steps and never change again
    open: list[Message]  # follow these and may change with what comes
    fixes: list[Fix]  # of the newly settled messages
    open_fixes: list[Fix]


class IncrementalRepair:
    """Repairs a conversation while it grows: a step costs what is not settled yet.

    A message is settled when no call up to it waits for a result; the last one stays open, because
    a neighbour of its role may be merged into it. All settled messages and the open ones of the
    newest step are what `repair` makes of all messages.
    """

    def __init__(self, rules: ProviderRules) -> None:
        self.rules = rules
        self.settled_count = 0  # how many of the messages are settled
        self._ids = CallIdRegistry()
        self._begun = False
        self._last: tuple[Message, MergeGroup] | None = None

    def step(self, messages: Sequence[Message]) -> RepairStep:
        """`messages` are all of them and begin with those that were settled before."""
        rules, trace, ids = self.rules, list[Fix](), self._ids
        layout = MessageLayout(rules, trace, messages, self._begun)
        group = None
        if self._last is not None:
            layout.reopen(*self._last)
            group = self._last[1]
        known = _ValidPrefix(self.settled_count, ids.taken, group, self._begun)
        valid = _find_valid_prefix(messages, rules, known)
        if valid.length > self.settled_count and valid.group is not None:
            layout.add_unchanged(messages[self.settled_count : valid.length], valid.group)
            layout.begun = valid.begun
        fragments = _split_messages(messages, valid.length, CallPairing(rules, trace, ids))
        end = _settled_end(fragments, valid.length)
        settled = bisect_left(fragments, end, key=lambda fragment: fragment.index)
        for fragment in fragments[:settled]:
            layout.add(fragment)
        done = len(layout.done)
        self._remember(layout, end)
        for fragment in fragments[settled:]:
            layout.add(fragment)
        ids.release_from(end)
        last = [] if layout.last is None else [layout.last.finish()]
        trace.sort(key=lambda fix: fix.message)
        cut = bisect_left(trace, end, key=lambda fix: fix.message)
        return RepairStep(layout.done[:done], layout.done[done:] + last, trace[:cut], trace[cut:])

    def _remember(self, layout: MessageLayout, end: int) -> None:
        self.settled_count, self._begun = end, layout.begun
        if layout.last is not None:
            self._last = (layout.last.finish(), layout.last.group)


def _settled_end(fragments: Sequence[MessageFragment], start: int) -> int:
    """The index after the last message up to which every call has its result."""
    end, known_at = start, -1
    for number, fragment in enumerate(fragments, 1):
        for pending in fragment.calls:
            if pending.answer is None:
                return end
            known_at = max(known_at, pending.source)
        is_last = number == len(fragments) or fragments[number].index > fragment.index
        if is_last and known_at <= fragment.index:
            end = fragment.index + 1
    return end


def _split_messages(
    messages: Sequence[Message], start: int, pairing: CallPairing
) -> list[MessageFragment]:
    """All messages from `start`, without results and without parts that must not be sent."""
    fragments: list[MessageFragment] = []
    for index in range(start, len(messages)):
        message = messages[index]
        if message.role != "model":
            pairing.run += 1
        if not message.parts:
            line = f"message {index} has no parts: it is left out"
            pairing.trace.append(Fix("empty", index, line))
        fragment = MessageFragment(index, message)
        fragments.append(fragment)
        own = pairing.rules.is_own(message)
        for part in message.parts:
            if isinstance(part, ToolResult):
                if fragment.calls:  # the model wrote the rest when it knew the result
                    pairing.expect(fragment.calls, index)
                    fragment = MessageFragment(index, message)
                    fragments.append(fragment)
                pairing.answer(part, index)
            elif isinstance(part, ToolCall):
                _add_call(part, fragment, pairing, own=own)
            elif isinstance(part, Text | Thought):
                _add_text(part, fragment, pairing, own=own)
            else:
                fragment.parts.append(part)
        if fragment.calls:
            pairing.expect(fragment.calls, index)
    return fragments


def _add_call(
    call: ToolCall, fragment: MessageFragment, pairing: CallPairing, *, own: bool
) -> None:
    index, role = fragment.index, fragment.message.role
    if role != "model":
        line = (
            f"call {quote_text(call.id)} of {quote_text(call.name)} in message {index} is left "
            f"out: the message is the {role}'s, and only a model calls tools"
        )
        pairing.trace.append(Fix("misplaced", index, line, call.id))
        return
    pending = PendingCall(call, call.id, pairing.run)
    given = pairing.assign_id(call, index)
    if call.signature and not own:
        line = f"the signature of call {given!r} in message {index} is another model's: left out"
        pairing.trace.append(Fix("signature", index, line, given))
        pending.call = msgspec.structs.replace(call, id=given, signature="")
    elif given != call.id:
        pending.call = msgspec.structs.replace(call, id=given)
    fragment.calls.append(pending)
    fragment.parts.append(pending.call)


def _add_text(
    part: Text | Thought, fragment: MessageFragment, pairing: CallPairing, *, own: bool
) -> None:
    rules, index = pairing.rules, fragment.index
    if isinstance(part, Text):
        if rules.accepts_text(part.text):
            fragment.parts.append(part)
            return
        line = f"a text of {len(part.text):,} blank characters in message {index} is left out"
        pairing.trace.append(Fix("empty", index, line))
    elif rules.accepts_thought(part, own=own):
        fragment.parts.append(part)
    else:
        why = f"{rules.provider} cannot take it back" if own else "another model's"
        line = f"a thought of {len(part.text):,} characters in message {index} is left out: {why}"
        pairing.trace.append(Fix("thought", index, line))


class _ValidPrefix(NamedTuple):
    """Messages that can be sent as they are, up to the end of a complete exchange.

    Nothing that follows can change it, because no call in it waits for a result. Most lists are
    valid from end to end, so nearly every message passes here: about two microseconds each."""

    length: int
    ids: set[str]  # of its calls
    group: MergeGroup | None  # of its last message
    begun: bool  # whether it holds more than instructions


def _find_valid_prefix(
    messages: Sequence[Message], rules: ProviderRules, start: _ValidPrefix
) -> _ValidPrefix:
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
            valid = _ValidPrefix(index + 1, ids, before, begun)
    ids.difference_update([call.id for call in unanswered])
    return valid


def _may_follow(
    group: MergeGroup, before: MergeGroup | None, rules: ProviderRules, *, begun: bool
) -> bool:
    if group == "system" and begun and rules.system == "first":
        return False
    if not rules.alternate:
        return True
    if rules.model_after_results and before == "results" and group == "user":
        return False
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

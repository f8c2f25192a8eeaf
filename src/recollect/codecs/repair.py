"""Messages as a provider accepts them: calls paired with results, roles in order, ids unique.

`repair` is pure and idempotent; what it is given is never changed, and messages that need nothing
come back as the same objects. Every change has a line in the trace, and nothing is lost that the
trace does not name. Every call has exactly one result right behind it, in call order; a missing
one becomes an error that says so. Messages up to the end of a complete exchange are repaired the
same way whatever follows, so a provider's prompt cache stays valid. The cost is linear.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

import msgspec

from recollect.codecs.call_pairing import (
    INTERRUPTED,
    CallIdRegistry,
    CallPairing,
    Fix,
    FixKind,
    PendingCall,
    quote_text,
)
from recollect.codecs.message_layout import OPENING, MessageFragment, MessageLayout
from recollect.codecs.provider_rules import (
    ANTHROPIC_RULES,
    GEMINI_RULES,
    OPENAI_RULES,
    TEXT_RULES,
    ProviderRules,
)
from recollect.codecs.valid_prefix import MergeGroup, ValidPrefix, find_valid_prefix
from recollect.entries import Message, Text, Thought, ToolCall, ToolResult

__all__ = [
    "ANTHROPIC_RULES",
    "GEMINI_RULES",
    "INTERRUPTED",
    "OPENAI_RULES",
    "OPENING",
    "TEXT_RULES",
    "Fix",
    "FixKind",
    "IncrementalRepair",
    "ProviderRules",
    "RepairStep",
    "Repaired",
    "repair",
]


class Repaired(msgspec.Struct, frozen=True):
    messages: tuple[Message, ...]
    trace: tuple[Fix, ...] = ()


def repair(messages: Sequence[Message], rules: ProviderRules) -> Repaired:
    """What may be sent of what a view shows, oldest first, and what was done to it."""
    made = IncrementalRepair(rules).step(messages)
    return Repaired((*made.settled, *made.open), (*made.fixes, *made.open_fixes))


class RepairStep(msgspec.Struct, frozen=True):
    """What one more look at the messages gave."""

    settled: list[Message]  # follow those of earlier steps, and never change again
    open: list[Message]  # follow these, and may change with what comes
    fixes: list[Fix]  # of what is settled now
    open_fixes: list[Fix]


class IncrementalRepair:
    """Repairs a conversation while it grows: a step costs what is not settled yet.

    A message is settled when no call up to it waits for a result; the last one stays open, because
    a neighbour of its role may be joined to it. The settled and the open of the newest step are
    what `repair` makes of all messages.
    """

    def __init__(self, rules: ProviderRules) -> None:
        self.rules = rules
        self.taken = 0  # how many of the messages are settled
        self._names = CallIdRegistry()
        self._spoken = False
        self._last: tuple[Message, MergeGroup] | None = None

    def step(self, messages: Sequence[Message]) -> RepairStep:
        """`messages` are all of them, and begin with those that were settled before."""
        rules, trace, names = self.rules, list[Fix](), self._names
        layout = MessageLayout(rules, trace, messages, self._spoken)
        lane = None
        if self._last is not None:
            layout.reopen(*self._last)
            lane = self._last[1]
        before = ValidPrefix(self.taken, names.taken, lane, self._spoken)
        sound = find_valid_prefix(messages, rules, before)
        if sound.length > self.taken and sound.lane is not None:
            layout.take_as_they_are(messages[self.taken : sound.length], sound.lane)
            layout.spoken = sound.spoken
        pairing = CallPairing(rules, trace, names)
        pieces = _take_apart(messages, sound.length, pairing)
        end = _end_of_settled(pieces, sound.length)
        settled = bisect_left(pieces, end, key=lambda piece: piece.index)
        for piece in pieces[:settled]:
            layout.add(piece)
        done = len(layout.done)
        self._keep(layout, end)
        for piece in pieces[settled:]:
            layout.add(piece)
        names.forget(end)
        last = [] if layout.last is None else [layout.last.finished()]
        trace.sort(key=lambda fix: fix.message)
        cut = bisect_left(trace, end, key=lambda fix: fix.message)
        return RepairStep(layout.done[:done], layout.done[done:] + last, trace[:cut], trace[cut:])

    def _keep(self, layout: MessageLayout, end: int) -> None:
        self.taken, self._spoken = end, layout.spoken
        if layout.last is not None:
            self._last = (layout.last.finished(), layout.last.lane)


def _end_of_settled(pieces: Sequence[MessageFragment], start: int) -> int:
    """Behind the last message up to which no call waits for a result that is not there yet."""
    end, known_at = start, -1
    for number, piece in enumerate(pieces, 1):
        for asked in piece.asked:
            if asked.answer is None:
                return end
            known_at = max(known_at, asked.source)
        is_last = number == len(pieces) or pieces[number].index > piece.index
        if is_last and known_at <= piece.index:
            end = piece.index + 1
    return end


def _take_apart(
    messages: Sequence[Message], start: int, pairing: CallPairing
) -> list[MessageFragment]:
    """All messages from `start`, without results and without what must not be sent."""
    pieces: list[MessageFragment] = []
    for index in range(start, len(messages)):
        message = messages[index]
        if message.role != "model":
            pairing.run += 1
        if not message.parts:
            line = f"message {index} has no parts: it is left out"
            pairing.trace.append(Fix("empty", index, line))
        piece = MessageFragment(index, message)
        pieces.append(piece)
        own = pairing.rules.made(message)
        for part in message.parts:
            if isinstance(part, ToolResult):
                if piece.asked:  # what follows was said when the result was known
                    pairing.expect(piece.asked, index)
                    piece = MessageFragment(index, message)
                    pieces.append(piece)
                pairing.answer(part, index)
            elif isinstance(part, ToolCall):
                _take_call(part, piece, pairing, own=own)
            elif isinstance(part, Text | Thought):
                _take_words(part, piece, pairing, own=own)
            else:
                piece.parts.append(part)
        if piece.asked:
            pairing.expect(piece.asked, index)
    return pieces


def _take_call(call: ToolCall, piece: MessageFragment, pairing: CallPairing, *, own: bool) -> None:
    index, role = piece.index, piece.message.role
    if role != "model":
        line = (
            f"call {quote_text(call.id)} of {quote_text(call.name)} in message {index} is left out: "
            f"the message is the {role}'s, and only a model calls tools"
        )
        pairing.trace.append(Fix("misplaced", index, line, call.id))
        return
    asked = PendingCall(call, call.id, pairing.run)
    given = pairing.name(call, index)
    if call.signature and not own:
        line = f"the signature of call {given!r} in message {index} is another model's: left out"
        pairing.trace.append(Fix("signature", index, line, given))
        asked.call = msgspec.structs.replace(call, id=given, signature="")
    elif given != call.id:
        asked.call = msgspec.structs.replace(call, id=given)
    piece.asked.append(asked)
    piece.parts.append(asked.call)


def _take_words(
    part: Text | Thought, piece: MessageFragment, pairing: CallPairing, *, own: bool
) -> None:
    rules, index = pairing.rules, piece.index
    if isinstance(part, Text):
        if rules.takes_text(part.text):
            piece.parts.append(part)
            return
        line = f"a text of {len(part.text):,} blank characters in message {index} is left out"
        pairing.trace.append(Fix("empty", index, line))
    elif rules.takes_thought(part, own=own):
        piece.parts.append(part)
    else:
        why = f"{rules.provider} cannot take it back" if own else "another model's"
        line = f"a thought of {len(part.text):,} characters in message {index} is left out: {why}"
        pairing.trace.append(Fix("thought", index, line))

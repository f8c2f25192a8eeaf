"""Messages as a provider accepts them: calls paired with results, roles in order, ids unique.

`repair` is pure and idempotent; what it is given is never changed, and messages that need nothing
come back as the same objects. Every change has a line in the trace, and nothing is lost that the
trace does not name. Every call has exactly one result right behind it, in call order; a missing
one becomes an error that says so. Messages up to the end of a complete exchange are repaired the
same way whatever follows, so a provider's prompt cache stays valid. The cost is linear.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from recollect.codecs.pairing import INTERRUPTED, Asked, Fix, FixKind, Pairing, shown
from recollect.codecs.shapes import ANTHROPIC, GEMINI, OPENAI, TEXT, Shape
from recollect.codecs.sound import Lane, lane_of, sound_beginning
from recollect.entries import Message, Part, Role, Text, Thought, ToolCall, ToolResult

__all__ = [
    "ANTHROPIC",
    "GEMINI",
    "INTERRUPTED",
    "OPENAI",
    "OPENING",
    "TEXT",
    "Fix",
    "FixKind",
    "Repaired",
    "Shape",
    "repair",
]

# A model's message at the start is kept and gets this in front. Moving a later user message there
# would change the order of what was said, and leaving the model's message out would lose it.
OPENING = "[the conversation goes on from here]"


class Repaired(msgspec.Struct, frozen=True):
    messages: tuple[Message, ...]
    trace: tuple[Fix, ...] = ()


def repair(messages: Sequence[Message], shape: Shape) -> Repaired:
    """What may be sent of what a view shows, oldest first, and what was done to it."""
    sound = sound_beginning(messages, shape)
    if sound.length == len(messages):
        return Repaired(tuple(messages))
    trace: list[Fix] = []
    pieces = _take_apart(messages, sound.length, Pairing(shape, trace, sound.ids))
    layout = _Layout(shape, trace, messages, list(messages[: sound.length]), spoken=sound.spoken)
    if sound.lane is not None:
        layout.reopen(sound.lane)
    for piece in pieces:
        layout.add(piece)
    trace.sort(key=lambda fix: fix.message)
    return Repaired(layout.close(), tuple(trace))


class _Piece(msgspec.Struct, gc=False):
    """What one message says between two results; the results travel with their calls."""

    index: int
    message: Message
    parts: list[Part] = msgspec.field(default_factory=list)
    asked: list[Asked] = msgspec.field(default_factory=list)


def _take_apart(messages: Sequence[Message], start: int, pairing: Pairing) -> list[_Piece]:
    """All messages from `start`, without results and without what must not be sent."""
    pieces: list[_Piece] = []
    for index in range(start, len(messages)):
        message = messages[index]
        if message.role != "model":
            pairing.run += 1
        if not message.parts:
            line = f"message {index} has no parts: it is left out"
            pairing.trace.append(Fix("empty", index, line))
        piece = _Piece(index, message)
        pieces.append(piece)
        own = pairing.shape.made(message)
        for part in message.parts:
            if isinstance(part, ToolResult):
                if piece.asked:  # what follows was said when the result was known
                    pairing.expect(piece.asked)
                    piece = _Piece(index, message)
                    pieces.append(piece)
                pairing.answer(part, index)
            elif isinstance(part, ToolCall):
                _take_call(part, piece, pairing, own=own)
            elif isinstance(part, Text | Thought):
                _take_words(part, piece, pairing, own=own)
            else:
                piece.parts.append(part)
        if piece.asked:
            pairing.expect(piece.asked)
    return pieces


def _take_call(call: ToolCall, piece: _Piece, pairing: Pairing, *, own: bool) -> None:
    index, role = piece.index, piece.message.role
    if role != "model":
        line = (
            f"call {shown(call.id)} of {shown(call.name)} in message {index} is left out: "
            f"the message is the {role}'s, and only a model calls tools"
        )
        pairing.trace.append(Fix("misplaced", index, line, call.id))
        return
    asked = Asked(call, call.id, pairing.run)
    given = pairing.name(call, index)
    if call.signature and not own:
        line = f"the signature of call {given!r} in message {index} is another model's: left out"
        pairing.trace.append(Fix("signature", index, line, given))
        asked.call = msgspec.structs.replace(call, id=given, signature="")
    elif given != call.id:
        asked.call = msgspec.structs.replace(call, id=given)
    piece.asked.append(asked)
    piece.parts.append(asked.call)


def _take_words(part: Text | Thought, piece: _Piece, pairing: Pairing, *, own: bool) -> None:
    shape, index = pairing.shape, piece.index
    if isinstance(part, Text):
        if shape.takes_text(part.text):
            piece.parts.append(part)
            return
        line = f"a text of {len(part.text):,} blank characters in message {index} is left out"
        pairing.trace.append(Fix("empty", index, line))
    elif shape.takes_thought(part, own=own):
        piece.parts.append(part)
    else:
        why = f"{shape.provider} cannot take it back" if own else "another model's"
        line = f"a thought of {len(part.text):,} characters in message {index} is left out: {why}"
        pairing.trace.append(Fix("thought", index, line))


class _Draft(msgspec.Struct, gc=False):
    """A message in the making."""

    lane: Lane
    role: Role
    parts: list[Part]
    index: int = -1  # the message it was begun from; none for what repair made up
    message: Message | None = None
    model: str = ""

    def finished(self) -> Message:
        """The message it was begun from if nothing changed; else one without its usage and such."""
        parts, message = tuple(self.parts), self.message
        model = self.model if self.role == "model" else ""
        if (
            message is None
            or (self.role, self.model) != (message.role, message.model)
            or parts != message.parts
        ):
            return Message(role=self.role, parts=parts, model=model)
        return message


@dataclass(slots=True)
class _Layout:
    """Puts pieces and results in the order and under the roles that the shape asks for."""

    shape: Shape
    trace: list[Fix]
    messages: Sequence[Message]
    done: list[Message]
    spoken: bool  # whether anything but instructions came
    last: _Draft | None = None  # may still grow

    def reopen(self, lane: Lane) -> None:
        """Let what comes next be merged with the last message that needed no repair."""
        index, message = len(self.done) - 1, self.done.pop()
        self.last = _Draft(lane, message.role, list(message.parts), index, message, message.model)

    def close(self) -> tuple[Message, ...]:
        if self.last is not None:
            self.done.append(self.last.finished())
        return tuple(self.done)

    def add(self, piece: _Piece) -> None:
        if not piece.parts:
            return
        index, message, role = piece.index, piece.message, piece.message.role
        if role == "system" and self.spoken and self.shape.system == "first":
            line = (
                f"the instruction in message {index} is sent as a user's: it came after the start"
            )
            self.trace.append(Fix("system", index, line))
            role = "user"
        if role == "model" and self.shape.alternate and not self.spoken:
            line = f"a user's message was put before message {index}: a model's cannot be the first"
            self.trace.append(Fix("opened", index, line))
            self._put(_Draft("user", "user", [Text(text=OPENING)]))
        self._put(_Draft(role, role, piece.parts, index, message, message.model))
        if piece.asked:
            self._put_results(piece)

    def _put_results(self, piece: _Piece) -> None:
        for asked in piece.asked:
            if asked.answer is None:
                given = asked.call.id
                line = f"call {given!r} in message {piece.index} has no result: it gets an error"
                self.trace.append(Fix("interrupted", piece.index, line, given))
        found = [asked for asked in piece.asked if asked.answer is not None]
        parts: list[Part] = [asked.result() for asked in piece.asked]
        draft = _Draft(lane_of("user", results=True, shape=self.shape), "user", parts)
        if found:
            draft.index, draft.message = found[0].source, self.messages[found[0].source]
            draft.model = draft.message.model
            if not _in_place(found, piece.index, draft.message):
                line = f"results for message {piece.index} were put right behind it"
                self.trace.append(Fix("moved", piece.index, line))
        self._put(draft)

    def _put(self, draft: _Draft) -> None:
        self.spoken = self.spoken or draft.lane != "system"
        last = self.last
        if last is None:
            self.last = draft
            return
        same = draft.index == last.index >= 0
        if draft.lane == last.lane and (same or self.shape.alternate):
            if not same:
                line = f"message {draft.index} was joined to the {draft.role}'s before it"
                self.trace.append(Fix("merged", draft.index, line))
            last.parts += draft.parts
            if self.shape.model and draft.model == self.shape.model:
                last.model = draft.model  # its thoughts are among the parts now
            return
        if same and last.role == draft.role:
            line = f"message {draft.index} was divided: results, then the user's words"
            self.trace.append(Fix("split", draft.index, line))
        self.done.append(last.finished())
        self.last = draft


def _in_place(found: Sequence[Asked], index: int, holder: Message) -> bool:
    """Whether the results begin the user's message after their calls, in call order."""
    begin = holder.parts[: len(found)]
    return (
        holder.role == "user"
        and all(asked.source == index + 1 for asked in found)
        and all(asked.answer is part for asked, part in zip(found, begin, strict=False))
    )

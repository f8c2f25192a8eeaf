"""Puts repaired pieces in the order and under the roles that a provider's rules asks for.

What was laid out only grows at its end: the last message may still be joined by what follows.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from recollect.codecs.call_pairing import Fix, PendingCall
from recollect.codecs.provider_rules import ProviderRules
from recollect.codecs.valid_prefix import MergeGroup, merge_group_of
from recollect.entries import Message, Part, Role, Text

# A model's message at the start is kept and gets this in front. Moving a later user message there
# would change the order of what was said, and leaving the model's message out would lose it.
OPENING = "[the conversation goes on from here]"


class MessageFragment(msgspec.Struct, gc=False):
    """What one message says between two results; the results travel with their calls."""

    index: int
    message: Message
    parts: list[Part] = msgspec.field(default_factory=list)
    asked: list[PendingCall] = msgspec.field(default_factory=list)


class MessageDraft(msgspec.Struct, gc=False):
    """A message in the making."""

    lane: MergeGroup
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


class MessageLayout(msgspec.Struct):
    """Puts pieces and results in the order and under the roles that the rules asks for."""

    rules: ProviderRules
    trace: list[Fix]
    messages: Sequence[Message]
    spoken: bool  # whether anything but instructions came
    done: list[Message] = []
    last: MessageDraft | None = None  # may still grow

    def reopen(self, message: Message, lane: MergeGroup) -> None:
        """Let what comes next be joined to a message that was laid out before."""
        self.last = MessageDraft(
            lane, message.role, list(message.parts), -1, message, message.model
        )

    def take_as_they_are(self, messages: Sequence[Message], lane: MergeGroup) -> None:
        """Messages that need nothing; the last of them stands in this lane."""
        if self.last is not None:
            self.done.append(self.last.finished())
        self.done += messages[:-1]
        self.reopen(messages[-1], lane)

    def add(self, piece: MessageFragment) -> None:
        if not piece.parts:
            return
        index, message, role = piece.index, piece.message, piece.message.role
        if role == "system" and self.spoken and self.rules.system == "first":
            line = (
                f"the instruction in message {index} is sent as a user's: it came after the start"
            )
            self.trace.append(Fix("system", index, line))
            role = "user"
        if role == "model" and self.rules.alternate and not self.spoken:
            line = f"a user's message was put before message {index}: a model's cannot be the first"
            self.trace.append(Fix("opened", index, line))
            self._put(MessageDraft("user", "user", [Text(text=OPENING)]))
        self._put(MessageDraft(role, role, piece.parts, index, message, message.model))
        if piece.asked:
            self._put_results(piece)

    def _put_results(self, piece: MessageFragment) -> None:
        for asked in piece.asked:
            if asked.answer is None:
                given = asked.call.id
                line = f"call {given!r} in message {piece.index} has no result: it gets an error"
                self.trace.append(Fix("interrupted", piece.index, line, given))
        found = [asked for asked in piece.asked if asked.answer is not None]
        parts: list[Part] = [asked.result() for asked in piece.asked]
        draft = MessageDraft(merge_group_of("user", results=True, rules=self.rules), "user", parts)
        if found:
            draft.index, draft.message = found[0].source, self.messages[found[0].source]
            draft.model = draft.message.model
            if not _in_place(found, piece.index, draft.message):
                line = f"results for message {piece.index} were put right behind it"
                self.trace.append(Fix("moved", piece.index, line))
        self._put(draft)

    def _put(self, draft: MessageDraft) -> None:
        self.spoken = self.spoken or draft.lane != "system"
        last = self.last
        if last is None:
            self.last = draft
            return
        same = draft.index == last.index >= 0
        if draft.lane == last.lane and (same or self.rules.alternate):
            if not same:
                line = f"message {draft.index} was joined to the {draft.role}'s before it"
                self.trace.append(Fix("merged", draft.index, line))
            last.parts += draft.parts
            if self.rules.model and draft.model == self.rules.model:
                last.model = draft.model  # its thoughts are among the parts now
            return
        if same and last.role == draft.role:
            line = f"message {draft.index} was divided: results, then the user's words"
            self.trace.append(Fix("split", draft.index, line))
        self.done.append(last.finished())
        self.last = draft


def _in_place(found: Sequence[PendingCall], index: int, holder: Message) -> bool:
    """Whether the results begin the user's message after their calls, in call order."""
    begin = holder.parts[: len(found)]
    return (
        holder.role == "user"
        and all(asked.source == index + 1 for asked in found)
        and all(asked.answer is part for asked, part in zip(found, begin, strict=False))
    )

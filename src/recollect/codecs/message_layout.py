"""Puts repaired fragments in the order and under the roles that a provider's rules demand.

The layout grows only at its end: the next fragment may still be merged into the last message.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from recollect.codecs.call_pairing import PendingCall
from recollect.codecs.fixes import Fix, FixKind
from recollect.codecs.provider_rules import MergeGroup, ProviderRules
from recollect.entries import Message, Part, Role, Text

# A model's message at the start is kept and gets this in front. Moving a later user message there
# would change the order of the session, and leaving the model's message out would lose it.
OPENING = "[the conversation goes on from here]"
# Stands for the model's answer to results that the user did not wait for.
ACKNOWLEDGED = "[the results are known]"


class MessageFragment(msgspec.Struct, gc=False):
    """The parts of one message between two results; the results travel with their calls."""

    index: int
    message: Message
    parts: list[Part] = msgspec.field(default_factory=list)
    calls: list[PendingCall] = msgspec.field(default_factory=list)


class MessageDraft(msgspec.Struct, gc=False):
    """A message that may still grow."""

    group: MergeGroup
    role: Role
    parts: list[Part]
    index: int = -1  # of the message it began with; -1 if repair made it up
    message: Message | None = None
    model: str = ""

    def finish(self) -> Message:
        """The message it began with if nothing changed; else a new one without usage and such."""
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
    rules: ProviderRules
    trace: list[Fix]
    messages: Sequence[Message]
    begun: bool  # whether anything but instructions came
    done: list[Message] = []
    last: MessageDraft | None = None  # may still grow

    def reopen(self, message: Message, group: MergeGroup) -> None:
        """Let the next fragment be merged into a message that was laid out before."""
        self.last = MessageDraft(
            group, message.role, list(message.parts), -1, message, message.model
        )

    def add_unchanged(self, messages: Sequence[Message], group: MergeGroup) -> None:
        """Messages that need no repair; the last of them is of this group."""
        if self.last is not None:
            self.done.append(self.last.finish())
        self.done += messages[:-1]
        self.reopen(messages[-1], group)

    def add(self, fragment: MessageFragment) -> None:
        if not fragment.parts:
            return
        index, message, role = fragment.index, fragment.message, fragment.message.role
        if role == "system" and self.begun and self.rules.system == "first":
            line = (
                f"the instruction in message {index} is sent as a user's: it came after the start"
            )
            self._fix("system", index, line)
            role = "user"
        if role == "model" and self.rules.alternate and not self.begun:
            line = f"a user's message was put before message {index}: a model's cannot be the first"
            self._fix("opened", index, line)
            self._put(MessageDraft("user", "user", [Text(text=OPENING)]))
        if role == "user" and self._wants_model:
            line = f"a model's message was put before message {index}: a user's cannot follow"
            self._fix("opened", index, f"{line} results")
            self._put(MessageDraft("model", "model", [Text(text=ACKNOWLEDGED)]))
        self._put(MessageDraft(role, role, fragment.parts, index, message, message.model))
        if fragment.calls:
            self._put_results(fragment)

    @property
    def _wants_model(self) -> bool:
        """Whether the next message must be a model's."""
        rules, last = self.rules, self.last
        after_results = last is not None and last.group == "results"
        return rules.alternate and rules.model_after_results and after_results

    def _put_results(self, fragment: MessageFragment) -> None:
        index = fragment.index
        for pending in fragment.calls:
            if pending.answer is None:
                id_ = pending.call.id
                line = f"call {id_!r} in message {index} has no result: it gets an error"
                self._fix("interrupted", index, line, id_)
        answered = [pending for pending in fragment.calls if pending.answer is not None]
        parts: list[Part] = [pending.result() for pending in fragment.calls]
        draft = MessageDraft(self.rules.merge_group("user", has_results=True), "user", parts)
        if answered:
            draft.index = answered[0].source
            draft.message = self.messages[draft.index]
            draft.model = draft.message.model
            if not _is_in_place(answered, index, draft.message):
                self._fix("moved", index, f"results for message {index} were put right behind it")
        self._put(draft)

    def _put(self, draft: MessageDraft) -> None:
        self.begun = self.begun or draft.group != "system"
        last = self.last
        if last is None:
            self.last = draft
            return
        same = draft.index == last.index >= 0
        if draft.group == last.group and (same or self.rules.alternate):
            if not same:
                line = f"message {draft.index} was joined to the {draft.role}'s before it"
                self._fix("merged", draft.index, line)
            last.parts += draft.parts
            if self.rules.model and draft.model == self.rules.model:
                last.model = draft.model  # its thoughts are among the parts now
            return
        if same and last.role == draft.role:
            line = f"message {draft.index} was split: results, then the user's text"
            self._fix("split", draft.index, line)
        self.done.append(last.finish())
        self.last = draft

    def _fix(self, kind: FixKind, index: int, line: str, call: str = "") -> None:
        self.trace.append(Fix(kind, index, line, call))


def _is_in_place(answered: Sequence[PendingCall], index: int, holder: Message) -> bool:
    """Whether the results begin the user message after their calls, in call order."""
    beginning = holder.parts[: len(answered)]
    return (
        holder.role == "user"
        and all(pending.source == index + 1 for pending in answered)
        and all(pending.answer is part for pending, part in zip(answered, beginning, strict=False))
    )

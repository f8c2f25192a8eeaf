"""Which result answers which call, and under which id both are sent.

Guarantees: one pass, linear in the number of parts. An id is given from left to right, so what is
appended later never changes one. A result goes to the nearest message before it with an unanswered
call of its id, there to the first such call. A call that uses an id again, after anybody but the
model has spoken, ends the wait of older calls of that tool with it: otherwise a result that was
recorded twice would be taken for the answer to a call that was interrupted long ago. A result
without an id goes by its tool's name. No result is given to two calls, no call gets two results.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence
from functools import cache
from typing import Literal, TypeAlias, TypeVar

import msgspec

from recollect.codecs.provider_rules import ProviderRules
from recollect.entries import Text, ToolCall, ToolResult

FixKind: TypeAlias = Literal[
    "interrupted",  # a result was made for a call that has none
    "orphan",  # a result without a call was left out
    "duplicate",  # a further result for an answered call was left out
    "misplaced",  # a call that no model made was left out
    "moved",  # results were put right behind their calls
    "id",  # a call, a result or both got another id
    "name",  # a result got the name of its call
    "thought",  # thoughts of another model, or that the wire cannot carry, were left out
    "signature",  # signatures of another model were taken off calls
    "empty",  # text that says nothing, or a message without parts, was left out
    "system",  # an instruction in mid-conversation is sent as a user's message
    "merged",  # neighbours of one role became one message
    "split",  # results and the user's words became two messages
    "uncarried",  # the wire has no place for it
    "opened",  # a user's message was put in front
]
INTERRUPTED = "[this call was interrupted: its outcome is unknown, and it was not run again]"
_SHOWN = 40  # characters of foreign text in a line of the trace
_ROOM = 8  # characters of an id that a suffix may take
_K = TypeVar("_K", bound=Hashable)
_ACCEPTED = {"ascii": r"[!-~]+", "word": r"[A-Za-z0-9_-]+"}
_REFUSED = {"ascii": r"[^!-~]", "word": r"[^A-Za-z0-9_-]"}
_compiled = cache(re.compile)


class Fix(msgspec.Struct, frozen=True):
    """One thing that was done, to which message of those handed in, in one readable line."""

    kind: FixKind
    message: int
    text: str
    call: str = ""  # the id of the call concerned, as it is sent; of an orphan, as it came


def quote_text(text: str) -> str:
    """Foreign text for a person: quoted, escaped, short."""
    return repr(text[:_SHOWN]) + ("…" if len(text) > _SHOWN else "")


def is_accepted_id(id_: str, rules: ProviderRules) -> bool:
    return len(id_) <= rules.id_limit and bool(
        _compiled(_ACCEPTED[rules.id_characters]).fullmatch(id_)
    )


class PendingCall(msgspec.Struct, gc=False):
    """A call on its way to a provider, and what answers it."""

    call: ToolCall  # as it is sent
    id: str  # as it came
    run: int
    answer: ToolResult | None = None  # as it came
    source: int = -1  # the message that held the answer

    def result(self) -> ToolResult:
        """The answer as it is sent."""
        call, answer = self.call, self.answer
        if answer is None:
            content = (Text(text=INTERRUPTED),)
            return ToolResult(
                call_id=call.id,
                name=call.name,
                content=content,
                is_error=True,
                status="interrupted",
            )
        if answer.call_id == call.id and answer.name == call.name:
            return answer
        return msgspec.structs.replace(answer, call_id=call.id, name=call.name)


class CallIdRegistry(msgspec.Struct):
    """Which ids are given away, and what must be known to take the newest of them back."""

    taken: set[str] = set()  # a new one for each, as msgspec has it; so with the others
    known: set[str] = set()  # ids as they came, where they are not sent so
    suffixes: dict[str, int] = {}  # of each stem, the last one used
    _given: list[tuple[int, str, str, int]] = []
    _heard: list[tuple[int, str]] = []

    def hear(self, id_: str, message: int) -> None:
        """An id as it came."""
        if id_ not in self.known:
            self.known.add(id_)
            self._heard.append((message, id_))

    def give(self, wanted: str, limit: int, message: int) -> str:
        """The id itself where it is free, else one like it that is."""
        given, stem, number = wanted, "", 0
        if not wanted or wanted in self.taken:
            # A stem counts on from its last suffix. So no candidate is tried twice: linear in all.
            stem = wanted[: limit - _ROOM] or "call"
            number = before = self.suffixes.get(stem, 1 if wanted else 0)
            while not given or given in self.taken:
                number += 1
                given = f"{stem}-{number}"
            self.suffixes[stem], number = number, before
        self.taken.add(given)
        self._given.append((message, given, stem, number))
        return given

    def forget(self, message: int) -> None:
        """Take back what was given to this message and later ones; the rest is given for good."""
        given = self._given
        while given and given[-1][0] >= message:
            _, id_, stem, number = given.pop()
            self.taken.discard(id_)
            if stem:
                self.suffixes[stem] = number
        given.clear()
        heard = self._heard
        while heard and heard[-1][0] >= message:
            self.known.discard(heard.pop()[1])
        heard.clear()


class CallPairing(msgspec.Struct):
    """The calls read so far, and who of them waits for an answer."""

    rules: ProviderRules
    trace: list[Fix]
    names: CallIdRegistry
    run: int = 0  # grows when anybody but the model speaks
    _by_id: dict[str, list[PendingCall]] = {}
    _by_name: dict[str, list[PendingCall]] = {}
    _by_both: dict[tuple[str, str], list[PendingCall]] = {}

    def name(self, call: ToolCall, message: int) -> str:
        """The id under which this call is sent."""
        given = self.names.give(self._accepted(call.id), self.rules.id_limit, message)
        if given != call.id:
            reason = (
                "it had no id"
                if not call.id
                else "the id was used before"
                if is_accepted_id(call.id, self.rules)
                else f"{self.rules.provider} does not accept the id"
            )
            line = f"call {quote_text(call.id)} of message {message} is sent as {given!r}: {reason}"
            self.trace.append(Fix("id", message, line, given))
        return given

    def expect(self, calls: Sequence[PendingCall], message: int) -> None:
        """These calls of one message wait for answers from now on."""
        # the first call of a message must be the first to be answered: it goes on top
        for asked in reversed(calls):
            id_, name = asked.id, asked.call.name
            if id_:
                self.names.hear(id_, message)
                _push(self._by_id, id_, asked)
            _push(self._by_both, (id_, name), asked)
            _push(self._by_name, name, asked)

    def answer(self, result: ToolResult, message: int) -> None:
        """Give the result to the call it answers, or say why it is left out."""
        id_, name = result.call_id, result.name
        asked = _pop(self._by_both.get((id_, name)))
        if asked is None:
            asked = _pop(self._by_id.get(id_) if id_ else self._by_name.get(name))
        if asked is None:
            self._leave_out(result, message)
            return
        asked.answer, asked.source = result, message
        call = asked.call
        if not id_:
            line = f"a result of {quote_text(name)} in message {message} had no id: it goes by its name"
            self.trace.append(Fix("id", message, line, call.id))
        if name != call.name:
            line = (
                f"the result for call {call.id!r} in message {message} bears the name "
                f"{quote_text(name)}: it is sent under its call's, {quote_text(call.name)}"
            )
            self.trace.append(Fix("name", message, line, call.id))

    def _leave_out(self, result: ToolResult, message: int) -> None:
        repeated = result.call_id in self.names.known or result.call_id in self.names.taken
        what = f"the result for call {quote_text(result.call_id)} in message {message} is left out"
        why = "the call has its result" if repeated else "no call before it waits for it"
        size = sum(len(part.text) for part in result.content if isinstance(part, Text))
        line = f"{what} ({quote_text(result.name)}, {size:,} characters): {why}"
        self.trace.append(Fix("duplicate" if repeated else "orphan", message, line, result.call_id))

    def _accepted(self, id_: str) -> str:
        if is_accepted_id(id_, self.rules):
            return id_
        return _compiled(_REFUSED[self.rules.id_characters]).sub("_", id_[: self.rules.id_limit])


def _push(waiting: dict[_K, list[PendingCall]], key: _K, asked: PendingCall) -> None:
    stack = waiting.get(key)
    if not stack or stack[-1].run != asked.run:
        waiting[key] = [asked]
    else:
        stack.append(asked)


def _pop(stack: list[PendingCall] | None) -> PendingCall | None:
    while stack:
        asked = stack.pop()
        if asked.answer is None:
            return asked
    return None

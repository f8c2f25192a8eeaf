"""Which result answers which call, and under which id both are sent.

Guarantees: one pass, linear in the number of parts. Ids are assigned from left to right, so later
messages never change one. A result answers the nearest message before it with an unanswered call of
its id, and in it the first such call. A call that reuses an id after a message that is not the
model's ends the wait of older calls of that tool with it: otherwise a result that was recorded
twice would answer a call that was interrupted long ago. A result without an id is matched by its
tool's name. No result answers two calls, no call gets two results.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TypeVar

import msgspec

from recollect.codecs.fixes import Fix, quote_text
from recollect.codecs.provider_rules import ProviderRules
from recollect.entries import Text, ToolCall, ToolResult

INTERRUPTED = "[this call was interrupted: its outcome is unknown, and it was not run again]"
_ROOM = 8  # characters of an id that a suffix may take
_K = TypeVar("_K", bound=Hashable)


class PendingCall(msgspec.Struct, gc=False):
    """A call that is about to be sent, and its result."""

    call: ToolCall  # as it is sent
    id: str  # as it came
    run: int
    answer: ToolResult | None = None  # as it came
    source: int = -1  # the message that held the answer

    def result(self) -> ToolResult:
        """The result as it is sent."""
        call, answer = self.call, self.answer
        if answer is None:
            return ToolResult(
                call_id=call.id,
                name=call.name,
                content=(Text(text=INTERRUPTED),),
                is_error=True,
                status="interrupted",
            )
        if answer.call_id == call.id and answer.name == call.name:
            return answer
        return msgspec.structs.replace(answer, call_id=call.id, name=call.name)


class CallIdRegistry(msgspec.Struct):
    """Which ids are in use, and what is needed to release the newest of them."""

    taken: set[str] = set()  # msgspec makes a new one for each; so with the others
    known: set[str] = set()  # ids as they came, where they are sent differently
    suffixes: dict[str, int] = {}  # of each stem, the last one used
    _assigned: list[tuple[int, str, str, int]] = []
    _noted: list[tuple[int, str]] = []

    def note(self, id_: str, message: int) -> None:
        """Note an id as it came."""
        if id_ not in self.known:
            self.known.add(id_)
            self._noted.append((message, id_))

    def assign(self, wanted: str, limit: int, message: int) -> str:
        """The wanted id if it is free, else a similar one that is."""
        given, stem, number = wanted, "", 0
        if not wanted or wanted in self.taken:
            # A stem counts on from its last suffix, so no candidate is tried twice: linear in all.
            stem = wanted[: limit - _ROOM] or "call"
            number = before = self.suffixes.get(stem, 1 if wanted else 0)
            while not given or given in self.taken:
                number += 1
                given = f"{stem}-{number}"
            self.suffixes[stem], number = number, before
        self.taken.add(given)
        self._assigned.append((message, given, stem, number))
        return given

    def release_from(self, message: int) -> None:
        """Release the ids of this message and later ones; all others are final."""
        assigned = self._assigned
        while assigned and assigned[-1][0] >= message:
            _, id_, stem, number = assigned.pop()
            self.taken.discard(id_)
            if stem:
                self.suffixes[stem] = number
        assigned.clear()
        noted = self._noted
        while noted and noted[-1][0] >= message:
            self.known.discard(noted.pop()[1])
        noted.clear()


class CallPairing(msgspec.Struct):
    """The calls read so far, and which of them wait for a result."""

    rules: ProviderRules
    trace: list[Fix]
    ids: CallIdRegistry
    run: int = 0  # grows with each message that is not the model's
    _by_id: dict[str, list[PendingCall]] = {}
    _by_name: dict[str, list[PendingCall]] = {}
    _by_both: dict[tuple[str, str], list[PendingCall]] = {}

    def assign_id(self, call: ToolCall, message: int) -> str:
        """The id under which this call is sent."""
        rules = self.rules
        given = self.ids.assign(rules.clean_id(call.id), rules.id_limit, message)
        if given != call.id:
            if not call.id:
                reason = "it had no id"
            elif rules.accepts_id(call.id):
                reason = "the id was used before"
            else:
                reason = f"{rules.provider} does not accept the id"
            line = f"call {quote_text(call.id)} of message {message} is sent as {given!r}: {reason}"
            self.trace.append(Fix("id", message, line, given))
        return given

    def expect(self, calls: Sequence[PendingCall], message: int) -> None:
        """These calls of one message wait for results from now on."""
        # the first call of a message must be the first to be answered: it goes on top
        for pending in reversed(calls):
            id_, name = pending.id, pending.call.name
            if id_:
                self.ids.note(id_, message)
                _push(self._by_id, id_, pending)
            _push(self._by_both, (id_, name), pending)
            _push(self._by_name, name, pending)

    def answer(self, result: ToolResult, message: int) -> None:
        """Assign the result to the call it answers, or trace why it is left out."""
        id_, name = result.call_id, result.name
        pending = _pop(self._by_both.get((id_, name)))
        if pending is None:
            pending = _pop(self._by_id.get(id_) if id_ else self._by_name.get(name))
        if pending is None:
            self._leave_out(result, message)
            return
        pending.answer, pending.source = result, message
        call = pending.call
        if not id_:
            line = (
                f"a result of {quote_text(name)} in message {message} had no id: "
                "it is matched by its tool's name"
            )
            self.trace.append(Fix("id", message, line, call.id))
        if name != call.name:
            line = (
                f"the result for call {call.id!r} in message {message} has the tool name "
                f"{quote_text(name)}: it is sent under its call's, {quote_text(call.name)}"
            )
            self.trace.append(Fix("name", message, line, call.id))

    def _leave_out(self, result: ToolResult, message: int) -> None:
        repeated = result.call_id in self.ids.known or result.call_id in self.ids.taken
        what = f"the result for call {quote_text(result.call_id)} in message {message} is left out"
        why = "the call has its result" if repeated else "no call before it waits for it"
        size = sum(len(part.text) for part in result.content if isinstance(part, Text))
        line = f"{what} ({quote_text(result.name)}, {size:,} characters): {why}"
        self.trace.append(Fix("duplicate" if repeated else "orphan", message, line, result.call_id))


def _push(waiting: dict[_K, list[PendingCall]], key: _K, pending: PendingCall) -> None:
    stack = waiting.get(key)
    if not stack or stack[-1].run != pending.run:
        waiting[key] = [pending]
    else:
        stack.append(pending)


def _pop(stack: list[PendingCall] | None) -> PendingCall | None:
    while stack:
        pending = stack.pop()
        if pending.answer is None:
            return pending
    return None

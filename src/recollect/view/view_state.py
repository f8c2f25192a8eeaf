"""The effect of a log's edits so far, and how one more entry changes it.

A `ViewState` is frozen and belongs to a view; a `StateBuilder` is the same while it changes. An
ordinary message changes next to nothing; edits are rare and copy what they change. An invalid edit
(it names an entry that does not exist, or leaves out what is left out already) is ignored and
listed in `problems`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import takewhile
from operator import attrgetter
from typing import NamedTuple

from recollect.entries import (
    Compaction,
    Elide,
    Elided,
    Entry,
    Message,
    Pin,
    Request,
    Restore,
    Text,
    ToolCall,
    ToolResult,
)
from recollect.view.curation import CurationPolicy, is_initial, is_tool_result, is_valid
from recollect.view.elision import (
    ActiveElision,
    ChangedMessage,
    apply_elisions,
    has_target,
    results_as_text,
    with_true_text,
)
from recollect.view.entry_log import EntryLog

MAX_PROBLEMS = 200


class ViewState(NamedTuple):
    changed: Mapping[str, ChangedMessage] = {}  # by entry
    pins: Mapping[str, str] = {}  # entry: the pin that holds it
    first_pins: tuple[int, ...] = ()  # positions of pins in force that place messages first
    first: tuple[int, ...] = ()  # what is shown before everything else, in this order
    restored: frozenset[str] = frozenset()  # by the user: rules leave these alone
    dropped: frozenset[int] = frozenset()  # positions of invalid runs
    run: int = -1  # where the last run of model messages began
    bad_run: bool = False
    before_run: int = -1  # the user's message before it
    compactions: tuple[int, ...] = ()  # positions of those in force, oldest first
    base: int = 0  # from here on messages are shown one by one
    kept: tuple[int, ...] = ()  # what is shown of those before the base
    lead: frozenset[str] = frozenset()  # results right after the base whose calls precede it
    hidden: int = 0  # tokens after the base that are not shown
    attempt: int = -1  # the newest compaction of any status
    last: int = -1  # the newest message
    last_reply: int = -1  # the newest message of the model
    last_request: int = -1  # the newest request
    claims: Mapping[str, tuple[str, ...]] = {}  # entry: those whose placeholders name it
    problems: tuple[str, ...] = ()


_read_fields = attrgetter(*ViewState._fields)


class StateBuilder:
    def __init__(self, log: EntryLog, policy: CurationPolicy, state: ViewState) -> None:
        self.log, self.policy = log, policy
        self.changed, self.pins, self.restored = state.changed, state.pins, state.restored
        self.first_pins, self.first = state.first_pins, state.first
        self.dropped, self.run, self.bad_run = state.dropped, state.run, state.bad_run
        self.before_run, self.compactions = state.before_run, state.compactions
        self.base, self.kept, self.lead = state.base, state.kept, state.lead
        self.hidden, self.attempt, self.problems = state.hidden, state.attempt, state.problems
        self.last, self.last_reply = state.last, state.last_reply
        self.last_request, self.claims = state.last_request, state.claims
        self._copy: dict[str, ChangedMessage] | None = None  # of `changed`, once written to
        self._own_claims: dict[str, tuple[str, ...]] | None = None  # a copy, once written to
        self._left: int | None = None  # tokens that the current elision leaves, where known

    def freeze(self) -> ViewState:
        return ViewState(*_read_fields(self))

    def edit(self, position: int, entry: Entry) -> None:
        """Apply an entry that is not a message; most kinds are for users or other readers."""
        body = entry.body
        match body:
            case Request():
                self.last_request = position
            case Elide():
                self._elide_all(position, entry, body)
            case Pin():
                self._pin(position, entry.id, body)
            case Restore():
                for name in body.entries:
                    self._restore(position, name)
            case Compaction():
                self._compaction(position, body)

    def report(self, position: int, problem: str) -> None:
        if len(self.problems) < MAX_PROBLEMS:
            at = self.log.entries[position].id
            self.problems = (*self.problems, f"{at}: {problem}")

    def append(self, entries: Iterable[Entry]) -> None:
        """Most messages are one text and need no second look; this loop is most of what folding a
        long session costs."""
        at, column, multi_part = self.log.at, self.log.entries, self.log.multi_part
        validity = self.policy.validity
        strict = validity == "strict"
        position = len(column)
        for entry in entries:
            if at.setdefault(entry.id, position) != position:
                self.report(at[entry.id], "is in the log twice; only the first counts")
                continue
            column.append(entry)
            body = entry.body
            if type(body) is Message:
                parts = body.parts
                only = parts[0] if len(parts) == 1 else None
                if type(only) is not Text:
                    multi_part.append(position)
                if body.role != "model":
                    self.run = -1
                    if self.compactions or self.bad_run:
                        self._end_run(position, body)
                else:
                    if self.run < 0:
                        self.run, self.before_run = position, self.last
                    self.last_reply = position
                    says = strict and type(only) is Text and only.text
                    if self.bad_run or not (says or is_valid(body, validity)):
                        self._add_invalid(position)
                self.last = position
            else:
                self.edit(position, entry)
            position += 1

    def _end_run(self, position: int, message: Message) -> None:
        self.bad_run = False
        if self.compactions and self.last_reply < self.base and is_tool_result(message):
            self._recompute(position)  # it may answer a call from before the base

    def _add_invalid(self, position: int) -> None:
        """Drop the run that this message makes invalid, or just the message if that was done; not
        what calls a tool, or the result would be an orphan, nor then the prompt that led to it."""
        run = [position]
        if not self.bad_run:
            self.bad_run = True
            run = [p for p, _ in self.log.messages(range(self.run, position + 1))]
            prompt = self.log.message(self.before_run) if self.before_run >= 0 else None
            if self.policy.dropping == "drop_pair" and prompt and _is_prompt(prompt):
                run.append(self.before_run)
        found = [(p, self.log.message(p)) for p in run if p not in self.dropped]
        new = {p for p, message in found if message is not None and not _call_ids(message)}
        if len(new) < len(found) and self.before_run in self.dropped | new:
            new ^= {self.before_run}
        signed = [(p, -1 if p in self.dropped else 1) for p in new if p >= self.base]
        self.hidden += sum(sign * self._tokens(p) for p, sign in signed)
        self.dropped ^= new

    def _tokens(self, position: int) -> int:
        """Tokens of a message as it is shown, even if its run was dropped."""
        shown = self.changed.get(self.log.entries[position].id)
        return shown.tokens if shown is not None else self.log.tokens(position)

    def _elide_all(self, position: int, entry: Entry, body: Elide) -> None:
        """The counts kept for an elide entry are the tokens left of each message."""
        known = self.log.known.get(entry.id, ())
        left: list[int] = []
        for number, what in enumerate(body.items):
            self._left = known[number] if len(known) == len(body.items) else None
            self._elide(position, ActiveElision(what, body.rule, entry.id, entry.time))
            shown = self.changed.get(what.entry)
            left.append(shown.tokens if shown is not None else 0)
        self._left = None
        if self.log.counter.name and tuple(left) != known:
            self.log.fresh[entry.id] = tuple(left)

    def _elide(self, position: int, cut: ActiveElision) -> None:
        entry = cut.what.entry
        message = self.log.find_message(entry, position)
        if message is None:
            self.report(position, f"elides {entry}, which is not a message before it")
        elif entry in self.pins:
            self.report(position, f"elides {entry}, which is pinned")
        elif not has_target(message, cut.what):
            self.report(position, f"elides parts of {entry} that are not there")
        elif any(_covers(earlier.what, cut.what) for earlier in self._cuts(entry)):
            self.report(position, f"elides {entry}, which is left out already")
        else:
            if cut.what.shown_by:
                self._claim(cut.what)
            self._change(entry, (*self._cuts(entry), cut))

    def _claim(self, what: Elided) -> None:
        if self._own_claims is None:
            self.claims = self._own_claims = dict(self.claims)
        for name in what.shown_by:
            self._own_claims[name] = (*self._own_claims.get(name, ()), what.entry)

    def _cuts(self, entry: str) -> tuple[ActiveElision, ...]:
        changed = self.changed.get(entry)
        return changed.cuts if changed is not None else ()

    def _change(self, entry: str, cuts: tuple[ActiveElision, ...]) -> None:
        """Show a message with these cuts; without any, as it was stored. Placeholders that name it
        may be true no longer, or again."""
        self._show(entry, cuts)
        if (named := self.claims.get(entry)) is not None:
            self._show_true_text(named)

    def _show_true_text(self, entries: Iterable[str]) -> None:
        left, self._left = self._left, None
        for entry in entries:
            if cuts := self._cuts(entry):
                self._show(entry, cuts)
        self._left = left

    def _show(self, entry: str, cuts: tuple[ActiveElision, ...]) -> None:
        position = self.log.at[entry]
        message, before = self.log.message(position), self._tokens(position)
        assert message is not None
        if self._copy is None:
            self._copy = dict(self.changed)
        changed = self._copy
        if cuts or entry in self.lead:
            true = with_true_text(self.log, self, cuts)
            shown = apply_elisions(message, true) if cuts else message
            shown = results_as_text(shown) if entry in self.lead else shown
            known = changed.get(entry)
            if known is not None and known.message == shown:
                left = known.tokens
            else:
                left = self.log.counter.message(shown) if self._left is None else self._left
            changed[entry] = ChangedMessage(cuts, shown, left)
        else:
            changed.pop(entry, None)
        self.changed = changed
        if position >= self.base and position not in self.dropped:
            self.hidden += before - self._tokens(position)

    def _pin(self, position: int, pin: str, body: Pin) -> None:
        for entry in body.entries:
            if self.log.find_message(entry, position) is None:
                self.report(position, f"pins {entry}, which is not a message before it")
                continue
            if entry in self.changed:  # a pinned message is shown word for word
                self._change(entry, ())
            self.pins = {**self.pins, entry: pin}
        if body.first:
            self.first_pins = (*self.first_pins, position)
        self._recompute(position)

    def _restore(self, position: int, name: str) -> None:
        found = self.log.position(name, position)
        body = self.log.entries[found].body if found is not None else None
        match body:
            case Message():
                if name in self.changed:
                    self._change(name, ())
                self.restored |= {name}
            case Elide():
                for entry in [what.entry for what in body.items]:
                    if entry in self.changed:
                        self._change(entry, tuple(c for c in self._cuts(entry) if c.by != name))
                    self.restored |= {entry}
            case Pin():
                self._unpin(name, found)
                self._recompute(position)
            case Compaction() if found in self.compactions:
                self.compactions = tuple(p for p in self.compactions if p != found)
                self._recompute(position)
            case _:
                self.report(position, f"restores {name}, which is not an edit in force")

    def _unpin(self, pin: str, position: int | None) -> None:
        """What an older pin placed first, it holds again."""
        self.first_pins = tuple(p for p in self.first_pins if p != position)
        pins = {entry: by for entry, by in self.pins.items() if by != pin}
        for at in self.first_pins:
            pins |= {e: self.log.entries[at].id for e in pinned_by(self.log, at) if e not in pins}
        self.pins = pins

    def _compaction(self, position: int, body: Compaction) -> None:
        self.attempt = position
        if body.status != "COMPRESSED":
            return
        first = body.first_kept
        if first is not None and self.log.position(first, position) is None:
            self.report(position, f"keeps from {first} on, which is not an entry before it")
        elif not body.snapshot.strip():
            self.report(position, "has no snapshot")
        else:
            self.compactions = (*self.compactions, position)
            self._recompute(position)

    def _recompute(self, position: int) -> None:
        """Work out what is shown before the base, after a compaction or pin was made or undone."""
        log, n = self.log, position + 1
        self.base, self.kept, lead = 0, (), frozenset[str]()
        if self.compactions:
            at = self.compactions[-1]
            body = log.entries[at].body
            assert isinstance(body, Compaction)
            first = at if body.first_kept is None else log.position(body.first_kept, at)
            self.base = at if first is None else first
            pinned_since = [e for e, pin in self.pins.items() if log.at.get(pin, 0) > at]
            named = [p for entry in body.kept if (p := log.position(entry, n)) is not None]
            pins = with_partners(log, {log.at[entry] for entry in pinned_since})
            visible = dict.fromkeys((*named, *sorted(pins)))
            self.kept = tuple(p for p in visible if p < self.base)
            lead = self._leading(n)
        self.first = self._find_first() if self.first_pins else ()
        changed, self.lead = self.lead ^ lead, lead
        for entry in changed:
            self._change(entry, self._cuts(entry))
        self._show_true_text({entry for named in self.claims.values() for entry in named})
        self.hidden = sum(log.tokens(p) for p in self.dropped if p >= self.base)
        for entry, shown in self.changed.items():
            where = log.at[entry]
            if where >= self.base and where not in self.dropped:
                self.hidden += log.tokens(where) - shown.tokens

    def _find_first(self) -> tuple[int, ...]:
        """What the pins place first, the newest pin before older ones. One from before the base
        counts only if the compaction names it, so that a view needs nothing else from there. Parts
        of a tool exchange stay in it."""
        found: dict[int, None] = {}
        for pin in reversed(self.first_pins):
            if pin >= self.base or pin in self.kept:
                found |= dict.fromkeys(self.log.at[entry] for entry in pinned_by(self.log, pin))
        in_sight = (p for p in found if p >= self.base or p in self.kept)
        return tuple(p for p, message in self.log.messages(in_sight) if _may_lead(message))

    def _leading(self, n: int) -> frozenset[str]:
        """The first messages after the base that answer calls before it."""
        found: set[str] = set()
        calls = {c for _, message in self.log.messages(self.kept) for c in _call_ids(message)}
        for position, message in self.log.messages(range(self.base, n)):
            if message.role == "model":
                break
            answers = [part.call_id for part in message.parts if isinstance(part, ToolResult)]
            if answers and not calls.issuperset(answers):
                found.add(self.log.entries[position].id)
        return frozenset(found)


def _covers(earlier: Elided, later: Elided) -> bool:
    if earlier.head or earlier.tail or earlier.blocks:
        return earlier == later
    return not earlier.parts or (bool(later.parts) and set(later.parts) <= set(earlier.parts))


def _is_prompt(message: Message) -> bool:
    return message.role == "user" and not is_tool_result(message) and not is_initial(message)


def _may_lead(message: Message) -> bool:
    return message.role != "model" and not is_tool_result(message)


def pinned_by(log: EntryLog, pin: int) -> list[str]:
    """The messages that the pin at this position holds."""
    body = log.entries[pin].body
    named = body.entries if isinstance(body, Pin) else ()
    return [entry for entry in named if log.find_message(entry, pin) is not None]


def _call_ids(message: Message) -> list[str]:
    return [part.id for part in message.parts if isinstance(part, ToolCall)]


def with_partners(log: EntryLog, positions: set[int]) -> set[int]:
    """The positions, plus the results of each call and the call of each result among them."""
    found = set(positions)
    for position, message in log.messages(positions):
        if _call_ids(message):
            found |= _find_results(log, position)
        if is_tool_result(message):
            found |= _find_call(log, position)
    return found


def _find_results(log: EntryLog, call: int) -> set[int]:
    later = log.messages(range(call + 1, len(log.entries)))
    results = takewhile(lambda at: at[1].role != "model" and is_tool_result(at[1]), later)
    return {position for position, _ in results}


def _find_call(log: EntryLog, result: int) -> set[int]:
    for position, message in log.messages(range(result - 1, -1, -1)):
        if _call_ids(message):
            return {position} | _find_results(log, position)
        if message.role == "model":
            break
    return set()

"""Elision rules that users write: a function names messages, with the reason for each.

The function receives the view and the time, in milliseconds since 1970 in UTC; it returns pairs of
an item of the view (or an entry's id) and a reason. Texts, tool results, images and files of these
messages get a placeholder; calls and thoughts stay, so that no result loses its call. Initial
context, pinned and restored messages and the newest message always stay. A rule that raises or
returns something else leaves nothing out, and is named in the plan's problems.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias

import msgspec

from recollect.entries import Elided, FileRef, InlineData, Message, Part, Text, ToolResult
from recollect.errors import BadInput
from recollect.view.elision import ActiveElision, apply_elisions
from recollect.view.elision_plan import PlannedElision
from recollect.view.omissions import COMPACTION, ELSEWHERE, INVALID, UNDONE
from recollect.view.placeholders import BUILTIN_RULES, Language, write_placeholder
from recollect.view.view import View, ViewItem

RuleFunction: TypeAlias = Callable[[View, int], Iterable[tuple[str | ViewItem, str]]]
_ELIDABLE = (Text, ToolResult, InlineData, FileRef)
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,63}")
_EDITORS = ("import", "instructions", "summary")  # write elisions too
_RESERVED = (*BUILTIN_RULES, *_EDITORS, COMPACTION, INVALID, UNDONE, ELSEWHERE)


class CustomRule(msgspec.Struct, frozen=True):
    """A user's rule; `elision_rule` makes one of a function."""

    name: str  # that placeholders, `explain()` and `recollect context` show
    plan: RuleFunction

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not _NAME.fullmatch(self.name):
            raise BadInput(
                f"{self.name!r} cannot name an elision rule; a name has up to 64 letters, digits, "
                "-, _ and ., and begins with a letter"
            )
        if self.name in _RESERVED:
            raise BadInput(f"the elision rule {self.name!r} exists already; choose another name")
        if inspect.iscoroutinefunction(self.plan) or inspect.isasyncgenfunction(self.plan):
            raise BadInput(f"the elision rule {self.name} is async; write a plain `def`")
        if not callable(self.plan):
            raise BadInput(f"the elision rule {self.name} is not a function")


def plan_custom(
    rule: CustomRule, view: View, now: int, language: Language = "en"
) -> tuple[tuple[PlannedElision, ...], str]:
    """What a rule leaves out of a view, or nothing and the problem."""
    try:
        named = [_check_pair(pair) for pair in rule.plan(view, now)]
    except Exception as error:  # noqa: BLE001 - a bug in a rule must not end the run
        why = f"{type(error).__name__}: {str(error)[:500]}"
        return (), f"the elision rule {rule.name} failed and left nothing out: {why}"
    unknown = [entry for entry, _ in named if view.log.position(entry, view.n) is None]
    problem = ""
    if unknown:
        problem = (
            f"the elision rule {rule.name} named the entry {unknown[0][:64]!r}, which is not in "
            "the session; use `item.entry.id` of `view.items`"
        )
    shown = {item.entry.id: item for item in view.items[:-1] if _may_go(view, item)}
    found = (
        saving
        for entry, reason in dict(named).items()
        if entry in shown
        for saving in _savings(rule.name, view, shown[entry], reason, language)
    )
    return tuple(found), problem


def _check_pair(pair: object) -> tuple[str, str]:
    match pair:
        case (ViewItem() as item, str(reason)):
            return item.entry.id, reason
        case (str(entry), str(reason)):
            return entry, reason
    raise TypeError(f"a rule returns pairs (item of the view, reason), not {pair!r:.100}")


def _may_go(view: View, item: ViewItem) -> bool:
    return (
        item.place == "tail"
        and not item.stays
        and item.entry.id not in view.state.pins
        and item.entry.id not in view.state.restored
    )


def _savings(
    rule: str, view: View, item: ViewItem, reason: str, language: Language
) -> Iterator[PlannedElision]:
    message = item.entry.body
    assert isinstance(message, Message)  # in the tail
    tokens, count = view.log.part_tokens(view.log.at[item.entry.id]), view.log.counter.message
    now = item.tokens
    if item.entry.id in view.state.lead:  # is shown with words of ours
        now = count(apply_elisions(message, item.cuts))
    for number, part in enumerate(message.parts):
        if not isinstance(part, _ELIDABLE) or _is_gone(item, number):
            continue
        what = reason.strip() or _describe(part)
        placeholder = write_placeholder(rule, what, tokens[number], item.entry.id, language)
        elided = Elided(entry=item.entry.id, placeholder=placeholder, parts=(number,))
        cuts = (*item.cuts, ActiveElision(elided, rule, "", 0))
        saved = now - count(apply_elisions(message, cuts))
        if saved > 0:
            yield PlannedElision(rule, what, msgspec.structs.replace(elided, tokens=saved))


def _is_gone(item: ViewItem, number: int) -> bool:
    """Whether a part is left out already, as a whole."""
    cuts = (cut.what for cut in item.cuts if not cut.what.parts or number in cut.what.parts)
    return any(not (cut.blocks or cut.head or cut.tail) for cut in cuts)


def _describe(part: Part) -> str:
    match part:
        case ToolResult():
            return f"a result of {part.name}" if part.name else "a tool result"
        case InlineData() | FileRef():
            return f"a file ({part.mime})"
        case _:
            return "an earlier text"

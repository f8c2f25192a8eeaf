"""Reads what a hook answers, in our own words and in those of other agents.

Hooks that were written for Claude Code, Gemini CLI, Codex or Cursor refuse, ask and add context by
fields of their own; each is read for what it means there, as docs/hooks.md lists them. A refusal
counts before everything else, however wrong the rest is. An "allow" is only the absence of an
objection: permissions decide as always. What is not understood is a warning; if it may have been a
decision, the user is asked.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, NamedTuple

from recollect.codecs.foreign_json import is_too_deep, strict_json
from recollect.entries import json_text
from recollect.hook_events import HookDecision
from recollect.json_depth import MAX_DEPTH
from recollect.text import one_line

_NESTED = "hookSpecificOutput"
_REFUSALS = frozenset({"block", "deny"})
_CONSENTS = frozenset({"allow", "approve"})
_QUESTION = "ask"
_WORDS = _REFUSALS | _CONSENTS | {_QUESTION}
# A field that decides, and those that may give its reason.
_DECIDING = {
    "decision": ("reason", "systemMessage"),
    "permissionDecision": ("permissionDecisionReason", "reason"),
    "permission": ("agent_message", "agentMessage", "user_message", "userMessage"),
    "behavior": ("message",),
}
_ARGUMENTS = ("arguments", "updatedInput", "tool_input")
_MESSAGES = ("systemMessage", "user_message", "userMessage")
_OTHER = ("continue", "stopReason", "suppressOutput", "additionalContext", "keep", "interrupt")
_REASONS = frozenset(name for names in _DECIDING.values() for name in names)
_MEANINGFUL = _REASONS.union(_DECIDING, _ARGUMENTS, _MESSAGES, _OTHER)
_KNOWN = _MEANINGFUL | {_NESTED, "hookEventName"}
_OBJECT = re.compile(r'^\s*\{|\{\s*"', re.MULTILINE)
_TERMINAL_CODE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class _Answer(NamedTuple):
    """One field of an answer that decides, with its reason."""

    word: object
    reason: Any


def parse_object(text: str, limit: int) -> dict[str, Any]:
    """Parse a JSON object of bounded length and depth, without duplicate names or NaN."""
    if len(text) > limit:
        raise ValueError(f"JSON of {len(text):,} characters; the limit is {limit:,}")
    value = strict_json(text)
    if not isinstance(value, dict):
        raise ValueError("a JSON object was expected")
    if is_too_deep(value):
        raise ValueError(f"JSON nested deeper than {MAX_DEPTH} levels")
    return value


def parse_output(text: str, limit: int) -> HookDecision:
    """What a command printed. Plain text is no answer; `ValueError` for JSON that is wrong."""
    text = _TERMINAL_CODE.sub("", text.removeprefix("\ufeff")).strip()
    if "\0" in text:
        raise ValueError("it is not UTF-8 text")
    # some programs print something before their answer
    if begun := _OBJECT.search(text):
        return parse_answer(parse_object(text[begun.start() :], limit))
    if text.lower().strip("\"' .!") in _WORDS or text.startswith(("[", '"')):
        raise ValueError('an object was expected, such as {"decision": "deny"}')
    return HookDecision()


def parse_answer(value: Mapping[str, Any]) -> HookDecision:
    """The object that a command printed, or the mapping that a callable returned."""
    levels = tuple(_levels(value))
    unknown = _unknown_fields(levels)
    if unknown and not any(name in _MEANINGFUL for level in levels for name in level):
        raise ValueError(f"none of its fields is understood: {_name_fields(unknown)}")
    decided = [each for level in levels for each in _decisions(level)]
    if (refusal := _find_refusal(levels, decided)) is not None:
        # first: no other field, however wrong, voids a refusal
        return refusal
    warnings = [*_messages(levels), *_not_understood(levels, decided)]
    odd = [each for each in decided if _word(each.word) not in _WORDS]
    asks = next((each for each in decided if _word(each.word) == _QUESTION), None)
    asks = asks or next(iter(odd), None)
    changed = _first(levels, *_ARGUMENTS)
    if changed is not None and not isinstance(changed, dict):
        raise TypeError("arguments must be a JSON object")
    return HookDecision(
        ask=asks is not None,
        reason="" if asks is None else asks.reason or "a hook wants the user to decide",
        additional_context=_first(levels, "additionalContext") or "",
        arguments=None if changed is None else json_text(changed),
        keep=_first(levels, "keep") or "",
        warnings=tuple(warnings),
    )


def _levels(value: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The object and those inside it that carry an answer."""
    yield value
    if not isinstance(value.get(_NESTED), Mapping | None):
        raise TypeError(f"{_NESTED} must be a JSON object")
    for name in (_NESTED, *_DECIDING):
        if isinstance(inner := value.get(name), Mapping):
            yield from _levels(inner)


def _decisions(level: Mapping[str, Any]) -> Iterator[_Answer]:
    for name, reasons in _DECIDING.items():
        word = level.get(name)
        if word not in (None, "") and not isinstance(word, Mapping):
            yield _Answer(word, next(filter(None, map(level.get, reasons)), ""))
    for name, value in level.items():  # a refusal in a field of another name is no consent
        if name not in _KNOWN and (value is False or _word(value) in _REFUSALS):
            yield _Answer(f"{name}: {value}", level.get("reason") or "")
    goes_on = level.get("continue")
    if goes_on is not None and not isinstance(goes_on, bool):
        yield _Answer(f"continue: {goes_on}", level.get("stopReason") or "")


def _word(word: object) -> str:
    return word.strip().lower() if isinstance(word, str) else ""


def _find_refusal(
    levels: tuple[Mapping[str, Any], ...], decided: list[_Answer]
) -> HookDecision | None:
    stops = any(level.get("continue") is False for level in levels)
    refused = next((each for each in decided if _word(each.word) in _REFUSALS), None)
    if not stops and refused is None:
        return None
    given = _first(levels, "stopReason") if stops else None
    reason = given or (refused.reason if refused is not None else _first(levels, "reason"))
    return HookDecision(allowed=False, stop=stops, reason=reason or "")


def _messages(levels: tuple[Mapping[str, Any], ...]) -> Iterator[str]:
    for level in levels:
        texts = (level.get(name) for name in _MESSAGES)
        yield from (text for text in texts if isinstance(text, str) and text)


def _not_understood(levels: tuple[Mapping[str, Any], ...], decided: list[_Answer]) -> Iterator[str]:
    for each in decided:
        if _word(each.word) not in _WORDS:
            yield (
                f"{one_line(str(each.word), 80)!r} is no decision that is understood, so the user "
                f"is asked; known are {', '.join(sorted(_WORDS))}"
            )
    if unknown := _unknown_fields(levels):
        yield f"its answer has fields that are not understood: {_name_fields(unknown)}"


def _unknown_fields(levels: tuple[Mapping[str, Any], ...]) -> list[str]:
    return [name for level in levels for name in level if name not in _KNOWN]


def _name_fields(names: Iterable[object]) -> str:
    return ", ".join(one_line(str(name), 40) for name in islice(names, 5))


def _first(levels: tuple[Mapping[str, Any], ...], *names: str) -> Any:
    found = (level[name] for name in names for level in levels if level.get(name) is not None)
    return next(found, None)

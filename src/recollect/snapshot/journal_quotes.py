"""The journal: what the agent said, what it changed and what failed, in order, by message.

Of all sentences, changed lines and lines of failures those are quoted that say most, given what the
snapshot says elsewhere; what the agent said weighs more than what it changed, and the newest twice
as much as the oldest. Each message that is quoted carries its handle.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from recollect.snapshot.quotes import Quote, format_item
from recollect.telling_lines import Line, choose_lines, squeeze
from recollect.text import clip
from recollect.work_journal import JournalItem, check_key

_SENTENCE = re.compile(r"(?<=[.!?:。!?])\s+|\n+")
_ANNOUNCEMENT = re.compile(
    r"(?:Perfect|Great|Excellent|Good|(?:Now,? )?(?:let me|let's|I'll|I will))\b", re.I
)
_MAX_SENTENCE, _MAX_LINE, _MAX_COMMAND, _MAX_LINES = 500, 200, 120, 80
_SAID, _FAILED, _CHANGED, _RAN, _ANNOUNCED = 2.0, 1.5, 1.0, 1.0, 0.7  # weights
_FIXED, _MAX_FIX = 2.0, 6  # the weight of a change that solved a failure; messages, at most
_IN_FIX, _IN_CODE = 0.4, 0.1  # what a plain word of a change or a command counts
_HANDLE, _GAP = 14, " … "


class _Candidate(NamedTuple):
    item: int
    group: str  # lines of one group are joined behind it; empty: the agent's own words
    line: Line


class JournalQuotes:
    def __init__(self, items: Sequence[JournalItem]) -> None:
        self._items = items
        fixes = _find_fixes(items)
        self._lines = [
            candidate
            for n, item in enumerate(items)
            for candidate in _candidates(n, item, len(items), fixes=n in fixes)
        ]

    @property
    def size(self) -> int:
        return sum(len(c.line.text) + c.line.cost for c in self._lines)

    def write(self, room: int, said: str) -> list[str]:
        chosen = choose_lines([c.line for c in self._lines], room, said)
        by_item: dict[int, dict[str, list[str]]] = {}
        for n in sorted(chosen):
            item, group, line = self._lines[n]
            by_item.setdefault(item, {}).setdefault(group, []).append(line.text)
        return [
            format_item(Quote(_write_groups(groups), self._items[item].entry))
            for item, groups in by_item.items()
        ]


def _write_groups(groups: dict[str, list[str]]) -> str:
    said = " ".join(groups.get("", ()))
    others = (
        head if lines == [head] else head + _GAP.join(lines)
        for head, lines in groups.items()
        if head
    )
    return "\n".join(filter(None, (said, *others)))


def _find_fixes(items: Sequence[JournalItem]) -> set[int]:
    """The messages between a command's last failure and its success: what was done about it."""
    failed: dict[str, int] = {}
    fixes: set[int] = set()
    for number, item in enumerate(items):
        for run in item.runs:
            if run.outcome.failed:
                failed[check_key(run.command)] = number
            elif (since := failed.pop(check_key(run.command), None)) is not None:
                fixes.update(range(since + 1, number)[-_MAX_FIX:])
    return fixes


def _candidates(number: int, item: JournalItem, count: int, *, fixes: bool) -> Iterator[_Candidate]:
    newness = 1 + (number + 1) / count
    for sentence in squeeze(_SENTENCE.split(item.said), _MAX_SENTENCE)[:_MAX_LINES]:
        weight = _ANNOUNCED if item.acts and _ANNOUNCEMENT.match(sentence) else _SAID
        yield _Candidate(number, "", Line.of(sentence, weight * newness, _HANDLE))
    for run in item.runs:
        command = clip(run.command, _MAX_COMMAND)
        if not run.outcome.failed:
            text = f"ran `{command}` → {clip(run.outcome.line, _MAX_LINE) or 'no output'}"
            yield _Candidate(number, text, Line.of(text, _RAN * newness, _HANDLE, _IN_CODE))
            continue
        head = f"FAILED `{command}`: "
        for text in squeeze(run.outcome.details or (run.outcome.line,), _MAX_LINE):
            yield _Candidate(number, head, Line.of(text, _FAILED * newness, len(head)))
    for change in item.changes:
        head = f"{change.verb} {change.path.rsplit('/', 1)[-1]}: "
        weight, plain = (_FIXED, _IN_FIX) if fixes else (_CHANGED, _IN_CODE)
        for text in squeeze(change.lines, _MAX_LINE)[:_MAX_LINES]:
            yield _Candidate(number, head, Line.of(text, weight * newness, len(head), plain))

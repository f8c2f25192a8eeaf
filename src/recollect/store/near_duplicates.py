"""Folds what a search found into fewer hits: entries that say the same, and the two halves of one
exchange.

A command that was run again is the same hit only if it came out the same: one run that printed
nothing and one that printed a warning are two, and so are 2 failures and none.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from recollect.call_outcome import result_text
from recollect.entries import Entry, Text, ToolCall, ToolResult
from recollect.store.exchange_rows import read_counterparts
from recollect.store.output_notes import output_part
from recollect.store.passages import TextPassage
from recollect.store.readable_text import calls_of, results_of
from recollect.store.search_source import EntrySource, RowKey
from recollect.toolkinds import classify_tool, has_failed

_ALIKE = 0.75  # of their words, two passages have in common that say the same
_MAX_READ = 3_000  # characters of a result, at each end
_QUOTING = ("read", "search", "list")  # kinds of tools whose results only quote files
_TOKEN = re.compile(r"\w+")
_LINE_NUMBER = re.compile(r"^\s*\d+(?:→|\t)", re.MULTILINE)
_TROUBLE = re.compile(
    r"\b(?:(\d{1,7}) )?(warning|error|fail|exception|fatal|denied|refus|reject|conflict|traceback"
    r"|panic|timed out|not found|no such)",
    re.IGNORECASE,
)


class FoundEntry(NamedTuple):
    """An entry with its passage, before it becomes a hit."""

    key: RowKey
    owner: RowKey
    entry: Entry
    size: int
    first: bool  # before all that are not
    score: float
    passage: TextPassage
    call_ids: tuple[str, ...]  # see `SearchHit`
    lacking: frozenset[str]  # names of words

    @property
    def rank(self) -> tuple[bool, float, int, RowKey]:
        return self.first, self.score, self.entry.time, self.key


class FoldedEntry(NamedTuple):
    found: FoundEntry
    beside: tuple[Entry, ...]
    alike: list[str]


class _Outcome(NamedTuple):
    failed: bool
    empty: bool
    trouble: frozenset[tuple[str, str]]  # words for it, with their numbers


class _Exchange(NamedTuple):
    """The calls that a passage is about, and what came of them."""

    beside: tuple[Entry, ...] = ()
    calls: frozenset[tuple[str, str]] = frozenset()
    outcomes: frozenset[_Outcome] = frozenset()
    words: frozenset[str] = frozenset()  # of the results
    of_result: bool = False  # the passage is of a result


class _Chosen(NamedTuple):
    folded: FoldedEntry
    words: frozenset[str]
    exchange: _Exchange


def fold_alike(
    source: EntrySource, found: Iterable[FoundEntry], limit: int
) -> tuple[tuple[FoldedEntry, ...], bool]:
    """The first `limit`, and whether there are more; the others are folded in where they fit."""
    chosen: list[_Chosen] = []
    covered: dict[str, set[str]] = {}  # entries, and the calls of theirs that a hit names
    more = False
    for one in found:
        if one.entry.id in covered and covered[one.entry.id].issuperset(one.call_ids):
            continue
        words, full = _words_of(one), len(chosen) >= limit
        near = [other for other in chosen if _alike(words, other.words)]
        if full and not near:
            more = True
            continue
        exchange = _read_exchange(source, one)
        outputs = (other for other in near if _same_output(other.folded.found, one))
        twin = next((other for other in near if _same_outcome(other.exchange, exchange)), None)
        twin = twin or next(outputs, None)
        twin = twin or next((other for other in chosen if _retries(other.exchange, exchange)), None)
        if twin is not None:
            twin.folded.alike.append(one.entry.id)
            continue
        if full:
            more = True
            continue
        chosen.append(_Chosen(FoldedEntry(one, exchange.beside, []), words, exchange))
        for entry in exchange.beside:
            covered.setdefault(entry.id, set()).update(one.call_ids)
    return tuple(one.folded for one in chosen), more


def _words_of(found: FoundEntry) -> frozenset[str]:
    """The words of a passage, and whether somebody said it or a tool gave it."""
    origin = "result" if results_of(found.entry) else type(found.entry.body).__name__
    text = _LINE_NUMBER.sub("", found.passage.text.lower())
    return frozenset((f"<{origin}>", *_TOKEN.findall(text)))


def _alike(words: frozenset[str], others: frozenset[str]) -> bool:
    fewer, more = sorted((len(words), len(others)))
    if fewer < _ALIKE * more:
        return False  # most are told apart by this alone
    common = len(words & others)
    return common >= _ALIKE * (fewer + more - common)


def _same_outcome(one: _Exchange, other: _Exchange) -> bool:
    """Whether calls gave the same; a result's own passage says what it gave."""
    if one.outcomes != other.outcomes:
        return False
    return (one.of_result and other.of_result) or _alike(one.words, other.words)


def _same_output(one: FoundEntry, other: FoundEntry) -> bool:
    """Whether one is what a command printed, and the other the result that shows its ends."""
    kept = [each for each in (one, other) if output_part(each.entry.body) is not None]
    return len(kept) == 1 and not set(one.call_ids).isdisjoint(other.call_ids)


def _retries(one: _Exchange, other: _Exchange) -> bool:
    """Whether both are the same calls, and gave the same."""
    same = bool(one.calls) and one.calls == other.calls and one.outcomes == other.outcomes
    return same and _alike(one.words, other.words)


def _read_exchange(source: EntrySource, found: FoundEntry) -> _Exchange:
    ids = found.call_ids
    beside = read_counterparts(source, found.key, found.entry, ids)
    calls = [call for entry in (found.entry, *beside) for call in _own_calls(entry, ids)]
    results = [result for entry in (found.entry, *beside) for result in _own_results(entry, ids)]
    return _Exchange(
        beside=beside,
        calls=frozenset((call.name, call.arguments) for call in calls),
        outcomes=frozenset(map(_outcome_of, results)),
        words=frozenset(word for result in results for word in _TOKEN.findall(_ends(result))),
        of_result=bool(results_of(found.entry)),
    )


def _own_calls(entry: Entry, ids: tuple[str, ...]) -> Iterator[ToolCall]:
    return (call for call in calls_of(entry) if call.id in ids)


def _own_results(entry: Entry, ids: tuple[str, ...]) -> Iterator[ToolResult]:
    return (result for result in results_of(entry) if result.call_id in ids)


def _outcome_of(result: ToolResult) -> _Outcome:
    quotes = classify_tool(result.name) in _QUOTING
    trouble = frozenset() if quotes else frozenset(_TROUBLE.findall(_ends(result)))
    empty = not any(not isinstance(item, Text) or item.text.strip() for item in result.content)
    return _Outcome(has_failed(result), empty, trouble)


def _ends(result: ToolResult) -> str:
    """The beginning and the end of what a call gave, where errors and totals stand."""
    text = result_text(result)
    if len(text) > 2 * _MAX_READ:
        text = f"{text[:_MAX_READ]}\n{text[-_MAX_READ:]}"
    return text.lower()

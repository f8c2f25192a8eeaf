"""Search that always finds what is nearest: entries with all words first, then those with the
rarest words closest together, newest first among equals. In a question no word is indispensable:
there only the sum counts.

The index has no positions and knows no frequencies inside an entry, so SQLite's `bm25` has nothing
to count. It counts how many entries have a word, and sums the weights of the words of an entry; the
texts of the best hundred then show how close the words stand. Everything is bounded: words, rows
for each word, texts that are read.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from recollect.entries import Compaction, Entry, Message
from recollect.errors import Damaged, NotFound
from recollect.store import search_tokenizer
from recollect.store.contract import SearchHit, SearchQuery, SearchResult, SessionInfo
from recollect.store.exchange_rows import read_counterparts
from recollect.store.log_reader import LogReader
from recollect.store.passages import TextPassage, best_window, cut_passage
from recollect.store.readable_text import (
    HISTORY_TOOLS,
    calls_of,
    readable_text,
    results_of,
)
from recollect.store.search_scope import RowScope, scope_of
from recollect.store.search_tokenizer import INDEXED_CHARACTERS, SearchTerm, match_expression
from recollect.store.search_words import Place, SearchWord, find_places, is_sentence, split_terms
from recollect.store.session_lookup import session_by_number
from recollect.store.sql_schema import SEGMENT_BITS
from recollect.text import clean

_COUNTED = 20_000  # entries with a word; above that all words are equally common
_COMMON = 2_000  # entries with a word that may be read for it: the newest
_READ = 100  # entries whose text is read
_MOST_READ = 400  # where entries turn out to lack a phrase, or to be the echo of a search
_MOST_CHARACTERS = 20_000_000  # of all of them together
_SCATTERED = 0.3  # what a word counts that stands far from the others
_PLAIN = 1.5  # the weight of neighbours such as `could not`
_CLOSE = 200  # characters: words that stand within them count twice
_ALIKE = 0.75  # of their words, two passages have in common that say the same


_NO_ECHO = "".join(f" NOT {search_tokenizer.tool_mark(name)}" for name in HISTORY_TOOLS)


class _Found(NamedTuple):
    key: int
    owner: int
    entry: Entry
    size: int
    first: bool  # before all that are not
    score: float
    passage: TextPassage
    missing: tuple[str, ...]

    @property
    def rank(self) -> tuple[bool, float, int, int]:
        return self.first, self.score, self.entry.time, self.key


class _Query(NamedTuple):
    """A query with what the index says about its words."""

    given: SearchQuery
    length: int
    terms: tuple[SearchTerm, ...]
    words: tuple[SearchWord, ...]
    counts: tuple[int, ...]
    weights: tuple[float, ...]
    scope: RowScope


def rank_entries(reader: LogReader, given: SearchQuery, length: int) -> SearchResult:
    """The best entries, near-duplicates folded into one, each with a passage of about `length`."""
    terms = search_tokenizer.parse_query(given.words)
    scope = scope_of(reader.db, given)
    if scope is None:
        return SearchResult((), _names(terms, range(len(terms))))
    words = split_terms(terms)
    counts = tuple(_count(reader, word, scope) for word in words)
    weights = _weigh(words, counts, scope.entries)
    query = _Query(given, length, terms, words, counts, weights, scope)
    found = sorted(_read_all(reader, query), key=lambda one: one.rank, reverse=True)
    lacking = set.intersection(*(set(one.missing) for one in found)) if found else None
    unsure = [n for n, term in enumerate(terms) if lacking is None or term.given in lacking]
    nowhere = [n for n in unsure if not _is_somewhere(reader, n, query)]
    hits, more = _fold_alike(reader, found, given.limit)
    return SearchResult(hits, _names(terms, nowhere), more)


def _names(terms: Sequence[SearchTerm], positions: Iterable[int]) -> tuple[str, ...]:
    return tuple(terms[n].given for n in positions if not terms[n].excluded)


# --- what the index knows -----------------------------------------------------------------------


def _count(reader: LogReader, word: SearchWord, scope: RowScope) -> int:
    if not word.match:
        return 0
    rows = f"SELECT 1 FROM search WHERE search MATCH ?{scope.rows} LIMIT {_COUNTED}"  # noqa: S608
    query = f"SELECT count(*) FROM ({rows})"  # noqa: S608 - our own words
    ((count,),) = reader.db.execute(query, (word.match, *scope.row_values))
    return int(count)


def _weigh(
    words: tuple[SearchWord, ...], counts: tuple[int, ...], entries: int
) -> tuple[float, ...]:
    """How much each word counts: a rare one much, one that most entries have almost nothing."""

    def weight(word: SearchWord, count: int) -> float:
        return math.log((max(entries, count) + 1) / count) if word.match and count else 0.0

    own = [weight(word, count) for word, count in zip(words, counts, strict=True)]
    of_source: dict[int, float] = {}
    for word, one in zip(words, own, strict=True):
        of_source[word.source] = max(one, of_source.get(word.source, 0.0))
    # a whole identifier is at least as rare as the rarest of its parts
    return tuple(
        one if word.match else of_source.get(word.source, _PLAIN)
        for word, one in zip(words, own, strict=True)
    )


def _is_somewhere(reader: LogReader, number: int, query: _Query) -> bool:
    """Whether any entry in scope has the term, or a word like it; searches for it do not count."""
    if query.terms[number].excluded:
        return True
    own = [word for word in query.words if word.source == number and word.match]
    if not own:
        return True  # it says nothing, or stands in the query twice
    match = " AND ".join(f"({word.match})" for word in own)
    scope = query.scope
    sql = f"{_joined(_rows_with_word(scope, _COUNTED), scope)} LIMIT 1"
    given = (match + _conditions(query) + _NO_ECHO, *scope.row_values, *scope.values)
    return bool(list(reader.db.execute(sql, given)))


def _conditions(query: _Query) -> str:
    """What every match must also fulfil: role, tool, and words that are excluded."""
    unwanted = tuple(term for term in query.terms if term.excluded)
    marks = match_expression((), role=query.given.role, tool=query.given.tool)
    return (f" AND {marks}" if marks else "") + match_expression(unwanted, role=None, tool=None)


def _rows_with_word(scope: RowScope, most: int, weight: float = 0.0) -> str:
    """The newest rows that match; takes the match and the scope's row values."""
    return (
        f"SELECT rowid AS key, {weight!r} AS weight FROM search "  # noqa: S608 - our own words
        f"WHERE search MATCH ?{scope.rows} ORDER BY rowid DESC LIMIT {most}"
    )


def _joined(rows: str, scope: RowScope) -> str:
    """Rows with the session of each, of those that are in scope."""
    return (
        f"SELECT f.key, l.session FROM ({rows}) f "  # noqa: S608 - our own words
        f"JOIN entries e ON e.key = f.key JOIN lines l ON l.line = f.key >> {SEGMENT_BITS} "
        f"JOIN sessions s ON s.session = l.session WHERE s.trashed IS NULL{scope.filters}"
    )


# --- the candidates -----------------------------------------------------------------------------


def _read_all(reader: LogReader, query: _Query) -> Iterator[_Found]:
    """The newest entries with all words, and those with the heaviest words."""
    seen: set[int] = set()
    complete = characters = 0
    for key, owner in _complete_rows(reader, query):
        seen.add(key)
        if (found := _read(reader, query, key, owner)) is not None:
            complete += not found.missing
            characters += found.size
            yield found
        enough = complete >= max(_READ, query.given.limit) or characters > _MOST_CHARACTERS
        if enough or len(seen) >= _MOST_READ:
            break
    alone = len(query.words) == 1
    few = complete < query.given.limit or is_sentence(query.terms)
    if few and not (alone and complete):
        nearest = (row for row in _partial_rows(reader, query) if row[0] not in seen)
        read = (_read(reader, query, key, owner) for key, owner in nearest)
        for found in islice((found for found in read if found is not None), _READ):
            characters += found.size
            yield found
            if characters > _MOST_CHARACTERS:
                break


def _complete_rows(reader: LogReader, query: _Query) -> Iterable[tuple[int, int]]:
    """Newest first, one after the other: most of them are never read."""
    scope = query.scope
    every = " AND ".join(f"({word.exact})" for word in query.words if word.exact)
    sql = (
        "SELECT e.key, l.session FROM search "  # noqa: S608 - our own words
        "JOIN entries e ON e.key = search.rowid "
        f"JOIN lines l ON l.line = e.key >> {SEGMENT_BITS} "
        "JOIN sessions s ON s.session = l.session "
        f"WHERE search MATCH ?{scope.rows} AND s.trashed IS NULL{scope.filters} "
        "ORDER BY search.rowid DESC"
    )
    match = f"({every}){_conditions(query)}"
    return reader.db.execute(sql, (match, *scope.row_values, *scope.values))


def _partial_rows(reader: LogReader, query: _Query) -> list[tuple[int, int]]:
    """The rows with the greatest sum of weights; common words decide only among few rows."""
    scope, extra = query.scope, _conditions(query)
    known = [
        (count, word.match, weight)
        for word, count, weight in zip(query.words, query.counts, query.weights, strict=True)
        if count
    ]
    rare = [one for one in known if one[0] <= _COMMON] or sorted(known)[:2]
    if not rare:
        return []
    every = " UNION ALL ".join(
        f"SELECT * FROM ({_rows_with_word(scope, _COMMON, weight)})"  # noqa: S608 - our own words
        for _, _, weight in rare
    )
    united = f"SELECT key, sum(weight) AS weight FROM ({every}) GROUP BY key"  # noqa: S608
    sql = f"{_joined(united, scope)} ORDER BY f.weight DESC, f.key DESC LIMIT {_MOST_READ}"
    values = [value for _, match, _ in rare for value in (f"({match}){extra}", *scope.row_values)]
    return list(reader.db.execute(sql, (*values, *scope.values)))


def _read(reader: LogReader, query: _Query, key: int, owner: int) -> _Found | None:
    try:
        entry = reader.path(key, last=1, mark=True)[0]
    except (Damaged, NotFound):
        return None  # reading its session reports the damage
    if query.given.spoken and not isinstance(entry.body, Message | Compaction):
        return None
    text = clean(readable_text(entry.body)[:INDEXED_CHARACTERS])
    places = find_places(text, query.words)
    missing = _missing(text, query, places)
    if not places and len(missing) >= len({word.source for word in query.words if word.match}):
        return None
    window = best_window(places, query.weights, query.length)
    close = best_window(places, query.weights, min(_CLOSE, query.length))
    score = window.score + close.score + _SCATTERED * window.rest
    passage = cut_passage(text, window, places, query.length)
    first = not missing and not is_sentence(query.terms)
    return _Found(key, owner, entry, len(text), first, round(score, 3), passage, missing)


def _missing(text: str, query: _Query, places: Sequence[Place]) -> tuple[str, ...]:
    """The terms of the query that the text does not have."""
    present = {place.word for place in places}
    exact = [n for n, term in enumerate(query.terms) if term.exact and not term.excluded]
    if exact or not text.isascii():
        folded = " ".join(search_tokenizer.fold_text(text).split())
        # characters that become others have no place of their own
        present |= {n for n, word in enumerate(query.words) if not places and word.stem in folded}
    lacking = {w.source for n, w in enumerate(query.words) if w.match and n not in present}
    lacking |= {n for n in exact if query.terms[n].literal not in folded}
    return tuple(query.terms[n].given for n in sorted(lacking))


# --- the result ---------------------------------------------------------------------------------


class _Chosen(NamedTuple):
    found: _Found
    beside: tuple[Entry, ...]
    calls: frozenset[tuple[str, str]]
    words: frozenset[str]
    alike: list[str]


def _fold_alike(
    reader: LogReader, found: list[_Found], limit: int
) -> tuple[tuple[SearchHit, ...], bool]:
    """The first `limit`; what says the same as one of them, and its other half, is folded in."""
    chosen: list[_Chosen] = []
    covered: set[str] = set()
    more = False
    for one in found:
        if one.entry.id in covered:
            continue
        words = _words_of(one)
        twin = next((c for c in chosen if _alike(words, c.words)), None)
        full = len(chosen) >= limit
        if twin is None and not full:
            beside = read_counterparts(reader, one.key, one.entry)
            calls = _calls(one.entry, beside)
            twin = next((c for c in chosen if calls and calls == c.calls), None)
            covered.update(entry.id for entry in beside)
            if twin is None:
                chosen.append(_Chosen(one, beside, calls, words, []))
        if twin is not None:
            twin.alike.append(one.entry.id)
        more = more or (twin is None and full)
    owners: dict[int, SessionInfo] = {}
    return tuple(_hit(reader, one, owners) for one in chosen), more


def _hit(reader: LogReader, one: _Chosen, owners: dict[int, SessionInfo]) -> SearchHit:
    found = one.found
    if found.owner not in owners:
        owners[found.owner] = session_by_number(reader.db, found.owner)
    return SearchHit(
        session=owners[found.owner],
        entry=found.entry,
        snippet=found.passage.text,
        marks=found.passage.marks,
        missing=found.missing,
        beside=one.beside,
        alike=tuple(one.alike),
    )


_TOKEN = re.compile(r"\w+")
_LINE_NUMBER = re.compile(r"^\s*\d+(?:→|\t)", re.MULTILINE)


def _words_of(found: _Found) -> frozenset[str]:
    """The words of a passage, and whether somebody said it or a tool gave it."""
    origin = "result" if results_of(found.entry) else type(found.entry.body).__name__
    text = _LINE_NUMBER.sub("", found.passage.text.lower())
    return frozenset((f"<{origin}>", *_TOKEN.findall(text)))


def _alike(words: frozenset[str], others: frozenset[str]) -> bool:
    return len(words & others) >= _ALIKE * len(words | others)


def _calls(entry: Entry, beside: tuple[Entry, ...]) -> frozenset[tuple[str, str]]:
    """What was called: a retry has the same calls."""
    calls = calls_of(entry) or tuple(call for other in beside for call in calls_of(other))
    return frozenset((call.name, call.arguments) for call in calls)

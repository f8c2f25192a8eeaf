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
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, islice
from typing import NamedTuple

from recollect.entries import Compaction, Entry, Message, Part, ToolCall, ToolResult
from recollect.errors import Damaged, NotFound
from recollect.store import search_tokenizer
from recollect.store.contract import SearchHit, SearchQuery, SearchResult, SessionInfo
from recollect.store.near_duplicates import FoldedEntry, FoundEntry, fold_alike
from recollect.store.output_notes import output_part
from recollect.store.passages import TextPassage, Window, best_window, cut_passage
from recollect.store.readable_text import HISTORY_TOOLS, PartText, readable_parts
from recollect.store.search_scope import has_role
from recollect.store.search_source import RowKey, SearchSource
from recollect.store.search_tokenizer import INDEXED_CHARACTERS, SearchTerm, match_expression
from recollect.store.search_words import (
    SearchWord,
    every_form,
    is_sentence,
    name_absent,
    split_terms,
)
from recollect.store.word_places import Place, find_places
from recollect.text import clean

_COUNTED = 20_000  # entries with a word; above that all words are equally common
_COMMON = 2_000  # entries with a word that may be read for it: the newest
_READ = 100  # entries whose text is read
_MOST_READ = 400  # where entries turn out to lack a phrase, or to be the echo of a search
_MOST_CHARACTERS = 20_000_000  # of all of them together
_SCATTERED = 0.3  # what a word counts that stands far from the others
_PLAIN = 1.5  # the weight of neighbours whose words stand in the query twice
_CLOSE = 300  # characters: words that stand within them count twice

_NO_ECHO = "".join(f" NOT {search_tokenizer.tool_mark(name)}" for name in HISTORY_TOOLS)


class _Query(NamedTuple):
    """A query with what the index says about its words."""

    given: SearchQuery
    length: int
    terms: tuple[SearchTerm, ...]
    words: tuple[SearchWord, ...]
    counts: tuple[int, ...]
    weights: tuple[float, ...]
    sentence: bool  # a question, in which no word is indispensable
    exact: tuple[SearchTerm, ...]  # terms that the text must have as they stand


def rank_entries(source: SearchSource, given: SearchQuery, length: int) -> SearchResult:
    """The best entries, near-duplicates folded into one, each with a passage of about `length`."""
    terms = search_tokenizer.parse_query(given.words)
    words = split_terms(terms)
    entries = source.entries_in_scope()
    if entries is None:
        return SearchResult((), name_absent(terms, {word.name for word in words}))
    query = _prepare(source, given, length, terms, words, entries)
    found = sorted(_read_all(source, query), key=lambda one: one.rank, reverse=True)
    names = frozenset(word.name for word in words if word.match)
    unsure = names.intersection(*(one.lacking for one in found))
    nowhere = {name for name in unsure if not _is_somewhere(source, name, query)}
    folded, more = fold_alike(source, found, given.limit)
    owners: dict[RowKey, SessionInfo] = {}
    hits = tuple(_hit(source, one, terms, owners) for one in folded)
    return SearchResult(hits, name_absent(terms, nowhere), more)


# --- what the index knows -----------------------------------------------------------------------


def _prepare(
    source: SearchSource,
    given: SearchQuery,
    length: int,
    terms: tuple[SearchTerm, ...],
    words: tuple[SearchWord, ...],
    entries: int,
) -> _Query:
    counts = tuple(source.count(word.match, _COUNTED) if word.match else 0 for word in words)
    sources = {word.source for word in words}
    exact = [
        term
        for number, term in enumerate(terms)
        if term.exact and not term.in_pairs and number in sources
    ]
    return _Query(
        given=given,
        length=length,
        terms=terms,
        words=words,
        counts=counts,
        weights=_weigh(words, counts, entries),
        sentence=is_sentence(terms),
        exact=tuple(exact),
    )


def _weigh(
    words: tuple[SearchWord, ...], counts: tuple[int, ...], entries: int
) -> tuple[float, ...]:
    """How much each word counts: a rare one much, one that most entries have almost nothing."""

    def weight(word: SearchWord, count: int) -> float:
        # where the index has none, the text of an entry may still show one: `getUserName`
        return math.log((max(entries, count) + 1) / max(count, 1)) if word.match else 0.0

    own = [weight(word, count) for word, count in zip(words, counts, strict=True)]
    of_source: dict[int, float] = {}
    for word, one in zip(words, own, strict=True):
        of_source[word.source] = max(one, of_source.get(word.source, 0.0))
    # a whole identifier is at least as rare as the rarest of its parts
    return tuple(
        one if word.match else of_source.get(word.source, _PLAIN)
        for word, one in zip(words, own, strict=True)
    )


def _is_somewhere(source: SearchSource, name: str, query: _Query) -> bool:
    """Whether any entry in scope has the word, or one like it; searches for it do not count."""
    own = [word for word in query.words if word.name == name and word.match]
    match = " AND ".join(f"({every_form(word)})" for word in own)
    rows = source.newest(match + _conditions(query) + _NO_ECHO, _COUNTED)
    return next(iter(rows), None) is not None


def _conditions(query: _Query) -> str:
    """What every match must also fulfil: role, tool, and words that are excluded."""
    unwanted = tuple(term for term in query.terms if term.excluded)
    marks = match_expression((), role=query.given.role, tool=query.given.tool)
    return (f" AND {marks}" if marks else "") + match_expression(unwanted, role=None, tool=None)


# --- the candidates -----------------------------------------------------------------------------


def _read_all(source: SearchSource, query: _Query) -> Iterator[FoundEntry]:
    """The newest entries with all words, those with identifiers that join a word of two, and those
    with the heaviest words."""
    seen: set[RowKey] = set()
    complete = characters = 0
    for key, owner in _complete_rows(source, query):
        seen.add(key)
        if (found := _read(source, query, key, owner)) is not None:
            complete += not found.lacking
            characters += found.size
            yield found
        enough = complete >= max(_READ, query.given.limit) or characters > _MOST_CHARACTERS
        if enough or len(seen) >= _MOST_READ:
            break
    for key, owner in _rows_with_joined_words(source, query):
        found = _read(source, query, key, owner) if key not in seen else None
        if found is not None:
            seen.add(key)
            complete += not found.lacking
            characters += found.size
            yield found
    alone = len(query.words) == 1
    if (complete < query.given.limit or query.sentence) and not (alone and complete):
        nearest = (row for row in _partial_rows(source, query) if row[0] not in seen)
        read = (_read(source, query, key, owner) for key, owner in nearest)
        for found in islice((found for found in read if found is not None), _READ):
            characters += found.size
            yield found
            if characters > _MOST_CHARACTERS:
                break


def _complete_rows(source: SearchSource, query: _Query) -> Iterable[tuple[RowKey, RowKey]]:
    """Newest first, one after the other: most of them are never read."""
    every = " AND ".join(f"({word.exact})" for word in query.words if word.exact)
    return source.newest(f"({every}){_conditions(query)}")


def _rows_with_joined_words(source: SearchSource, query: _Query) -> Iterable[tuple[RowKey, RowKey]]:
    """The newest rows with the two words that one of the query may consist of. In a question only
    for words that the index does not have: there, others lead to the entry, too."""
    counted = zip(query.words, query.counts, strict=True)
    joined = [w.joined for w, count in counted if w.joined and not (count and query.sentence)]
    if not joined:
        return []
    match = f"({' OR '.join(joined)}){_conditions(query)}{_NO_ECHO}"
    return list(source.newest(match, _READ))


def _partial_rows(source: SearchSource, query: _Query) -> Iterable[tuple[RowKey, RowKey]]:
    """The rows with the greatest sum of weights; common words decide only among few rows."""
    extra = _conditions(query)
    known = [
        (count, word.match, weight)
        for word, count, weight in zip(query.words, query.counts, query.weights, strict=True)
        if count
    ]
    rare = [one for one in known if one[0] <= _COMMON] or sorted(known)[:2]
    matches = [(f"({match}){extra}", weight) for _, match, weight in rare]
    return source.heaviest(matches, _COMMON, _MOST_READ) if matches else ()


def _read(source: SearchSource, query: _Query, key: RowKey, owner: RowKey) -> FoundEntry | None:
    try:
        entry = source.up_to(key, 1)[0]
    except (Damaged, NotFound):
        return None  # reading its session reports the damage
    spoken = isinstance(entry.body, Message | Compaction) or output_part(entry.body) is not None
    if query.given.spoken and not spoken:
        return None
    if not has_role(entry.body, query.given.role):
        return None
    said = _clean_parts(entry)
    text = "\n".join(part.text for part in said)
    places = find_places(text, query.words)
    lacking = _lacking(text, query, places)
    if not places and lacking.issuperset(word.name for word in query.words if word.match):
        return None
    window = best_window(places, query.weights, query.length)
    close = best_window(places, query.weights, min(_CLOSE, query.length))
    score = round(window.score + close.score + _SCATTERED * window.rest, 3)
    calls, passage = _cut_from_parts(said, text, window, places, query.length)
    first = not lacking and not query.sentence
    return FoundEntry(key, owner, entry, len(text), first, score, passage, calls, lacking)


def _clean_parts(entry: Entry) -> list[PartText]:
    left, said = INDEXED_CHARACTERS, []
    for part, text in readable_parts(entry.body):
        if left > 0:
            said.append(PartText(part, clean(text[:left])))
            left -= len(text) + 1
    return said


def _lacking(text: str, query: _Query, places: Sequence[Place]) -> frozenset[str]:
    """The names of the words that the text does not have."""
    present = {place.word for place in places}
    lacking = [w for n, w in enumerate(query.words) if w.match and n not in present]
    composed = lacking and not (text.isascii() or unicodedata.is_normalized("NFKC", text))
    folded = search_tokenizer.fold_text(text) if query.exact or composed else ""
    if composed:  # characters that only together become another have no place of their own
        found = {place.word for place in find_places(folded, tuple(lacking))}
        lacking = [word for n, word in enumerate(lacking) if n not in found]
    folded = " ".join(folded.split())
    names = [term.given for term in query.exact if term.literal not in folded]
    return frozenset((*names, *(word.name for word in lacking)))


def _cut_from_parts(
    said: Sequence[PartText], text: str, window: Window, places: Sequence[Place], length: int
) -> tuple[tuple[str, ...], TextPassage]:
    """The passage, and the calls it is of. It never goes on in the result of another call, under
    whose name it would stand."""
    ends = list(accumulate(len(one.text) + 1 for one in said))
    starts = [0, *ends[:-1]]
    inside = [
        (one.part, start, end - 1)
        for one, start, end in zip(said, starts, ends, strict=True)
        if start <= window.end and end > window.start
    ]
    ids = _call_ids(part for part, _, _ in inside) or _call_ids(one.part for one in said)
    if not any(isinstance(part, ToolResult) for part, _, _ in inside):
        return ids, cut_passage(text, window, places, length)
    start, end = inside[0][1], inside[-1][2]
    shifted = [
        Place(place.start - start, place.end - start, place.word)
        for place in places
        if start <= place.start and place.end <= end
    ]
    own = window._replace(start=window.start - start, end=window.end - start)
    return ids, cut_passage(text[start:end], own, shifted, length)


def _call_ids(parts: Iterable[Part | None]) -> tuple[str, ...]:
    ids = (
        part.id if isinstance(part, ToolCall) else part.call_id
        for part in parts
        if isinstance(part, ToolCall | ToolResult)
    )
    return tuple(dict.fromkeys(ids))


# --- the result ---------------------------------------------------------------------------------


def _hit(
    source: SearchSource,
    one: FoldedEntry,
    terms: tuple[SearchTerm, ...],
    owners: dict[RowKey, SessionInfo],
) -> SearchHit:
    found = one.found
    if found.owner not in owners:
        owners[found.owner] = source.session(found.owner)
    return SearchHit(
        session=owners[found.owner],
        entry=found.entry,
        snippet=found.passage.text,
        marks=found.passage.marks,
        missing=name_absent(terms, found.lacking),
        beside=one.beside,
        alike=tuple(one.alike),
        call_ids=found.call_ids,
    )

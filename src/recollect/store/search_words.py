"""The words of a question: what the index is asked for each, and where they stand in a text.

A question in plain language is no list of terms. Its words are weighed by how rare they are, so
`the` counts for nothing beside a name; an identifier counts as a whole and in its parts; `closed`
also finds `close` and `closing`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise

import msgspec

from recollect.store.search_tokenizer import (
    INDEXED_CHARACTERS,
    SearchTerm,
    fold_text,
    split_words,
)

_SUFFIX = re.compile(r"(?:ings?|ied|ies|ed|es|s|e|ly)$")
_MIN_STEM = 4
_MAX_WORDS = 40
_SENTENCE = 4  # terms: in a longer query, the words of which sentences are made say nothing
_FUNCTION_WORDS = re.compile(
    r"(?:a|about|after|all|also|an|and|any|are|as|at|be|been|before|between|but|by|can|could|did|do"
    r"|does|for|from|had|has|have|how|i|if|in|into|is|it|its|me|my|no|not|of|on|or|our|shall|should"
    r"|so|than|that|the|their|them|then|there|these|they|this|those|to|us|was|we|were|what|when"
    r"|where|which|while|who|whom|whose|why|will|with|would|you|your)"
)


class SearchWord(msgspec.Struct, frozen=True):
    """A word to look for. `source` is the position, in the query, of the term it comes from."""

    exact: str  # for the index: the word itself; empty: only the text can tell
    match: str  # for the index: words that begin like it, too
    stem: str  # folded; a text has the word where something begins with this
    whole: bool  # nothing may follow it
    source: int


class Place(msgspec.Struct, frozen=True):
    start: int
    end: int
    word: int


def split_terms(terms: tuple[SearchTerm, ...]) -> tuple[SearchWord, ...]:
    """The words of all terms, each once; identifiers, phrases and neighbours also as a whole."""
    found: dict[str, SearchWord] = {}
    wanted = [term for term in terms if not term.excluded]
    if is_sentence(terms):
        wanted = [term for term in wanted if not _says_nothing(term)] or wanted
    for source, term in enumerate(terms):
        if term not in wanted:
            continue
        parts = list(_leaves(term, source))
        if len(parts) > 1:
            parts.append(SearchWord("", "", term.literal, whole=False, source=source))
        for part in parts:
            found.setdefault(part.stem, part)
    pairs = [pair for pair in _pairs(terms, wanted) if pair.stem not in found]
    return (*list(found.values())[:_MAX_WORDS], *pairs[:_MAX_WORDS])


def _pairs(terms: tuple[SearchTerm, ...], wanted: list[SearchTerm]) -> Iterator[SearchWord]:
    """Neighbours in the query: `could not start` tells more than its words do."""
    for source, (one, other) in enumerate(pairwise(terms)):
        if not (one.excluded or other.excluded or one.begins):
            of = source if one in wanted else source + 1
            yield SearchWord("", "", f"{one.literal} {other.literal}", whole=False, source=of)


def is_sentence(terms: tuple[SearchTerm, ...]) -> bool:
    """Whether the query is a question rather than a list of words that must all be there."""
    return sum(not term.excluded for term in terms) > _SENTENCE


def _says_nothing(term: SearchTerm) -> bool:
    return not term.exactly and _FUNCTION_WORDS.fullmatch(term.literal) is not None


def _leaves(term: SearchTerm, source: int) -> Iterator[SearchWord]:
    runs = split_words(term.given)
    for number, (run, match) in enumerate(runs, 1):
        folded = fold_text(run)
        begins = term.begins and number == len(runs)
        stem = folded if term.exactly or term.begins else _stem(folded)
        whole = len(stem) < _MIN_STEM and not begins
        exact = _in_json(match, folded)
        like = exact
        if begins or not (whole or term.exactly or match.endswith(("*", ")"))):
            like = " OR ".join(f'"{form}" *' for form in _forms(stem))
        yield SearchWord(like if begins else exact, like, stem, whole, source)


def _in_json(match: str, word: str) -> str:
    return " OR ".join((match, *(f'"{form}"' for form in _forms(word)[1:])))


def _forms(word: str) -> tuple[str, ...]:
    """Arguments are indexed as JSON, where a word after a line break or a tab follows a letter."""
    return (word, f"n{word}", f"t{word}") if word.isascii() and word[:1].isalpha() else (word,)


def _stem(word: str) -> str:
    if not word.isascii() or not word.isalpha() or word.endswith("ss"):
        return word
    stem = _SUFFIX.sub("", word)
    if len(stem) > _MIN_STEM and stem != word and stem[-1] == stem[-2]:
        stem = stem[:-1]  # committed, planned
    return stem if len(stem) >= _MIN_STEM else word


def find_places(text: str, words: tuple[SearchWord, ...], most: int = 500) -> list[Place]:
    """Where the words stand, in order; of each at most the first `most`."""
    text = text[:INDEXED_CHARACTERS]
    folded = fold_in_place(text)
    places: list[Place] = []
    for number, word in enumerate(words):
        start = folded.find(word.stem)
        for _ in range(most):
            if start < 0:
                break
            end = start + len(word.stem)
            if _begins(text, start) and not (word.whole and _continues(text, end)):
                places.append(Place(start, _word_end(text, end), number))
            start = folded.find(word.stem, end)
    return sorted(places, key=lambda place: (place.start, place.end))


def _begins(text: str, at: int) -> bool:
    """Whether a word, or a part of an identifier, begins here: `cat` is not in `concatenate`."""
    if not at or not text[at].isalnum() or not text[at - 1].isalnum():
        return True
    if text[at - 2 : at] in ("\\n", "\\t"):
        return True
    here, before = text[at], text[at - 1]
    return (
        not here.isascii()
        or (here.isupper() and not before.isupper())
        or (here.isdigit() != before.isdigit())
    )


def _continues(text: str, at: int) -> bool:
    if at >= len(text) or not text[at].isalnum() or not text[at].isascii():
        return False
    return not (text[at].isupper() and text[at - 1].islower())


def _word_end(text: str, end: int) -> int:
    stop = min(len(text), end + 20)
    while end < stop and text[end].isalpha() and text[end].islower() and text[end].isascii():
        end += 1
    return end


_FOREIGN = re.compile("[^\x00-\x7f]")


def fold_in_place(text: str) -> str:
    """The text without case and accents, every character in its place."""
    lowered = text.lower()
    if len(lowered) != len(text):
        lowered = "".join(_fold_character(c) for c in text)
    return lowered if lowered.isascii() else _FOREIGN.sub(lambda m: _fold_character(m[0]), lowered)


@lru_cache(10_000)
def _fold_character(character: str) -> str:
    folded = unicodedata.normalize("NFKD", character).lower()
    accents = folded[1:]
    # only these: others change the letter, such as U+3099, which turns か into が
    plain = folded and all("\u0300" <= accent <= "\u036f" for accent in accents)
    return folded[0] if plain else character

"""The words of a question: what the index is asked for each, and what of a text they match.

A question in plain language is no list of terms. Its words are weighed by how rare they are, so
`the` counts for nothing beside a name; an identifier counts as a whole and in its parts; `closed`
also finds `close` and `closing`. Chinese, Japanese and Korean have no spaces, so each pair of
neighbouring characters is a word: a text that has some of them is nearer than one that has none.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from itertools import islice, pairwise
from typing import Literal, TypeAlias

import msgspec

from recollect.store.search_tokenizer import (
    SearchTerm,
    SplitWord,
    fold_text,
    is_unspaced,
    split_words,
)

_SUFFIX = re.compile(r"(?:ings?|ied|ies|ed|es|s|e|ly)$")
_MIN_STEM = 4
_LONG_STEM = 6  # `config` also finds `configuration`, but `port` does not find `portion`
_MAX_WORDS = 40
_SENTENCE = 4  # terms: in a longer query, the words of which sentences are made say nothing
_FUNCTION_WORDS = re.compile(
    r"(?:a|about|after|all|also|an|and|any|are|as|at|be|been|before|between|but|by|can|could|did|do"
    r"|does|for|from|had|has|have|how|i|if|in|into|is|it|its|me|my|no|not|of|on|or|our|shall|should"
    r"|so|than|that|the|their|them|then|there|these|they|this|those|to|us|was|we|were|what|when"
    r"|where|which|while|who|whom|whose|why|will|with|would|you|your)"
)
_ENDINGS = (
    *("", "e", "s", "es", "ed", "en", "er", "ers", "or", "ors", "ing", "ings"),
    *("ies", "ied", "ly", "y", "ure", "ures"),
)
_AFTER_E = ("d", "r", "rs")
_AFTER_FIVE = ("ion", "ions")  # after at least five letters: `deletion`, but not `portion`

Continuation: TypeAlias = Literal["nothing", "an ending", "anything"]


class SearchWord(msgspec.Struct, frozen=True):
    """A word to look for. `source` is the position, in the query, of the term it comes from."""

    exact: str  # for the index: the word itself; empty: only the text can tell
    match: str  # for the index: words that begin like it, too
    stem: str  # folded; a text has the word where something begins with this
    after: Continuation  # what may follow the stem in a word of the text
    source: int
    name: str = ""  # as it was typed; of a run without spaces, the pair
    joined: str = ""  # for the index: two words that it may consist of, as `userName` does


def split_terms(terms: tuple[SearchTerm, ...]) -> tuple[SearchWord, ...]:
    """The words of all terms, each once; identifiers, phrases and neighbours also as a whole."""
    found: dict[str, SearchWord] = {}
    wanted = {term for term in terms if not term.excluded}
    if is_sentence(terms):
        wanted = {term for term in wanted if not _says_nothing(term)} or wanted
    for source, term in enumerate(terms):
        if len(found) >= _MAX_WORDS:
            break
        parts = list(_leaves(term, source)) if term in wanted else []
        if len(parts) > 1:
            parts.append(SearchWord("", "", term.literal, "anything", source))
        for part in parts:
            found.setdefault(part.stem, part)
    pairs = (pair for pair in _neighbours(terms, wanted) if pair.stem not in found)
    return (*islice(found.values(), _MAX_WORDS), *islice(pairs, _MAX_WORDS))


def _neighbours(terms: tuple[SearchTerm, ...], wanted: set[SearchTerm]) -> Iterator[SearchWord]:
    """Neighbours in the query: where they stand together in a text, it is nearer."""
    for source, (one, other) in enumerate(pairwise(terms)):
        if one in wanted and other in wanted and not one.begins:
            yield SearchWord("", "", f"{one.literal} {other.literal}", "anything", source)


def is_sentence(terms: tuple[SearchTerm, ...]) -> bool:
    """Whether the query is a question rather than a list of words that must all be there."""
    return sum(_count_words(term) for term in terms if not term.excluded) > _SENTENCE


def _count_words(term: SearchTerm) -> int:
    """One; of a run without spaces about as many as it has, most of which have two characters."""
    if not term.in_pairs:
        return 1
    return sum((len(pairs_of(word.text)) + 2) // 2 for word in split_words(term.given))


def _says_nothing(term: SearchTerm) -> bool:
    return not term.exactly and _FUNCTION_WORDS.fullmatch(term.literal) is not None


def _leaves(term: SearchTerm, source: int) -> Iterator[SearchWord]:
    words = split_words(term.given)
    for number, word in enumerate(words, 1):
        if term.in_pairs and (pairs := pairs_of(word.text)):
            for pair in pairs:
                yield SearchWord(f'"{pair}"', f'"{pair}"', pair, "anything", source, pair)
        else:
            begins = term.begins and number == len(words)
            name = word.text if term.in_pairs else term.given
            yield _leaf(term, word, source, name, begins=begins)


def _leaf(term: SearchTerm, word: SplitWord, source: int, name: str, *, begins: bool) -> SearchWord:
    folded = fold_text(word.text)
    stem = folded if term.exactly or term.begins else _stem(folded)
    after = _continuation(stem, exactly=term.exactly, begins=begins)
    exact = _in_json(word.match, folded)
    like = exact
    if begins or not (after == "nothing" or word.match.endswith(("*", ")"))):
        like = " OR ".join(f'"{form}" *' for form in _forms(stem))
    joined = "" if term.exactly or begins else word.joined
    return SearchWord(like if begins else exact, like, stem, after, source, name, joined)


def _continuation(stem: str, *, exactly: bool, begins: bool) -> Continuation:
    if begins or is_unspaced(stem):
        return "anything"
    if exactly or len(stem) < _MIN_STEM:
        return "nothing"
    if len(stem) >= _LONG_STEM or not stem.isascii():  # languages whose endings we do not know
        return "anything"
    return "an ending" if stem.isalpha() else "nothing"


def pairs_of(run: str) -> list[str]:
    """The overlapping pairs of a run of characters without spaces; none of anything else."""
    folded = fold_text(run)
    if not is_unspaced(folded):
        return []
    return [folded[at : at + 2] for at in range(len(folded) - 1)]


def name_absent(terms: tuple[SearchTerm, ...], absent: Collection[str]) -> tuple[str, ...]:
    """The words of the query among these names, pairs put together to what is missing of a run."""
    names: dict[str, None] = {}
    for term in terms:
        if term.excluded:
            continue
        if not term.in_pairs:
            names |= dict.fromkeys([term.given] if term.given in absent else [])
            continue
        for word in split_words(term.given):
            if pairs := pairs_of(word.text):
                names |= dict.fromkeys(_absent_runs(pairs, absent))
            elif word.text in absent:
                names[word.text] = None
    return tuple(names)


def _absent_runs(pairs: list[str], absent: Collection[str]) -> list[str]:
    """The longest runs of characters that are in no pair but absent ones."""
    shown = list(pairs[0] + "".join(pair[1] for pair in pairs[1:]))
    for at, pair in enumerate(pairs):
        if pair not in absent:
            shown[at] = shown[at + 1] = " "
    return "".join(shown).split()


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


def is_ending(stem: str, rest: str) -> bool:
    """Whether the rest makes another form of a word, and not another word."""
    if rest in _ENDINGS or (rest[:1] == stem[-1:] and rest[1:] in _ENDINGS):  # committed
        return True
    if stem.endswith("e"):
        return rest in _AFTER_E
    return len(stem) > _MIN_STEM and rest in _AFTER_FIVE


def every_form(word: SearchWord) -> str:
    """For the index: all that counts as this word, and nothing that only begins like it."""
    if word.after != "an ending":
        return word.match
    doubled = (word.stem[-1] + ending for ending in _ENDINGS)
    rests = (*_ENDINGS, *_AFTER_E, *_AFTER_FIVE, *doubled)
    words = sorted(word.stem + rest for rest in rests if is_ending(word.stem, rest))
    return " OR ".join(f'"{form}"' for one in words for form in _forms(one))

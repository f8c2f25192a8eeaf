"""Where the words of a search stand in a text.

The text is compared without case, accents and compatibility forms; every place is one of the text
itself, also where a character becomes several (the ligature of `file`) or none (an accent that
stands alone).
"""

from __future__ import annotations

import re
from bisect import bisect_right
from functools import lru_cache
from typing import NamedTuple

import msgspec

from recollect.store.search_tokenizer import INDEXED_CHARACTERS, fold_text, is_unspaced
from recollect.store.search_words import SearchWord, is_ending

_FOREIGN = re.compile("[^\x00-\x7f]")
_LONGEST_REST = 8  # characters: no ending is longer
_ACCENTS = ("\u0300", "\u036f")


class Place(msgspec.Struct, frozen=True):
    start: int
    end: int
    word: int


class FoldedText(NamedTuple):
    """A text without case and accents. After a character that did not become exactly one, `starts`
    has the position in it, and `origins` the position in the text it was made of."""

    text: str
    starts: tuple[int, ...] = ()
    origins: tuple[int, ...] = ()

    def origin(self, at: int) -> int:
        """The position in the original text of the character at this position."""
        if not self.starts:
            return at
        number = bisect_right(self.starts, at)
        found = at - self.starts[number - 1] + self.origins[number - 1] if number else at
        return found if number == len(self.starts) else min(found, self.origins[number] - 1)


def fold_characters(text: str) -> FoldedText:
    if text.isascii():
        return FoldedText(text.lower())
    starts: list[int] = []
    origins: list[int] = []
    added = 0

    def fold(match: re.Match[str]) -> str:
        nonlocal added
        folded = _fold_character(match[0])
        if len(folded) != 1:
            added += len(folded) - 1
            starts.append(match.end() + added)
            origins.append(match.end())
        return folded

    return FoldedText(_FOREIGN.sub(fold, text).lower(), tuple(starts), tuple(origins))


@lru_cache(10_000)
def _fold_character(character: str) -> str:
    return fold_text(character)


def find_places(text: str, words: tuple[SearchWord, ...], most: int = 500) -> list[Place]:
    """Where the words stand, in order; of each at most the first `most`."""
    text = text[:INDEXED_CHARACTERS]
    folded = fold_characters(text)
    places: list[Place] = []
    for number, word in enumerate(words):
        at = folded.text.find(word.stem)
        for _ in range(most):
            if at < 0:
                break
            after = at + len(word.stem)
            start, end = folded.origin(at), folded.origin(after - 1) + 1
            inside = at > 0 and folded.starts and folded.origin(at - 1) == start
            if not inside and _begins(text, start) and _may_go_on(text, end, word):
                places.append(Place(start, _word_end(text, end), number))
            at = folded.text.find(word.stem, after)
    return sorted(places, key=lambda place: (place.start, place.end))


def has_word(text: str, word: str) -> bool:
    """Whether this folded word, or a run of parts of an identifier, stands in the text."""
    return bool(find_places(text, (SearchWord("", "", word, "nothing", 0),)))


def _begins(text: str, at: int) -> bool:
    """Whether a word, or a part of an identifier, begins here: `cat` is not in `concatenate`."""
    if not at or not text[at].isalnum() or not text[at - 1].isalnum():
        return True
    if text[at - 2 : at] in ("\\n", "\\t"):
        return True
    here, before = text[at], text[at - 1]
    return (
        is_unspaced(here)
        or is_unspaced(before)
        or _is_hump(text, at)
        or (here.isdigit() != before.isdigit())
    )


def _may_go_on(text: str, at: int, word: SearchWord) -> bool:
    """Whether what follows the stem leaves it this word."""
    if word.after == "anything" or not _continues(text, at):
        return True
    if word.after == "nothing" or text[at].isdigit():
        return word.after != "nothing"
    end = at
    while end < at + _LONGEST_REST and _continues(text, end) and text[end].isalpha():
        end += 1
    return is_ending(word.stem, text[at:end].lower())


def _continues(text: str, at: int) -> bool:
    if at >= len(text) or not text[at].isalnum() or is_unspaced(text[at]):
        return False
    return not _is_hump(text, at)


def _is_hump(text: str, at: int) -> bool:
    """Whether a part of an identifier begins here: userName, HTTPServer."""
    if not text[at].isupper():
        return False
    return not text[at - 1].isupper() or text[at + 1 : at + 2].islower()


def _word_end(text: str, end: int) -> int:
    """With the small letters that follow, and the accents."""
    stop = min(len(text), end + 20)
    while end < stop and (text[end].islower() or _ACCENTS[0] <= text[end] <= _ACCENTS[1]):
        end += 1
    return end

"""Full-text search: the words of a text, the meaning of a query, the snippet around a match.

The index has words without positions. SQLite splits Latin and other spaced scripts; this module
also splits identifiers (`getUserName` is found by that name, by `user`, `name` and `username`) and
cuts Chinese, Japanese and Korean into overlapping pairs, so that words of two characters are found
without a dictionary. Words that must be adjacent (a quoted phrase, an identifier, a run of
characters) are then checked in the text itself, so the index may be coarse and small.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import TypeAlias

import msgspec

from recollect.entries import (
    Body,
    Compaction,
    Content,
    FileRef,
    Message,
    Note,
    Part,
    Text,
    Thought,
    Title,
    ToolCall,
    ToolResult,
)
from recollect.errors import BadInput
from recollect.store.output_notes import output_part
from recollect.text import clip

INDEXED_CHARACTERS = 1_000_000  # of one entry; the rest is stored but not searchable
_ROLE, _TOOL = "\ue000", "\ue001"  # private-use characters, removed from indexed text
# where a word starts inside an identifier: userName, HTTPServer. The pattern starts with the rarest
# class, which makes it twice as fast
_HUMP = re.compile(r"[A-Z](?:(?<=[a-z0-9][A-Z])|(?<=[A-Z][A-Z])(?=[a-z]))")
_CJK = (
    "\u2e80-\u2fdf\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003134f"
)
_CJK_RUN = re.compile(f"[{_CJK}]+")
_WORD = re.compile(f"[{_CJK}]+|[^\\W_{_CJK}]+")
_TERM = re.compile(r'(-(?!-))?(?:"([^"]*)"|(\S+))')
_AROUND_WORD = " \t\n.,;:!?()[]{}<>'\"`"  # punctuation that belongs to a sentence, not to its words
_NOT_WORD = re.compile(r"\W+")
_MAX_SHOWN = 80  # characters of a query in a message
_MIN_JOINED, _MAX_JOINED, _MIN_PART = 5, 40, 3  # letters of a word that may be two, and of these
_SHORT_PARTS = re.compile(r"ai|by|db|fs|i[dnops]|js|my|no|o[fkns]|to|u[ip]")
TextSpan: TypeAlias = tuple[int, int]
_SPEAKS, _OF_A_TOOL = (Text, Thought), (ToolCall, ToolResult)


class SearchTerm(msgspec.Struct, frozen=True):
    """One word or phrase of a query: the index expression, and the literal text to contain."""

    match: str
    literal: str
    exact: bool  # the text must contain the literal
    excluded: bool = False
    given: str = ""  # as it was typed
    exactly: bool = False  # it was quoted: nothing like it will do
    begins: bool = False  # it ended with `*`
    in_pairs: bool = False  # it has a run without spaces, any pair of which is a word
    joined: str = ""  # the index expression of two words that it may consist of: `userName`


class SplitWord(msgspec.Struct, frozen=True):
    """A word of a text, with its index expressions; see `SearchTerm`."""

    text: str
    match: str
    joined: str


def searchable_text(body: Body) -> str:
    """The text by which users can find an entry."""
    if isinstance(body, Message):
        return "\n".join(filter(None, map(_part_text, body.parts)))
    if isinstance(body, Note):
        return body.text
    if isinstance(body, Title):
        return body.title
    if isinstance(body, Compaction):
        return body.snapshot
    return ""


def _part_text(part: Part | Content) -> str:
    if isinstance(part, _SPEAKS):
        return part.text
    if isinstance(part, ToolCall):
        return f"{part.name} {part.arguments}"
    if isinstance(part, ToolResult):
        return "\n".join(filter(None, map(_part_text, part.content)))
    if isinstance(part, FileRef):
        return part.uri
    return ""


def index_text(body: Body) -> str:
    """The text to index for an entry: its words, and marks for its role and tools."""
    text = searchable_text(body)[:INDEXED_CHARACTERS]
    if not isinstance(body, Message):
        part = output_part(body)  # found like a result of its tool
        marks = f" {_marks('user', (part.tool,))}" if part is not None else ""
        return f"{fold_for_index(text)}{marks}" if text else ""
    tools = tuple([part.name for part in body.parts if isinstance(part, _OF_A_TOOL)])
    return f"{fold_for_index(text)} {_marks(body.role, tools)}"


def fold_for_index(text: str) -> str:
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text.translate(_HIDDEN))
        text = _CJK_RUN.sub(lambda run: f" {_pairs(run[0])} ", text)
    split = _split_identifiers(text)
    return text if split == text else f"{text} {split}"


def _split_identifiers(text: str) -> str:
    # comparing takes a tenth of the time of islower()
    return text if text == text.lower() else _HUMP.sub(r" \g<0>", text)


_HIDDEN = {ord(_ROLE): " ", ord(_TOOL): " "} | dict.fromkeys(range(0xD800, 0xE000), " ")


def _pairs(run: str) -> str:
    # the last character also stands alone, so that a single character matches everywhere
    return " ".join([run[i : i + 2] for i in range(len(run) - 1)] + [run[-1]])


@lru_cache(1_000)
def _marks(role: str, tools: tuple[str, ...]) -> str:
    return " ".join([_ROLE + role, *(_TOOL + _mark(name) for name in tools)])


@lru_cache(1_000)
def _mark(name: str) -> str:
    return _NOT_WORD.sub("", name).replace("_", "").lower()


def parse_query(words: str) -> tuple[SearchTerm, ...]:
    found = (_parse_term(*term) for term in _TERM.findall(words))
    terms = tuple(term for term in found if term is not None)
    if all(term.excluded for term in terms):
        only = "only words to exclude" if terms else "no word to search for"
        remedy = "a word to search for, too" if terms else "at least one letter or digit"
        raise BadInput(f"{clip(words, _MAX_SHOWN)!r} has {only}; give {remedy}")
    return terms


def _parse_term(minus: str, phrase: str, word: str) -> SearchTerm | None:
    begins = bool(word) and word.endswith("*")
    given = " ".join((phrase or word.rstrip("*").strip(_AROUND_WORD)).split())
    runs = _WORD.findall(unicodedata.normalize("NFKC", given))
    tokens = [_either(run, fold_text(run)) for run in runs]
    if not tokens:
        return None
    if begins and not tokens[-1].endswith(("*", ")")):
        tokens[-1] += " *"
    unspaced = _CJK_RUN.search(given) is not None
    alone = len(tokens) == 1 and tokens[0].startswith('"') and not unspaced
    return SearchTerm(
        match=" AND ".join(tokens),
        literal=fold_text(given),
        exact=not alone,
        excluded=bool(minus),
        given=given,
        exactly=bool(phrase),
        begins=begins,
        in_pairs=unspaced and not phrase,
        joined=_join_two(runs[0]) if alone and not (begins or phrase) else "",
    )


def split_words(given: str) -> list[SplitWord]:
    """The words of a text, parts of identifiers one by one."""
    runs = _WORD.findall(unicodedata.normalize("NFKC", given))
    parts = [part for run in runs for part in _split_identifiers(run).split()]
    return [SplitWord(part, _either(part, fold_text(part)), _join_two(part)) for part in parts]


def is_unspaced(text: str) -> bool:
    """Whether it is of a script that puts no spaces between words."""
    return _CJK_RUN.fullmatch(text) is not None


def _join_two(word: str) -> str:
    """Matches the two words that a word may consist of: an identifier with both, `getUserName`, is
    indexed by each of its parts and as a whole, but not by two of them."""
    if not (word.isascii() and word.isalpha() and _MIN_JOINED <= len(word) <= _MAX_JOINED):
        return ""
    word = word.lower()
    halves = ((word[:cut], word[cut:]) for cut in range(2, len(word) - 1))
    parts = [two for two in halves if all(map(_may_be_part, two))]
    return " OR ".join(f'("{one}" AND "{other}")' for one, other in parts)


def _may_be_part(word: str) -> bool:
    return len(word) >= _MIN_PART or _SHORT_PARTS.fullmatch(word) is not None


def _either(run: str, folded: str) -> str:
    """One run of letters as it is indexed: a word, pairs of characters, or parts of a name."""
    if _CJK_RUN.match(run):
        pairs = [f'"{folded[i : i + 2]}"' for i in range(len(folded) - 1)]
        return f"({' AND '.join(pairs)})" if pairs else f'"{folded}" *'
    parts = [fold_text(part) for part in _split_identifiers(run).split()]
    if len(parts) < 2:
        return f'"{folded}"'
    every = " AND ".join(f'"{part}"' for part in parts)
    return f'("{folded}" OR ({every}))'


def match_expression(
    terms: tuple[SearchTerm, ...], *, role: str | None, tool: str | None, joined: bool = False
) -> str:
    """What the index is asked; `joined`: at least one word is two parts of an identifier."""
    own = [term for term in terms if not term.excluded]
    wanted = [f"({term.match})" for term in own]
    if joined:
        either = " OR ".join(f"({term.joined})" for term in own if term.joined)
        wanted = [f"({term.match} OR {term.joined})" if term.joined else term.match for term in own]
        wanted = [f"({either})", *(f"({match})" for match in wanted if len(own) > 1)]
    if role:
        wanted.append(f'"{_ROLE}{_mark(role)}"')
    if tool:
        wanted.append(tool_mark(tool))
    # one list: FTS5 refuses a chain of more than some hundred
    unwanted = " OR ".join(f"({term.match})" for term in terms if term.excluded)
    return " AND ".join(wanted) + (f" NOT ({unwanted})" if unwanted else "")


def tool_mark(name: str) -> str:
    """Matches the calls and results of a tool."""
    return f'"{_TOOL}{_mark(name)}"'


def fold_text(text: str) -> str:
    """Remove case, accents and compatibility forms, for comparison."""
    if text.isascii():
        return text.lower()
    folded = unicodedata.normalize("NFKD", text).lower()
    # only these: U+3099 turns か into が
    stripped = "".join(c for c in folded if not "\u0300" <= c <= "\u036f")
    return unicodedata.normalize("NFKC", stripped)


def contains_literals(text: str, terms: tuple[SearchTerm, ...]) -> bool:
    """Whether the text contains the literals; the index only knows that it has their words."""
    literals = [term.literal for term in terms if term.exact and not term.excluded]
    if not literals:
        return True
    folded = " ".join(fold_text(text).split())
    return all(literal in folded for literal in literals)


def make_snippet(
    text: str, terms: tuple[SearchTerm, ...], width: int = 120
) -> tuple[str, tuple[TextSpan, ...]]:
    """One line of text around the first match, and the positions of the matches in it."""
    spans = _find(text, terms)
    start = max(0, spans[0][0] - width // 3) if spans else 0
    if start and (space := text.find(" ", start, start + 20)) > 0:
        start = space + 1
    piece = text[start : start + width]
    shown = piece
    if not piece.isprintable():
        shown = "".join(c if c.isprintable() else " " for c in piece)
    head, tail = ("…" if start else ""), ("…" if start + width < len(text) else "")
    moved = ((a - start + len(head), b - start + len(head)) for a, b in spans)
    inside = tuple((a, b) for a, b in moved if a >= len(head) and b <= len(head) + len(shown))
    return head + shown + tail, inside


def _find(text: str, terms: tuple[SearchTerm, ...]) -> list[TextSpan]:
    text = text[:INDEXED_CHARACTERS]
    words = [re.escape(term.literal) for term in terms if not term.excluded]
    # `cat` must not match inside `concatenate`, but may start a part of an identifier
    found = [m.span() for m in re.finditer("|".join(words), text, re.IGNORECASE)]
    whole = [
        (a, b)
        for a, b in found
        if not (a and text[a - 1].isalnum() and text[a - 1].islower() and text[a].islower())
    ]
    return whole or found

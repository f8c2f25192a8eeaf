"""Finds parts of a secret in a text, as providers echo them in their messages.

Found are: six or more consecutive characters of the secret, as it is, URL-quoted, in base64, in
hex, in another case, or with blanks between them; and four or five of them, as in
"sk-…abcd****wxyz" or "ending in wxyz". What stands before the secret proper ("sk-proj-") is public;
fewer than six letters or digits within a longer word are that word's ("proj" in "project"). It is
linear.
"""

from __future__ import annotations

import re
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple, TypeAlias
from urllib.parse import quote, quote_plus

LONG = 6  # consecutive characters that always count
SHORT = 4  # that count where they are no part of a word
_LONG_SECRET = 16  # characters; of a shorter secret four may well be a word
_PUBLIC = re.compile(r"(?:[a-z]{2,8}[0-9]{0,2}[-_]){1,4}")
_BETWEEN = re.compile(r"[*•·…._xX#\s-]{0,200}")  # that masks the rest of a secret
_BLANK = re.compile(r"[\s\u200b-\u200d\u2060\ufeff]")
Span: TypeAlias = tuple[int, int]


class _Grams(NamedTuple):
    """Every run of so many characters in the forms of a secret."""

    long: frozenset[str]
    short: frozenset[str]


def mask_echoes(text: str, secret: str, mask: str) -> str:
    """The text with the mask in place of every part of the secret."""
    grams = _grams_of(secret)
    spans = [*_runs(text, grams.long, LONG), *_runs_across_blanks(text, grams.long)]
    spans += [span for span in _runs(text, grams.short, SHORT) if not _is_in_word(text, *span)]
    found: list[str] = []
    end = 0
    for start, stop in _join(text, sorted(spans)):
        found += (text[end:start], mask)
        end = stop
    return "".join((*found, text[end:]))


@lru_cache(maxsize=64)
def _grams_of(secret: str) -> _Grams:
    public = _PUBLIC.match(secret)
    own = secret[public.end() :] if public else secret
    long = {gram for form in _forms(secret) for gram in _grams(form, LONG)}
    short = _grams(own, SHORT) if len(secret) >= _LONG_SECRET else ()
    return _Grams(frozenset(long), frozenset(short))


def _forms(secret: str) -> Iterator[str]:
    yield from (secret, secret.lower(), secret.upper())
    yield from (quote(secret, safe=""), quote(secret), quote_plus(secret))
    data = secret.encode("utf-8", "surrogatepass")
    yield from (data.hex(), data.hex().upper())
    for encode in (b64encode, urlsafe_b64encode):
        for shift in range(3):  # what stands before the secret shifts its base64
            # the first and the last characters also hold bits of what stands around the secret
            yield encode(b"\0" * shift + data).decode().rstrip("=")[2 * shift : -1]


def _grams(form: str, size: int) -> Iterator[str]:
    return (form[at : at + size] for at in range(len(form) - size + 1))


def _runs(text: str, grams: frozenset[str], size: int) -> Iterator[Span]:
    """Where these runs stand, overlapping ones joined."""
    start = end = -1
    for at in range(len(text) - size + 1):
        if text[at : at + size] in grams:
            if at > end:
                if end >= 0:
                    yield start, end
                start = at
            end = at + size
    if end >= 0:
        yield start, end


def _runs_across_blanks(text: str, grams: frozenset[str]) -> Iterator[Span]:
    if _BLANK.search(text) is None:
        return
    places = [at for at, character in enumerate(text) if not _BLANK.match(character)]
    for start, end in _runs("".join(text[at] for at in places), grams, LONG):
        yield places[start], places[end - 1] + 1


def _is_in_word(text: str, start: int, end: int) -> bool:
    run, around = text[start:end], text[max(0, start - 1) : start] + text[end : end + 1]
    if run.isalpha():
        return any(map(str.isalpha, around))
    return run.isdigit() and any(map(str.isdigit, around))


def _join(text: str, spans: list[Span]) -> Iterator[Span]:
    """Neighbours as one, with the characters that mask what is between them."""
    at, reached = -1, -1
    for start, end in spans:
        if at < 0:
            at, reached = start, end
        elif start <= reached or _BETWEEN.fullmatch(text, reached, min(start, reached + 201)):
            reached = max(reached, end)
        else:
            yield at, reached
            at, reached = start, end
    if at >= 0:
        yield at, reached

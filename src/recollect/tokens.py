"""Token counts: exact where a model's vocabulary is public, estimated otherwise.

A `Counter` counts the tokens of texts and parts. Exact counters come from `splintr`, whose wheel
carries the vocabularies; each is loaded on first use (20 to 300 ms). Estimates are instant, and a
`Calibration` learns from the usage that replies report how far off they are.

Images and documents are counted by what they are, never by the length of their base64.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from functools import lru_cache
from operator import attrgetter
from typing import TypeAlias

import msgspec
from splintr import Tokenizer

from recollect.entries import (
    Content,
    FileRef,
    InlineData,
    Message,
    Part,
    Text,
    Thought,
    ToolCall,
    ToolResult,
    Usage,
)
from recollect.profiles import IMAGE_TOKENS, OTHER_WEIGHT, find_profile

USAGE_FIELDS = ("input", "output", "cached", "written", "thoughts", "tool", "total")
MAX_REPORT = 100_000_000  # tokens in one reply; no window is that large
_ALWAYS_REPORTED = tuple(name for name in USAGE_FIELDS if name != "cached")
_always_reported = attrgetter(*_ALWAYS_REPORTED)
CountText: TypeAlias = Callable[[str], int]
ASCII_WEIGHT = 0.25  # tokens for a character
PDF_TOKENS = 25_800
MEDIA_BYTES_PER_TOKEN = 500  # of sound and video: Gemini counts 32 and 290 tokens a second
COUNTING_VERSION = 2  # raise it when counting changes: stored counts become void
MIN_FACTOR, MAX_FACTOR = 0.5, 2.0  # of a calibration


class Counter(msgspec.Struct, frozen=True):
    """Counts texts and parts for one model."""

    text: CountText
    exact: bool = False
    image: int = IMAGE_TOKENS
    name: str = ""  # stored counts carry it; empty where counting is cheaper than storing

    def message(self, message: Message) -> int:
        return sum(self.parts(message))

    def parts(self, message: Message) -> tuple[int, ...]:
        count, other = self.text, self.part
        return tuple([count(p.text) if type(p) is Text else other(p) for p in message.parts])

    def part(self, part: Part | Content) -> int:
        count = self.text
        if isinstance(part, Text | Thought):
            return count(part.text)
        if isinstance(part, ToolResult):
            content = [count(c.text) if type(c) is Text else self.part(c) for c in part.content]
            return count(part.name) + sum(content)
        if isinstance(part, ToolCall):
            return count(part.name) + count(part.arguments)
        if isinstance(part, InlineData):
            return self._media(part.mime, len(part.data))
        if isinstance(part, FileRef):
            return self._media(part.mime, 0) + count(part.uri)
        return count(part.data)

    def _media(self, mime: str, size: int) -> int:
        if mime == "application/pdf":
            return PDF_TOKENS
        if mime.startswith(("audio/", "video/")):
            return max(self.image, size // MEDIA_BYTES_PER_TOKEN)
        return math.ceil(size * ASCII_WEIGHT) if mime.startswith("text/") else self.image


def believe_usage(usage: Usage | None) -> Usage | None:
    """What a provider or a file reports, if it is possible; None if any count of it is not."""
    if usage is None:
        return None
    counts = (*_always_reported(usage), usage.cached or 0)
    return usage if min(counts) >= 0 and max(counts) <= MAX_REPORT else None


def add_usage(one: Usage, other: Usage | None) -> Usage:
    """The sum; what neither reported stays unknown, and a report that is not possible is none."""
    other = believe_usage(other)
    if other is None:
        return one
    counts = {name: getattr(one, name) + getattr(other, name) for name in _ALWAYS_REPORTED}
    cached = [usage.cached for usage in (one, other) if usage.cached is not None]
    return Usage(**counts, cached=sum(cached) if cached else None)


def estimate_tokens(text: str, other: float = OTHER_WEIGHT) -> int:
    if text.isascii():
        return (len(text) + 3) // 4
    plain = len(text.encode("ascii", "ignore"))
    return math.ceil(plain * ASCII_WEIGHT + (len(text) - plain) * other)


ESTIMATE = Counter(estimate_tokens)


@lru_cache(64)
def counter_for(model: str) -> Counter:
    """Exact where the vocabulary is public, else the estimate for the model."""
    profile = find_profile(model)
    if profile.vocabulary:
        name = f"{profile.vocabulary}/{profile.image}/{COUNTING_VERSION}"
        return Counter(_exact_count(profile.vocabulary), exact=True, image=profile.image, name=name)
    if profile.other == OTHER_WEIGHT:
        return Counter(estimate_tokens, image=profile.image)
    return Counter(lambda text: estimate_tokens(text, profile.other), image=profile.image)


@lru_cache(8)
def _exact_count(vocabulary: str) -> CountText:
    def count(text: str) -> int:
        encode = _load_vocabulary(vocabulary)
        try:
            return len(encode(text))
        except UnicodeEncodeError:  # lone surrogates
            return len(encode(text.encode("utf-8", "replace").decode()))

    return count


@lru_cache(8)
def _load_vocabulary(name: str) -> Callable[[str], list[int]]:
    # `ordinary`: a text that spells out a control token is still only text
    return Tokenizer.from_pretrained(name).encode_ordinary


class Calibration(msgspec.Struct, frozen=True):
    """The ratio of real counts to estimates, learned from replies."""

    factor: float = 1.0
    error: float = 0.0  # moving average of the calibrated estimates' relative error, at most 1
    samples: int = 0

    def apply(self, estimated: int) -> int:
        return math.ceil(estimated * self.factor)

    def learn(self, estimated: int, reported: int) -> Calibration:
        """Take in one reply's usage: a fifth of the way, at most 0.15, within 0.5 and 2."""
        if estimated <= 0 or reported <= 0:
            return self
        step = 0.2 * (reported / estimated - self.factor)
        moved = self.factor + min(0.15, max(-0.15, step))
        factor = min(MAX_FACTOR, max(MIN_FACTOR, moved))
        missed = min(1.0, abs(self.apply(estimated) - reported) / reported)
        error = missed if not self.samples else 0.8 * self.error + 0.2 * missed
        return Calibration(factor, error, self.samples + 1)


_LIMIT = re.compile(
    r"(?:(?:maximum|max|limit|up to|at most|window|exceeds?)[^\d\n]{0,60}|> ?)(\d[\d,_]{2,11}\d)",
    re.I,
)
_NUMBER = re.compile(r"(?<![\w.])\d[\d,_]{2,11}\d(?![\w.]?\d)")


def find_token_limit(error: str) -> int | None:
    """The window that a provider's error message names, if it does."""
    return min(_plausible(_LIMIT.findall(error[:10_000])), default=None)


def find_requested_tokens(error: str, limit: int) -> int | None:
    """How many tokens were requested, if the message that names the limit says so."""
    found = _plausible(_NUMBER.findall(error[:10_000]))
    return min((number for number in found if number > limit), default=None)


def _plausible(numbers: list[str]) -> list[int]:
    found = [int(re.sub(r"\D", "", number)) for number in numbers]
    return [number for number in found if 1_000 <= number <= 100_000_000]

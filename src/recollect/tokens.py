"""Tokens: exact where a model's vocabulary is public, estimated otherwise, and how many fit.

A `Counter` says how many tokens a text has. Exact counters come from `splintr`, whose wheel carries
the vocabularies; one is loaded when it is first asked (20 to 300 ms). Estimates are instant, and a
`Calibration` learns from what each reply reports how far off they are. What is known of a model is
data: the longest prefix of its name wins, and an unknown model gets a stated default.

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

Count: TypeAlias = Callable[[str], int]
ASCII_WEIGHT, OTHER_WEIGHT = 0.25, 1.5  # tokens for a character
IMAGE, PDF = 3_000, 25_800
LARGE_WINDOW = 1_000_000
UNKNOWN_WINDOW = 32_768  # safe for what people run at home; a setting names another


class Profile(msgspec.Struct, frozen=True):
    """What is known of the models whose names begin like this."""

    prefix: str
    window: int
    vocabulary: str = ""  # splintr's name for it; none when it is not public
    other: float = OTHER_WEIGHT  # tokens for a character beyond ASCII, when estimated
    image: int = IMAGE

    @property
    def threshold(self) -> int:
        """Where compaction begins: a fifth of a large window, seven tenths of a small one."""
        return int(self.window * (0.2 if self.window >= LARGE_WINDOW else 0.7))


_UNKNOWN = Profile("", UNKNOWN_WINDOW)
PROFILES = (
    Profile("gemini-1.5-pro", 2_097_152, other=1.1, image=258),
    Profile("gemini", 1_048_576, other=1.1, image=258),
    Profile("gemma-2", 8_192, "gemma2"),
    Profile("gemma-3", 131_072, "gemma3"),
    Profile("gemma", 8_192, "gemma2"),
    Profile("gpt-5", 400_000, "o200k_base"),
    Profile("gpt-4.1", 1_047_576, "o200k_base"),
    Profile("gpt-4o", 128_000, "o200k_base"),
    Profile("gpt-4-turbo", 128_000, "cl100k_base"),
    Profile("gpt-4", 8_192, "cl100k_base"),
    Profile("gpt-3.5", 16_385, "cl100k_base"),
    Profile("gpt-oss", 131_072, "o200k_base"),
    Profile("chatgpt-4o", 128_000, "o200k_base"),
    Profile("o1", 200_000, "o200k_base"),
    Profile("o3", 200_000, "o200k_base"),
    Profile("o4", 200_000, "o200k_base"),
    Profile("claude", 200_000, other=1.2, image=1_600),
    Profile("qwen3-coder", 262_144, "qwen3"),
    Profile("qwen3", 131_072, "qwen3"),
    Profile("qwen2.5", 131_072, "qwen2.5"),
    Profile("qwen", 32_768, "qwen2.5"),
    Profile("qwq", 131_072, "qwen2.5"),
    Profile("deepseek", 131_072, "deepseek_v3"),
    Profile("glm-4.6", 200_000, "glm4"),
    Profile("glm", 131_072, "glm4"),
    Profile("kimi-k2", 262_144, "kimi_k2"),
    Profile("kimi", 131_072, "kimi_k2"),
    Profile("llama-4", 1_048_576, "llama3"),
    Profile("llama-3.1", 131_072, "llama3"),
    Profile("llama-3.2", 131_072, "llama3"),
    Profile("llama-3.3", 131_072, "llama3"),
    Profile("llama3", 8_192, "llama3"),
    Profile("llama-3", 8_192, "llama3"),
    Profile("llama", 4_096, "llama2"),
    Profile("mistral", 131_072, "mistral_v3"),
    Profile("smollm2", 8_192),
)


@lru_cache(256)
def profile_of(model: str) -> Profile:
    """By the longest prefix; `openai/gpt-4o` and `models/gemini-2.5-pro` are looked through."""
    name = model.lower().rsplit("/", 1)[-1].strip()
    fitting = [profile for profile in PROFILES if name.startswith(profile.prefix)]
    return max(fitting, key=lambda profile: len(profile.prefix), default=_UNKNOWN)


def is_known(model: str) -> bool:
    return profile_of(model) is not _UNKNOWN


class Counter(msgspec.Struct, frozen=True):
    """Counts texts and parts for one model."""

    count: Count
    exact: bool = False
    image: int = IMAGE

    def text(self, text: str) -> int:
        return self.count(text)

    def message(self, message: Message) -> int:
        return sum(self.parts(message))

    def parts(self, message: Message) -> tuple[int, ...]:
        count, other = self.count, self.part
        return tuple([count(p.text) if type(p) is Text else other(p) for p in message.parts])

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
            return PDF
        return math.ceil(size * ASCII_WEIGHT) if mime.startswith("text/") else self.image


def estimate(text: str, other: float = OTHER_WEIGHT) -> int:
    if text.isascii():
        return (len(text) + 3) // 4
    plain = len(text.encode("ascii", "ignore"))
    return math.ceil(plain * ASCII_WEIGHT + (len(text) - plain) * other)


ESTIMATE = Counter(estimate)


@lru_cache(64)
def counter_for(model: str) -> Counter:
    """Exact where the vocabulary is public, else the estimate that suits the model."""
    profile = profile_of(model)
    if profile.vocabulary:
        return Counter(_exact(profile.vocabulary), exact=True, image=profile.image)
    if profile.other == OTHER_WEIGHT:
        return Counter(estimate, image=profile.image)
    return Counter(lambda text: estimate(text, profile.other), image=profile.image)


@lru_cache(8)
def _exact(vocabulary: str) -> Count:
    loaded: list[Callable[[str], list[int]]] = []

    def count(text: str) -> int:
        if not loaded:
            from splintr import Tokenizer

            # `ordinary`: a text that spells a control token out is still only a text
            loaded.append(Tokenizer.from_pretrained(vocabulary).encode_ordinary)
        try:
            return len(loaded[0](text))
        except UnicodeEncodeError:  # lone surrogates
            return len(loaded[0](text.encode("utf-8", "replace").decode()))

    return count


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


_LIMIT = re.compile(
    r"(?:(?:maximum|max|limit|up to|at most|window|exceeds?)[^\d\n]{0,60}|> ?)(\d[\d,_]{2,11}\d)",
    re.IGNORECASE,
)


def limit_in(error: str) -> int | None:
    """The window that a provider's error message names, when it names one."""
    found = [int(re.sub(r"\D", "", number)) for number in _LIMIT.findall(error[:10_000])]
    plausible = [number for number in found if 1_000 <= number <= 100_000_000]
    return min(plausible) if plausible else None

"""The differences between Gemini's models; none is guessed from a name."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from recollect.codecs.provider_rules import GEMINI_RULES, ProviderRules

# How a model is told how long to think: Gemini 2.5 by a budget of tokens, Gemini 3 by a level (it
# still accepts a budget, but not both), older models not at all.
GeminiThinking: TypeAlias = Literal["budget", "level", "no"]
RESULT_MEDIA = ("image/", "application/pdf", "text/plain")


class GeminiQuirks(msgspec.Struct, frozen=True, kw_only=True):
    model: str = ""
    # prefixes of the types that the model accepts from a user, and in a tool's result (none before
    # Gemini 3)
    media: tuple[str, ...] = ("image/", "audio/", "video/", "application/pdf", "text/")
    result_media: tuple[str, ...] = RESULT_MEDIA
    thinking: GeminiThinking = "budget"
    # Gemini 3 answers 400 when the first call of a model's message has no signature, such as one
    # that another model made. This is sent instead: "skip_thought_signature_validator"
    # (https://ai.google.dev/gemini-api/docs/thought-signatures).
    stand_in_signature: str = ""

    @property
    def rules(self) -> ProviderRules:
        return msgspec.structs.replace(GEMINI_RULES, model=self.model)

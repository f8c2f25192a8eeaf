"""The differences between the models behind Anthropic's API."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from recollect.codecs.provider_rules import ANTHROPIC_RULES, ProviderRules

# budget    a number of tokens, for models up to Claude 4.6, which take nothing else
# adaptive  the model decides, and `effort` says how much; Opus 4.7 and later refuse a budget
AnthropicThinking: TypeAlias = Literal["budget", "adaptive"]


class AnthropicQuirks(msgspec.Struct, frozen=True, kw_only=True):
    model: str = ""
    max_output: int = 8_192  # the API demands a limit; this one when the options name none
    cache: bool = True  # whether marks for the prompt cache are sent
    media: tuple[str, ...] = ("image/", "application/pdf", "text/")  # prefixes of accepted types
    sampling: bool = True  # whether the model accepts temperature and top_p
    thinking: AnthropicThinking = "budget"

    @property
    def rules(self) -> ProviderRules:
        return msgspec.structs.replace(ANTHROPIC_RULES, model=self.model)

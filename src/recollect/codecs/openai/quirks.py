"""The differences between servers of the OpenAI chat format, and the models behind them."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from recollect.codecs.provider_rules import OPENAI_RULES, ProviderRules

ThinkingSwitch: TypeAlias = Literal["", "enable_thinking", "reasoning_effort"]


class OpenAIQuirks(msgspec.Struct, frozen=True, kw_only=True):
    model: str = ""
    # The field in which the model gets its own thoughts back: "reasoning_content" for DeepSeek and
    # Qwen. Empty: they are never sent.
    reasoning: str = ""
    system_role: str = "system"  # "developer" for OpenAI's o-series
    max_tokens_field: str = "max_completion_tokens"  # "max_tokens" for most other servers
    thinking_switch: ThinkingSwitch = ""  # the field that turns thinking off; empty: none does
    sampling: bool = True  # whether temperature and top_p are accepted
    max_stops: int = 4  # OpenAI refuses more
    media: tuple[str, ...] = ("image/",)  # prefixes of the MIME types that the model accepts

    @property
    def rules(self) -> ProviderRules:
        thoughts = "own" if self.reasoning else "none"
        return msgspec.structs.replace(OPENAI_RULES, model=self.model, thoughts=thoughts)

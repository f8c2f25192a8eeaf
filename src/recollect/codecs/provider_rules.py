"""What a provider's wire and the models behind it demand, as data; none is guessed from a name.

`ProviderRules` say where results stand, whether roles alternate, which thoughts and ids are
accepted. The quirks of a wire are its fields: they say what one model accepts, and add it to the
rules. Without a model's name no thought and no signature is sent, because nobody can say which
model made them.
"""

from __future__ import annotations

import re
from typing import Literal, TypeAlias

import msgspec

from recollect.entries import Message, Role, Thought

# next_content    the content after the calls holds one response for each call and nothing else
# first_in_user   results begin the next user message; the user's text may follow in it
# separate        each result is a message of its own, before any other message
ResultPlacement: TypeAlias = Literal["next_content", "first_in_user", "separate"]
# Neighbours of one group may be merged; results that stand alone are a group of their own.
MergeGroup: TypeAlias = Literal["user", "model", "system", "results"]
_REFUSED = {"ascii": re.compile(r"[^!-~]"), "word": re.compile(r"[^A-Za-z0-9_-]")}


class ProviderRules(msgspec.Struct, frozen=True, kw_only=True):
    provider: str
    model: str = ""  # the model that gets the request, spelt as in `Message.model`
    results: ResultPlacement
    alternate: bool = True  # neighbours of one role are merged, and a user message comes first
    model_after_results: bool = False  # with `alternate`: a model's message follows results
    system: Literal["anywhere", "first"] = "first"
    thoughts: Literal["none", "own", "signed"] = "none"  # which of its own the model gets back
    blank_text: bool = True  # whether text of nothing but white space is accepted
    id_characters: Literal["ascii", "word"] = "ascii"  # visible ones; or letters, digits, _ and -
    id_limit: int = 64

    def is_own(self, message: Message) -> bool:
        """Whether the model that gets the request made this message."""
        return message.role == "model" and self.model != "" and message.model == self.model

    def accepts_text(self, text: str) -> bool:
        return text != "" and (self.blank_text or not text.isspace())

    def accepts_thought(self, thought: Thought, *, own: bool) -> bool:
        if not own or self.thoughts == "none":
            return False
        return thought.signature != "" or (self.thoughts == "own" and thought.text != "")

    def accepts_id(self, id_: str) -> bool:
        return 0 < len(id_) <= self.id_limit and not _REFUSED[self.id_characters].search(id_)

    def clean_id(self, id_: str) -> str:
        """An id like this one that is accepted; empty if the id is."""
        return _REFUSED[self.id_characters].sub("_", id_[: self.id_limit])

    @property
    def results_stand_alone(self) -> bool:
        return self.results != "first_in_user"

    def merge_group(self, role: Role, *, has_results: bool) -> MergeGroup:
        return "results" if has_results and self.results_stand_alone else role


# User text beside function responses in one content makes Gemini answer 400 or nothing at all
# (anomalyco/opencode#43479, NousResearch/hermes-agent#68863); two user contents in a row are fine.
GEMINI_RULES = ProviderRules(provider="gemini", results="next_content", thoughts="own")
OPENAI_RULES = ProviderRules(
    provider="openai", results="separate", alternate=False, system="anywhere", id_limit=40
)
STRICT_OPENAI_RULES = msgspec.structs.replace(
    OPENAI_RULES, alternate=True, system="first", model_after_results=True
)
ANTHROPIC_RULES = ProviderRules(
    provider="anthropic",
    results="first_in_user",
    thoughts="signed",
    blank_text=False,
    id_characters="word",
)
# Calls and results become text: chat templates of small models often insist on alternating roles.
TEXT_RULES = ProviderRules(provider="text", results="first_in_user")

# How a model is told how long to think: Gemini 2.5 by a budget of tokens, Gemini 3 by a level (it
# still accepts a budget, but not both), older models not at all.
GeminiThinking: TypeAlias = Literal["budget", "level", "no"]


class GeminiQuirks(msgspec.Struct, frozen=True, kw_only=True):
    model: str = ""
    # prefixes of the types that the model accepts from a user, and in a tool's result (none before
    # Gemini 3)
    media: tuple[str, ...] = ("image/", "audio/", "video/", "application/pdf", "text/")
    result_media: tuple[str, ...] = ("image/", "application/pdf", "text/plain")
    thinking: GeminiThinking = "budget"
    # Gemini 3 answers 400 when the first call of a model's message has no signature, such as one
    # that another model made. This is sent instead: "skip_thought_signature_validator"
    # (https://ai.google.dev/gemini-api/docs/thought-signatures).
    stand_in_signature: str = ""

    @property
    def rules(self) -> ProviderRules:
        return msgspec.structs.replace(GEMINI_RULES, model=self.model)


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
    # The server takes one system message, then user and assistant by turns, each with plain text.
    # Results stand between two assistant messages: Mistral refuses a user's right after them.
    alternating_roles: bool = False

    @property
    def rules(self) -> ProviderRules:
        thoughts = "own" if self.reasoning else "none"
        rules = STRICT_OPENAI_RULES if self.alternating_roles else OPENAI_RULES
        return msgspec.structs.replace(rules, model=self.model, thoughts=thoughts)


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

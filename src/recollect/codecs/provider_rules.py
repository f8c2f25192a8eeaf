"""What a provider's wire demands of a list of messages, as data.

`ProviderRules` say where results stand, whether roles alternate, which thoughts and ids are
accepted. A wire adds the model: `msgspec.structs.replace(GEMINI_RULES, model=…)`. Without a model's
name no thought and no signature is sent, because nobody can say which model made them.
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
_ACCEPTED = {"ascii": re.compile(r"[!-~]+"), "word": re.compile(r"[A-Za-z0-9_-]+")}
_REFUSED = {"ascii": re.compile(r"[^!-~]"), "word": re.compile(r"[^A-Za-z0-9_-]")}


class ProviderRules(msgspec.Struct, frozen=True, kw_only=True):
    provider: str
    model: str = ""  # the model that gets the request, spelt as in `Message.model`
    results: ResultPlacement
    alternate: bool = True  # neighbours of one role are merged, and a user message comes first
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
        accepted = _ACCEPTED[self.id_characters]
        return len(id_) <= self.id_limit and accepted.fullmatch(id_) is not None

    def clean_id(self, id_: str) -> str:
        """An id like this one that is accepted; empty if the id is."""
        if self.accepts_id(id_):
            return id_
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
ANTHROPIC_RULES = ProviderRules(
    provider="anthropic",
    results="first_in_user",
    thoughts="signed",
    blank_text=False,
    id_characters="word",
)
# Calls and results become text: chat templates of small models often insist on alternating roles.
TEXT_RULES = ProviderRules(provider="text", results="first_in_user")

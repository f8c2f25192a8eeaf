"""What a provider's wire demands of a list of messages, as data.

A `ProviderRules` says where results stand, whether roles alternate, which thoughts and ids are accepted. A
codec takes the rules of its wire and names the model: `msgspec.structs.replace(GEMINI, model=…)`.
Without a model's name no thought and no signature is sent: nobody can say whose they may be.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from recollect.entries import Message, Thought

# next_content    the content after the calls holds one response for each call and nothing else
# first_in_user   results begin the next user message; the user's words may follow in it
# separate        each result is a message of its own, before any other message
ResultPlacement: TypeAlias = Literal["next_content", "first_in_user", "separate"]


class ProviderRules(msgspec.Struct, frozen=True, kw_only=True):
    provider: str
    model: str = ""  # who is asked, spelt as in `Message.model`
    results: ResultPlacement
    alternate: bool  # neighbours of one role are merged, and a user's message opens
    system: Literal["anywhere", "first"]
    thoughts: Literal["none", "own", "signed"]  # which thoughts of the same model go back to it
    blank_text: bool  # whether text of nothing but white space is accepted
    id_characters: Literal["ascii", "word"]  # any visible ASCII; or letters, digits, _ and -
    id_limit: int = 64

    def made(self, message: Message) -> bool:
        """Whether the model that is asked made this message."""
        return message.role == "model" and self.model != "" and message.model == self.model

    def takes_text(self, text: str) -> bool:
        return text != "" and (self.blank_text or not text.isspace())

    def takes_thought(self, thought: Thought, *, own: bool) -> bool:
        if not own or self.thoughts == "none":
            return False
        return thought.signature != "" or (self.thoughts == "own" and thought.text != "")

    @property
    def results_stand_alone(self) -> bool:
        return self.results != "first_in_user"


# A user's words beside function responses in one content make Gemini answer 400 or nothing at all
# (anomalyco/opencode#43479, NousResearch/hermes-agent#68863); two user contents in a row are fine.
GEMINI_RULES = ProviderRules(
    provider="gemini",
    results="next_content",
    alternate=True,
    system="first",
    thoughts="own",
    blank_text=True,
    id_characters="ascii",
)
OPENAI_RULES = ProviderRules(
    provider="openai",
    results="separate",
    alternate=False,
    system="anywhere",
    thoughts="none",
    blank_text=True,
    id_characters="ascii",
    id_limit=40,
)
ANTHROPIC_RULES = ProviderRules(
    provider="anthropic",
    results="first_in_user",
    alternate=True,
    system="first",
    thoughts="signed",
    blank_text=False,
    id_characters="word",
)
# Calls and results become text: chat templates of small models often insist on alternating roles.
TEXT_RULES = ProviderRules(
    provider="text",
    results="first_in_user",
    alternate=True,
    system="first",
    thoughts="none",
    blank_text=True,
    id_characters="ascii",
)

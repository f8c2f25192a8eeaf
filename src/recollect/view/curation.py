"""Curation: which messages of a history may be sent to a provider.

User messages are always kept. A *run* of consecutive model messages is kept or dropped as a whole:
dropped if any message in it is invalid, but for messages with calls, which are always valid: their
results would have nothing to answer. There are two validity checks and two drop policies because
the programs we come from disagree.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from recollect.entries import Message, Part, Text, Thought, ToolCall, ToolResult, Unknown
from recollect.settings import Settings

ValidityCheck: TypeAlias = Literal["strict", "any_part"]
DropPolicy: TypeAlias = Literal["keep_user", "drop_pair"]


class CurationPolicy(msgspec.Struct, frozen=True):
    # strict: every part says something, but an empty text beside a call, a result or another text
    # does no harm; any_part: one part does
    validity: ValidityCheck = "strict"
    dropping: DropPolicy = "keep_user"  # drop_pair: a dropped run takes its prompt with it

    @staticmethod
    def from_settings(settings: Settings) -> CurationPolicy:
        return CurationPolicy(settings.context.validity, settings.context.curation)


def is_valid(message: Message, validity: ValidityCheck = "strict") -> bool:
    parts = message.parts
    if validity == "any_part":
        return any(_has_content(part) for part in parts)
    says, is_empty = False, not parts
    for part in parts:
        if type(part) is Text:
            says, is_empty = says or bool(part.text), is_empty or not part.text
        elif type(part) is ToolCall or type(part) is ToolResult:
            says = True
        elif type(part) is Unknown and part.data.strip() in ("{}", ""):
            is_empty = True
    return says or not is_empty


def _has_content(part: Part) -> bool:
    if isinstance(part, Text):
        return bool(part.text.strip())
    return not isinstance(part, Thought | Unknown)


def is_tool_result(message: Message) -> bool:
    parts = message.parts
    if len(parts) == 1:  # most messages
        return type(parts[0]) is ToolResult
    return any(isinstance(part, ToolResult) for part in parts)


def is_initial(message: Message) -> bool:
    """Instructions and the initial context, which survive every compaction. Asides do not: they go
    with the message they belong to."""
    return message.role == "system" or message.context in ("initial", "memory")


def is_spoken(message: Message) -> bool:
    """Whether the user said this; a history may be cut before such a message."""
    return message.role == "user" and not message.context and not is_tool_result(message)

"""The history of automatic calls that a Gemini reply may carry.

Google's API sends none: its SDK adds it to a reply after it has run functions, and a gateway that
is written with the SDK may pass it on. It repeats all that was sent. Only the turn is decoded:
everything after the newest message of the user. Whatever is not a history raises `BadReply`, and
so does a turn beyond the limits.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from recollect.codecs.foreign_json import JSON_ERRORS
from recollect.codecs.gemini.decode_parts import decode_fields, decode_items, get_items, get_string
from recollect.codecs.gemini.decode_request import decode_request
from recollect.codecs.provider_errors import make_printable
from recollect.codecs.provider_rules import GeminiQuirks
from recollect.codecs.reply_limits import MAX_CALLS, MAX_HISTORY, MAX_PARTS, refuse
from recollect.entries import Message, ToolCall
from recollect.errors import BadInput, BadReply


class AutomaticHistory(NamedTuple):
    """A turn of automatic calls and their results."""

    # The contents as JSON, without the brackets around them; each character is a byte, because one
    # emoji would make every copy of the text four times as large.
    text: str = ""
    messages: tuple[Message, ...] = ()


def decode_history(quirks: GeminiQuirks, raw: bytes) -> AutomaticHistory:
    """The turn; empty if there is none."""
    if not raw or raw == b"null":
        return AutomaticHistory()
    try:
        text = b",".join(_take_turn(raw)).decode("latin-1")
        return AutomaticHistory(text, decode_turn(quirks, text))
    except (*JSON_ERRORS, BadInput) as error:
        why = make_printable(str(error), 200)
        raise BadReply(f"a history of automatic calls that is no history ({why})") from None


def decode_turn(quirks: GeminiQuirks, text: str) -> tuple[Message, ...]:
    """The messages of a turn, oldest first. Raises `BadInput`."""
    contents = text.encode("latin-1", "replace")
    messages = decode_request(quirks, b'{"contents":[%b]}' % contents).messages
    parts = [part for message in messages for part in message.parts]
    if len(parts) > MAX_PARTS:
        raise refuse(MAX_PARTS, "parts of automatic calls")
    if sum(isinstance(part, ToolCall) for part in parts) > MAX_CALLS:
        raise refuse(MAX_CALLS, "automatic calls")
    return messages


def _take_turn(raw: bytes) -> list[bytes]:
    found, size = list[bytes](), 0
    for item in reversed(decode_items(raw)):
        if _is_prompt(item):
            break
        found.append(bytes(item))
        size += len(found[-1])
        if size > MAX_HISTORY:
            raise refuse(MAX_HISTORY, "bytes of automatic calls")
    return found[::-1]


def _is_prompt(item: msgspec.Raw) -> bool:
    """Whether it is a message of the user without results."""
    if bytes(item).startswith(b'"'):
        return True
    content = decode_fields(item)
    if get_string(content, "role") not in ("", "user"):
        return False
    return not any("functionResponse" in decode_fields(p) for p in get_items(content, "parts"))

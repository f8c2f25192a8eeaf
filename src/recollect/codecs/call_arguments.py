"""A call's arguments as a JSON object, whatever the model wrote, and back.

Servers parse the arguments of earlier calls: text that is not a JSON object makes llama.cpp, vLLM
and others refuse the whole request, and every one after it. So an object is sent as the very text
it is, blank text as an empty object, and anything else as an object that holds the text: broken
JSON, other values, numbers that JSON does not have, keys that occur twice, nesting too deep.
Decoding gives the text back.
"""

from __future__ import annotations

from recollect.codecs.fixes import Fix, quote_text
from recollect.codecs.foreign_json import RepeatedKey, encode, parse_object, strict_json
from recollect.entries import ToolCall

MALFORMED = "malformed_arguments"


def wrap_arguments(call: ToolCall, fixes: list[Fix]) -> str:
    """The text of a JSON object; a fix says when it is not the call's own."""
    text = call.arguments
    if not text.strip():
        return "{}"
    if MALFORMED not in text and parse_object(text) is not None and not _repeats_a_key(text):
        return text
    line = f"the arguments of call {quote_text(call.id)} are not a JSON object: sent inside one"
    fixes.append(Fix("uncarried", 0, line, call.id))
    return encode({MALFORMED: text}).decode()


def unwrap_arguments(text: str) -> str:
    """Arguments as they were before they were put into an object."""
    if MALFORMED in text:
        value = parse_object(text)
        inner = value.get(MALFORMED) if value is not None and len(value) == 1 else None
        if isinstance(inner, str):
            return inner
    return text


def _repeats_a_key(text: str) -> bool:
    """Whether an object in the text has a key twice; which one counts, servers decide differently,
    and Google's refuses it."""
    if text.count(":") < 2:
        return False
    try:
        strict_json(text)
    except RepeatedKey:
        return True
    except ValueError:
        return False
    return False

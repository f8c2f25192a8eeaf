"""JSON as clients and servers of the OpenAI format really write it.

`load_json` reads what msgspec refuses (halves of surrogate pairs, bytes that are not UTF-8) and says
no to everything else with one exception, `UnreadableJson`. Nesting is bounded without recursion. `encode_json`
writes any text: what UTF-8 cannot carry becomes U+FFFD, and the caller is told how often.
"""

from __future__ import annotations

import json
import re
from functools import cache
from typing import Any, NamedTuple

import msgspec

from recollect.codecs.call_pairing import Fix
from recollect.entries import MAX_DEPTH

JSON_ERRORS = (msgspec.MsgspecError, ValueError, RecursionError)  # what reading foreign JSON raises
MAX_COUNT = 2**53  # beyond it numbers of JSON are not exact, and no count of tokens is that large
_encode = msgspec.json.Encoder().encode
_SURROGATES = "[\ud800-\udfff]"
_compiled = cache(re.compile)


class UnreadableJson(Exception):
    """Foreign bytes are no JSON, or nested too deeply. Never leaves the codec."""

    is_deep = False


def load_json(data: bytes) -> Any:
    """The value, with plain lists and dictionaries; lone surrogates are kept."""
    try:
        value = json.loads(data.decode("utf-8", "replace").lstrip("\ufeff"))
    except RecursionError:
        raise _too_deep() from None
    except ValueError as error:
        raise UnreadableJson(str(error)[:200]) from None
    if is_too_deep(value):
        raise _too_deep()
    return value


def _too_deep() -> UnreadableJson:
    error = UnreadableJson(f"nested deeper than {MAX_DEPTH} levels")
    error.is_deep = True
    return error


def is_too_deep(value: Any) -> bool:
    level, depth = [value], 0
    while level:
        depth += 1
        if depth > MAX_DEPTH:
            return True
        below: list[Any] = []
        for item in level:
            if isinstance(item, dict):
                below += item.values()
            elif isinstance(item, list | tuple):
                below += item
        level = below
    return False


def raw_object(text: str) -> msgspec.Raw | None:
    """The text itself, to be embedded as it is, if it is a JSON object of bounded depth."""
    try:
        data = text.encode()
        value = msgspec.json.decode(data)
    except JSON_ERRORS:
        return None
    return msgspec.Raw(data) if isinstance(value, dict) and not is_too_deep(value) else None


class EncodedJson(NamedTuple):
    data: bytes
    fixes: tuple[Fix, ...] = ()


def encode_json(value: Any, what: str, message: int) -> EncodedJson:
    """As JSON. `what` and `message` are for the line that tells of text that UTF-8 has not."""
    try:
        return EncodedJson(_encode(value))
    except UnicodeEncodeError:
        pass
    clean, count = count_and_replace_surrogates(value)
    line = f"{count:,} characters of {what} are halves of surrogate pairs: sent as U+FFFD"
    return EncodedJson(_encode(clean), (Fix("uncarried", message, line),) if count else ())


def count_and_replace_surrogates(value: Any) -> tuple[Any, int]:
    """The same with U+FFFD for each half of a pair, and their number. Pairs are joined.

    Only for values whose depth is bounded."""
    if isinstance(value, str):
        whole = join_surrogates(value)
        return _compiled(_SURROGATES).subn("\ufffd", whole)
    if isinstance(value, dict):
        pairs = [
            (count_and_replace_surrogates(k), count_and_replace_surrogates(v))
            for k, v in value.items()
        ]
        return {k[0]: v[0] for k, v in pairs}, sum(k[1] + v[1] for k, v in pairs)
    if isinstance(value, list | tuple):
        items = [count_and_replace_surrogates(item) for item in value]
        return [item for item, _ in items], sum(count for _, count in items)
    return value, 0


def join_surrogates(text: str) -> str:
    """Neighbouring halves as the one character they are; a half without its other half stays."""
    if _compiled(_SURROGATES).search(text) is None:
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def clamp_count(value: object) -> int:
    """A number of tokens, whatever came."""
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value:
        return 0
    return int(min(max(value, 0), MAX_COUNT))

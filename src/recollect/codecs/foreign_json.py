"""JSON as clients and servers really write it: broken text, any depth, any number.

Depth is bounded by `MAX_DEPTH` and measured without recursion. Text that UTF-8 cannot carry (halves
of surrogate pairs) becomes U+FFFD. `load_json` reads what msgspec refuses, such as bytes that are
not UTF-8, and refuses everything else with one exception, `UnreadableJson`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, NamedTuple, Never, TypeVar

import msgspec

from recollect.codecs.fixes import Fix
from recollect.entries import json_text
from recollect.json_depth import MAX_DEPTH
from recollect.tokens import MAX_REPORT

JSON_ERRORS = (msgspec.MsgspecError, ValueError, RecursionError)  # what reading foreign JSON raises
NO_JSON = msgspec.Raw(b"")  # the default of a field that is absent
SURROGATES = "halves of surrogate pairs are sent as U+FFFD: UTF-8 cannot carry them"
_SURROGATE = re.compile("[\ud800-\udfff]")
_V = TypeVar("_V")

encode = msgspec.json.Encoder().encode


class UnreadableJson(Exception):
    """The bytes are not JSON, or nested too deeply. Never leaves the codecs."""


class RepeatedKey(ValueError):
    """An object names a key twice, so it has no single meaning."""


def strict_json(text: str) -> Any:
    """The value of JSON with one meaning: without NaN, and no key twice in an object. Raises
    ValueError (`RepeatedKey` among them) or RecursionError."""
    return json.loads(text, object_pairs_hook=_unique_keys, parse_constant=_refuse_constant)


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        raise RepeatedKey("a key stands twice in one object")
    return value


def _refuse_constant(name: str) -> Never:
    raise ValueError(f"{name} is not valid JSON")


def load_json(data: bytes) -> Any:
    """The value, with plain lists and dictionaries; lone surrogates are kept."""
    try:
        value = json.loads(data.decode("utf-8", "replace").lstrip("\ufeff"))
        if not is_too_deep(value):
            return value
    except RecursionError:
        pass
    except ValueError as error:
        raise UnreadableJson(str(error)[:200]) from None
    raise UnreadableJson(f"nested deeper than {MAX_DEPTH} levels")


def repair_json_text(data: bytes, parse_constant: Callable[[str], None] = lambda _: None) -> bytes:
    """The same JSON without what msgspec refuses and others send: bytes that are not UTF-8, halves
    of surrogate pairs, NaN. Raises ValueError or RecursionError if it is not JSON."""
    value = json.loads(data.decode("utf-8", "replace"), parse_constant=parse_constant)
    return replace_surrogates(json_text(value)).encode()


def is_too_deep(value: object) -> bool:
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


def parse_object(text: str | bytes) -> dict[str, Any] | None:
    """The JSON object in the text; None for any other text and for one nested too deeply."""
    try:
        value = msgspec.json.decode(text)
    except JSON_ERRORS:
        return None
    if not isinstance(value, dict):
        return None
    if isinstance(text, str):
        brackets = text.count("{") + text.count("[")
    else:
        brackets = text.count(b"{") + text.count(b"[")
    return value if brackets <= MAX_DEPTH or not is_too_deep(value) else None


def raw_object(text: str) -> msgspec.Raw | None:
    """The text itself, to be embedded as it is, if it is a JSON object of bounded depth."""
    return msgspec.Raw(text.encode()) if parse_object(text) is not None else None


def replace_surrogates(value: _V) -> _V:
    """The same value with U+FFFD for each half of a surrogate pair.

    Recursive: only for our own values, whose depth is bounded."""
    changed: Any = value
    if isinstance(value, str):
        changed = _SURROGATE.sub("\ufffd", value)
    elif isinstance(value, dict):
        changed = {key: replace_surrogates(item) for key, item in value.items()}
    elif isinstance(value, list | tuple):
        changed = type(value)(replace_surrogates(item) for item in value)
    elif isinstance(value, msgspec.Struct):
        names = value.__struct_fields__
        fields = {name: replace_surrogates(getattr(value, name)) for name in names}
        changed = msgspec.structs.replace(value, **fields)
    return changed  # type: ignore[no-any-return]


class EncodedJson(NamedTuple):
    data: bytes
    fixes: tuple[Fix, ...] = ()


def encode_json(value: Any, what: str, message: int) -> EncodedJson:
    """As JSON; `what` and `message` are for the fix that reports replaced characters."""
    try:
        return EncodedJson(encode(value))
    except UnicodeEncodeError:
        pass
    clean, count = join_and_replace_surrogates(value)
    line = f"{count:,} characters of {what} are halves of surrogate pairs: sent as U+FFFD"
    return EncodedJson(encode(clean), (Fix("uncarried", message, line),) if count else ())


def join_and_replace_surrogates(value: Any) -> tuple[Any, int]:
    """Pairs joined, U+FFFD for each half that is left, and how many were left.

    Recursive: only for values whose depth is bounded."""
    if isinstance(value, str):
        return _SURROGATE.subn("\ufffd", join_surrogates(value))
    if isinstance(value, dict):
        pairs = [
            (join_and_replace_surrogates(k), join_and_replace_surrogates(v))
            for k, v in value.items()
        ]
        return {k[0]: v[0] for k, v in pairs}, sum(k[1] + v[1] for k, v in pairs)
    if isinstance(value, list | tuple):
        items = [join_and_replace_surrogates(item) for item in value]
        return [item for item, _ in items], sum(count for _, count in items)
    return value, 0


def join_surrogates(text: str) -> str:
    """Neighbouring halves as the one character they are; a half without its other half stays."""
    if _SURROGATE.search(text) is None:
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def read_count(value: object) -> int:
    """A number of tokens, whatever came; anything but a number was not reported. A number that no
    count can be is more than `MAX_REPORT`, so that `believe_usage` refuses the report."""
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value:
        return 0
    return int(value) if 0 <= value <= MAX_REPORT else MAX_REPORT + 1

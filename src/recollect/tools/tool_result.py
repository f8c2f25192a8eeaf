"""What a tool's function returned, as the content of a result.

A text is sent as it is; JSON-like values become JSON: numbers, dicts, lists, dataclasses, msgspec
structs, models with `model_dump`, dates, enums, paths, and None as `null`. Bytes become an image,
a PDF, a sound or a video if they begin like one, otherwise a text. Content parts stay as they are,
alone or in a list with texts. Anything else raises `NoResult`, which names the type.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence, Set
from pathlib import PurePath
from typing import Any, get_args

import msgspec

from recollect.entries import Content, InlineData, Message, Text, check
from recollect.errors import BadInput
from recollect.workspace.media_types import media_type

MAX_RESULT = 100_000_000  # characters or bytes
_CONTENT: tuple[type, ...] = get_args(Content)


class NoResult(Exception):
    """The value cannot be sent to a model."""


def content_from(value: object) -> tuple[Content, ...]:
    """The content of a result; `NoResult` if the value has no form that a model could read."""
    if isinstance(value, list | tuple) and any(isinstance(item, _CONTENT) for item in value):
        content = tuple(part for item in value for part in content_from(item))
    else:
        content = (_single(value),)
    size = sum(_size(part) for part in content)
    if size > MAX_RESULT:
        raise NoResult(f"a result of {size:,} characters; the limit is {MAX_RESULT:,}")
    return content


def _single(value: object) -> Content:
    if isinstance(value, _CONTENT):
        return _checked(value)
    if isinstance(value, str):
        return Text(text=str(value))
    if isinstance(value, bytes | bytearray | memoryview):
        return _from_bytes(bytes(value))
    try:
        plain = msgspec.to_builtins(value, enc_hook=_to_plain, str_keys=True)
        return Text(text=json.dumps(plain, ensure_ascii=False))
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise NoResult(
            f"a {_type_name(value)}, which is not a result ({error or type(error).__name__}); "
            "return a text, a JSON-like value, a dataclass or a ToolOutput"
        ) from None


def _checked(part: Any) -> Content:
    """A part whose fields have their types; nothing checked them when it was made."""
    if type(part) is Text and type(part.text) is str and not part.extra:
        return part
    try:
        check(Message(role="user", parts=(part,)))
    except BadInput as error:
        raise NoResult(f"a {_type_name(part)} cannot be stored: {error}") from None
    return part  # type: ignore[no-any-return]


def _from_bytes(data: bytes) -> Content:
    if mime := media_type(data):
        return InlineData(mime=mime, data=data)
    try:
        return Text(text=data.decode())
    except UnicodeDecodeError:
        raise NoResult(
            f"{len(data):,} bytes that are no text, image, PDF, sound or video; return a text, or "
            "InlineData(mime=…, data=…) if the model can read them"
        ) from None


def _to_plain(value: Any) -> Any:
    """For msgspec: one step from a type that it does not know to one that it does."""
    if isinstance(value, PurePath):
        return str(value)
    for kind in (str, bool, int, float):  # subclasses of them
        if isinstance(value, kind):
            return kind(value)
    if callable(dump := getattr(value, "model_dump", None)) and not isinstance(value, type):
        return dump()
    if callable(plain := getattr(value, "tolist", None)) and not isinstance(value, type):
        return plain()  # numpy's arrays and numbers
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Sequence | Set):
        return list(value)
    raise TypeError(f"{_type_name(value)} has no JSON form")


def _size(part: Content) -> int:
    if isinstance(part, Text):
        return len(part.text)
    return len(part.data) if isinstance(part, InlineData) else 0


def _type_name(value: object) -> str:
    kind = type(value)
    own = kind.__module__ in ("builtins", "__main__")
    return kind.__qualname__ if own else f"{kind.__module__}.{kind.__qualname__}"

"""The JSON that clients send: bounded by its frame, checked, and never trusted."""

from __future__ import annotations

import json
from typing import Any, TypeVar

import msgspec

from recollect.errors import BadInput
from recollect.json_depth import refuse_deep
from recollect.text import one_line

T = TypeVar("T", bound=msgspec.Struct)


class HistoryRequest(msgspec.Struct, frozen=True):
    offset: int = 0  # messages to leave out, counted from the newest
    limit: int = 20
    format: str = "json"
    message_count: int | None = None  # the session as it was when it had so many


class ListRequest(msgspec.Struct, frozen=True):
    offset: int = 0
    limit: int = 20


class NamedSession(msgspec.Struct, frozen=True):
    session_id: str


class CreateRequest(msgspec.Struct, frozen=True):
    name: str = ""


class RenameRequest(msgspec.Struct, frozen=True):
    name: str
    session_id: str = ""


class ModelSwitch(msgspec.Struct, frozen=True):
    model: str


class FileMetadata(msgspec.Struct, frozen=True):
    filename: str
    size: int


class Hello(msgspec.Struct, frozen=True):
    token: str = ""
    version: int = 1
    features: tuple[str, ...] = ()


class ApproveRequest(msgspec.Struct, frozen=True):
    approval: str
    allowed: bool


def read_json(payload: bytes, kind: type[T]) -> T:
    """The payload as this kind of object; an empty one is an object without fields."""
    try:
        text = payload.decode()
    except UnicodeDecodeError as error:
        raise BadInput(f"the payload is not UTF-8 (byte {error.start}); send JSON") from None
    try:
        value = json.loads(text or "{}", parse_constant=_refuse, object_pairs_hook=_no_duplicates)
    except BadInput:
        raise
    except (ValueError, RecursionError) as error:
        raise BadInput(
            f"the payload is not JSON ({one_line(str(error), 120)}); send {kind_fields(kind)}"
        ) from None
    try:
        return msgspec.convert(refuse_deep(value), kind)
    except msgspec.ValidationError as error:
        raise BadInput(f"{one_line(str(error), 200)}; send {kind_fields(kind)}") from None


def _refuse(word: str) -> Any:
    raise BadInput(f"{word} is not JSON; send a number")


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise BadInput("a key of the JSON object occurs twice; send each once")
    return found


def kind_fields(kind: type[msgspec.Struct]) -> str:
    """The fields of an object, for an error."""
    fields = (f'"{field.encode_name}"' for field in msgspec.structs.fields(kind))
    return "{" + ", ".join(fields) + "}"

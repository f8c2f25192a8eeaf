"""Fields, parts and kinds that this version does not know, in JSON where they stood, and in our
values as text.

A record of a known type holds its unknown fields in `extra`, which is called `$extra` in JSON that
msgspec reads; an object of an unknown type is one of the type `$unknown`. Most bodies have neither,
and imported ones have `extra` at the top alone: that case is much quicker.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, TypeAlias, get_args

import msgspec

from recollect.errors import BadInput
from recollect.json_depth import MAX_DEPTH, refuse_deep

StructType: TypeAlias = type[msgspec.Struct]
_UNKNOWN = "$unknown"
compact_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode
_encode = msgspec.json.Encoder().encode
_decode_object = msgspec.json.Decoder(dict[str, Any]).decode
_split_object = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_split_tag = msgspec.json.Decoder(str).decode


def may_have_unknown(data: bytes) -> bool:
    """Whether msgspec's JSON of a value may have names of our own in it; one character is found
    much faster than several."""
    return b"$" in data and b'"$' in data and (b'"$extra":' in data or b':"$unknown"' in data)


def lower(value: Any) -> Any:
    """The output of `msgspec.to_builtins` with `extra` and unknown objects put back in place."""
    if isinstance(value, list | tuple):
        return [lower(item) for item in value]
    if not isinstance(value, dict):
        return value
    if _UNKNOWN in (value.get("type"), value.get("kind")):
        return refuse_deep(json.loads(value["data"]))
    extra = value.pop("$extra", "")
    known = {key: lower(item) for key, item in value.items()}
    if not extra:
        return known
    more = refuse_deep(json.loads(extra))
    if not isinstance(more, dict):
        raise BadInput(f"extra must be a JSON object, not {extra[:40]!r}")
    return known | {key: item for key, item in more.items() if key not in known}


class FieldLifter:
    """`kinds`: the types of bodies, by the tag `kind`; `parts`: those of parts, by `type`."""

    def __init__(self, kinds: Mapping[str, StructType], parts: Mapping[str, StructType]) -> None:
        self._kinds, self._parts = kinds, parts
        self._fields: dict[StructType, dict[str, Any]] = {}

    def lift(self, body: dict[str, Any]) -> Any:
        """The inverse of `lower`."""
        return self._lift_tagged(body, "kind", self._kinds)

    def add_extra(self, cls: StructType, known: bytes, extra: str) -> bytes:
        """A body's JSON, of which `known` is all but its `extra`, with that put back in place;
        nothing if it is not what `compact_json` writes."""
        data = extra.encode()
        more = _plain_object(data)
        if more is None or "kind" in more or not self._nested(cls).keys().isdisjoint(more):
            return b""
        return b"%b,%b" % (known[:-1], data[1:])

    def split_extra(self, data: bytes) -> tuple[bytes, str]:
        """A body's JSON without what the type does not know, and that as its `extra`; nothing if
        something other than the body itself may have unknown fields."""
        try:
            values = _split_object(data)
            fields = self._nested(self._kinds[_split_tag(values["kind"])])
        except (msgspec.MsgspecError, UnicodeError, KeyError):
            return b"", ""
        known = {key: item for key, item in values.items() if key in fields or key == "kind"}
        extra = _encode({key: item for key, item in values.items() if key not in known})
        if may_have_unknown(data) or _plain_object(extra) is None:
            return b"", ""
        return _encode(known), extra.decode()

    def _lift_tagged(self, value: dict[str, Any], tag: str, types: Mapping[str, StructType]) -> Any:
        cls = types.get(str(value.get(tag)))
        if cls is None or cls.__struct_config__.tag == _UNKNOWN:
            return {tag: _UNKNOWN, "data": compact_json(value)}
        fields = {key: item for key, item in value.items() if key != tag}
        return {tag: value[tag], **self._lift_fields(cls, fields)}

    def _lift_fields(self, cls: StructType, value: dict[str, Any]) -> dict[str, Any]:
        nested = self._nested(cls)
        lifted = {k: self._lift_item(nested[k], item) for k, item in value.items() if k in nested}
        if extra := {key: item for key, item in value.items() if key not in nested}:
            lifted["$extra"] = compact_json(extra)
        return lifted

    def _lift_item(self, kind: Any, item: Any) -> Any:
        if isinstance(item, list) and kind is not None:
            return [self._lift_item(kind, each) for each in item]
        if not isinstance(item, dict) or kind is None:
            return item
        if kind is self._parts:
            return self._lift_tagged(item, "type", self._parts)
        return self._lift_fields(kind, item)

    def _nested(self, cls: StructType) -> dict[str, Any]:
        """Each field's name and content: parts, another record, or None for plain values."""
        if (known := self._fields.get(cls)) is not None:
            return known
        found: dict[str, Any] = {}
        for field in msgspec.structs.fields(cls):
            if field.encode_name == "$extra":
                continue
            inner = get_args(field.type) or (field.type,)
            flat = [t for i in inner for t in (get_args(i) or (i,)) if isinstance(t, type)]
            records = [t for t in flat if issubclass(t, msgspec.Struct)]
            are_parts = not {*self._parts.values()}.isdisjoint(records)
            found[field.encode_name] = self._parts if are_parts else next(iter(records), None)
        self._fields[cls] = found
        return found


def _plain_object(data: bytes) -> dict[str, Any] | None:
    """The object that a compact JSON text is, if it has something and is not nested deeply."""
    if data.count(b"{") + data.count(b"[") > MAX_DEPTH:
        return None
    try:
        value = _decode_object(data)
        return value if value and _encode(value) == data else None
    except (msgspec.MsgspecError, UnicodeError, ValueError):
        return None

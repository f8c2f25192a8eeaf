"""A Gemini request, as a client sends it to a gateway.

Guarantees: everything that the API's documentation allows is read; anything else raises `BadInput`
with its place. Calls and responses without an id stay without: `repair` pairs them by name. A
model's messages count as the requested model's own, because only it can have made the signatures in
them. The model's name is usually in the address, so it may be empty here.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TypeVar

import msgspec

from recollect.codecs.foreign_json import is_too_deep, repair_json_text
from recollect.codecs.gemini.decode_parts import (
    JsonFields,
    decode_fields,
    decode_part,
    get_fields,
    get_items,
    get_string,
    raw_text,
)
from recollect.codecs.gemini.encode_options import BUDGETS, LEVELS
from recollect.codecs.gemini.openapi_schema import lowercase_types
from recollect.codecs.provider_errors import make_printable
from recollect.codecs.provider_rules import GeminiQuirks
from recollect.codecs.wire_protocol import (
    NO_PARAMETERS,
    Declaration,
    DecodedRequest,
    Effort,
    Generation,
    RequestOptions,
)
from recollect.entries import Message, Part, Role, json_text
from recollect.errors import BadInput
from recollect.json_depth import MAX_DEPTH

_ROLES: dict[str, Role] = {
    "": "user",
    "user": "user",
    "function": "user",
    "model": "model",
    "system": "system",
}
_T = TypeVar("_T")
_decode_number = msgspec.json.Decoder(float).decode
_decode_integer = msgspec.json.Decoder(int, strict=False).decode  # 64 bits travel as a string
_decode_texts = msgspec.json.Decoder(tuple[str, ...]).decode


def decode_request(quirks: GeminiQuirks, body: bytes) -> DecodedRequest:
    try:
        try:
            return _decode(body, quirks.model)
        except (msgspec.MsgspecError, UnicodeError):  # perhaps text that only msgspec refuses
            return _decode(repair_json_text(body), quirks.model)
    except RecursionError:
        raise _too_deep() from None
    except BadInput:
        raise
    except (msgspec.MsgspecError, ValueError) as error:
        raise BadInput(f"not a Gemini request: {make_printable(str(error), 300)}") from None


def _too_deep() -> BadInput:
    return BadInput(f"a request nested deeper than {MAX_DEPTH} levels is refused; flatten it")


def _decode(body: bytes, model: str) -> DecodedRequest:
    found = decode_fields(body)
    options = RequestOptions(
        model=get_string(found, "model").removeprefix("models/"),
        tools=_tools(found),
        tool_choice=_choice(found),
        generation=_generation(found),
    )
    messages: list[Message] = []
    if "systemInstruction" in found:
        parts = _parts(found["systemInstruction"], "systemInstruction")[1]
        messages.append(Message(role="system", parts=parts))
    author = options.model or model
    for index, content in enumerate(get_items(found, "contents")):
        role, parts = _parts(content, f"contents[{index}]")
        model_ = author if role == "model" else ""
        messages.append(Message(role=role, parts=parts, model=model_))
    return DecodedRequest(options, tuple(messages))


def _parts(content: msgspec.Raw, where: str) -> tuple[Role, tuple[Part, ...]]:
    """The role and the parts of a content, which may be a bare text."""
    if bytes(content).startswith(b'"'):
        return "user", decode_part({"text": content})
    found = _at(where, content)
    role = _ROLES.get(get_string(found, "role"))
    if role is None:
        raise BadInput(
            f"{where}: the role {get_string(found, 'role')[:40]!r} is neither user nor model"
        )
    read: list[Part] = []
    for index, part in enumerate(get_items(found, "parts")):
        place = f"{where}.parts[{index}]"
        try:
            read += decode_part(_at(place, part))
        except (msgspec.ValidationError, BadInput) as error:
            raise BadInput(f"{place}: {make_printable(str(error), 300)}") from None
    return role, tuple(read)


def _at(where: str, data: msgspec.Raw) -> JsonFields:
    try:
        return decode_fields(data)
    except msgspec.ValidationError as error:
        raise BadInput(f"{where}: {make_printable(str(error), 300)}") from None


def _get(found: JsonFields, key: str, decode: Callable[[msgspec.Raw], _T]) -> _T | None:
    return decode(found[key]) if key in found else None


def _tools(found: JsonFields) -> tuple[Declaration, ...]:
    return tuple(
        _tool(decode_fields(declared))
        for tool in map(decode_fields, get_items(found, "tools"))
        for declared in get_items(tool, "functionDeclarations")
    )


def _tool(declared: JsonFields) -> Declaration:
    return Declaration(
        name=get_string(declared, "name"),
        description=get_string(declared, "description"),
        parameters=_json_schema(declared, "parametersJsonSchema", "parameters") or NO_PARAMETERS,
    )


def _json_schema(found: JsonFields, json_key: str, openapi_key: str) -> str:
    """The schema's own text, unless it is OpenAPI's and its types are in upper case."""
    if json_key in found:
        return raw_text(found[json_key])
    if openapi_key not in found:
        return ""
    schema = found[openapi_key]
    value = json.loads(raw_text(schema))
    if is_too_deep(value):
        raise _too_deep()
    changed = isinstance(value, dict) and lowercase_types(value)
    return json_text(value) if changed else raw_text(schema)


def _choice(found: JsonFields) -> str:
    calling = get_fields(get_fields(found, "toolConfig"), "functionCallingConfig")
    mode = get_string(calling, "mode").upper()
    if mode == "NONE":
        return "none"
    if mode != "ANY":
        return "auto"
    names = _get(calling, "allowedFunctionNames", _decode_texts) or ()
    return names[0] if len(names) == 1 else "required"


def _generation(found: JsonFields) -> Generation:
    config = get_fields(found, "generationConfig")
    return Generation(
        temperature=_get(config, "temperature", _decode_number),
        top_p=_get(config, "topP", _decode_number),
        max_output=_get(config, "maxOutputTokens", _decode_integer),
        stop=_get(config, "stopSequences", _decode_texts) or (),
        seed=_get(config, "seed", _decode_integer),
        effort=_effort(config),
        schema=_json_schema(config, "responseJsonSchema", "responseSchema"),
    )


def _effort(config: JsonFields) -> Effort:
    """The effort whose budget is the next above the requested one."""
    thinking = get_fields(config, "thinkingConfig")
    level = get_string(thinking, "thinkingLevel").upper()
    for effort, name in LEVELS.items():
        if level == name:
            return effort
    budget = _get(thinking, "thinkingBudget", _decode_integer)
    if budget is None or budget < 0:  # -1 leaves it to the model
        return ""
    return next((effort for effort, most in BUDGETS.items() if budget <= most), "high")

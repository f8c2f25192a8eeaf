"""The parameters of a function, as the fields of a tool's arguments and as a JSON Schema.

Every parameter that a model fills in has a type that JSON can carry: what msgspec decodes (numbers,
texts, lists, dicts, Literal, Enum, dataclasses, TypedDict, dates, UUID, Decimal), `Path`, and
models with `model_validate`. Annotations may be texts (`from __future__ import annotations`), of
local types too. A function that does not fit raises `BadTool` with the parameter and the remedy.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections import ChainMap
from collections.abc import Callable, Collection, Mapping
from functools import partial
from pathlib import Path, PurePath
from types import FrameType, SimpleNamespace, UnionType
from typing import (
    Annotated,
    Any,
    NamedTuple,
    Optional,
    TypeAlias,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

import msgspec

from recollect.entries import json_text
from recollect.errors import BadTool
from recollect.tools.tool_docstring import parse_docstring

_Field: TypeAlias = tuple[str, Any] | tuple[str, Any, Any]  # a name, a type, perhaps a default
_PLAIN = (type(None), bool, int, float, str, tuple, frozenset)  # defaults that nobody can change
_KINDS = {
    inspect.Parameter.POSITIONAL_ONLY: "can only be given by position and models give arguments by "
    "name; remove the `/` after it",
    inspect.Parameter.VAR_POSITIONAL: "takes any number of arguments; write `{name}: list[…]`",
    inspect.Parameter.VAR_KEYWORD: "takes arguments of any name; write `{name}: dict[str, …]`",
}


class ToolSignature(NamedTuple):
    """What a function's signature and docstring say about a tool."""

    description: str
    schema: str  # a JSON Schema, as text
    arguments: type[msgspec.Struct]
    context_parameter: str  # the parameter of the context's type, or empty


def read_signature(function: Callable[..., object], name: str, context: type) -> ToolSignature:
    """The signature of a function that is to become the tool `name`. A parameter of the type
    `context` is not the model's."""
    hints = _resolve_types(function, name, context)
    description, described = parse_docstring(_docstring(function), hints)
    fields: list[_Field] = []
    context_parameter = ""
    for key, parameter in _parameters(function, name).items():
        if _is_context(hints[key], context):
            context_parameter = key
            continue
        text = _own_description(hints[key]) or described.get(key)
        kind = cast("Any", Annotated)[hints[key], msgspec.Meta(description=text)]
        default = parameter.default
        fields.append((key, kind) if default is inspect.Parameter.empty else (key, kind, default))
    schema = json_text(_parameters_schema(fields, name))
    return ToolSignature(description, schema, _make_struct(fields, name), context_parameter)


def _parameters(function: Callable[..., object], name: str) -> Mapping[str, inspect.Parameter]:
    try:
        found = inspect.signature(function).parameters
    except (TypeError, ValueError, NameError) as error:
        raise BadTool(
            name, f"its parameters are unknown ({error}); wrap it in a function"
        ) from None
    for key, parameter in found.items():
        if parameter.kind in _KINDS:
            raise BadTool(name, f"its parameter `{key}` {_KINDS[parameter.kind].format(name=key)}")
    given = function.keywords if isinstance(function, partial) else {}
    return {key: parameter for key, parameter in found.items() if key not in given}


def _resolve_types(function: Callable[..., object], name: str, context: type) -> dict[str, Any]:
    """The types of the parameters. Texts are looked up where the function was written, and where
    it is decorated, for local types."""
    written = _written_function(function)
    scope = getattr(written, "__globals__", {})
    local = ChainMap(_closure(written), _enclosing_locals(written))
    # a name that is only imported for type checkers
    assumed = {context.__name__: context, "Optional": Optional, "Union": Union}
    assumed["recollect"] = SimpleNamespace(**{context.__name__: context})
    hints = {}
    for key, parameter in _parameters(function, name).items():
        if parameter.annotation is inspect.Parameter.empty:
            raise BadTool(name, _missing_type(key))
        holder = SimpleNamespace(__annotations__={key: parameter.annotation})
        for names in (local, ChainMap(*local.maps, _Defaults(scope, assumed))):
            try:
                hints.update(get_type_hints(holder, scope, names, include_extras=True))
                break
            except NameError as error:
                unknown = error.name or parameter.annotation
            except Exception as error:  # noqa: BLE001 - an annotation is any expression
                raise BadTool(
                    name, f"the type of its parameter `{key}` cannot be read: {error}"
                ) from None
        else:
            raise BadTool(
                name,
                f"its parameter `{key}` has the type `{parameter.annotation}`, and `{unknown}` is "
                "not defined where the tool is made; import or define it at the module's top level",
            )
    return hints


def _missing_type(key: str) -> str:
    if key in ("self", "cls"):
        return f"it is a method without its object; use `tool(object.method)` instead of `{key}`"
    return f"its parameter `{key}` has no type; write `{key}: str`, or the type it has"


class _Defaults(dict[str, Any]):
    """Names for those that a scope lacks."""

    def __init__(self, scope: Mapping[str, Any], names: Mapping[str, Any]) -> None:
        super().__init__({key: value for key, value in names.items() if key not in scope})


def _written_function(function: Any) -> Any:
    """The function under partials, bound methods, callable objects and wrappers."""
    while True:
        if isinstance(function, partial):
            function = function.func
        elif inspect.ismethod(function):
            function = function.__func__
        elif hasattr(function, "__wrapped__"):
            function = function.__wrapped__
        elif inspect.isfunction(function) or not inspect.isfunction(type(function).__call__):
            return function
        else:
            function = type(function).__call__


def _docstring(function: Any) -> str:
    if isinstance(function, partial):
        return _docstring(function.func)
    written = _written_function(function)
    return inspect.getdoc(written) or inspect.getdoc(function) or ""


def _closure(function: Any) -> dict[str, Any]:
    found = {}
    names = getattr(getattr(function, "__code__", None), "co_freevars", ())
    for key, cell in zip(names, getattr(function, "__closure__", None) or (), strict=False):
        try:
            found[key] = cell.cell_contents
        except ValueError:  # not assigned yet
            continue
    return found


def _enclosing_locals(function: Any) -> dict[str, Any]:
    """The local names of the functions and classes around this one, while they still run."""
    inner = str(getattr(function, "__qualname__", ""))
    found: dict[str, Any] = {}
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        outer = frame.f_code.co_qualname
        if inner.startswith((f"{outer}.<locals>.", f"{outer}.")) and (
            frame.f_globals is getattr(function, "__globals__", None)
        ):
            found = {**frame.f_locals, **found}
        frame = frame.f_back
    return found


def _is_context(kind: Any, context: type) -> bool:
    if get_origin(kind) is Annotated:
        return _is_context(get_args(kind)[0], context)
    if get_origin(kind) in (Union, UnionType):
        return any(_is_context(each, context) for each in get_args(kind))
    return isinstance(kind, type) and kind is context


def _own_description(kind: Any) -> str | None:
    """The description in `Annotated`: a text, or an object that has one."""
    for extra in get_args(kind)[1:] if get_origin(kind) is Annotated else ():
        text = extra if isinstance(extra, str) else getattr(extra, "description", None)
        text = text or getattr(extra, "documentation", None)
        if isinstance(text, str):
            return text
    return None


def _make_struct(fields: Collection[_Field], name: str) -> type[msgspec.Struct]:
    made: list[Any] = []
    for key, kind, *default in fields:
        if not default:
            made.append((key, kind))
        elif isinstance(default[0], _PLAIN):
            made.append((key, kind, default[0]))
        else:  # the very object, as Python does it
            made.append((key, kind, msgspec.field(default_factory=partial(_same, default[0]))))
    class_name = re.sub(r"\W", "_", f"{name}_arguments")
    return msgspec.defstruct(
        class_name, made, kw_only=True, frozen=True, forbid_unknown_fields=True
    )


def _same(value: Any) -> Any:
    return value


def _parameters_schema(fields: Collection[_Field], name: str) -> dict[str, Any]:
    """Flat, as models and providers like it: no references, no titles."""
    properties = {}
    for key, kind, *default in fields:
        try:
            (found,), parts = msgspec.json.schema_components(
                [kind], ref_template="{name}", schema_hook=_schema_of
            )
            properties[key] = _inline_references(found, parts, 0)
        except (TypeError, ValueError, NameError, NotImplementedError) as error:
            raise BadTool(
                name, f"JSON cannot carry the type of its parameter `{key}`: {error}"
            ) from None
        if default:
            try:
                properties[key]["default"] = msgspec.to_builtins(
                    default[0], enc_hook=_plain_default
                )
            except (TypeError, ValueError):
                continue  # a marker that is only the function's
    return {
        "type": "object",
        "properties": properties,
        "required": [field[0] for field in fields if len(field) == 2],
        "additionalProperties": False,
    }


def _inline_references(value: Any, parts: dict[str, Any], depth: int) -> Any:
    if depth > 20:
        raise TypeError("a tool's parameters must not contain themselves")
    if isinstance(value, dict):
        parts = {**parts, **value.get("$defs", {})} if "$defs" in value else parts
        if "$ref" in value:
            target = parts[value["$ref"].rpartition("/")[2]]
            value = {**target, **{k: v for k, v in value.items() if k != "$ref"}}
        kept = {
            k: v
            for k, v in value.items()
            if k != "$defs" and (k != "title" or not isinstance(v, str))
        }
        return {k: _inline_references(v, parts, depth + 1) for k, v in kept.items()}
    if isinstance(value, list):
        return [_inline_references(item, parts, depth + 1) for item in value]
    return value


def _schema_of(kind: type) -> dict[str, Any]:
    """For msgspec: the schema of a type that it does not know."""
    if issubclass(kind, PurePath):
        return {"type": "string", "format": "path"}
    if callable(schema := getattr(kind, "model_json_schema", None)):
        return dict(schema())
    raise TypeError(
        f"{kind.__qualname__}; use str, int, float, bool, list, dict, Literal, Enum, date, Path, a "
        "dataclass or a TypedDict"
    )


def _plain_default(value: Any) -> Any:
    if isinstance(value, PurePath):
        return str(value)
    if callable(dump := getattr(value, "model_dump", None)):
        return dump()
    raise TypeError


def decode_unknown(kind: type, value: Any) -> Any:
    """For msgspec: a value of a type that it does not know."""
    if issubclass(kind, PurePath):
        if not isinstance(value, str):
            raise ValueError(f"Expected `str`, got `{type(value).__name__}`")
        return (Path if kind is PurePath else kind)(value)
    return cast("Any", kind).model_validate(value)

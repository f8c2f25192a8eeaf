"""What a tool is: a name, its declaration for the model, a function, and what it may touch.

A tool is an ordinary function with typed parameters and a docstring; `tool` makes it one. If it is
not async it runs in a thread. The parameters become a JSON Schema, the docstring's first
paragraph the description that the model reads, and lines such as `path: where to look` under it the
descriptions of the parameters. A parameter of type `ToolContext` is not the model's: it says where
the call happens. `ToolFailed` and arguments that do not fit become a result with `is_error`, which
the model reads; nothing that a model writes can make a tool raise anything else.
"""

from __future__ import annotations

import asyncio
import errno
import inspect
import json
import os
from collections.abc import Awaitable, Callable, Collection
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias, cast, get_type_hints

import msgspec

from recollect.codecs.wire_protocol import Declaration
from recollect.entries import Content, Note, Text, json_text
from recollect.store.contract import Store
from recollect.view.view import View
from recollect.workspace.working_folders import former_roots

MAX_ARGUMENTS = 20_000_000  # characters
BROKEN_STATUS = "broken"  # of a result: the machine is at fault

# read     changes nothing: several may run at the same time, and none needs a permission
# write    changes files or memory
# run      starts processes
Effect: TypeAlias = Literal["read", "write", "run"]


class ToolFailed(Exception):
    """A call that cannot be carried out; the model reads the fact, then the remedy."""


class ToolBroken(ToolFailed):
    """The machine is at fault, such as a full disk: no other call would succeed either."""


_MACHINE_ERRORS = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})


def failure_from(error: OSError, what: str) -> ToolFailed:
    why = f"{what}: {error.strerror or type(error).__name__}"
    return ToolBroken(why) if error.errno in _MACHINE_ERRORS else ToolFailed(why)


class ToolOutput(msgspec.Struct, frozen=True, kw_only=True):
    """What a tool returns. A text alone may be returned instead."""

    content: tuple[Content, ...] = ()
    is_error: bool = False
    status: str = ""


async def _do_nothing(_: object) -> None:
    pass


class ToolContext(msgspec.Struct, frozen=True):
    """Where a call happens: what a tool may see and touch. The agent makes one for each call."""

    roots: tuple[Path, ...]  # folders whose files may be touched; the first is the project's
    session: str = ""
    store: Store | None = None
    view: View | None = None  # what the model saw when it called
    tell: Callable[[str], None] = lambda _: None  # shows output while the tool runs
    before_change: Callable[[Path], Awaitable[None]] = _do_nothing  # backs a file up
    call: str = ""  # the call's id
    note: Callable[[Note], Awaitable[None]] = _do_nothing  # appended before the call's result
    cwd: Path | None = None  # in one of the roots; relative paths begin there. None: the first root

    @property
    def root(self) -> Path:
        return self.roots[0]

    def locate(self, path: str) -> str:
        """A path as the model wrote it, made absolute if it begins in the working directory.

        A path below a place that the project has moved away from fails, and names the new one."""
        if path.startswith("/"):
            self._refuse_former_place(path)
        return self.absolute(path)

    def absolute(self, path: str) -> str:
        if path.startswith("/") or not path or self.cwd in (None, self.root):
            return path  # relative to the first root, where tools begin anyway
        return f"{self.cwd}/{path}"

    def _refuse_former_place(self, path: str) -> None:
        given = Path(os.path.normpath(path))
        if self.view is None or any(given.is_relative_to(root) for root in self.roots):
            return
        for former in former_roots(item.message for item in self.view.items):
            if given.is_relative_to(former):
                here = self.root / given.relative_to(former)
                raise ToolFailed(
                    f"this session works in {self.root} now, no longer in {former}; use {here}"
                )


ToolReturn: TypeAlias = str | ToolOutput
ToolFunction: TypeAlias = Callable[..., Awaitable[ToolReturn]]
SyncToolFunction: TypeAlias = Callable[..., ToolReturn]


class Tool(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    declaration: Declaration
    run: ToolFunction
    effect: Effect
    arguments: type[msgspec.Struct]
    context_parameter: str = ""  # the function's parameter that takes the `ToolContext`

    async def __call__(self, arguments: str, context: ToolContext) -> ToolOutput:
        """Carry out a call as the model wrote it."""
        try:
            given = _parse_arguments(arguments, self.arguments)
            if self.context_parameter:
                given[self.context_parameter] = context
            returned = await self.run(**given)
        except ToolFailed as failed:
            content = (Text(text=f"Error: {failed}"),)
            status = BROKEN_STATUS if isinstance(failed, ToolBroken) else ""
            return ToolOutput(content=content, is_error=True, status=status)
        if isinstance(returned, str):
            return ToolOutput(content=(Text(text=returned),))
        return returned


def tool(effect: Effect, name: str = "") -> Callable[[ToolFunction | SyncToolFunction], Tool]:
    """Make a tool of a function: `@tool("read")`."""

    def make(function: ToolFunction | SyncToolFunction) -> Tool:
        called = name or function.__name__
        hints = get_type_hints(function)
        description, parameters = _parse_docstring(inspect.getdoc(function) or "", hints)
        fields: list[_Field] = []
        for key, parameter in inspect.signature(function).parameters.items():
            if hints[key] is not ToolContext:
                meta = msgspec.Meta(description=parameters.get(key))
                kind = cast("Any", Annotated)[hints[key], meta]
                required = parameter.default is inspect.Parameter.empty
                fields.append((key, kind) if required else (key, kind, parameter.default))
        schema = json_text(_parameters_schema(fields))
        return Tool(
            name=called,
            declaration=Declaration(name=called, description=description, parameters=schema),
            run=as_async(function),
            effect=effect,
            arguments=msgspec.defstruct(
                f"{called}_arguments", fields, kw_only=True, frozen=True, forbid_unknown_fields=True
            ),
            context_parameter=next((key for key in hints if hints[key] is ToolContext), ""),
        )

    return make


def as_async(function: ToolFunction | SyncToolFunction) -> ToolFunction:
    """The function itself, or one that runs it in a thread if it is not async."""
    if inspect.iscoroutinefunction(function):
        return function
    return partial(asyncio.to_thread, cast("SyncToolFunction", function))


def _parse_docstring(doc: str, names: Collection[str]) -> tuple[str, dict[str, str]]:
    """The description in a docstring, and those of its parameters."""
    words: list[str] = []
    parameters: dict[str, str] = {}
    last = ""
    for line in doc.splitlines():
        name, colon, rest = line.partition(": ")
        if colon and name in names:
            last = name
            parameters[name] = rest.strip()
        elif last and line.startswith("  "):
            parameters[last] += " " + line.strip()
        else:
            last = ""
            words.append(line)
    return "\n".join(words).strip(), parameters


_Field: TypeAlias = tuple[str, Any] | tuple[str, Any, Any]  # a name, a type, perhaps a default


def _parameters_schema(fields: Collection[_Field]) -> dict[str, Any]:
    """Flat, as models and providers like it: no references, no titles."""
    properties = {}
    for name, kind, *default in fields:
        (found,), parts = msgspec.json.schema_components([kind], ref_template="{name}")
        properties[name] = _inline_references(found, parts, 0)
        if default:
            properties[name]["default"] = msgspec.to_builtins(default[0])
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
        if "$ref" in value:
            value = {**parts[value["$ref"]], **{k: v for k, v in value.items() if k != "$ref"}}
        kept = {k: v for k, v in value.items() if k != "title" or not isinstance(v, str)}
        return {k: _inline_references(v, parts, depth + 1) for k, v in kept.items()}
    if isinstance(value, list):
        return [_inline_references(item, parts, depth + 1) for item in value]
    return value


def _parse_arguments(text: str, kind: type[msgspec.Struct]) -> dict[str, Any]:
    if len(text) > MAX_ARGUMENTS:
        raise ToolFailed(f"arguments of more than {MAX_ARGUMENTS:,} characters are refused")
    try:
        value = json.loads(text or "{}")
    except (ValueError, RecursionError) as error:
        raise ToolFailed(f"the arguments are not valid JSON ({error}); write them again") from None
    if not isinstance(value, dict):
        raise ToolFailed("the arguments must be a JSON object; write them again")
    value = {key: item for key, item in value.items() if item is not None}
    try:
        made = msgspec.convert(value, kind, strict=False)
    except msgspec.ValidationError as error:
        known = ", ".join(kind.__struct_fields__)
        raise ToolFailed(f"{error}; the parameters are {known or 'none'}") from None
    return {name: getattr(made, name) for name in kind.__struct_fields__}

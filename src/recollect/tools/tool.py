"""What a tool is: a name, its declaration for the model, a function, and what it may touch.

A tool is an ordinary function with typed parameters and a docstring; `tool` makes it one, or
raises `BadTool`. If it is not async it runs in a thread. The parameters become a JSON Schema
(`tool_signature.py`), the docstring the descriptions that the model reads (`tool_docstring.py`),
and the value that the function returns the content of a result (`tool_result.py`). A parameter of
type `ToolContext` is not the model's: it says where the call happens. `ToolFailed`, arguments that
do not fit and values that cannot be sent become a result with `is_error`, which the model reads.
"""

from __future__ import annotations

import asyncio
import errno
import inspect
import os
import re
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast, get_args, overload

import msgspec

from recollect.codecs.argument_names import find_name_conflict, fit_arguments, remedy_for
from recollect.codecs.foreign_json import parse_object, strict_json
from recollect.codecs.item_names import TOOLS_WITH_ITEMS, fit_items
from recollect.codecs.wire_protocol import Declaration
from recollect.entries import Content, Note, Text, json_text
from recollect.errors import BadTool
from recollect.store.contract import Store
from recollect.tools.at_path import drop_mention_sign
from recollect.tools.tool_result import NoResult, content_from
from recollect.tools.tool_signature import decode_unknown, read_signature
from recollect.view.view import View
from recollect.workspace.working_folders import former_roots
from recollect.workspace.workspace_secrets import ShownSecrets

MAX_ARGUMENTS = 20_000_000  # characters
BROKEN_STATUS = "broken"  # of a result: the machine is at fault
BAD_CALL_STATUS = "bad_call"  # of a result: the call could not be run as the model wrote it

# read     changes nothing: several may run at the same time, and none needs a permission
# write    changes files or memory
# run      starts processes
Effect: TypeAlias = Literal["read", "write", "run"]
# Providers accept less; the names that one refuses are sent as others (`codecs/tool_names.py`).
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.:/-]{0,127}")


class ToolFailed(Exception):
    """A call that cannot be carried out; the model reads the fact, then the remedy."""


class BadArguments(ToolFailed):
    """The arguments are not what the tool takes; the model has to write the call again."""


class ToolBroken(ToolFailed):
    """The machine is at fault, such as a full disk: no other call would succeed either."""


_MACHINE_ERRORS = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})


def failure_from(error: OSError, what: str) -> ToolFailed:
    """The failure of a tool that an error of the operating system caused."""
    why = f"{what}: {error.strerror or type(error).__name__}"
    return ToolBroken(why) if error.errno in _MACHINE_ERRORS else ToolFailed(why)


class ToolOutput(msgspec.Struct, frozen=True, kw_only=True):
    """What a tool returns, part by part. A text or a JSON-like value may be returned instead."""

    content: tuple[Content, ...] = ()
    is_error: bool = False
    status: str = ""


async def _do_nothing(_: object) -> None:
    pass


async def _append_nothing(_: object) -> str:
    return ""


class ToolContext(msgspec.Struct, frozen=True):
    """Where a call happens: what a tool may see and touch. The agent makes one for each call."""

    roots: tuple[Path, ...]  # folders whose files may be touched; the first is the project's
    session: str = ""
    store: Store | None = None
    view: View | None = None  # what the model saw when it called
    tell: Callable[[str], None] = lambda _: None  # shows output while the tool runs
    before_change: Callable[[Path], Awaitable[None]] = _do_nothing  # backs a file up
    call: str = ""  # the call's id
    note: Callable[[Note], Awaitable[str]] = _append_nothing  # before the result; returns its id
    cwd: Path | None = None  # in one of the roots; relative paths begin there. None: the first root
    approved: bool = False  # the user allowed this very call, so it may read secrets
    shown: ShownSecrets = msgspec.field(default_factory=ShownSecrets)  # secrets all calls may read

    @property
    def root(self) -> Path:
        """The folder in which relative paths begin."""
        return self.roots[0]

    def locate(self, path: str) -> str:
        """A path as the model wrote it, made absolute if it begins in the working directory.

        A path below a place that the project has moved away from fails, and names the new one."""
        path = drop_mention_sign(path, self.cwd or self.root, self.roots)
        if path.startswith("/"):
            self._refuse_former_place(path)
        return self.absolute(path)

    def absolute(self, path: str) -> str:
        """A path made absolute if it begins in the working directory; an `@` in front of it that
        is not part of a name is dropped."""
        path = drop_mention_sign(path, self.cwd or self.root, self.roots)
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
ToolFunction: TypeAlias = Callable[..., Awaitable[object]]
AnyFunction: TypeAlias = Callable[..., object]


class Tool(msgspec.Struct, frozen=True, kw_only=True):
    """Something the model may call; `tool` makes one of a function."""

    name: str
    declaration: Declaration
    run: ToolFunction
    effect: Effect
    arguments: type[msgspec.Struct]
    context_parameter: str = ""  # the function's parameter that takes the `ToolContext`

    def problem_with(self, arguments: str) -> str:
        """Why a call with these arguments cannot be run; empty if it can."""
        try:
            _parse_arguments(self.fit(arguments), self)
        except BadArguments as wrong:
            return str(wrong)
        return ""

    def fit(self, arguments: str) -> str:
        """The arguments with the names that the tool has for them; as they are if they have them,
        or are malformed. Whoever judges a call has to judge these."""
        try:
            small = len(arguments) <= MAX_ARGUMENTS
            value = strict_json(arguments) if small else None
            if not isinstance(value, dict):
                return arguments
            fitted = fit_arguments(self.name, value, self.arguments.__struct_fields__)
            if self.name in TOOLS_WITH_ITEMS:
                schema = parse_object(self.declaration.parameters) or {}
                fitted = fit_items(self.name, fitted, schema.get("properties", {}))
            return arguments if fitted == value else json_text(fitted)
        except (ValueError, RecursionError):
            return arguments

    async def __call__(self, arguments: str, context: ToolContext) -> ToolOutput:
        """Carry out a call as the model wrote it."""
        try:
            given = _parse_arguments(self.fit(arguments), self)
            if self.context_parameter:
                given[self.context_parameter] = context
            return _output_from(await self.run(**given))
        except ToolFailed as failed:
            content = (Text(text=f"Error: {failed}"),)
            return ToolOutput(content=content, is_error=True, status=_status_of(failed))
        except NoResult as wrong:
            why = f"Error: {self.name} returned {wrong}"
        except SystemExit as ended:
            why = f"Error: {self.name} tried to end the program (SystemExit: {ended})"
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            why = f"Error: something that {self.name} waited for was cancelled"
        return ToolOutput(content=(Text(text=why),), is_error=True)


def _status_of(failed: ToolFailed) -> str:
    if isinstance(failed, ToolBroken):
        return BROKEN_STATUS
    return BAD_CALL_STATUS if isinstance(failed, BadArguments) else ""


def _output_from(returned: object) -> ToolOutput:
    if not isinstance(returned, ToolOutput):
        return ToolOutput(content=content_from(returned))
    given = returned.content if isinstance(returned.content, tuple | list) else [returned.content]
    content = tuple(part for item in given for part in content_from(item))
    return ToolOutput(
        content=content, is_error=bool(returned.is_error), status=str(returned.status)
    )


@overload
def tool(
    function: AnyFunction, /, *, effect: Effect = "read", name: str = "", description: str = ""
) -> Tool: ...


@overload
def tool(
    effect: Effect = "read", name: str = "", *, description: str = ""
) -> Callable[[AnyFunction], Tool]: ...


def tool(
    function_or_effect: AnyFunction | Effect | None = None,
    /,
    name: str = "",
    *,
    effect: Effect = "read",
    description: str = "",
) -> Tool | Callable[[AnyFunction], Tool]:
    """Make a tool of a function: `@tool`, `@tool("write")` or `@tool(effect="write", name="send")`.

    The effect says what a call needs: `read` (the default) needs no permission, and several calls
    run at the same time; `write` and `run` need one. The name and the description are those of the
    function unless you give others.
    """
    if callable(function_or_effect):
        return _make_tool(function_or_effect, effect, name, description)
    chosen = effect if function_or_effect is None else function_or_effect
    return lambda function: _make_tool(function, chosen, name, description)


def _make_tool(function: AnyFunction, effect: Effect, name: str, description: str) -> Tool:
    called = _tool_name(function, name)
    if effect not in get_args(Effect):
        effects = ", ".join(map(repr, get_args(Effect)))
        raise BadTool(called, f"there is no effect {effect!r}; the effects are {effects}")
    found = read_signature(function, called, ToolContext)
    return Tool(
        name=called,
        declaration=Declaration(
            name=called, description=description or found.description, parameters=found.schema
        ),
        run=as_async(function),
        effect=effect,
        arguments=found.arguments,
        context_parameter=found.context_parameter,
    )


def _tool_name(function: AnyFunction, name: str) -> str:
    """The name of a tool, after a look at what is to become one."""
    inner: Any = function
    while isinstance(inner, partial):
        inner = inner.func
    called = name or str(getattr(inner, "__name__", ""))
    shown = called or type(function).__name__
    if isinstance(function, Tool):
        raise BadTool(function.name, "it is a tool already; remove the second `@tool`")
    if not callable(function) or inspect.isclass(function):
        raise BadTool(shown, "it is not a function; decorate a function or a bound method")
    if inspect.isgeneratorfunction(inner) or inspect.isasyncgenfunction(inner):
        raise BadTool(shown, "it is a generator; collect the values and return them as a list")
    if not _NAME.fullmatch(called):
        raise BadTool(
            shown, "a name has up to 128 letters, digits and _ - . : /; give one: `tool(name=…)`"
        )
    return called


def as_async(function: AnyFunction) -> ToolFunction:
    """The function itself, or one that runs it in a thread if it is not async."""
    if inspect.iscoroutinefunction(function):
        return function
    if inspect.iscoroutinefunction(getattr(function, "__call__", None)):  # noqa: B004 - an object
        return cast("ToolFunction", function)

    async def run(*arguments: object, **named: object) -> object:
        value, error = await asyncio.to_thread(_catch, partial(function, *arguments, **named))
        if error is not None:
            raise error
        return await value if inspect.isawaitable(value) else value

    return run


def _catch(function: Callable[[], object]) -> tuple[object, BaseException | None]:
    """The value or the error: a future cannot carry a StopIteration."""
    try:
        return function(), None
    except BaseException as error:  # noqa: BLE001 - raised again by the caller
        return None, error


def _parse_arguments(text: str, tool: Tool) -> dict[str, Any]:
    kind = tool.arguments
    if len(text) > MAX_ARGUMENTS:
        raise BadArguments(f"arguments of more than {MAX_ARGUMENTS:,} characters are refused")
    try:
        value = strict_json(text or "{}")
    except (ValueError, RecursionError) as error:
        raise BadArguments(
            f"the arguments are not valid JSON ({error}); write them again"
        ) from None
    if not isinstance(value, dict):
        raise BadArguments("the arguments must be a JSON object; write them again")
    given = {key: item for key, item in value.items() if item is not None}
    try:
        try:
            made = msgspec.convert(value, kind, strict=False, dec_hook=decode_unknown)
        except msgspec.ValidationError:
            # models write null for a parameter that they leave out
            made = msgspec.convert(given, kind, strict=False, dec_hook=decode_unknown)
    except UnicodeEncodeError:
        raise BadArguments("a name has half of a surrogate pair; write the call again") from None
    except msgspec.ValidationError as error:
        if conflict := find_name_conflict(tool.name, value, kind.__struct_fields__):
            raise BadArguments(conflict) from None
        known = ", ".join(kind.__struct_fields__)
        # late: few calls are wrong, and it brings the text tools along
        from recollect.codecs.text_tools.argument_check import find_argument_problem
        from recollect.codecs.text_tools.argument_coercion import parse_schema

        # in the schema's own words, where it has some for it
        why = find_argument_problem(value, parse_schema(tool.declaration)) or str(error)
        remedy = remedy_for(tool.name, value, kind.__struct_fields__)
        raise BadArguments(
            f"{why}; the parameters are {known or 'none'}{f'; {remedy}' if remedy else ''}"
        ) from None
    return {name: getattr(made, name) for name in kind.__struct_fields__}

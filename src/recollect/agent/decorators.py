"""Decorators for what a user adds to an agent: `@hook`, `@permission`, `@elision_rule`.

Each makes a value of a function, for `Agent(hooks=[…], permissions=[…], rules=[…])`. What does not
fit raises `BadInput` where it is decorated, with the remedy. A check of permissions that fails
refuses the call; a hook or a rule that fails causes a warning.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from types import UnionType
from typing import Any, NoReturn, TypeAlias, TypeVar, Union, get_args, get_origin, overload

import msgspec

import recollect.hook_events as hook_events
from recollect.agent.hooks import DEFAULT_TIMEOUT, HookFunction, PythonHook
from recollect.agent.tool_calls import CallPermission, PermissionCheck, allow_reads_only
from recollect.entries import ToolCall
from recollect.errors import BadInput
from recollect.hook_events import EVENT_NAMES, HookEvent
from recollect.tools.tool import Tool, as_async
from recollect.view.custom_rules import CustomRule, RuleFunction
from recollect.view.elision_rules import ElisionRules

E = TypeVar("E", bound=HookEvent)
EventChoice: TypeAlias = type[HookEvent] | str
# True or "": it may run. False or a text: it may not. None: another check decides.
PermissionAnswer: TypeAlias = bool | str | None
PermissionFunction: TypeAlias = Callable[
    [Tool, ToolCall], PermissionAnswer | Awaitable[PermissionAnswer]
]


@overload
def hook(function: Callable[[E], object], /) -> PythonHook: ...  # type: ignore[overload-overlap]  # an event is no function


@overload
def hook(
    *events: EventChoice, timeout: float = DEFAULT_TIMEOUT
) -> Callable[[Callable[[E], object]], PythonHook]: ...


def hook(*events: Any, timeout: float = DEFAULT_TIMEOUT) -> Any:
    """Make a hook of a function: `@hook` above `def check(event: BeforeTool)`, or with the events,
    `@hook(BeforeTool, AfterTool)`.

    Bare, it runs for the annotated event, for several with `BeforeTool | AfterTool`, and for all
    with `HookEvent`. It returns nothing, a text for the context, or a `HookDecision`, which may
    refuse. A sync function runs in a thread; after `timeout` seconds the agent goes on.
    """
    if len(events) == 1 and callable(events[0]) and not isinstance(events[0], type):
        return _make_hook(events[0], _annotated_events(events[0]), timeout)
    named = tuple(_event_name(event) for event in events)
    return lambda function: _make_hook(function, named or _annotated_events(function), timeout)


def _make_hook(function: HookFunction, names: tuple[str, ...], timeout: float) -> PythonHook:
    if isinstance(function, PythonHook) or not callable(function):
        raise BadInput(f"{_name_of(function)} cannot become a hook; decorate a function")
    on = () if HookEvent.__name__ in names else names
    return PythonHook(call=function, on=on, name=_name_of(function), timeout=timeout)


def _event_name(event: object) -> str:
    name = event.__name__ if isinstance(event, type) else event
    if name not in (*EVENT_NAMES, HookEvent.__name__):
        _refuse_event(name)
    return str(name)


def _refuse_event(name: object) -> NoReturn:
    raise BadInput(f"there is no event {name!r}; the events are {', '.join(EVENT_NAMES)}")


def _annotated_events(function: Callable[..., object]) -> tuple[str, ...]:
    """The events in the annotation of a hook's first parameter, also if it is a text."""
    parameter = next(iter(inspect.signature(function).parameters.values()), None)
    written = inspect.Parameter.empty if parameter is None else parameter.annotation
    if written is inspect.Parameter.empty:
        raise BadInput(
            f"the hook {_name_of(function)} names no event; annotate its parameter, "
            "`(event: BeforeTool)`, or write `@hook(BeforeTool)`"
        )
    if isinstance(written, str):
        written = _evaluate(written, function)
    kinds = get_args(written) if get_origin(written) in (Union, UnionType) else (written,)
    return tuple(_event_name(kind) for kind in kinds)


def _evaluate(written: str, function: Callable[..., object]) -> object:
    """The type that a text names where the function was written, or among the events: a type that
    is imported for type checkers only is known too."""
    inner = inspect.unwrap(function)
    module = sys.modules.get(getattr(inner, "__module__", ""))
    scope = {**vars(hook_events), **(vars(module) if module else {})}
    try:
        return eval(written, scope)  # noqa: S307 - the program's own annotation
    except Exception:  # noqa: BLE001 - an annotation is any expression
        last = written.rpartition(".")[2]
        return getattr(hook_events, last, None) or _refuse_event(written)


class Permission(msgspec.Struct, frozen=True):
    """A check of tool calls; `permission` makes one of a function."""

    check: PermissionFunction
    tools: tuple[str, ...] = ()  # names; empty means all

    async def judge(self, tool: Tool, call: ToolCall) -> PermissionAnswer:
        """The check's answer; text if it failed or answered something else."""
        name = _name_of(self.check)
        try:
            answer = await as_async(self.check)(tool, call)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - a failed check allows nothing
            why = f"{type(error).__name__}: {str(error)[:500]}"
            return f"{tool.name} was not run: the permission check {name} failed ({why})"
        if answer is False:
            return f"{tool.name} was refused by the permission check {name}"
        if answer is None or answer is True or isinstance(answer, str):
            return answer
        kind = type(answer).__name__
        return (
            f"{tool.name} was not run: the permission check {name} returned {kind}; it must "
            "return True, False, a text or None"
        )


@overload
def permission(function: PermissionFunction, /) -> Permission: ...


@overload
def permission(*tools: Tool | str) -> Callable[[PermissionFunction], Permission]: ...


def permission(*tools: Any) -> Any:
    """Make a permission check of a function: `@permission` for every tool, `@permission("send")`
    for some.

    The function receives the tool and the call. False or a text (the reason, which the model reads)
    refuses the call, and so does an exception. True or "" allows it, unless another check refuses.
    None leaves it to the others; if all do, only tools that read may run. A sync function runs in
    a thread.
    """
    if len(tools) == 1 and callable(tools[0]) and not isinstance(tools[0], Tool):
        return Permission(tools[0])
    names = tuple(tool.name if isinstance(tool, Tool) else tool for tool in tools)
    if not all(isinstance(name, str) and name for name in names):
        raise BadInput(f"permission takes tools or their names, not {names!r:.200}")
    return lambda function: Permission(function, names)


def combine_permissions(
    checks: Sequence[Permission | PermissionFunction], otherwise: PermissionCheck = allow_reads_only
) -> PermissionCheck:
    """One check of several: a refusal wins, then an approval; if none says anything, `otherwise`
    decides."""
    permissions = [each if isinstance(each, Permission) else Permission(each) for each in checks]
    for each in permissions:
        if not callable(each.check):
            raise BadInput(f"{each.check!r:.100} is no permission check; give a function")

    async def check(tool: Tool, call: ToolCall) -> CallPermission:
        allowed = False
        for each in permissions:
            if each.tools and tool.name not in each.tools:
                continue
            answer = await each.judge(tool, call)
            if isinstance(answer, str) and answer:
                return CallPermission(answer)
            allowed = allowed or answer is not None
        return CallPermission() if allowed else await otherwise(tool, call)

    return check


def elision_rule(name: str) -> Callable[[RuleFunction], CustomRule]:
    """Make an elision rule of a function: `@elision_rule("old-forecast")`.

    The function receives the view and the time, in milliseconds, and returns pairs of an item of
    `view.items` and the reason to leave it out. Calls, pinned and restored messages and the newest
    one stay whatever it returns. As with every rule, nothing is left out before it saves
    `ElisionRules.min_saving` tokens or the context is too long.
    """
    if not isinstance(name, str):
        raise BadInput('an elision rule needs a name: `@elision_rule("old-forecast")`')
    return lambda function: CustomRule(name, function)


def with_custom_rules(rules: Iterable[CustomRule]) -> ElisionRules:
    """The default rules and these."""
    custom = tuple(rules)
    for rule in custom:
        if not isinstance(rule, CustomRule):
            raise BadInput(
                f"{_name_of(rule)} is no elision rule; write `@elision_rule(name)` above it"
            )
    return ElisionRules(custom=custom)


def _name_of(function: object) -> str:
    while isinstance(function, partial):
        function = function.func
    return str(getattr(function, "__name__", "") or type(function).__name__)

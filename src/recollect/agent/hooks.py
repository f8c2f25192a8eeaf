"""Hooks: the user's own code, which runs before and after what the agent does.

A hook is a Python callable or a command. `Hooks.fire` runs the hooks of an event in order and
returns one `HookDecision`: the first refusal wins and ends it, contexts are joined, and the next
hook sees changed arguments. A hook that fails, hangs or returns something invalid causes a warning
and never stops the agent; whatever it returns is bounded. Hooks of a project run only in a trusted
folder.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from recollect.agent.activity_log import ActivityLog
from recollect.agent.hook_events import (
    EVENT_NAMES,
    BeforeTool,
    HookDecision,
    HookEvent,
    SessionStart,
    event_name,
)
from recollect.errors import BadInput

DEFAULT_TIMEOUT = 60.0


class PythonHook(msgspec.Struct, frozen=True, kw_only=True):
    """A callable, sync or async. It receives the event and returns nothing, a text (added to the
    context), a `HookDecision`, or a mapping as a command prints it. A sync one runs in a thread."""

    call: Callable[[HookEvent], Any]
    on: tuple[str, ...] = ()  # names of events; empty means all
    name: str = ""
    of_project: bool = False
    timeout: float = DEFAULT_TIMEOUT  # seconds


class CommandHook(msgspec.Struct, frozen=True, kw_only=True):
    """A program with its arguments, started without a shell."""

    command: tuple[str, ...]
    on: tuple[str, ...] = ()
    name: str = ""
    of_project: bool = False
    timeout: float = DEFAULT_TIMEOUT  # seconds


Hook: TypeAlias = PythonHook | CommandHook


class HookContext(msgspec.Struct, frozen=True):
    """The folder, transcript and environment that commands get."""

    cwd: Path
    transcript: str = ""
    environment: Mapping[str, str] | None = None  # none: this process's own


class Hooks:
    """The hooks of one session. `trusted` lets the project's own hooks run; `warn` receives their
    warnings."""

    def __init__(
        self,
        hooks: Iterable[Hook | Callable[[HookEvent], Any]] = (),
        *,
        trusted: bool = False,
        cwd: Path | None = None,
        transcript: str = "",
        environment: Mapping[str, str] | None = None,
        activity: ActivityLog | None = None,
        warn: Callable[[str], None] = lambda _: None,
    ) -> None:
        checked = tuple(_check_hook(hook) for hook in hooks)
        self.hooks = tuple(hook for hook in checked if trusted or not hook.of_project)
        self._untrusted = len(checked) - len(self.hooks)
        self.activity = ActivityLog() if activity is None else activity
        self._context = HookContext(cwd or Path.cwd(), transcript, environment)
        self._warn = warn

    async def fire(self, event: HookEvent) -> HookDecision:
        self.activity.record(event)
        decision = HookDecision(warnings=self._trust_warning(event))
        for hook in self.hooks:
            if hook.on and event_name(event) not in hook.on:
                continue
            # most sessions have no hooks
            from recollect.agent.hook_runner import merge_decisions, run_hook

            answer = await run_hook(hook, event, self._context)
            decision = merge_decisions(decision, answer)
            if not decision.allowed:
                break
            if isinstance(event, BeforeTool) and answer.arguments is not None:
                event = msgspec.structs.replace(event, arguments=answer.arguments)
        for warning in decision.warnings:
            self._warn(warning)
        return decision

    def _trust_warning(self, event: HookEvent) -> tuple[str, ...]:
        if not self._untrusted or not isinstance(event, SessionStart):
            return ()
        return (f"{self._untrusted} hooks of this project do not run: the folder is not trusted",)


def _check_hook(hook: Hook | Callable[[HookEvent], Any]) -> Hook:
    if not isinstance(hook, PythonHook | CommandHook):
        hook = PythonHook(call=hook)
    unknown = [name for name in hook.on if name not in EVENT_NAMES]
    if unknown:
        raise BadInput(f"there is no event {unknown[0]!r}; the events are {', '.join(EVENT_NAMES)}")
    if isinstance(hook, CommandHook) and not (hook.command and hook.command[0]):
        raise BadInput("a hook's command is empty; give the program and its arguments")
    return hook

"""Hooks: what a person's own code says to what an agent is about to do, or has done.

A hook is a Python callable or a command. `Hooks.fire` runs those that wait for an event, in order,
and gives one `HookDecision`: the first that blocks wins and ends it, contexts are joined, and changed
arguments are what the next hook sees. A hook that fails, hangs, or gives what cannot be read makes
a warning and never stops the agent; whatever it gives is bounded (`hooking.py`, which is loaded
when there is a hook to ask). Hooks of a project run only in a folder that is trusted.
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

DEFAULT_TIMEOUT = 60.0  # seconds for one hook


class PythonHook(msgspec.Struct, frozen=True, kw_only=True):
    """A callable, sync or async. It gets the event and returns nothing, a text (which is context),
    a `HookDecision`, or a mapping as a command would print it. A sync one runs in its own thread."""

    call: Callable[[HookEvent], Any]
    on: tuple[str, ...] = ()  # names of events; none means all
    name: str = ""
    of_project: bool = False
    limit: float = DEFAULT_TIMEOUT


class CommandHook(msgspec.Struct, frozen=True, kw_only=True):
    """A program with its arguments; no shell reads them."""

    command: tuple[str, ...]
    on: tuple[str, ...] = ()
    name: str = ""
    of_project: bool = False
    limit: float = DEFAULT_TIMEOUT


Hook: TypeAlias = PythonHook | CommandHook


class HookContext(msgspec.Struct, frozen=True):
    """Where commands run, and what they are told of it."""

    cwd: Path
    transcript: str = ""
    environment: Mapping[str, str] | None = None  # none: this program's own


class Hooks:
    """Made once for a session; `trusted` says whether the project's own hooks may run, and `tell`
    hears what hooks warn of."""

    def __init__(
        self,
        hooks: Iterable[Hook | Callable[[HookEvent], Any]] = (),
        *,
        trusted: bool = False,
        cwd: Path | None = None,
        transcript: str = "",
        environment: Mapping[str, str] | None = None,
        activity: ActivityLog | None = None,
        tell: Callable[[str], None] = lambda _: None,
    ) -> None:
        found = tuple(_check_hook(hook) for hook in hooks)
        self.hooks = tuple(hook for hook in found if trusted or not hook.of_project)
        self.left_out = len(found) - len(self.hooks)
        self.activity = ActivityLog() if activity is None else activity
        self._where, self._tell = HookContext(cwd or Path.cwd(), transcript, environment), tell

    async def fire(self, event: HookEvent) -> HookDecision:
        self.activity.note(event)
        so_far = HookDecision(warnings=self._told_of_trust(event))
        for hook in self.hooks:
            if hook.on and event_name(event) not in hook.on:
                continue
            from recollect.agent.hook_runner import merge_decisions, run_hook

            answer = await run_hook(hook, event, self._where)
            so_far = merge_decisions(so_far, answer)
            if not so_far.allowed:
                break
            if isinstance(event, BeforeTool) and answer.arguments is not None:
                event = msgspec.structs.replace(event, arguments=answer.arguments)
        for warning in so_far.warnings:
            self._tell(warning)
        return so_far

    def _told_of_trust(self, event: HookEvent) -> tuple[str, ...]:
        if not self.left_out or not isinstance(event, SessionStart):
            return ()
        return (f"{self.left_out} hooks of this project do not run: the folder is not trusted",)


def _check_hook(hook: Hook | Callable[[HookEvent], Any]) -> Hook:
    if not isinstance(hook, PythonHook | CommandHook):
        hook = PythonHook(call=hook)
    unknown = [name for name in hook.on if name not in EVENT_NAMES]
    if unknown:
        raise BadInput(f"no event is called {unknown[0]!r}; there are {', '.join(EVENT_NAMES)}")
    if isinstance(hook, CommandHook) and not (hook.command and hook.command[0]):
        raise BadInput("a hook's command is empty; give the program and its arguments")
    return hook

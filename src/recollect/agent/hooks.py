"""Hooks: the user's own code, which runs before and after what the agent does.

A hook is a Python callable or a command. `Hooks.fire` runs the hooks of an event in order and
returns one `HookDecision`: the first refusal wins and ends it, contexts are joined, and the next
hook sees changed arguments. A hook that fails, hangs or returns something invalid causes a warning
and never stops the agent; whatever it returns is bounded. Hooks of a project run only in a trusted
folder.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from time import monotonic
from typing import Any, TypeAlias

import msgspec

from recollect.errors import BadInput
from recollect.hook_events import (
    EVENT_NAMES,
    REFUSABLE,
    BeforeTool,
    HookDecision,
    HookEvent,
    SessionStart,
)
from recollect.store.ids import now
from recollect.text import clip_middle

DEFAULT_TIMEOUT = 60.0
MAX_EVENTS = 100  # in the activity log
MAX_TEXT = 2_000  # characters of each text in it


class _HookOptions(msgspec.Struct, frozen=True, kw_only=True):
    on: tuple[str, ...] = ()  # names of events; empty means all
    name: str = ""
    of_project: bool = False
    timeout: float = DEFAULT_TIMEOUT  # seconds


class PythonHook(_HookOptions, frozen=True, kw_only=True):
    """A callable, sync or async. It receives the event and returns nothing, a text (added to the
    context), a `HookDecision`, or a mapping as a command prints it. A sync one runs in a thread."""

    call: Callable[[HookEvent], Any]


class CommandHook(_HookOptions, frozen=True, kw_only=True):
    """A program with its arguments, started without a shell, in a clean environment."""

    command: tuple[str, ...]
    env: tuple[str, ...] = ()  # names of further variables that it gets
    digest: str = ""  # of the files in the folder that it names; with others it does not run


Hook: TypeAlias = PythonHook | CommandHook
HookFunction: TypeAlias = Callable[[HookEvent], Any]  # of every event
# Returns the path of a file that holds the session of this id; it may be empty.
TranscriptPath: TypeAlias = Callable[[str], Awaitable[str]]


class ActivityLog:
    """The last hundred events, with long texts shortened."""

    def __init__(self) -> None:
        self._events: deque[HookEvent] = deque(maxlen=MAX_EVENTS)

    def record(self, event: HookEvent) -> None:
        shorter = {
            name: clip_middle(value, MAX_TEXT)
            for name, value in msgspec.structs.asdict(event).items()
            if isinstance(value, str) and len(value) > MAX_TEXT
        }
        self._events.append(msgspec.structs.replace(event, **shorter) if shorter else event)

    @property
    def events(self) -> tuple[HookEvent, ...]:
        """Oldest first."""
        return tuple(self._events)


class HookOutcome(msgspec.Struct, frozen=True):
    """What came of a hook the last time it ran."""

    event: str
    time: int  # when it began, in milliseconds since 1970 in UTC
    seconds: float
    decision: HookDecision


class Hooks:
    """The hooks of one session. `trusted` lets the project's own hooks run; `warn` receives their
    warnings; `transcript` is called for the file that commands are given."""

    def __init__(
        self,
        hooks: Iterable[Hook | HookFunction] = (),
        *,
        trusted: bool = False,
        cwd: Path | None = None,
        transcript: TranscriptPath | None = None,
        warn: Callable[[str], None] = lambda _: None,
    ) -> None:
        checked = tuple(_check_hook(hook) for hook in hooks)
        self.hooks = tuple(hook for hook in checked if trusted or not hook.of_project)
        self._untrusted = len(checked) - len(self.hooks)
        self.activity = ActivityLog()
        self._outcomes: dict[int, HookOutcome] = {}  # by the hook's position
        self._cwd, self._transcript, self._warn = cwd or Path.cwd(), transcript, warn

    async def fire(self, event: HookEvent) -> HookDecision:
        if not event.time:
            event = msgspec.structs.replace(event, time=now())
        self.activity.record(event)
        decision = HookDecision()
        if self._untrusted and isinstance(event, SessionStart):
            why = f"{self._untrusted} hooks of this project do not run: the folder is not trusted"
            decision = HookDecision(warnings=(why,))
        for number, hook in enumerate(self.hooks):
            if hook.on and type(event).__name__ not in hook.on:
                continue
            # most sessions have no hooks
            from recollect.agent.hook_runner import merge_decisions, run_hook

            path, began, start = await self._path_for(hook, event), now(), monotonic()
            answer = await run_hook(hook, event, self._cwd, path)
            seconds = monotonic() - start
            self._outcomes[number] = HookOutcome(type(event).__name__, began, seconds, answer)
            decision = merge_decisions(decision, answer)
            if not decision.allowed:
                break
            if isinstance(event, BeforeTool) and answer.arguments is not None:
                event = msgspec.structs.replace(event, arguments=answer.arguments)
        decision = _fit_event(decision, event)
        for warning in decision.warnings:
            self._warn(warning)
        return decision

    @property
    def outcomes(self) -> tuple[tuple[Hook, HookOutcome], ...]:
        """Of each hook that has run, what came of it the last time."""
        return tuple((self.hooks[number], one) for number, one in self._outcomes.items())

    async def _path_for(self, hook: Hook, event: HookEvent) -> str:
        if self._transcript is None or not isinstance(hook, CommandHook):
            return ""
        return await self._transcript(event.session)


def _fit_event(decision: HookDecision, event: HookEvent) -> HookDecision:
    """A question becomes a refusal where there is no call to ask about; a refusal that comes too
    late becomes a warning."""
    name = type(event).__name__
    if decision.ask and isinstance(event, REFUSABLE) and not isinstance(event, BeforeTool):
        reason = f"{decision.reason} (nobody can be asked at {name})"
        return msgspec.structs.replace(decision, allowed=False, ask=False, reason=reason)
    if (decision.allowed and not decision.ask) or isinstance(event, REFUSABLE):
        return decision
    late = f"a hook refused at {name}, when it was too late to refuse: {decision.reason}"
    return msgspec.structs.replace(decision, warnings=(*decision.warnings, late))


def _check_hook(hook: Hook | HookFunction) -> Hook:
    if not isinstance(hook, PythonHook | CommandHook):
        hook = PythonHook(call=hook)
    unknown = [name for name in hook.on if name not in EVENT_NAMES]
    if unknown:
        raise BadInput(f"there is no event {unknown[0]!r}; the events are {', '.join(EVENT_NAMES)}")
    if isinstance(hook, CommandHook) and not (hook.command and hook.command[0]):
        raise BadInput("a hook's command is empty; give the program and its arguments")
    return hook

"""Hooks: what a person's own code says to what an agent is about to do, or has done.

A hook is a Python callable or a command. `Hooks.fire` runs those that wait for an event, in order,
and gives one `Decision`: the first that blocks wins and ends it, contexts are joined, and changed
arguments are what the next hook sees. A hook that fails, hangs, or gives what cannot be read makes
a warning and never stops the agent; whatever it gives is bounded. Hooks of a project run only in a
folder that is trusted.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import inspect
import os
import re
import signal
import tempfile
import threading
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import msgspec

from recollect.agent.activity import Activity
from recollect.agent.events import (
    EVENT_NAMES,
    BeforeTool,
    Decision,
    Event,
    SessionStart,
    decision_of,
    name_of,
    object_in,
    told,
)
from recollect.entries import json_text
from recollect.errors import BadInput
from recollect.snapshot.texts import clean, clip, one_line

LIMIT = 60.0  # seconds for one hook
MOST_CONTEXT = 20_000  # characters, of all hooks together; of the text to keep as well
MOST_REASON = 2_000
MOST_ARGUMENTS = 8_000_000
MOST_OUTPUT = 8_000_000  # bytes that are read of a command; what follows is let go
_MOST_WARNINGS, _LONGEST_WARNING, _LONGEST_NAME = 20, 500, 80
_GRACE = 0.5  # seconds for output on its way when the command has ended
_BLOCKS = 2  # the exit code
_TAGS = re.compile("[\U000e0000-\U000e007f]")


class PythonHook(msgspec.Struct, frozen=True, kw_only=True):
    """A callable, sync or async. It gets the event and returns nothing, a text (which is context),
    a `Decision`, or a mapping as a command would print it. A sync one runs in its own thread."""

    call: Callable[[Event], Any]
    on: tuple[str, ...] = ()  # names of events; none means all
    name: str = ""
    of_project: bool = False
    limit: float = LIMIT


class CommandHook(msgspec.Struct, frozen=True, kw_only=True):
    """A program with its arguments; no shell reads them."""

    command: tuple[str, ...]
    on: tuple[str, ...] = ()
    name: str = ""
    of_project: bool = False
    limit: float = LIMIT


Hook: TypeAlias = PythonHook | CommandHook


class Hooks:
    """Made once for a session; `trusted` says whether the project's own hooks may run, and `tell`
    hears what hooks warn of."""

    def __init__(
        self,
        hooks: Iterable[Hook | Callable[[Event], Any]] = (),
        *,
        trusted: bool = False,
        cwd: Path | None = None,
        transcript: str = "",
        environment: Mapping[str, str] | None = None,
        activity: Activity | None = None,
        tell: Callable[[str], None] = lambda _: None,
    ) -> None:
        found = tuple(_checked(hook) for hook in hooks)
        self.hooks = tuple(hook for hook in found if trusted or not hook.of_project)
        self.left_out = len(found) - len(self.hooks)
        self.activity = Activity() if activity is None else activity
        self._cwd, self._transcript = cwd or Path.cwd(), transcript
        self._environment, self._tell = environment, tell

    async def fire(self, event: Event) -> Decision:
        self.activity.note(event)
        so_far = Decision(warnings=self._told_of_trust(event))
        for hook in self.hooks:
            if hook.on and name_of(event) not in hook.on:
                continue
            answer = _bounded(await self._ask(hook, event), event, hook)
            so_far = _joined(so_far, answer)
            if not so_far.allowed:
                break
            if isinstance(event, BeforeTool) and answer.arguments is not None:
                event = msgspec.structs.replace(event, arguments=answer.arguments)
        for warning in so_far.warnings:
            self._tell(warning)
        return so_far

    def _told_of_trust(self, event: Event) -> tuple[str, ...]:
        if not self.left_out or not isinstance(event, SessionStart):
            return ()
        return (f"{self.left_out} hooks of this project do not run: the folder is not trusted",)

    async def _ask(self, hook: Hook, event: Event) -> Decision:
        if isinstance(hook, PythonHook):
            return await _ask_callable(hook, event)
        given = told(event, self._cwd, self._transcript)
        try:
            ended = await _run(hook, given, self._cwd, self._environment)
        except TimeoutError:
            return _warning(f"was ended after {hook.limit:g} seconds")
        except (OSError, ValueError) as error:
            return _warning(f"cannot be started: {error}")
        return _meaning(ended)


def _checked(hook: Hook | Callable[[Event], Any]) -> Hook:
    if not isinstance(hook, PythonHook | CommandHook):
        hook = PythonHook(call=hook)
    unknown = [name for name in hook.on if name not in EVENT_NAMES]
    if unknown:
        raise BadInput(f"no event is called {unknown[0]!r}; there are {', '.join(EVENT_NAMES)}")
    if isinstance(hook, CommandHook) and not (hook.command and hook.command[0]):
        raise BadInput("a hook's command is empty; give the program and its arguments")
    return hook


def _called(hook: Hook) -> str:
    if hook.name:
        return one_line(hook.name, _LONGEST_NAME)
    if isinstance(hook, CommandHook):
        return one_line(hook.command[0].rsplit("/", 1)[-1], _LONGEST_NAME)
    return one_line(str(getattr(hook.call, "__qualname__", type(hook.call).__name__)), 80)


# --- what was said -----------------------------------------------------------------------------


def _warning(text: str) -> Decision:
    return Decision(warnings=(text,))


def _safe(text: str, most: int) -> str:
    if not isinstance(text, str):
        raise TypeError(f"a text was expected, not {type(text).__name__}")
    return clip(clean(_TAGS.sub("", text[: 2 * most])).strip(), most)


def _bounded(answer: Decision, event: Event, hook: Hook) -> Decision:
    """The answer as it may go on: checked, cleaned, bounded, its warnings under the hook's name."""
    name = _called(hook)
    try:
        warnings = [*answer.warnings]
        arguments = answer.arguments
        if arguments is not None:
            if isinstance(event, BeforeTool):
                arguments = json_text(object_in(arguments, MOST_ARGUMENTS))
            else:
                arguments = None
                warnings.append("only BeforeTool can change arguments")
        reason = _safe(answer.reason, MOST_REASON)
        return Decision(
            allowed=bool(answer.allowed),
            reason=reason if answer.allowed else reason or f"{name} blocked it without a reason",
            additional_context=_safe(answer.additional_context, MOST_CONTEXT),
            arguments=arguments,
            keep=_safe(answer.keep, MOST_CONTEXT),
            warnings=tuple(_named(name, str(text)) for text in warnings[:_MOST_WARNINGS]),
        )
    except (TypeError, ValueError, RecursionError) as error:
        # what it gave cannot be used, but a refusal is one however it is worded
        why = f"gave what cannot be used: {error}"
        if answer.allowed:
            return _warning(_named(name, why))
        return Decision(allowed=False, reason=_named(name, why))


def _named(name: str, text: str) -> str:
    return one_line(f"hook {name}: {text}", _LONGEST_WARNING)


def _joined(one: Decision, other: Decision) -> Decision:
    return Decision(
        allowed=other.allowed,
        reason="" if other.allowed else other.reason,
        additional_context=_together(one.additional_context, other.additional_context),
        arguments=one.arguments if other.arguments is None else other.arguments,
        keep=_together(one.keep, other.keep),
        warnings=(*one.warnings, *other.warnings)[:_MOST_WARNINGS],
    )


def _together(*texts: str) -> str:
    return clip("\n\n".join(filter(None, texts)), MOST_CONTEXT)


# --- callables ---------------------------------------------------------------------------------


class _Made(NamedTuple):
    value: Any = None
    error: BaseException | None = None


async def _ask_callable(hook: PythonHook, event: Event) -> Decision:
    """Waits no longer than the limit, also for a callable that cannot be interrupted."""
    work = asyncio.ensure_future(_guarded(hook.call, event))
    try:
        done, _ = await asyncio.wait((work,), timeout=hook.limit)
    finally:
        work.cancel()
    if not done:
        return _warning(f"was given up after {hook.limit:g} seconds")
    if work.cancelled():
        return _warning("was cancelled")
    value, error = work.result()
    if error is not None:
        return _warning(f"failed: {type(error).__name__}: {error}")
    try:
        return _answered(value)
    except (TypeError, ValueError, RecursionError) as bad:
        return _warning(f"gave what cannot be used: {bad}")


def _answered(value: object) -> Decision:
    if value is None:
        return Decision()
    if isinstance(value, Decision):
        return value
    if isinstance(value, str):
        return Decision(additional_context=value)
    if isinstance(value, Mapping):
        return decision_of(value)
    raise TypeError(f"a {type(value).__name__}; return nothing, a text or a Decision")


async def _guarded(call: Callable[[Event], Any], event: Event) -> _Made:
    try:
        made = (
            _Made(call(event))
            if inspect.iscoroutinefunction(call)
            else await _in_thread(call, event)
        )
        return _Made(await made.value) if inspect.isawaitable(made.value) else made
    except (Exception, SystemExit) as error:  # noqa: BLE001 - a hook must not end the agent
        return _Made(error=error)


def _in_thread(call: Callable[[Event], Any], event: Event) -> asyncio.Future[_Made]:
    """In a thread of its own that nobody waits for at the end: a hook may hang for ever."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[_Made] = loop.create_future()

    def settle(made: _Made) -> None:
        if not future.done():
            future.set_result(made)

    def work() -> None:
        try:
            made = _Made(call(event))
        except BaseException as error:  # noqa: BLE001 - a future cannot carry StopIteration
            made = _Made(error=error)
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(settle, made)

    context = contextvars.copy_context()
    threading.Thread(target=context.run, args=(work,), name="hook", daemon=True).start()
    return future


# --- commands ----------------------------------------------------------------------------------


class _Ended(NamedTuple):
    code: int
    out: bytes
    err: bytes
    cut: bool  # there was more output than is read


def _meaning(ended: _Ended) -> Decision:
    said = ended.err.decode("utf-8", "replace")
    if ended.code == _BLOCKS:
        return Decision(allowed=False, reason=said)
    if ended.code:
        how = f"exit code {ended.code}" if ended.code > 0 else f"signal {-ended.code}"
        return _warning(f"{how}: {said}" if said.strip() else how)
    text = ended.out.decode("utf-8", "replace").strip()
    if not text.startswith("{"):
        return Decision()  # talk, meant for nobody
    try:
        if ended.cut:
            raise ValueError(f"more than {MOST_OUTPUT:,} bytes")
        return decision_of(object_in(text, MOST_OUTPUT))
    except (TypeError, ValueError, RecursionError) as error:
        return _warning(f"its output was not read: {error}")


class _Drain:
    """The reading end of a pipe: keeps the beginning, lets go of the rest, never blocks."""

    def __init__(self) -> None:
        self.ended, self.cut, self.kept = asyncio.Event(), False, bytearray()
        self._loop = asyncio.get_running_loop()
        self._end, self.entrance = os.pipe()
        os.set_blocking(self._end, False)
        self._loop.add_reader(self._end, self._take)

    def _take(self) -> None:
        piece = os.read(self._end, 65_536)
        room = MOST_OUTPUT - len(self.kept)
        self.kept += piece[:room]
        self.cut = self.cut or len(piece) > room
        if not piece:
            self._loop.remove_reader(self._end)
            self.ended.set()

    def close_entrance(self) -> None:
        if self.entrance >= 0:
            os.close(self.entrance)
            self.entrance = -1

    def close(self) -> None:
        self.close_entrance()
        self._loop.remove_reader(self._end)
        os.close(self._end)


async def _run(
    hook: CommandHook, told: bytes, cwd: Path, environment: Mapping[str, str] | None
) -> _Ended:
    """Runs the command in a process group of its own, which is killed when its time is over."""
    out, err = _Drain(), _Drain()
    process: asyncio.subprocess.Process | None = None
    try:
        with tempfile.TemporaryFile() as given:  # a file, so that nobody has to read it
            given.write(told)
            given.seek(0)
            process = await asyncio.create_subprocess_exec(
                *hook.command,
                stdin=given,
                stdout=out.entrance,
                stderr=err.entrance,
                cwd=cwd,
                env=environment,
                start_new_session=True,
            )
        out.close_entrance()
        err.close_entrance()
        async with asyncio.timeout(hook.limit):
            code = await process.wait()
        # a child that went to the background may hold the pipes open for ever
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_GRACE):
                await out.ended.wait()
                await err.ended.wait()
        return _Ended(code, bytes(out.kept), bytes(err.kept), out.cut)
    finally:
        if process is not None and process.returncode is None:
            await _kill(process)
        out.close()
        err.close()


async def _kill(process: asyncio.subprocess.Process) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(5):
            await process.wait()

"""One hook asked: a callable or a command, awaited no longer than its limit.

Whatever it does wrong, hangs, prints or returns becomes a `Decision`: checked, cleaned, bounded,
with its warnings under the hook's name. A refusal is one however it is worded. A command runs in a
process group of its own, which is killed when its time is over; a callable that cannot be
interrupted is left to its thread.
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
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from recollect.agent.events import BeforeTool, Decision, Event, decision_of, object_in, told
from recollect.agent.hooks import CommandHook, Hook, PythonHook, Where
from recollect.entries import json_text
from recollect.text import clean, clip, one_line

MOST_CONTEXT = 20_000  # characters, of all hooks together; of the text to keep as well
MOST_REASON = 2_000
MOST_ARGUMENTS = 8_000_000
MOST_OUTPUT = 8_000_000  # bytes that are read of a command; what follows is let go
_MOST_WARNINGS, _LONGEST_WARNING, _LONGEST_NAME = 20, 500, 80
_GRACE = 0.5  # seconds for output on its way when the command has ended
_BLOCKS = 2  # the exit code
_TAGS = "[\U000e0000-\U000e007f]"


async def asked(hook: Hook, event: Event, where: Where) -> Decision:
    """What the hook says, as it may go on."""
    return _bounded(await _answer(hook, event, where), event, hook)


async def _answer(hook: Hook, event: Event, where: Where) -> Decision:
    if isinstance(hook, PythonHook):
        return await _ask_callable(hook, event)
    given = told(event, where.cwd, where.transcript)
    try:
        ended = await _run(hook, given, where)
    except TimeoutError:
        return _warning(f"was ended after {hook.limit:g} seconds")
    except (OSError, ValueError) as error:
        return _warning(f"cannot be started: {error}")
    return _meaning(ended)


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
    return clip(clean(re.sub(_TAGS, "", text[: 2 * most])).strip(), most)


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


def joined(one: Decision, other: Decision) -> Decision:
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


async def _run(hook: CommandHook, told: bytes, where: Where) -> _Ended:
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
                cwd=where.cwd,
                env=where.environment,
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

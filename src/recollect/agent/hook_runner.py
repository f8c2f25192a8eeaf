"""One hook asked: a callable or a command, awaited no longer than its limit.

Whatever it does wrong, hangs, prints or returns becomes a `HookDecision`: checked, cleaned, bounded,
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

from recollect.agent.hook_events import (
    BeforeTool,
    HookDecision,
    HookEvent,
    encode_command_input,
    parse_decision,
    parse_object,
)
from recollect.agent.hooks import CommandHook, Hook, HookContext, PythonHook
from recollect.entries import json_text
from recollect.text import clean, clip, one_line

MAX_CONTEXT = 20_000  # characters, of all hooks together; of the text to keep as well
MAX_REASON = 2_000
MAX_ARGUMENTS = 8_000_000
MAX_OUTPUT = 8_000_000  # bytes that are read of a command; what follows is let go
_MOST_WARNINGS, _LONGEST_WARNING, _LONGEST_NAME = 20, 500, 80
_GRACE = 0.5  # seconds for output on its way when the command has ended
_BLOCK_EXIT_CODE = 2  # the exit code
_TAGS = "[\U000e0000-\U000e007f]"


async def run_hook(hook: Hook, event: HookEvent, where: HookContext) -> HookDecision:
    """What the hook says, as it may go on."""
    return _validate(await _answer(hook, event, where), event, hook)


async def _answer(hook: Hook, event: HookEvent, where: HookContext) -> HookDecision:
    if isinstance(hook, PythonHook):
        return await _run_callable(hook, event)
    given = encode_command_input(event, where.cwd, where.transcript)
    try:
        ended = await _run_command(hook, given, where)
    except TimeoutError:
        return _warning(f"was ended after {hook.limit:g} seconds")
    except (OSError, ValueError) as error:
        return _warning(f"cannot be started: {error}")
    return _interpret(ended)


def _hook_name(hook: Hook) -> str:
    if hook.name:
        return one_line(hook.name, _LONGEST_NAME)
    if isinstance(hook, CommandHook):
        return one_line(hook.command[0].rsplit("/", 1)[-1], _LONGEST_NAME)
    return one_line(str(getattr(hook.call, "__qualname__", type(hook.call).__name__)), 80)


# --- what was said -----------------------------------------------------------------------------


def _warning(text: str) -> HookDecision:
    return HookDecision(warnings=(text,))


def _clean_text(text: str, most: int) -> str:
    if not isinstance(text, str):
        raise TypeError(f"a text was expected, not {type(text).__name__}")
    return clip(clean(re.sub(_TAGS, "", text[: 2 * most])).strip(), most)


def _validate(answer: HookDecision, event: HookEvent, hook: Hook) -> HookDecision:
    """The answer as it may go on: checked, cleaned, bounded, its warnings under the hook's name."""
    name = _hook_name(hook)
    try:
        warnings = [*answer.warnings]
        arguments = answer.arguments
        if arguments is not None:
            if isinstance(event, BeforeTool):
                arguments = json_text(parse_object(arguments, MAX_ARGUMENTS))
            else:
                arguments = None
                warnings.append("only BeforeTool can change arguments")
        reason = _clean_text(answer.reason, MAX_REASON)
        return HookDecision(
            allowed=bool(answer.allowed),
            reason=reason if answer.allowed else reason or f"{name} blocked it without a reason",
            additional_context=_clean_text(answer.additional_context, MAX_CONTEXT),
            arguments=arguments,
            keep=_clean_text(answer.keep, MAX_CONTEXT),
            warnings=tuple(_name_warning(name, str(text)) for text in warnings[:_MOST_WARNINGS]),
        )
    except (TypeError, ValueError, RecursionError) as error:
        # what it gave cannot be used, but a refusal is one however it is worded
        why = f"gave what cannot be used: {error}"
        if answer.allowed:
            return _warning(_name_warning(name, why))
        return HookDecision(allowed=False, reason=_name_warning(name, why))


def _name_warning(name: str, text: str) -> str:
    return one_line(f"hook {name}: {text}", _LONGEST_WARNING)


def merge_decisions(one: HookDecision, other: HookDecision) -> HookDecision:
    return HookDecision(
        allowed=other.allowed,
        reason="" if other.allowed else other.reason,
        additional_context=_join(one.additional_context, other.additional_context),
        arguments=one.arguments if other.arguments is None else other.arguments,
        keep=_join(one.keep, other.keep),
        warnings=(*one.warnings, *other.warnings)[:_MOST_WARNINGS],
    )


def _join(*texts: str) -> str:
    return clip("\n\n".join(filter(None, texts)), MAX_CONTEXT)


# --- callables ---------------------------------------------------------------------------------


class _CallResult(NamedTuple):
    value: Any = None
    error: BaseException | None = None


async def _run_callable(hook: PythonHook, event: HookEvent) -> HookDecision:
    """Waits no longer than the limit, also for a callable that cannot be interrupted."""
    work = asyncio.ensure_future(_call(hook.call, event))
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
        return _decision_from(value)
    except (TypeError, ValueError, RecursionError) as bad:
        return _warning(f"gave what cannot be used: {bad}")


def _decision_from(value: object) -> HookDecision:
    if value is None:
        return HookDecision()
    if isinstance(value, HookDecision):
        return value
    if isinstance(value, str):
        return HookDecision(additional_context=value)
    if isinstance(value, Mapping):
        return parse_decision(value)
    raise TypeError(f"a {type(value).__name__}; return nothing, a text or a Decision")


async def _call(call: Callable[[HookEvent], Any], event: HookEvent) -> _CallResult:
    try:
        made = (
            _CallResult(call(event))
            if inspect.iscoroutinefunction(call)
            else await _call_in_thread(call, event)
        )
        return _CallResult(await made.value) if inspect.isawaitable(made.value) else made
    except (Exception, SystemExit) as error:  # noqa: BLE001 - a hook must not end the agent
        return _CallResult(error=error)


def _call_in_thread(
    call: Callable[[HookEvent], Any], event: HookEvent
) -> asyncio.Future[_CallResult]:
    """In a thread of its own that nobody waits for at the end: a hook may hang for ever."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[_CallResult] = loop.create_future()

    def settle(made: _CallResult) -> None:
        if not future.done():
            future.set_result(made)

    def work() -> None:
        try:
            made = _CallResult(call(event))
        except BaseException as error:  # noqa: BLE001 - a future cannot carry StopIteration
            made = _CallResult(error=error)
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(settle, made)

    context = contextvars.copy_context()
    threading.Thread(target=context.run, args=(work,), name="hook", daemon=True).start()
    return future


# --- commands ----------------------------------------------------------------------------------


class _CommandResult(NamedTuple):
    code: int
    out: bytes
    err: bytes
    cut: bool  # there was more output than is read


def _interpret(ended: _CommandResult) -> HookDecision:
    said = ended.err.decode("utf-8", "replace")
    if ended.code == _BLOCK_EXIT_CODE:
        return HookDecision(allowed=False, reason=said)
    if ended.code:
        how = f"exit code {ended.code}" if ended.code > 0 else f"signal {-ended.code}"
        return _warning(f"{how}: {said}" if said.strip() else how)
    text = ended.out.decode("utf-8", "replace").strip()
    if not text.startswith("{"):
        return HookDecision()  # talk, meant for nobody
    try:
        if ended.cut:
            raise ValueError(f"more than {MAX_OUTPUT:,} bytes")
        return parse_decision(parse_object(text, MAX_OUTPUT))
    except (TypeError, ValueError, RecursionError) as error:
        return _warning(f"its output was not read: {error}")


class _PipeReader:
    """The reading end of a pipe: keeps the beginning, lets go of the rest, never blocks."""

    def __init__(self) -> None:
        self.ended, self.cut, self.kept = asyncio.Event(), False, bytearray()
        self._loop = asyncio.get_running_loop()
        self._end, self.entrance = os.pipe()
        os.set_blocking(self._end, False)
        self._loop.add_reader(self._end, self._take)

    def _take(self) -> None:
        piece = os.read(self._end, 65_536)
        room = MAX_OUTPUT - len(self.kept)
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


async def _run_command(hook: CommandHook, told: bytes, where: HookContext) -> _CommandResult:
    """Runs the command in a process group of its own, which is killed when its time is over."""
    out, err = _PipeReader(), _PipeReader()
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
        return _CommandResult(code, bytes(out.kept), bytes(err.kept), out.cut)
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

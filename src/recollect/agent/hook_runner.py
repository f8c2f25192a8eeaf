"""Runs one hook, a callable or a command, for no longer than its timeout.

Whatever a hook does wrong, prints or returns becomes a `HookDecision`: checked, cleaned, bounded,
with its warnings under the hook's name. A refusal counts however it is worded. Output is read only
if it is valid JSON of bounded size and depth. A command runs in a process group of its own, which
is killed after the timeout; a callable that cannot be interrupted is left to its thread.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import inspect
import json
import os
import re
import signal
import tempfile
import threading
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from recollect.agent.hook_answers import parse_answer, parse_object, parse_output
from recollect.agent.hook_environment import hook_environment
from recollect.agent.hooks import CommandHook, Hook, PythonHook
from recollect.codecs.foreign_json import strict_json
from recollect.entries import json_text
from recollect.hook_events import AfterTool, BeforeTool, HookDecision, HookEvent
from recollect.text import clean, clip, clip_middle, one_line
from recollect.workspace.hook_approval import digest_hook_files

MAX_INPUT_TEXT = 200_000  # characters of each text that a command receives, except arguments
MAX_CONTEXT = 20_000  # characters of all hooks together, for context and for text to keep
MAX_REASON = 2_000
MAX_ARGUMENTS = 8_000_000
MAX_OUTPUT = 8_000_000  # bytes of a command's output; the rest is discarded
_MAX_WARNINGS, _MAX_WARNING, _MAX_NAME = 20, 500, 80
_OUTPUT_GRACE = 0.5  # seconds to wait for output after the command ended
_BLOCK_EXIT_CODE = 2
_CHANGED = (
    "a file that this hook runs was changed after the user approved it, so it is not run; "
    "the user can look at it and approve it with `recollect trust --hooks`"
)
_INVALID = "returned something invalid"
_TAG_CHARACTERS = re.compile("[\U000e0000-\U000e007f]")  # invisible, read by models


async def run_hook(hook: Hook, event: HookEvent, cwd: Path, transcript: str) -> HookDecision:
    if isinstance(hook, PythonHook):
        return _validate(await _run_callable(hook, event), event, hook)
    if hook.digest and digest_hook_files(hook.command, cwd) != hook.digest:
        # a refusal: what it would have checked is not checked
        return _validate(HookDecision(allowed=False, reason=_CHANGED), event, hook)
    stdin = encode_command_input(event, cwd, transcript)
    try:
        decision = _interpret(event, *await _run_command(hook, stdin, cwd))
    except TimeoutError:
        decision = _warning(f"was stopped after {hook.timeout:g} seconds")
    except (OSError, ValueError) as error:
        decision = _warning(f"cannot be started: {error}")
    return _validate(decision, event, hook)


def _hook_name(hook: Hook) -> str:
    if isinstance(hook, CommandHook):
        default = hook.command[0].rsplit("/", 1)[-1]
    else:
        default = str(getattr(hook.call, "__qualname__", type(hook.call).__name__))
    return one_line(hook.name or default, _MAX_NAME)


def _warning(text: str) -> HookDecision:
    return HookDecision(warnings=(text,))


def _clean_text(text: str, limit: int) -> str:
    if not isinstance(text, str):
        raise TypeError(f"a text was expected, not {type(text).__name__}")
    return clip(clean(_TAG_CHARACTERS.sub("", text[: 2 * limit])).strip(), limit)


def _validate(answer: HookDecision, event: HookEvent, hook: Hook) -> HookDecision:
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
            ask=bool(answer.ask) and bool(answer.allowed),
            stop=bool(answer.stop) and not answer.allowed,
            additional_context=_clean_text(answer.additional_context, MAX_CONTEXT),
            arguments=arguments,
            keep=_clean_text(answer.keep, MAX_CONTEXT),
            warnings=tuple(_name_warning(name, str(text)) for text in warnings[:_MAX_WARNINGS]),
        )
    except (TypeError, ValueError, RecursionError) as error:
        # the answer is invalid, but a refusal counts however it is worded
        fact = _name_warning(name, f"{_INVALID}: {error}")
        if answer.allowed:
            asks = bool(answer.ask)
            return HookDecision(ask=asks, reason=fact if asks else "", warnings=(fact,))
        return HookDecision(allowed=False, stop=bool(answer.stop), reason=fact)


def _name_warning(name: str, text: str) -> str:
    return one_line(f"hook {name}: {text}", _MAX_WARNING)


def merge_decisions(one: HookDecision, other: HookDecision) -> HookDecision:
    return HookDecision(
        allowed=other.allowed,
        reason=other.reason if not other.allowed else one.reason or other.reason,
        ask=other.allowed and (one.ask or other.ask),
        stop=other.stop,
        additional_context=_join(one.additional_context, other.additional_context),
        arguments=one.arguments if other.arguments is None else other.arguments,
        keep=_join(one.keep, other.keep),
        warnings=(*one.warnings, *other.warnings)[:_MAX_WARNINGS],
    )


def _join(*texts: str) -> str:
    return clip("\n\n".join(filter(None, texts)), MAX_CONTEXT)


class _CallResult(NamedTuple):
    value: Any = None
    error: BaseException | None = None


async def _run_callable(hook: PythonHook, event: HookEvent) -> HookDecision:
    """Wait no longer than the timeout, also for a callable that cannot be interrupted."""
    work = asyncio.ensure_future(_call(hook.call, event))
    try:
        done, _ = await asyncio.wait((work,), timeout=hook.timeout)
    finally:
        work.cancel()
    if not done:
        return _warning(f"was abandoned after {hook.timeout:g} seconds")
    if work.cancelled():
        return _warning("was cancelled")
    value, error = work.result()
    if error is not None:
        return _warning(f"failed: {type(error).__name__}: {error}")
    try:
        return _decision_from(value)
    except (TypeError, ValueError, RecursionError) as bad:
        return _warning(f"{_INVALID}: {bad}")


def _decision_from(value: object) -> HookDecision:
    if value is None:
        return HookDecision()
    if isinstance(value, HookDecision):
        return value
    if isinstance(value, str):
        return HookDecision(additional_context=value)
    if isinstance(value, Mapping):
        return parse_answer(value)
    raise TypeError(f"a {type(value).__name__}; return nothing, a text or a HookDecision")


async def _call(call: Callable[[HookEvent], Any], event: HookEvent) -> _CallResult:
    try:
        result = (
            _CallResult(call(event))
            if inspect.iscoroutinefunction(call)
            else await _call_in_thread(call, event)
        )
        return _CallResult(await result.value) if inspect.isawaitable(result.value) else result
    except (Exception, SystemExit) as error:  # noqa: BLE001 - a hook must not end the agent
        return _CallResult(error=error)


def _call_in_thread(
    call: Callable[[HookEvent], Any], event: HookEvent
) -> asyncio.Future[_CallResult]:
    """Call in a daemon thread, because a hook may never return."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[_CallResult] = loop.create_future()

    def settle(result: _CallResult) -> None:
        if not future.done():
            future.set_result(result)

    def work() -> None:
        try:
            result = _CallResult(call(event))
        except BaseException as error:  # noqa: BLE001 - a future cannot carry StopIteration
            result = _CallResult(error=error)
        with contextlib.suppress(RuntimeError):  # the loop is closed: nothing waits for it
            loop.call_soon_threadsafe(settle, result)

    context = contextvars.copy_context()
    threading.Thread(target=context.run, args=(work,), name="hook", daemon=True).start()
    return future


def encode_command_input(event: HookEvent, cwd: Path, transcript: str) -> bytes:
    """A command's standard input: ASCII, so that any text is valid UTF-8."""
    data = {
        name: clip_middle(value, MAX_INPUT_TEXT) if isinstance(value, str) else value
        for name, value in msgspec.structs.asdict(event).items()
        if name not in ("session", "time")
    }
    time = datetime.fromtimestamp(event.time / 1_000, UTC)
    common = {
        "session_id": event.session,
        "transcript_path": transcript,
        "cwd": str(cwd),
        "hook_event_name": type(event).__name__,
        "timestamp": time.isoformat(timespec="milliseconds"),
    }
    if isinstance(event, BeforeTool | AfterTool):
        data["arguments"] = event.arguments
        # where hooks of other agents look for it
        common |= {"tool_name": event.tool, "tool_use_id": event.call}
        # whole, and parsed as the tool parses them: the hook checks what will run
        with contextlib.suppress(ValueError, RecursionError):
            parsed = strict_json(event.arguments or "{}")
            common["tool_input"] = parsed
            return json.dumps({**common, "data": {**data, "arguments": parsed}}).encode()
    return json.dumps({**common, "data": data}).encode()


def _interpret(event: HookEvent, code: int, out: _PipeReader, err: _PipeReader) -> HookDecision:
    stderr = err.kept.decode("utf-8", "replace")
    if code == _BLOCK_EXIT_CODE:
        return HookDecision(allowed=False, reason=stderr)
    if code:
        how = f"exit code {code}" if code > 0 else f"signal {-code}"
        return _warning(f"{how}: {stderr}" if stderr.strip() else how)
    text = out.kept.decode("utf-8", "replace").strip()
    try:
        if out.truncated and text.startswith("{"):
            raise ValueError(f"more than {MAX_OUTPUT:,} bytes")
        return parse_output(text, MAX_OUTPUT)
    except (TypeError, ValueError, RecursionError) as error:
        # it may have meant a refusal, so a call is not taken for allowed
        warning = f"its output is invalid: {error}"
        asks = isinstance(event, BeforeTool)
        reason = "its answer about this call cannot be understood" if asks else ""
        return HookDecision(ask=asks, reason=reason, warnings=(warning,))


class _PipeReader:
    """The reading end of a pipe: keeps the beginning, discards the rest, never blocks."""

    def __init__(self) -> None:
        self.ended, self.truncated, self.kept = asyncio.Event(), False, bytearray()
        self._loop = asyncio.get_running_loop()
        self._end, write_end = os.pipe()
        self.writer = os.fdopen(write_end, "wb")
        os.set_blocking(self._end, False)
        self._loop.add_reader(self._end, self._take)

    def _take(self) -> None:
        piece = os.read(self._end, 65_536)
        room = MAX_OUTPUT - len(self.kept)
        self.kept += piece[:room]
        self.truncated = self.truncated or len(piece) > room
        if not piece:
            self._loop.remove_reader(self._end)
            self.ended.set()

    def close(self) -> None:
        self.writer.close()
        self._loop.remove_reader(self._end)
        os.close(self._end)


async def _run_command(
    hook: CommandHook, data: bytes, cwd: Path
) -> tuple[int, _PipeReader, _PipeReader]:
    out, err = _PipeReader(), _PipeReader()
    process: asyncio.subprocess.Process | None = None
    try:
        with tempfile.TemporaryFile() as stdin:  # a file: the command need not read it
            stdin.write(data)
            stdin.seek(0)
            process = await asyncio.create_subprocess_exec(
                *hook.command,
                stdin=stdin,
                stdout=out.writer,
                stderr=err.writer,
                cwd=cwd,
                env=hook_environment(hook.env, os.environ),
                start_new_session=True,
            )
        out.writer.close()
        err.writer.close()
        async with asyncio.timeout(hook.timeout):
            code = await process.wait()
        # a background child may hold the pipes open
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_OUTPUT_GRACE):
                await out.ended.wait()
                await err.ended.wait()
        return code, out, err
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

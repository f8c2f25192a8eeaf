"""`recollect -p`: runs the agent non-interactively. stdout carries only the answer, or JSON.

Everything is stored as it happens; `-c` continues a stopped run. Changing files and running
commands need a rule that allows it, because no user is there to approve.
"""

from __future__ import annotations

import json
import shutil
import sys
from contextlib import aclosing
from pathlib import Path
from signal import SIGINT, SIGTERM, raise_signal, signal
from typing import Any, Literal, TypeAlias

import msgspec

from recollect.agent.corrections import CorrectionRequested
from recollect.agent.exchange import ReplyFinished, message_text
from recollect.agent.fit_context import ContextReduced
from recollect.agent.run_events import LoopFound, RunFinished, WindowLearned
from recollect.agent.tool_calls import ToolFinished, ToolStarted, ToolStopped
from recollect.cli.console import (
    EMBEDDED_NOTICE,
    download_progress,
    print_error,
    print_note,
    print_warning,
    show_status,
)
from recollect.cli.denial_notes import denial_notes
from recollect.cli.main import BAD_SETTINGS, FAILED, INTERRUPTED
from recollect.cli.store_access import use_runtime
from recollect.cli.stored_note import print_stored
from recollect.codecs.wire_protocol import Delta
from recollect.display.display_text import format_cost, one_line, pluralize, sanitize, truncate
from recollect.display.reduction_notes import reduction_notes
from recollect.display.stored_session import StoredSession
from recollect.errors import (
    ApiKeyRefused,
    BadInput,
    BadSettings,
    NoApiKey,
    NotFound,
    RecollectError,
    UnknownModel,
)
from recollect.models.model_protocol import Retrying
from recollect.profiles import EMBEDDED_MODEL
from recollect.redaction import redact
from recollect.runtime.prompt_run import (
    DEFAULT_OPTIONS,
    RunEvent,
    RunOptions,
    RunResult,
    RunStarted,
)
from recollect.runtime.run_documents import (
    event_document,
    failure_document,
    result_document,
    result_text,
)
from recollect.runtime.runtime import Door, Overrides, Runtime
from recollect.store.ids import LAST
from recollect.store.store_address import StoreAddress
from recollect.tools.tool import BAD_CALL_STATUS

# the exit codes that other agents use for the same
NO_KEY, BAD_INPUT, TURN_LIMIT, BROKEN_TOOL = 41, 42, 53, 54
_MAX_NOTE, _MAX_REMARK = 160, 400  # characters of a note, and of what the model says between calls
_EXIT_CODES = {"answered": 0, "turns": TURN_LIMIT}  # any other end is a failure
WAITING_STATUS = "waiting for a reply"

OutputFormat: TypeAlias = Literal["text", "json", "stream-json"]


class HeadlessOptions(msgspec.Struct, frozen=True):
    """What `recollect -p` was given."""

    prompt: str
    session: str | None = None  # to continue; none: a new one
    fork: bool = False
    format: OutputFormat = "text"
    run: RunOptions = DEFAULT_OPTIONS
    overrides: Overrides = Overrides()
    store_persists: bool = True  # False: the store is deleted after the run


class Reporter:
    """Reports progress: JSON lines on stdout, or notes and a status line on stderr."""

    def __init__(self, options: HeadlessOptions, file: StoreAddress | None) -> None:
        persists = options.store_persists
        self.session = StoredSession('recollect -r {} -p "…"', file, persists=persists)
        self.reduced: list[ContextReduced] = []
        self._options = options
        self._received = 0  # characters of the current reply

    def event(self, event: RunEvent) -> None:
        if isinstance(event, ContextReduced):
            self.reduced.append(event)
        if self._options.format == "stream-json":
            if (line := event_document(event)) is not None:
                _print_json_line(line)
        elif self._options.format == "text":
            self._show(event)

    def _show(self, event: RunEvent) -> None:
        if isinstance(event, RunStarted):
            if event.model.wire_name == EMBEDDED_MODEL and self._options.session is None:
                print_note(EMBEDDED_NOTICE)
            show_status(WAITING_STATUS)
        elif isinstance(event, Delta):
            self._received += len(event.text)
            show_status(f"receiving a reply: {self._received:,} characters")
        else:
            self._received = 0
            show_status("")
            _print_event_note(event)
            if not isinstance(event, ReplyFinished | RunFinished | RunResult):
                show_status(WAITING_STATUS)


def run_agent(
    prompt: str,
    file: StoreAddress | None,
    *,
    session: str | None,
    latest: bool,
    fork: bool,
    format: OutputFormat,  # noqa: A002 - the option's name
    model: str,
    max_turns: int | None,
    system: str,
    attachments: tuple[Path, ...],
    mode: str | None,
    **overridden: tuple[str, ...],
) -> int:
    """`recollect -p` with its options; the exit code."""
    run = RunOptions(model, max_turns=max_turns, system=system, attachments=attachments)
    overrides = Overrides(mode or "", **overridden)
    continued = LAST if latest else session
    return run_headless(HeadlessOptions(prompt, continued, fork, format, run, overrides), file)


def run_headless(options: HeadlessOptions, file: StoreAddress | None) -> int:
    """The exit code."""
    reporter = Reporter(options, file)
    before = signal(SIGTERM, _raise_interrupt)
    try:
        result = _run_in_store(options, reporter, file)
    except KeyboardInterrupt:
        if options.format != "text":
            _print_json_line(failure_document("interrupted", "stopped", reporter.session.id))
        print_note(" · ".join(filter(None, ("stopped", reporter.session.resume_hint()))))
        return INTERRUPTED
    except RecollectError as error:
        return _report_failure(error, options, reporter)
    finally:
        signal(SIGTERM, before)
    document = result_document(result, reporter.reduced)
    if options.format == "text":
        if text := sanitize(result.text).rstrip("\n"):
            sys.stdout.write(text + "\n")
        if result.finished.problem:
            print_error(_redacted(result.finished.problem))
        for note in denial_notes(result.denials):
            print_note(note)
        parts = (*_usage_parts(document), reporter.session.resume_hint())
        print_note(" · ".join(filter(None, parts)))
    else:
        _print_json_line(document)
    return _EXIT_CODES.get(result.finished.reason, FAILED)


def _run_in_store(
    options: HeadlessOptions, reporter: Reporter, file: StoreAddress | None
) -> RunResult:
    async def work(runtime: Runtime) -> RunResult:
        return await _run(runtime, options, reporter)

    door = Door(warn=print_warning, download_progress=download_progress())
    try:
        make = options.session is None
        return use_runtime(file, work, make=make, door=door, overrides=options.overrides)
    finally:
        show_status("")


async def _run(runtime: Runtime, options: HeadlessOptions, reporter: Reporter) -> RunResult:
    # a missing key or attachment is reported before anything is stored
    await runtime.check_model(options.run)
    prompt = await runtime.prompt_message(options.prompt, options.run.attachments)
    session, origin = await runtime.open_session(
        options.session, fork=options.fork, prompt=options.prompt
    )
    await reporter.session.follow(session.id, runtime.store)
    async with (
        runtime.activate(session, origin) as active,
        aclosing(active.stream(prompt, options.run)) as events,
    ):
        async for event in events:
            await reporter.session.follow(session.id, runtime.store)
            reporter.event(event)
            if isinstance(event, RunResult):
                return event
    raise AssertionError("the last event of a run is its result")


def _report_failure(error: RecollectError, options: HeadlessOptions, reporter: Reporter) -> int:
    if options.format == "text":
        print_error(str(error))
        print_stored(reporter.session, error)
    else:
        _print_json_line(failure_document("error", _redacted(str(error)), reporter.session.id))
    return exit_code_for(error)


def _raise_interrupt(*_: object) -> None:
    """SIGTERM does what Ctrl-C does: running commands are ended too."""
    raise_signal(SIGINT)


def exit_code_for(error: RecollectError) -> int:
    if isinstance(error, NoApiKey | ApiKeyRefused):
        return NO_KEY
    if isinstance(error, BadSettings):
        return BAD_SETTINGS
    if isinstance(error, BadInput | NotFound | UnknownModel):
        return BAD_INPUT
    return BROKEN_TOOL if isinstance(error, ToolStopped) else FAILED


# --- output ------------------------------------------------------------------------------------


def _redacted(text: str) -> str:
    """The beginning of a text without credentials, on one line: redacted before it is truncated,
    because half a credential is not recognized any more."""
    return one_line(redact(text[:4_000]))


def _print_event_note(event: RunEvent) -> None:
    if isinstance(event, ReplyFinished) and event.message.finish == "calls":
        if text := _redacted(message_text(event.message)):
            print_note(truncate(text, _MAX_REMARK))  # what the model says before it acts
    elif isinstance(event, ToolStarted):
        _print_fitting(f"→ {event.call.name} {_redacted(event.call.arguments)}")
    elif isinstance(event, ToolFinished):
        _print_result(event)
    elif isinstance(event, Retrying | CorrectionRequested):
        _print_repetition(event)
    elif isinstance(event, ContextReduced):
        _print_reduction(event)
    elif isinstance(event, WindowLearned):
        print_note(f"the window of {event.model} is only {event.window:,} tokens")
    elif isinstance(event, LoopFound):
        print_note(f"the model repeats itself: {truncate(_redacted(event.loop.what), 120)}")


def _print_result(event: ToolFinished) -> None:
    text = result_text(event.result)
    if event.result.status == BAD_CALL_STATUS:
        return  # the request to correct the call says why
    if event.call.name == "run_shell_command":
        text = " ".join(text.splitlines()[-2:])  # the end of an output says how it went
    elif not event.result.is_error:
        return
    _print_fitting(f"  {_redacted(text)}")


def _print_repetition(event: Retrying | CorrectionRequested) -> None:
    if isinstance(event, Retrying):
        print_note(f"retrying in {event.delay:.1f} s: {event.reason}")
    else:
        told = truncate(_redacted("; ".join(event.problems)), _MAX_REMARK)
        print_note(f"asking again ({event.attempt} of {event.most}): {told}")


def _print_reduction(event: ContextReduced) -> None:
    for note in reduction_notes(event):
        print_note(_redacted(note))


def _print_fitting(message: str) -> None:
    """One line, on a terminal no longer than the terminal is wide."""
    width = shutil.get_terminal_size().columns if sys.stderr.isatty() else _MAX_NOTE
    print_note(truncate(message, width))


def _print_json_line(value: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


def _usage_parts(document: dict[str, Any]) -> list[str]:
    usage = document["usage"]
    parts = [
        document["model"],
        pluralize(document["num_turns"], "turn"),
        f"{usage.get('input', 0):,} tokens in, {usage.get('output', 0):,} out",
        format_cost(document["total_cost_usd"]),
        f"{document['duration_ms'] / 1_000:.1f} s",
    ]
    if document["is_error"]:
        parts.append("stopped: " + document["subtype"].removeprefix("error_").replace("_", " "))
    return parts

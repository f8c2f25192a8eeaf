"""`recollect ask`: sends one question to a model and prints the answer as it streams, and its cost.

stdout carries the answer and nothing else. Question and answer are stored as a session, an
interrupted answer as far as it came; a failure is one sentence and exit code 1, and so is a reply
that is no answer: cut off, blocked, empty, or stopped because the model repeated itself.
"""

from __future__ import annotations

import sys
import tempfile
import time
from contextlib import aclosing, nullcontext
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

import click
import msgspec

from recollect.agent.corrections import CorrectionRequested
from recollect.agent.exchange import ReplyFinished
from recollect.agent.run_events import LoopFound, RunFinished
from recollect.cli.console import (
    EMBEDDED_NOTICE,
    download_progress,
    print_error,
    print_json,
    print_note,
    print_warning,
    show_status,
)
from recollect.cli.main import FAILED
from recollect.cli.options import (
    NO_SYSTEM,
    attach_option,
    command,
    json_and_store_options,
    read_prompt,
)
from recollect.cli.store_access import use_runtime
from recollect.cli.stored_note import print_stored
from recollect.codecs.fixes import Fix
from recollect.codecs.wire_protocol import Delta, Generation
from recollect.display.display_text import format_cost, pluralize, sanitize
from recollect.display.short_ids import shorten_session_id
from recollect.display.stored_session import StoredSession
from recollect.entries import Message, Thought
from recollect.errors import RecollectError
from recollect.models.model_protocol import Retrying
from recollect.models.resolve import ResolvedModel
from recollect.profiles import EMBEDDED_MODEL, compute_cost
from recollect.redaction import redact
from recollect.runtime.prompt_run import RunEvent, RunOptions, RunResult, RunStarted
from recollect.runtime.run_documents import failure_document
from recollect.runtime.runtime import Door, Runtime
from recollect.store.ids import LAST
from recollect.store.store_address import StoreAddress

# Besides the problem that the run itself names.
_STOP_NOTES = {
    "loop": "stopped, because the model repeats itself",
    "cut_off": "--max-output raises the limit",
}


class AskOptions(NamedTuple):
    question: str
    named: str
    stream: bool | None  # None: on a terminal
    system: str
    temperature: float | None
    max_output: int | None
    effort: Literal["none", "low", "medium", "high"] | None
    session: str | None
    latest: bool
    attachments: tuple[Path, ...]
    no_session: bool
    as_json: bool

    @property
    def streams(self) -> bool:
        return not self.as_json and (sys.stdout.isatty() if self.stream is None else self.stream)

    @property
    def continued(self) -> str | None:
        """The session to continue."""
        return LAST if self.latest else self.session

    @property
    def run(self) -> RunOptions:
        generation = Generation(
            temperature=self.temperature, max_output=self.max_output, effort=self.effort or ""
        )
        return RunOptions(
            self.named,
            kind="ask",
            system=self.system,
            generation=generation,
            attachments=self.attachments,
        )


class AskResult(NamedTuple):
    message: Message  # the last reply
    finished: RunFinished
    model: ResolvedModel
    fixes: tuple[Fix, ...]
    seconds: float
    session_id: str
    short_id: str


@command(
    ('recollect ask "What is a WAL?"', "the default model; with no API key the embedded one"),
    ('recollect ask "And a checkpoint?" -c', "continue the most recent session"),
    ('recollect ask "What is on it?" --attach diagram.png', "with a file"),
    ("git diff | recollect ask 'Review this.' --model gpt-5", "with piped input"),
    ('recollect ask "hi" --model ollama/qwen3:8b --json', "for programs"),
)
@click.argument("words", metavar="QUESTION", nargs=-1)
@click.option("-m", "--model", "named", metavar="NAME", default="", help="The model to use.")
@click.option(
    "--stream/--no-stream",
    default=None,
    help="Print the answer as it streams, or when it is complete.  [default: stream on a terminal]",
)
@click.option("--system", metavar="TEXT", default="", help="System instructions for a new session.")
@click.option("--temperature", type=click.FloatRange(0, 2), metavar="T")
@click.option("--max-output", type=click.IntRange(min=1), metavar="N", help="Maximum tokens.")
@click.option(
    "--effort", type=click.Choice(["none", "low", "medium", "high"]), help="How long to think."
)
@click.option("--session", metavar="ID", help="Continue this session.")
@click.option("-c", "--continue", "latest", is_flag=True, help="Continue the most recent session.")
@attach_option
@click.option("--no-session", is_flag=True, help="Store nothing.")
@json_and_store_options
def ask(*, words: tuple[str, ...], file: StoreAddress | None, **given: Any) -> None:
    """Ask a model one question."""
    options = AskOptions(read_prompt(words), **given)
    if options.continued is not None and options.no_session:
        raise click.UsageError("--no-session cannot be combined with --session or -c.")
    if options.latest and options.session is not None:
        raise click.UsageError("--session and -c cannot be combined.")
    if options.system and options.continued is not None:
        raise click.UsageError(NO_SYSTEM)
    printer = _AnswerPrinter(stream=options.streams)
    stored = StoredSession('recollect ask --session {} "…"', file, persists=not options.no_session)
    door = Door(warn=print_warning, download_progress=download_progress())
    work, make = partial(_ask, options, printer, stored), options.continued is None
    with tempfile.TemporaryDirectory() if options.no_session else nullcontext() as temporary:
        file = Path(temporary) / "recollect.db" if temporary is not None else file
        try:
            result = use_runtime(file, work, make=make, door=door)
        except RecollectError as error:
            printer.end()
            _report_failure(error, options, stored)
            raise SystemExit(FAILED) from None
        finally:
            printer.end()
    _print_result(result, options)
    if result.finished.reason != "answered":
        raise SystemExit(FAILED)


async def _ask(
    options: AskOptions, printer: _AnswerPrinter, stored: StoredSession, runtime: Runtime
) -> AskResult:
    """A prompt for the agent without tools: the same road as `-p`."""
    # a missing key or attachment is reported before anything is stored
    await runtime.check_model(options.run)
    question = await runtime.prompt_message(options.question, options.attachments)
    session, origin = await runtime.open_session(options.continued, prompt=options.question)
    await stored.follow(session.id, runtime.store)
    started, message = time.monotonic(), Message(role="model")
    async with (
        runtime.activate(session, origin) as active,
        aclosing(active.stream(question, options.run)) as events,
    ):
        async for event in events:
            await stored.follow(session.id, runtime.store)
            printer.event(event)
            if isinstance(event, ReplyFinished):
                message = event.message
            elif isinstance(event, RunResult):
                short = await shorten_session_id(runtime.store, session.id)
                seconds, model, done = time.monotonic() - started, event.model, event.finished
                return AskResult(
                    message, done, model.chosen, model.fixes, seconds, session.id, short
                )
    raise AssertionError("the last event of a run is its result")


class _AnswerPrinter:
    """Prints the answer as it streams; thinking and waiting appear on the status line."""

    def __init__(self, *, stream: bool) -> None:
        self._stream = stream
        self._in_line = False  # whether the last line printed has no end yet
        self._has_status = False

    def event(self, event: RunEvent) -> None:
        if isinstance(event, RunStarted):
            if event.model.wire_name == EMBEDDED_MODEL:
                print_note(EMBEDDED_NOTICE)
        elif isinstance(event, Retrying):
            self.end()
            void = "; disregard the text above" if event.shown and self._stream else ""
            print_note(f"retrying in {event.delay:.1f} s: {event.reason}{void}")
        elif isinstance(event, CorrectionRequested):
            self.end()
            void = "; disregard the text above" if self._stream else ""
            told = sanitize(event.problems[-1])
            print_note(f"asking again ({event.attempt} of {event.most}): {told}{void}")
        elif isinstance(event, LoopFound):
            self.end()
            print_note(f"the model repeats itself: {sanitize(event.loop.what)}")
        elif not isinstance(event, Delta):
            return
        elif event.kind == "thought" and not self._in_line:
            self._show_status("thinking …")
        elif event.kind == "text" and self._stream:
            self._show_status("")
            sys.stdout.write(sanitize(event.text))
            sys.stdout.flush()
            self._in_line = not event.text.endswith("\n")

    def end(self) -> None:
        self._show_status("")
        if self._in_line:
            sys.stdout.write("\n")
            sys.stdout.flush()
        self._in_line = False

    def _show_status(self, text: str) -> None:
        if text or self._has_status:
            show_status(text)
        self._has_status = bool(text)


def _report_failure(error: RecollectError, options: AskOptions, stored: StoredSession) -> None:
    if options.as_json:
        session = "" if options.no_session else stored.id
        print_json(failure_document("error", sanitize(redact(str(error))), session))
    print_error(str(error))
    if not options.as_json:
        print_stored(stored, error)


def _print_result(result: AskResult, options: AskOptions) -> None:
    if options.as_json:
        print_json(_document(result, stored=not options.no_session))
    elif not options.streams and (text := sanitize(result.finished.text).rstrip("\n")):
        sys.stdout.write(text + "\n")
    if result.finished.problem:
        print_error(sanitize(result.finished.problem))
    for fix in result.fixes:
        if fix.message < 0:  # a fix of an option; `recollect encode` reports those of messages
            print_note(fix.text)
    print_note(_usage_line(result, stored=not options.no_session))


def _usage_line(result: AskResult, *, stored: bool) -> str:
    model = result.model
    usage, note, parts = result.message.usage, result.finished.reason, [model.name]
    if usage is not None:
        cached = f" ({usage.cached:,} cached)" if usage.cached else ""
        parts.append(f"{pluralize(usage.input, 'token')} in{cached}, {usage.output:,} out")
        parts.append(format_cost(compute_cost(usage, model.profile.price)))
    parts.append(f"{result.seconds:.1f} s")
    if note in _STOP_NOTES:
        parts.append(_STOP_NOTES[note])
    if stored:
        parts.append(f"`recollect show {result.short_id}`")
    return " · ".join(filter(None, parts))


def _document(result: AskResult, *, stored: bool) -> dict[str, object]:
    model = result.model
    message, usage = result.message, result.message.usage
    return {
        "type": "result",
        "is_error": result.finished.reason != "answered",
        "reason": result.finished.reason,
        "problem": result.finished.problem or None,
        "result": result.finished.text,
        "thoughts": [p.text for p in message.parts if isinstance(p, Thought) and p.text],
        "finish": "loop" if result.finished.reason == "loop" else message.finish,
        "model": model.name,
        "session_id": result.session_id if stored else None,
        "duration_ms": round(result.seconds * 1_000),
        "total_cost_usd": compute_cost(usage, model.profile.price) if usage else None,
        "usage": msgspec.to_builtins(usage) if usage else None,
    }

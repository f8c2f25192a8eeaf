"""`recollect ask`: sends one question to a model and prints the answer as it streams, and its cost.

stdout carries the answer and nothing else. Question and answer are stored as a session, an
interrupted answer as far as it came; a failure is one sentence and exit code 1.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

import click
import msgspec

from recollect.agent.exchange import ReplyFinished, exchange, message_text, user_message
from recollect.cli.console import (
    EMBEDDED_NOTICE,
    download_progress,
    print_json,
    print_note,
    show_status,
)
from recollect.cli.display_text import format_cost, one_line, pluralize, sanitize
from recollect.cli.options import command, json_and_store_options, read_prompt
from recollect.cli.short_ids import shorten_session_id
from recollect.cli.store_access import current_project, use_store
from recollect.codecs.wire_protocol import Delta, Generation, RequestOptions
from recollect.entries import Message, Thought
from recollect.models.http_model import HttpModel
from recollect.models.model_protocol import Retrying
from recollect.models.open_model import open_model
from recollect.models.resolve import ResolvedModel
from recollect.profiles import EMBEDDED_MODEL, compute_cost
from recollect.session import Session
from recollect.store.contract import Store
from recollect.store.sqlite import SqliteStore
from recollect.tokens import counter_for
from recollect.view.initial_messages import instructions_message
from recollect.view.view import View
from recollect.view_loader import load_view

TITLE_LENGTH = 60  # characters of the question that become the session's title
# small models answer sensibly only when they are told who they are
DEFAULT_INSTRUCTIONS = "You are a helpful assistant. Answer briefly and to the point."
_FINISH_NOTES = {
    "length": "cut off at its limit: --max-output raises it",
    "safety": "stopped by the provider's safety rules",
    "calls": "it tried to call tools, which `ask` does not have",
    "other": "ended for an unknown reason",
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
    no_session: bool
    as_json: bool

    @property
    def streams(self) -> bool:
        return not self.as_json and (sys.stdout.isatty() if self.stream is None else self.stream)


class AskResult(NamedTuple):
    message: Message
    seconds: float
    session_id: str = ""  # none if nothing is kept
    short_id: str = ""


@command(
    ('recollect ask "What is a WAL?"', "the default model; with no API key the embedded one"),
    ('recollect ask "And a checkpoint?" --session 019a8b1c', "continue a session"),
    ("git diff | recollect ask 'Review this.' --model gpt-5", "with piped input"),
    ('recollect ask "hi" --model ollama/qwen3:8b --json', "for programs"),
)
@click.argument("words", metavar="QUESTION", nargs=-1)
@click.option("--model", "named", metavar="NAME", default="", help="The model to use.")
@click.option(
    "--stream/--no-stream",
    default=None,
    help="Print the answer as it streams, or when it is complete.  [default: stream on a terminal]",
)
@click.option("--system", metavar="TEXT", default="", help="System instructions.")
@click.option("--temperature", type=click.FloatRange(0, 2), metavar="T")
@click.option("--max-output", type=click.IntRange(min=1), metavar="N", help="Maximum tokens.")
@click.option(
    "--effort", type=click.Choice(["none", "low", "medium", "high"]), help="How long to think."
)
@click.option("--session", metavar="ID", help="Continue this session.")
@click.option("--no-session", is_flag=True, help="Store nothing.")
@json_and_store_options
def ask(*, words: tuple[str, ...], file: Path | None, **given: Any) -> None:
    """Ask a model one question."""
    options = AskOptions(read_prompt(words), **given)
    if options.session is not None and options.no_session:
        raise click.UsageError("--session and --no-session cannot be combined.")
    model = open_model(options.named, progress=download_progress())
    if model.chosen.wire_name == EMBEDDED_MODEL:
        print_note(EMBEDDED_NOTICE)
    printer = _AnswerPrinter(stream=options.streams)
    work = partial(_ask, options, model, printer)
    try:
        is_new = options.session is None
        result = (
            asyncio.run(work(None)) if options.no_session else use_store(file, work, make=is_new)
        )
    finally:
        printer.end()
    _print_result(result, options, model)


async def _ask(
    options: AskOptions, model: HttpModel, printer: _AnswerPrinter, store: SqliteStore | None
) -> AskResult:
    question, session_id, short = user_message(options.question), "", ""
    generation = Generation(
        temperature=options.temperature, max_output=options.max_output, effort=options.effort or ""
    )
    request = RequestOptions(model=model.name, generation=generation)
    events: AsyncGenerator[Delta | Retrying | Message | ReplyFinished, None]
    async with model:
        if store is None:
            events = model.stream((_instructions(options), question), request)
        else:
            session = await _open_session(store, model.name, options)
            session = await session.append(question)
            session_id, short = session.id, await shorten_session_id(store, session.id)
            events = exchange(session, model, request)
        started = time.monotonic()
        async with aclosing(events):
            async for event in events:
                reply = event.message if isinstance(event, ReplyFinished) else event
                if isinstance(reply, Message):
                    return AskResult(reply, time.monotonic() - started, session_id, short)
                printer.event(reply)
    raise AssertionError("a model's last event is its message")


async def _open_session(store: Store, model: str, options: AskOptions) -> Session:
    counter = counter_for(model)
    if options.session is not None:
        found = await store.session(options.session)
        return Session(store, found.id, await load_view(store, found.id, counter=counter))
    title = one_line(options.question)[:TITLE_LENGTH]
    created = await store.create(project=current_project(), title=title)
    session = Session(store, created.id, View.fold(counter=counter))
    return await session.append(_instructions(options))


def _instructions(options: AskOptions) -> Message:
    return instructions_message(options.system or DEFAULT_INSTRUCTIONS, "ask")


class _AnswerPrinter:
    """Prints the answer as it streams; thinking and waiting appear on the status line."""

    def __init__(self, *, stream: bool) -> None:
        self._stream = stream
        self._in_line = False  # whether the last line printed has no end yet
        self._has_status = False

    def event(self, event: Delta | Retrying) -> None:
        if isinstance(event, Retrying):
            self.end()
            void = "; disregard the text above" if event.shown and self._stream else ""
            print_note(f"retrying in {event.delay:.1f} s: {event.reason}{void}")
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


def _print_result(result: AskResult, options: AskOptions, model: HttpModel) -> None:
    if options.as_json:
        print_json(_document(result, model.chosen))
    elif not options.streams:
        sys.stdout.write(sanitize(message_text(result.message)).rstrip("\n") + "\n")
    for fix in model.fixes:
        if fix.message < 0:  # a fix of an option; `recollect encode` reports those of messages
            print_note(fix.text)
    print_note(_usage_line(result, model.chosen))


def _usage_line(result: AskResult, model: ResolvedModel) -> str:
    usage, finish, parts = result.message.usage, result.message.finish, [model.name]
    if usage is not None:
        cached = f" ({usage.cached:,} cached)" if usage.cached else ""
        parts.append(f"{pluralize(usage.input, 'token')} in{cached}, {usage.output:,} out")
        parts.append(format_cost(compute_cost(usage, model.profile.price)))
    parts.append(f"{result.seconds:.1f} s")
    if finish not in ("stop", ""):
        parts.append(_FINISH_NOTES.get(finish, finish))
    if result.short_id:
        parts.append(f"`recollect show {result.short_id}`")
    return " · ".join(filter(None, parts))


def _document(result: AskResult, model: ResolvedModel) -> dict[str, object]:
    message, usage = result.message, result.message.usage
    return {
        "type": "result",
        "is_error": False,
        "result": message_text(message),
        "thoughts": [p.text for p in message.parts if isinstance(p, Thought) and p.text],
        "finish": message.finish,
        "model": model.name,
        "session_id": result.session_id or None,
        "duration_ms": round(result.seconds * 1_000),
        "total_cost_usd": compute_cost(usage, model.profile.price) if usage else None,
        "usage": msgspec.to_builtins(usage) if usage else None,
    }

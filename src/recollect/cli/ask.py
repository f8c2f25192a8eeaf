"""`recollect ask`: sends one question to a model and prints the answer as it streams, and its cost.

stdout carries the answer and nothing else. Question and answer are stored as a session, an
interrupted answer as far as it came; a failure is one sentence and exit code 1.
"""

from __future__ import annotations

import asyncio
import sys
import time
from contextlib import aclosing
from pathlib import Path
from typing import Literal, NamedTuple

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
from recollect.cli.options import examples, json_option, read_prompt, store_option
from recollect.cli.short_ids import shorten_session_id
from recollect.cli.store_access import current_project, use_store
from recollect.codecs.wire_protocol import Delta, Generation, RequestOptions
from recollect.entries import Message, Text, Thought
from recollect.models.http_model import HttpModel
from recollect.models.model_protocol import Retrying
from recollect.models.open_model import open_model
from recollect.models.resolve import ResolvedModel
from recollect.profiles import EMBEDDED_MODEL, compute_cost
from recollect.session import Session
from recollect.store.contract import Store
from recollect.store.sqlite import SqliteStore
from recollect.tokens import counter_for
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
    model: str
    system: str
    generation: Generation
    session: str | None
    keep: bool
    stream: bool
    as_json: bool


class AskResult(NamedTuple):
    message: Message
    seconds: float
    session_id: str = ""  # none if nothing is kept
    short_id: str = ""


@click.command(
    epilog=examples(
        ('recollect ask "What is a WAL?"', "the default model; with no API key the embedded one"),
        ('recollect ask "And a checkpoint?" --session 019a8b1c', "continue a session"),
        ("git diff | recollect ask 'Review this.' --model gpt-5", "with piped input"),
        ('recollect ask "hi" --model ollama/qwen3:8b --json', "for programs"),
    )
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
    "--effort",
    type=click.Choice(["none", "low", "medium", "high"]),
    default=None,
    help="How long to think.",
)
@click.option("--session", "prefix", metavar="ID", help="Continue this session.")
@click.option("--no-session", is_flag=True, help="Store nothing.")
@json_option
@store_option
def ask(
    *,
    words: tuple[str, ...],
    named: str,
    stream: bool | None,
    system: str,
    temperature: float | None,
    max_output: int | None,
    effort: Literal["none", "low", "medium", "high"] | None,
    prefix: str | None,
    no_session: bool,
    as_json: bool,
    file: Path | None,
) -> None:
    """Ask a model one question."""
    if prefix is not None and no_session:
        raise click.UsageError("--session and --no-session cannot be combined.")
    streams = sys.stdout.isatty() if stream is None else stream
    options = AskOptions(
        question=read_prompt(words),
        model=named,
        system=system,
        generation=Generation(temperature=temperature, max_output=max_output, effort=effort or ""),
        session=prefix,
        keep=not no_session,
        stream=streams and not as_json,
        as_json=as_json,
    )
    model = open_model(options.model, progress=download_progress())
    if model.chosen.wire_name == EMBEDDED_MODEL:
        print_note(EMBEDDED_NOTICE)
    _print_result(_run(options, model, file), options, model)


def _run(options: AskOptions, model: HttpModel, file: Path | None) -> AskResult:
    printer = _AnswerPrinter(stream=options.stream)
    try:
        if not options.keep:
            return asyncio.run(_ask_without_session(model, options, printer))
        return use_store(
            file,
            lambda store: _ask_in_session(store, model, options, printer),
            make=options.session is None,
        )
    finally:
        printer.end()


async def _ask_in_session(
    store: SqliteStore, model: HttpModel, options: AskOptions, printer: _AnswerPrinter
) -> AskResult:
    async with model:
        session = await _open_session(store, model.name, options)
        started = time.monotonic()
        session = await session.append(user_message(options.question))
        request = RequestOptions(model=model.name, generation=options.generation)
        short = await shorten_session_id(store, session.id)
        async with aclosing(exchange(session, model, request)) as events:
            async for event in events:
                if isinstance(event, ReplyFinished):
                    seconds = time.monotonic() - started
                    return AskResult(event.message, seconds, session.id, short)
                if not isinstance(event, Message):
                    printer.event(event)
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
    text = Text(text=options.system or DEFAULT_INSTRUCTIONS)
    return Message(role="system", parts=(text,), context="initial")


async def _ask_without_session(
    model: HttpModel, options: AskOptions, printer: _AnswerPrinter
) -> AskResult:
    started = time.monotonic()
    messages = (_instructions(options), user_message(options.question))
    request = RequestOptions(model=model.name, generation=options.generation)
    async with model, aclosing(model.stream(messages, request)) as events:
        async for event in events:
            if isinstance(event, Message):
                return AskResult(event, time.monotonic() - started)
            printer.event(event)
    raise AssertionError("a model's last event is its message")


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
    elif not options.stream:
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

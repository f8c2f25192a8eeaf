"""Runs one question for `recollect ask`: shows it, keeps it, and says what it cost."""

from __future__ import annotations

import asyncio
import sys
import time
from contextlib import aclosing
from pathlib import Path
from typing import NamedTuple

from recollect.agent.exchange import ReplyFinished, exchange, message_text, user_message
from recollect.cli.console import download_progress, print_json, print_note, show_status
from recollect.cli.display_text import one_line, pluralize, sanitize
from recollect.cli.store_access import current_project, shorten_session_id, use_store
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

TITLE_LENGTH = 60  # characters of the question that become the session's title
EMBEDDED_NOTICE = (
    "asking the embedded model: it is small and often wrong, and it is there so that everything "
    "works without a key; `recollect models` shows the others"
)
# small models answer sensibly only when they are told who they are
DEFAULT_INSTRUCTIONS = "You are a helpful assistant. Answer briefly and to the point."


class AskOptions(NamedTuple):
    """What the person wants."""

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
    session: str = ""  # short; none when nothing is kept
    whole_id: str = ""


def run_ask(asking: AskOptions, file: Path | None) -> None:
    model = open_model(asking.model, progress=download_progress())
    if model.chosen.wire_name == EMBEDDED_MODEL:
        print_note(EMBEDDED_NOTICE)
    show = _AnswerPrinter(stream=asking.stream)
    try:
        if asking.keep:
            done = use_store(
                file,
                lambda store: _ask_in_session(store, model, asking, show),
                make=asking.session is None,
            )
        else:
            done = asyncio.run(_ask_without_session(model, asking, show))
    finally:
        show.end()
    if asking.as_json:
        print_json(_document(done, model.chosen))
    elif not asking.stream:
        sys.stdout.write(sanitize(message_text(done.message)).rstrip("\n") + "\n")
    for fix in model.fixes:
        if fix.message < 0:  # an option that was asked for; what became of messages `encode` tells
            print_note(fix.text)
    print_note(_usage_line(done, model.chosen))


async def _ask_in_session(
    store: SqliteStore, model: HttpModel, asking: AskOptions, show: _AnswerPrinter
) -> AskResult:
    async with model:
        talk = await _open_session(store, model.name, asking)
        started = time.monotonic()
        talk = await talk.append(user_message(asking.question))
        prompt = RequestOptions(model=model.name, generation=asking.generation)
        short = await shorten_session_id(store, talk.id)
        async with aclosing(exchange(talk, model, prompt)) as events:
            async for event in events:
                if isinstance(event, ReplyFinished):
                    seconds = time.monotonic() - started
                    return AskResult(event.message, seconds, short, talk.id)
                if not isinstance(event, Message):
                    show.event(event)
    raise AssertionError("a model's last event is its message")


async def _open_session(store: Store, model: str, asking: AskOptions) -> Session:
    from recollect.view_loader import load_view

    counter = counter_for(model)
    if asking.session is not None:
        session = await store.session(asking.session)
        view = await load_view(store, session.id, counter=counter)
        return Session(store, session.id, view)
    title = one_line(asking.question)[:TITLE_LENGTH]
    session = await store.create(project=current_project(), title=title)
    talk = Session(store, session.id, View.fold(counter=counter))
    return await talk.append(_instructions(asking))


def _instructions(asking: AskOptions) -> Message:
    return Message(
        role="system", parts=(Text(text=asking.system or DEFAULT_INSTRUCTIONS),), context="initial"
    )


async def _ask_without_session(
    model: HttpModel, asking: AskOptions, show: _AnswerPrinter
) -> AskResult:
    started = time.monotonic()
    messages = (_instructions(asking), user_message(asking.question))
    prompt = RequestOptions(model=model.name, generation=asking.generation)
    async with model, aclosing(model.stream(messages, prompt)) as events:
        async for event in events:
            if isinstance(event, Message):
                return AskResult(event, time.monotonic() - started)
            show.event(event)
    raise AssertionError("a model's last event is its message")


class _AnswerPrinter:
    """The answer while it comes: text to stdout, that it thinks or waits to the status line."""

    def __init__(self, *, stream: bool) -> None:
        self._stream = stream
        self._open = False  # whether a line of text has no end yet
        self._waits = False  # whether the status line says something

    def event(self, event: Delta | Retrying) -> None:
        if isinstance(event, Retrying):
            self._say("")
            self._break()
            void = "; what was shown is void" if event.shown and self._stream else ""
            print_note(f"asking again in {event.delay:.1f} s: {event.reason}{void}")
        elif event.kind == "thought" and not self._open:
            self._say("thinking …")
        elif event.kind == "text" and self._stream:
            self._say("")
            sys.stdout.write(sanitize(event.text))
            sys.stdout.flush()
            self._open = not event.text.endswith("\n")

    def end(self) -> None:
        self._say("")
        self._break()

    def _say(self, waiting: str) -> None:
        if waiting or self._waits:
            show_status(waiting)
        self._waits = bool(waiting)

    def _break(self) -> None:
        if self._open:
            sys.stdout.write("\n")
            sys.stdout.flush()
        self._open = False


def _usage_line(done: AskResult, chosen: ResolvedModel) -> str:
    """What it was and what it cost, in one line."""
    usage, told = done.message.usage, [chosen.name]
    if usage is not None:
        cached = f" ({usage.cached:,} cached)" if usage.cached else ""
        told.append(f"{pluralize(usage.input, 'token')} in{cached}, {usage.output:,} out")
        cost = compute_cost(usage, chosen.profile.price)
        if cost is not None:
            told.append(f"${cost:.6f}".rstrip("0").rstrip("."))
    told.append(f"{done.seconds:.1f} s")
    if done.message.finish not in ("stop", ""):
        told.append(_FINISH_NOTES.get(done.message.finish, done.message.finish))
    if done.session:
        told.append(f"`recollect show {done.session}`")
    return " · ".join(told)


_FINISH_NOTES = {
    "length": "cut at its limit: --max-output raises it",
    "safety": "stopped by the provider's safety rules",
    "calls": "it wants to call tools, which `ask` has none of",
    "other": "ended for a reason that is not known here",
}


def _document(done: AskResult, chosen: ResolvedModel) -> dict[str, object]:
    import msgspec

    usage = done.message.usage
    thoughts = [p.text for p in done.message.parts if isinstance(p, Thought) and p.text]
    return {
        "type": "result",
        "is_error": False,
        "result": message_text(done.message),
        "thoughts": thoughts,
        "finish": done.message.finish,
        "model": chosen.name,
        "session_id": done.whole_id or None,
        "duration_ms": round(done.seconds * 1_000),
        "total_cost_usd": compute_cost(usage, chosen.profile.price) if usage else None,
        "usage": msgspec.to_builtins(usage) if usage else None,
    }

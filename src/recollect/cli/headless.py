"""`recollect -p`: the agent without a screen. stdout carries the answer, or JSON, and nothing else.

Everything is recorded as it happens; a run that is stopped goes on with `-c`. Without a rule that
allows it nothing is changed and nothing is run: there is nobody to ask.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from contextlib import aclosing
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

import msgspec

from recollect.agent.asking import Answered, Conversation
from recollect.agent.loop import AgentEvent, Finished, Looping
from recollect.agent.room import MadeRoom
from recollect.agent.working import Calling, Ran
from recollect.cli.equipment import equip, opening
from recollect.cli.opening import short_session, this_project, use_store
from recollect.cli.terminal import complain, mention
from recollect.cli.text import harmless, many, one_line
from recollect.codecs.wire import Delta
from recollect.entries import Message, Text, ToolResult
from recollect.errors import BadInput, BadSettings, KeyRefused, NoKey, NotFound, RecollectError
from recollect.models.client import HttpModel
from recollect.models.contract import Retrying
from recollect.models.opening import open_model
from recollect.models.weights import bar
from recollect.profiles import cost_of
from recollect.resuming import resume
from recollect.settings import load
from recollect.store.contract import Session
from recollect.store.sqlite import SqliteStore
from recollect.tokens import counter_for
from recollect.view.view import View

Format: TypeAlias = Literal["text", "json", "stream-json"]
FAILED, NO_KEY, BAD_INPUT, BAD_SETTINGS, TURNS = 1, 41, 42, 52, 53
TITLE = 60


class Wish(NamedTuple):
    """What the person asked for."""

    prompt: str
    model: str = ""
    latest: bool = False  # go on in this project's newest session
    session: str | None = None
    fork: bool = False
    max_turns: int = 100
    format: Format = "text"


class Outcome(NamedTuple):
    code: int
    document: dict[str, Any]


def run(wish: Wish, file: Path | None) -> int:
    """The exit code."""
    try:
        model = open_model(wish.model, progress=bar(sys.stderr))
        make = wish.session is None and not wish.latest
        outcome = use_store(file, lambda store: _played(store, model, wish), make=make)
    except RecollectError as error:
        code = exit_code(error)
        if wish.format == "text":
            complain(str(error))
        else:
            _print({"type": "result", "subtype": "error", "is_error": True, "result": str(error)})
        return code
    if wish.format == "text":
        sys.stdout.write(harmless(outcome.document["result"]).rstrip("\n") + "\n")
        mention(_account(outcome.document))
    else:
        _print(outcome.document)
    return outcome.code


def exit_code(error: RecollectError) -> int:
    """The codes that other agents have for the same."""
    if isinstance(error, NoKey | KeyRefused):
        return NO_KEY
    if isinstance(error, BadSettings):
        return BAD_SETTINGS
    if isinstance(error, BadInput | NotFound):
        return BAD_INPUT
    return FAILED


async def _played(store: SqliteStore, model: HttpModel, wish: Wish) -> Outcome:
    async with model:
        talk = await _conversation(store, model.name, wish)
        given = equip(model, Path.cwd(), load(), max_turns=wish.max_turns)
        show = _shown_as(wish.format, talk.session)
        finished, last = None, ""
        try:
            async with aclosing(given.agent.run(talk, wish.prompt)) as events:
                async for event in events:
                    show(event)
                    if isinstance(event, Answered):
                        last = _text(event.message)
                    elif isinstance(event, Finished):
                        finished = event
        finally:
            await given.commands.close()
        assert finished is not None
        document = _document(finished, last, model)
        document["session"] = await short_session(store, talk.session)
        return Outcome({"answered": 0, "turns": TURNS, "loop": FAILED}[finished.why], document)


async def _conversation(store: SqliteStore, model: str, wish: Wish) -> Conversation:
    counter = counter_for(model)
    session = await _earlier(store, wish)
    if session is None:
        title = one_line(wish.prompt)[:TITLE]
        session = await store.create(project=this_project(), title=title)
        talk = Conversation(store, session.id, View.fold(counter=counter))
        return await talk.append(*await opening(Path.cwd()))
    if wish.fork:
        session = await store.fork(session.id)
    view = (
        await resume(store, session.id, counter=counter)
        if session.head
        else View.fold(counter=counter)
    )
    return Conversation(store, session.id, view)


async def _earlier(store: SqliteStore, wish: Wish) -> Session | None:
    if wish.session is not None:
        return await store.session(wish.session)
    if not wish.latest:
        return None
    found = await store.sessions(project=this_project())
    if not found:
        raise NotFound("no session of this project to go on with; `recollect -p` begins one")
    return found[0]


# --- what is shown -----------------------------------------------------------------------------


def _shown_as(format_: Format, session: str) -> Callable[[AgentEvent], None]:
    if format_ == "stream-json":
        _print({"type": "init", "session_id": session})
        return _print_event
    return _mention if format_ == "text" else lambda _: None


def _mention(event: AgentEvent) -> None:
    """On stderr, what a person wants to see while it works."""
    if isinstance(event, Calling):
        mention(f"→ {event.call.name} {one_line(event.call.arguments)[:120]}")
    elif isinstance(event, Ran) and event.result.is_error:
        mention(f"  {one_line(_words(event.result))[:160]}")
    elif isinstance(event, Retrying):
        mention(f"asking again in {event.delay:.1f} s: {event.reason}")
    elif isinstance(event, MadeRoom):
        mention(f"made room: {event.before:,} → {event.after:,} tokens")
    elif isinstance(event, Looping):
        mention(f"it repeats itself: {one_line(event.loop.what)[:120]}")


def _print_event(event: AgentEvent) -> None:
    if isinstance(event, Delta):
        _print({"type": "delta", "kind": event.kind, "text": event.text, "name": event.name})
    elif isinstance(event, Answered):
        _print({"type": "message", "message": msgspec.to_builtins(event.message)})
    elif isinstance(event, Calling):
        _print({"type": "call", "call": msgspec.to_builtins(event.call)})
    elif isinstance(event, Ran):
        _print({"type": "tool_result", "result": msgspec.to_builtins(event.result)})
    elif isinstance(event, Retrying):
        _print({"type": "retrying", **event._asdict()})
    elif isinstance(event, MadeRoom):
        _print({"type": "made_room", "before": event.before, "after": event.after})
    elif isinstance(event, Looping):
        _print({"type": "loop", "what": event.loop.what, "stopped": event.stopped})


def _print(value: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


def _text(message: Message) -> str:
    return "".join(part.text for part in message.parts if isinstance(part, Text))


def _words(result: ToolResult) -> str:
    return " ".join(part.text for part in result.content if isinstance(part, Text))


_SUBTYPES = {"answered": "success", "turns": "error_max_turns", "loop": "error_loop"}


def _document(finished: Finished, text: str, model: HttpModel) -> dict[str, Any]:
    usage = finished.usage
    return {
        "type": "result",
        "subtype": _SUBTYPES[finished.why],
        "is_error": finished.why != "answered",
        "result": text,
        "session_id": finished.talk.session,
        "num_turns": finished.turns,
        "duration_ms": round(finished.seconds * 1_000),
        "total_cost_usd": cost_of(usage, model.chosen.profile.price),
        "usage": msgspec.to_builtins(usage),
        "model": model.name,
    }


def _account(document: dict[str, Any]) -> str:
    usage, cost = document["usage"], document["total_cost_usd"]
    told = [document["model"], many(document["num_turns"], "turn")]
    told.append(f"{usage.get('input', 0):,} tokens in, {usage.get('output', 0):,} out")
    if cost is not None:
        told.append(f"${cost:.6f}".rstrip("0").rstrip("."))
    told.append(f"{document['duration_ms'] / 1_000:.1f} s")
    if document["is_error"]:
        told.append("stopped: " + document["subtype"].removeprefix("error_").replace("_", " "))
    told.append(f"`recollect -r {document['session']}` goes on")
    return " · ".join(told)

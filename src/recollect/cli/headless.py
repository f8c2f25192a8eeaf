"""`recollect -p`: the agent without a screen. stdout carries the answer, or JSON, and nothing else.

Everything is recorded as it happens; a run that is stopped goes on with `-c`. Without a rule that
allows it nothing is changed and nothing is run: there is nobody to ask.
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from recollect.agent.events import AgentEvent, LoopFound, RunFinished, WindowLearned
from recollect.agent.exchange import ReplyFinished, add_usage
from recollect.agent.fit_context import ContextReduced
from recollect.agent.tool_calls import ToolFinished, ToolStarted, ToolStopped
from recollect.cli.opening import short_session, use_store
from recollect.cli.playing import Played, Watcher, Wish, play
from recollect.cli.terminal import complain, fetching, mention, status, warn
from recollect.cli.text import cut, harmless, many, one_line
from recollect.codecs.wire_protocol import Delta
from recollect.entries import Text, ToolResult
from recollect.errors import (
    ApiKeyRefused,
    BadInput,
    BadSettings,
    NoApiKey,
    NotFound,
    RecollectError,
    UnknownModel,
)
from recollect.models.http_model import HttpModel
from recollect.models.model_protocol import Retrying
from recollect.models.open_model import open_model
from recollect.profiles import EMBEDDED_MODEL, compute_cost
from recollect.store.contract import SessionInfo
from recollect.store.sqlite import SqliteStore
from recollect.workspace.effective_settings import EffectiveSettings, resolve_settings

FAILED, NO_KEY, BAD_INPUT, BAD_SETTINGS, TURNS, BROKEN_TOOL, INTERRUPTED = (
    1,
    41,
    42,
    52,
    53,
    54,
    130,
)
WAITING = "waiting for a reply"
SHORT = 12  # digits of an id: enough, also while nothing can be looked up


class Outcome(msgspec.Struct, frozen=True):
    code: int
    document: dict[str, Any]


class _Seen:
    """What the person is shown while it works, and how the session is called."""

    def __init__(self, wish: Wish, file: Path | None) -> None:
        self.session: SessionInfo | None = None
        self._format, self._lasts, self._file = wish.format, wish.lasts, file
        self._came = 0  # characters of the reply that is coming

    def begun(self, session: SessionInfo) -> None:
        self.session = session
        if self._format == "stream-json":
            _print({"type": "init", "session_id": session.id})
        elif self._format == "text":
            status(WAITING)

    def event(self, event: AgentEvent) -> None:
        if self._format == "stream-json":
            _print_event(event)
        elif self._format == "text":
            if isinstance(event, Delta):
                self._came += len(event.text)
                status(f"a reply is coming: {self._came:,} characters")
            else:
                self._came = 0
                status("")
                _mention(event)
                if not isinstance(event, ReplyFinished | RunFinished):
                    status(WAITING)

    def goes_on(self, session: str = "") -> str:
        """The command that goes on in this session."""
        if self.session is None or not self._lasts:
            return ""
        from shlex import quote

        where = f" --store {quote(str(self._file))}" if self._file is not None else ""
        return f'`recollect -r {session or self.session.id[:SHORT]}{where} -p "…"` goes on'


def run(wish: Wish, file: Path | None) -> int:
    """The exit code."""
    from signal import SIGTERM, signal

    seen = _Seen(wish, file)
    before = signal(SIGTERM, _as_interrupt)
    try:
        found = resolve_settings(Path.cwd())
        for told in found.told:
            warn(told)
        model = open_model(wish.model, found.settings, progress=fetching())
        if model.chosen.wire_name == EMBEDDED_MODEL and wish.format == "text" and not wish.latest:
            from recollect.cli.asking import SMALL

            mention(SMALL)
        make = wish.session is None and not wish.latest
        watcher = Watcher(seen.begun, seen.event, warn)
        work = partial(_played, model=model, wish=wish, found=found, watcher=watcher)
        try:
            outcome = use_store(file, work, make=make)
        finally:
            status("")
    except KeyboardInterrupt:
        if wish.format != "text":
            _print(_result_without_end("interrupted", "stopped", seen))
        mention(" · ".join(filter(None, ("stopped", seen.goes_on()))))
        return INTERRUPTED
    except RecollectError as error:
        return _failed(error, wish, seen)
    finally:
        signal(SIGTERM, before)
    if wish.format == "text":
        sys.stdout.write(harmless(outcome.document["result"]).rstrip("\n") + "\n")
        goes_on = seen.goes_on(outcome.document["session"])
        mention(" · ".join(filter(None, (*_account(outcome.document), goes_on))))
    else:
        _print(outcome.document)
    return outcome.code


def _failed(error: RecollectError, wish: Wish, seen: _Seen) -> int:
    if wish.format == "text":
        complain(str(error))
        if seen.goes_on():
            mention(f"everything so far is kept · {seen.goes_on()}")
    else:
        _print(_result_without_end("error", _bare(str(error)), seen))
    return exit_code(error)


def _as_interrupt(*_: object) -> None:
    """Whoever ends this program wants what Ctrl-C does: commands that run are ended with it."""
    from signal import SIGINT, raise_signal

    raise_signal(SIGINT)


def _result_without_end(subtype: str, result: str, seen: _Seen) -> dict[str, Any]:
    told = {"type": "result", "subtype": subtype, "is_error": True, "result": result}
    return told if seen.session is None else {**told, "session_id": seen.session.id}


def exit_code(error: RecollectError) -> int:
    """The codes that other agents have for the same."""
    if isinstance(error, NoApiKey | ApiKeyRefused):
        return NO_KEY
    if isinstance(error, BadSettings):
        return BAD_SETTINGS
    if isinstance(error, BadInput | NotFound | UnknownModel):
        return BAD_INPUT
    return BROKEN_TOOL if isinstance(error, ToolStopped) else FAILED


async def _played(
    store: SqliteStore, *, model: HttpModel, wish: Wish, found: EffectiveSettings, watcher: Watcher
) -> Outcome:
    played = await play(store, model, wish, found, watcher)
    finished = played.finished
    document = _document(finished, played)
    document["session"] = await short_session(store, finished.talk.session)
    return Outcome({"answered": 0, "turns": TURNS, "loop": FAILED}[finished.why], document)


# --- what is shown -----------------------------------------------------------------------------


def _bare(text: str) -> str:
    """The beginning of a text without credentials: taken out before it is cut, because half of
    one is not known by its shape any more."""
    from recollect.redaction import redact

    return redact(text[:4_000])


def _mention(event: AgentEvent) -> None:
    """On stderr, what a person wants to see while it works."""
    if isinstance(event, ToolStarted):
        mention(f"→ {event.call.name} {cut(one_line(_bare(event.call.arguments)), 120)}")
    elif isinstance(event, ToolFinished) and event.result.is_error:
        mention(f"  {cut(one_line(_bare(_words(event.result))), 160)}")
    elif isinstance(event, Retrying):
        mention(f"asking again in {event.delay:.1f} s: {event.reason}")
    elif isinstance(event, ContextReduced):
        mention(f"made room: {event.before:,} → {event.after:,} tokens")
    elif isinstance(event, WindowLearned):
        mention(f"{event.model} takes {event.window:,} tokens, less than thought")
    elif isinstance(event, LoopFound):
        mention(f"it repeats itself: {cut(one_line(_bare(event.loop.what)), 120)}")


def _print_event(event: AgentEvent) -> None:
    if isinstance(event, Delta):
        _print({"type": "delta", "kind": event.kind, "text": event.text, "name": event.name})
    elif isinstance(event, ReplyFinished):
        _print({"type": "message", "message": msgspec.to_builtins(event.message)})
    elif isinstance(event, ToolStarted):
        _print({"type": "call", "call": msgspec.to_builtins(event.call)})
    elif isinstance(event, ToolFinished):
        _print({"type": "tool_result", "result": msgspec.to_builtins(event.result)})
    elif isinstance(event, Retrying):
        _print({"type": "retrying", **msgspec.structs.asdict(event)})
    elif isinstance(event, ContextReduced):
        _print({"type": "made_room", "before": event.before, "after": event.after})
    elif isinstance(event, WindowLearned):
        _print({"type": "learnt", **msgspec.structs.asdict(event)})
    elif isinstance(event, LoopFound):
        _print({"type": "loop", "what": event.loop.what, "stopped": event.stopped})


def _print(value: dict[str, Any]) -> None:
    import json

    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


def _words(result: ToolResult) -> str:
    return " ".join(part.text for part in result.content if isinstance(part, Text))


_SUBTYPES = {"answered": "success", "turns": "error_max_turns", "loop": "error_loop"}


def _document(finished: RunFinished, played: Played) -> dict[str, Any]:
    usage, model = add_usage(finished.usage, played.spent), played.model
    return {
        "type": "result",
        "subtype": _SUBTYPES[finished.why],
        "is_error": finished.why != "answered",
        "result": played.text,
        "session_id": finished.talk.session,
        "num_turns": finished.turns,
        "duration_ms": round(finished.seconds * 1_000),
        "total_cost_usd": compute_cost(usage, model.chosen.profile.price),
        "usage": msgspec.to_builtins(usage),
        "model": model.name,
    }


def _account(document: dict[str, Any]) -> list[str]:
    usage, cost = document["usage"], document["total_cost_usd"]
    told = [document["model"], many(document["num_turns"], "turn")]
    told.append(f"{usage.get('input', 0):,} tokens in, {usage.get('output', 0):,} out")
    if cost is not None:
        told.append(f"${cost:.6f}".rstrip("0").rstrip("."))
    told.append(f"{document['duration_ms'] / 1_000:.1f} s")
    if document["is_error"]:
        told.append("stopped: " + document["subtype"].removeprefix("error_").replace("_", " "))
    return told

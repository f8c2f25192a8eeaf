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
from recollect.cli.console import (
    download_progress,
    print_error,
    print_note,
    print_warning,
    show_status,
)
from recollect.cli.display_text import one_line, pluralize, sanitize, truncate
from recollect.cli.run import RunObserver, RunOptions, RunResult, run_prompt
from recollect.cli.store_access import shorten_session_id, use_store
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

FAILED, NO_KEY, BAD_INPUT, BAD_SETTINGS, TURN_LIMIT, BROKEN_TOOL, INTERRUPTED = (
    1,
    41,
    42,
    52,
    53,
    54,
    130,
)
WAITING_STATUS = "waiting for a reply"
ID_DIGITS = 12  # digits of an id: enough, also while nothing can be looked up


class HeadlessResult(msgspec.Struct, frozen=True):
    code: int
    document: dict[str, Any]


class Reporter:
    """What the person is shown while it works, and how the session is called."""

    def __init__(self, wish: RunOptions, file: Path | None) -> None:
        self.session: SessionInfo | None = None
        self._format, self._lasts, self._file = wish.format, wish.lasts, file
        self._came = 0  # characters of the reply that is coming

    def begun(self, session: SessionInfo) -> None:
        self.session = session
        if self._format == "stream-json":
            _print_json_line({"type": "init", "session_id": session.id})
        elif self._format == "text":
            show_status(WAITING_STATUS)

    def event(self, event: AgentEvent) -> None:
        if self._format == "stream-json":
            _print_event_line(event)
        elif self._format == "text":
            if isinstance(event, Delta):
                self._came += len(event.text)
                show_status(f"a reply is coming: {self._came:,} characters")
            else:
                self._came = 0
                show_status("")
                _print_event_note(event)
                if not isinstance(event, ReplyFinished | RunFinished):
                    show_status(WAITING_STATUS)

    def goes_on(self, session: str = "") -> str:
        """The command that goes on in this session."""
        if self.session is None or not self._lasts:
            return ""
        from shlex import quote

        where = f" --store {quote(str(self._file))}" if self._file is not None else ""
        return f'`recollect -r {session or self.session.id[:ID_DIGITS]}{where} -p "…"` goes on'


def run_headless(wish: RunOptions, file: Path | None) -> int:
    """The exit code."""
    from signal import SIGTERM, signal

    seen = Reporter(wish, file)
    before = signal(SIGTERM, _raise_interrupt)
    try:
        found = resolve_settings(Path.cwd())
        for told in found.warnings:
            print_warning(told)
        model = open_model(wish.model, found.settings, progress=download_progress())
        if model.chosen.wire_name == EMBEDDED_MODEL and wish.format == "text" and not wish.latest:
            from recollect.cli.ask_runner import EMBEDDED_NOTICE

            print_note(EMBEDDED_NOTICE)
        make = wish.session is None and not wish.latest
        watcher = RunObserver(seen.begun, seen.event, print_warning)
        work = partial(_run, model=model, wish=wish, found=found, watcher=watcher)
        try:
            outcome = use_store(file, work, make=make)
        finally:
            show_status("")
    except KeyboardInterrupt:
        if wish.format != "text":
            _print_json_line(_failure_document("interrupted", "stopped", seen))
        print_note(" · ".join(filter(None, ("stopped", seen.goes_on()))))
        return INTERRUPTED
    except RecollectError as error:
        return _report_failure(error, wish, seen)
    finally:
        signal(SIGTERM, before)
    if wish.format == "text":
        sys.stdout.write(sanitize(outcome.document["result"]).rstrip("\n") + "\n")
        goes_on = seen.goes_on(outcome.document["session"])
        print_note(" · ".join(filter(None, (*_usage_parts(outcome.document), goes_on))))
    else:
        _print_json_line(outcome.document)
    return outcome.code


def _report_failure(error: RecollectError, wish: RunOptions, seen: Reporter) -> int:
    if wish.format == "text":
        print_error(str(error))
        if seen.goes_on():
            print_note(f"everything so far is kept · {seen.goes_on()}")
    else:
        _print_json_line(_failure_document("error", _redacted(str(error)), seen))
    return exit_code_for(error)


def _raise_interrupt(*_: object) -> None:
    """Whoever ends this program wants what Ctrl-C does: commands that run are ended with it."""
    from signal import SIGINT, raise_signal

    raise_signal(SIGINT)


def _failure_document(subtype: str, result: str, seen: Reporter) -> dict[str, Any]:
    told = {"type": "result", "subtype": subtype, "is_error": True, "result": result}
    return told if seen.session is None else {**told, "session_id": seen.session.id}


def exit_code_for(error: RecollectError) -> int:
    """The codes that other agents have for the same."""
    if isinstance(error, NoApiKey | ApiKeyRefused):
        return NO_KEY
    if isinstance(error, BadSettings):
        return BAD_SETTINGS
    if isinstance(error, BadInput | NotFound | UnknownModel):
        return BAD_INPUT
    return BROKEN_TOOL if isinstance(error, ToolStopped) else FAILED


async def _run(
    store: SqliteStore,
    *,
    model: HttpModel,
    wish: RunOptions,
    found: EffectiveSettings,
    watcher: RunObserver,
) -> HeadlessResult:
    played = await run_prompt(store, model, wish, found, watcher)
    finished = played.finished
    document = _result_document(finished, played)
    document["session"] = await shorten_session_id(store, finished.talk.session)
    return HeadlessResult(
        {"answered": 0, "turns": TURN_LIMIT, "loop": FAILED}[finished.why], document
    )


# --- what is shown -----------------------------------------------------------------------------


def _redacted(text: str) -> str:
    """The beginning of a text without credentials: taken out before it is cut, because half of
    one is not known by its shape any more."""
    from recollect.redaction import redact

    return redact(text[:4_000])


def _print_event_note(event: AgentEvent) -> None:
    """On stderr, what a person wants to see while it works."""
    if isinstance(event, ToolStarted):
        print_note(
            f"→ {event.call.name} {truncate(one_line(_redacted(event.call.arguments)), 120)}"
        )
    elif isinstance(event, ToolFinished) and event.result.is_error:
        print_note(f"  {truncate(one_line(_redacted(_result_text(event.result))), 160)}")
    elif isinstance(event, Retrying):
        print_note(f"asking again in {event.delay:.1f} s: {event.reason}")
    elif isinstance(event, ContextReduced):
        print_note(f"made room: {event.before:,} → {event.after:,} tokens")
    elif isinstance(event, WindowLearned):
        print_note(f"{event.model} takes {event.window:,} tokens, less than thought")
    elif isinstance(event, LoopFound):
        print_note(f"it repeats itself: {truncate(one_line(_redacted(event.loop.what)), 120)}")


def _print_event_line(event: AgentEvent) -> None:
    if isinstance(event, Delta):
        _print_json_line(
            {"type": "delta", "kind": event.kind, "text": event.text, "name": event.name}
        )
    elif isinstance(event, ReplyFinished):
        _print_json_line({"type": "message", "message": msgspec.to_builtins(event.message)})
    elif isinstance(event, ToolStarted):
        _print_json_line({"type": "call", "call": msgspec.to_builtins(event.call)})
    elif isinstance(event, ToolFinished):
        _print_json_line({"type": "tool_result", "result": msgspec.to_builtins(event.result)})
    elif isinstance(event, Retrying):
        _print_json_line({"type": "retrying", **msgspec.structs.asdict(event)})
    elif isinstance(event, ContextReduced):
        _print_json_line({"type": "made_room", "before": event.before, "after": event.after})
    elif isinstance(event, WindowLearned):
        _print_json_line({"type": "learnt", **msgspec.structs.asdict(event)})
    elif isinstance(event, LoopFound):
        _print_json_line({"type": "loop", "what": event.loop.what, "stopped": event.stopped})


def _print_json_line(value: dict[str, Any]) -> None:
    import json

    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


def _result_text(result: ToolResult) -> str:
    return " ".join(part.text for part in result.content if isinstance(part, Text))


_SUBTYPES = {"answered": "success", "turns": "error_max_turns", "loop": "error_loop"}


def _result_document(finished: RunFinished, played: RunResult) -> dict[str, Any]:
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


def _usage_parts(document: dict[str, Any]) -> list[str]:
    usage, cost = document["usage"], document["total_cost_usd"]
    told = [document["model"], pluralize(document["num_turns"], "turn")]
    told.append(f"{usage.get('input', 0):,} tokens in, {usage.get('output', 0):,} out")
    if cost is not None:
        told.append(f"${cost:.6f}".rstrip("0").rstrip("."))
    told.append(f"{document['duration_ms'] / 1_000:.1f} s")
    if document["is_error"]:
        told.append("stopped: " + document["subtype"].removeprefix("error_").replace("_", " "))
    return told

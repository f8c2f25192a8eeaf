"""A run as JSON documents, for `recollect -p` and the servers: one per event, and the result.

docs/stream-json.md documents every type and field, and a test compares it with real runs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from msgspec import to_builtins
from msgspec.structs import asdict

from recollect.agent.corrections import CorrectionRequested, StopReason
from recollect.agent.exchange import ReplyFinished
from recollect.agent.fit_context import ContextReduced
from recollect.agent.run_events import LoopFound, WindowLearned
from recollect.agent.tool_calls import ToolFinished, ToolStarted
from recollect.codecs.wire_protocol import Delta
from recollect.entries import Text, ToolResult
from recollect.models.model_protocol import Retrying
from recollect.profiles import compute_cost
from recollect.runtime.permission_policy import PermissionDenial
from recollect.runtime.prompt_run import RunEvent, RunResult, RunStarted
from recollect.toolkinds import parse_arguments
from recollect.view.edit_reasons import why_built_by_code

_SUBTYPES: dict[StopReason, str] = {
    "answered": "success",
    "turns": "error_max_turns",
    "loop": "error_loop",
    "cut_off": "error_cut_off",
    "blocked": "error_blocked",
    "interrupted": "error_interrupted",
    "empty": "error_empty_reply",
    "bad_calls": "error_bad_calls",
    "client_calls": "client_calls",
}


def event_document(event: RunEvent) -> dict[str, Any] | None:
    """The line of an event; None for the end of a run, which is the result's."""
    if type(event) not in _EVENT_FIELDS:
        return None
    name, fields = _EVENT_FIELDS[type(event)]
    return {"type": name, **fields(event)}


def _init_fields(event: RunStarted) -> dict[str, Any]:
    return {
        "session_id": event.session.id,
        "model": event.model.name,
        "cwd": str(event.folder),
        "tools": list(event.tools),
        "permission_mode": event.mode,
    }


def _tool_use_fields(event: ToolStarted) -> dict[str, Any]:
    return {
        "tool_name": event.call.name,
        "tool_use_id": event.call.id,
        "tool_input": parse_arguments(event.call.arguments) or {},
    }


def _tool_result_fields(event: ToolFinished) -> dict[str, Any]:
    return {
        "tool_name": event.call.name,
        "tool_use_id": event.call.id,
        "is_error": event.result.is_error,
        "content": result_text(event.result),
    }


def _context_reduced_fields(event: ContextReduced) -> dict[str, Any]:
    made, cut = event.compaction, event.cut_prompt
    return {
        "before": event.before,
        "after": event.after,
        "compaction": made.status if made is not None else None,
        "because": event.because or None,
        "built_by_code": (why_built_by_code(made) if made is not None else "") or None,
        "undone": event.undone or None,
        "cut_prompt": to_builtins(cut) if cut is not None else None,
    }


# the lines of stream-json: their type and their fields
_EVENT_FIELDS: dict[type, tuple[str, Callable[[Any], dict[str, Any]]]] = {
    RunStarted: ("init", _init_fields),
    Delta: ("delta", Delta._asdict),
    ReplyFinished: ("message", lambda event: {"message": to_builtins(event.message)}),
    ToolStarted: ("tool_use", _tool_use_fields),
    ToolFinished: ("tool_result", _tool_result_fields),
    Retrying: ("retrying", asdict),
    ContextReduced: ("context_reduced", _context_reduced_fields),
    WindowLearned: ("window_learned", asdict),
    LoopFound: ("loop", lambda event: {"what": event.loop.what, "stopped": event.stopped}),
    CorrectionRequested: ("correction", asdict),
}

LINE_TYPES = tuple(name for name, _ in _EVENT_FIELDS.values())


def result_text(result: ToolResult) -> str:
    return " ".join(part.text for part in result.content if isinstance(part, Text))


def result_document(result: RunResult, reduced: Sequence[ContextReduced]) -> dict[str, Any]:
    finished, model, usage = result.finished, result.model, result.usage
    return {
        "type": "result",
        "subtype": _SUBTYPES[finished.reason],
        "is_error": finished.reason != "answered",
        "result": result.text,
        "problem": finished.problem or None,
        "session_id": finished.session.id,
        "num_turns": finished.turns,
        "duration_ms": round(finished.seconds * 1_000),
        "total_cost_usd": compute_cost(usage, model.chosen.profile.price),
        "usage": {field: getattr(usage, field) for field in _USAGE_FIELDS},
        "model": model.name,
        "permission_mode": result.mode,
        "permission_denials": [_denial_document(one) for one in result.denials],
        "context_reduced": [_context_reduced_fields(one) for one in reduced],
    }


_USAGE_FIELDS = ("input", "output", "cached", "written", "thoughts", "tool", "total")


def _denial_document(denial: PermissionDenial) -> dict[str, Any]:
    return {
        "tool_name": denial.tool,
        "tool_use_id": denial.call,
        "tool_input": parse_arguments(denial.arguments) or {},
        "reason": denial.reason,
        "rules": list(denial.rules),
        "mode": denial.mode or None,
    }


def failure_document(subtype: str, result: str, session: str) -> dict[str, Any]:
    document = {"type": "result", "subtype": subtype, "is_error": True, "result": result}
    return {**document, "session_id": session or None}

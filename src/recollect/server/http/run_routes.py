"""Prompts over HTTP: a run, its events, approvals and cancelling; and the models to choose from.

A run goes on when its reader leaves: the log has everything, and `Last-Event-ID` resumes the events
from the same server. Cancelling is a request of its own.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

from recollect.agent.fit_context import ContextReduced
from recollect.errors import BadInput
from recollect.models.readiness import is_ready
from recollect.models.resolve import default_model_name, known_models, look_up_model
from recollect.runtime.prompt_run import RunOptions, RunResult
from recollect.runtime.run_documents import event_document, failure_document, result_document
from recollect.server.http.api_call import ApiCall, ApiReply, NoBody, NoQuery
from recollect.server.http.api_values import (
    ApprovalDecision,
    ModelDocument,
    ModelList,
    PromptRequest,
    RunDocument,
    RunList,
)
from recollect.server.http.event_stream import EventStream, StreamEvent
from recollect.server.prompt_queue import (
    ApprovalDecided,
    ApprovalRequested,
    PromptRun,
    RunFailed,
    ServerEvent,
)
from recollect.toolkinds import parse_arguments

EVENT_STREAM = "text/event-stream"


async def create_prompt(
    call: ApiCall[NoQuery, PromptRequest],
) -> ApiReply[RunDocument] | EventStream:
    """Send a prompt: it runs after those before it in its session.

    The reply names the run; with `stream`, or `Accept: text/event-stream`, it is the stream of the
    run's events."""
    info, body = await call.writable(), call.body
    options = RunOptions(
        model=body.model, kind=body.kind, max_turns=body.max_turns, system=body.system
    )
    await call.hub.runtime.check_model(options)
    run = await call.hub.prompt(call.who, info, body.prompt, options, can_approve=body.approve)
    if body.stream or EVENT_STREAM in call.header("accept"):
        return call.stream(run_events(run, 0))
    return ApiReply(_run_document(run), 202, location=f"/api/runs/{run.id}")


async def list_runs(call: ApiCall[NoQuery, NoBody]) -> ApiReply[RunList]:
    """List the runs of a session on this server that have not ended, in their order."""
    info = await call.session()
    runs = call.hub.runs_of(info.id)
    return ApiReply(RunList(runs=tuple(map(_run_document, runs))))


async def get_run(call: ApiCall[NoQuery, NoBody]) -> ApiReply[RunDocument]:
    """Get the state of a run of this server."""
    return ApiReply(_run_document(call.hub.run(call.who, call.path("run"))))


def _run_document(run: PromptRun) -> RunDocument:
    running = "running" if run.task is not None else "accepted"
    return RunDocument(
        run=run.id,
        session=run.session,
        state="done" if run.done else running,  # type: ignore[arg-type]
        created=run.created,
    )


async def stream_run(call: ApiCall[NoQuery, NoBody]) -> EventStream:
    """Stream the events of a run, from the first or after `Last-Event-ID`, to its result."""
    run = call.hub.run(call.who, call.path("run"))
    given = call.header("last-event-id")
    if given and not (given.isascii() and given.isdecimal() and len(given) < 12):
        raise BadInput(f"{given[:60]!r} is no event of a run; their ids are numbers")
    start = int(given) + 1 if given else 0
    return call.stream(run_events(run, start))


async def cancel_run(call: ApiCall[NoQuery, NoBody]) -> ApiReply[RunDocument]:
    """Stop a run; what has come of its reply is kept, marked as interrupted."""
    run = call.hub.run(call.who, call.path("run"))
    run.cancel()
    return ApiReply(_run_document(run), 202)


async def answer_approval(call: ApiCall[NoQuery, ApprovalDecision]) -> ApiReply[RunDocument]:
    """Answer whether a tool call may run."""
    run = call.hub.run(call.who, call.path("run"))
    run.answer(call.path("approval"), allowed=call.body.allow, by=call.who.name)
    return ApiReply(_run_document(run))


# --- events --------------------------------------------------------------------------------------


async def run_events(run: PromptRun, start: int) -> AsyncGenerator[StreamEvent, None]:
    """The events from a position on; an event's id is its position."""
    reduced, position = list[ContextReduced](), -1
    async for event in run.events():
        position += 1
        if isinstance(event, ContextReduced):
            reduced.append(event)
        document = _document(run, event, reduced)
        if document is not None and position >= start:
            yield StreamEvent(document["type"], str(position), document)


def _document(
    run: PromptRun, event: ServerEvent, reduced: list[ContextReduced]
) -> dict[str, Any] | None:
    if isinstance(event, RunResult):
        return result_document(event, reduced)
    if isinstance(event, RunFailed):
        subtype = "interrupted" if event.cancelled else "error"
        return failure_document(subtype, event.message, run.session)
    if isinstance(event, ApprovalRequested):
        return _approval_document(event)
    if isinstance(event, ApprovalDecided):
        decided = {"approval": event.id, "allowed": event.allowed, "by": event.by}
        return {"type": "approval_decided", **decided}
    return event_document(event)


def _approval_document(event: ApprovalRequested) -> dict[str, Any]:
    call = event.request.call
    return {
        "type": "approval_requested",
        "approval": event.id,
        "tool_name": call.name,
        "tool_use_id": call.id,
        "tool_input": parse_arguments(call.arguments) or {},
        "reason": event.request.reason,
        "rules": list(event.request.rules),
        "normal_form": event.request.normal_form or None,
        "expires": event.expires,
    }


async def list_models(call: ApiCall[NoQuery, NoBody]) -> ApiReply[ModelList]:
    """List the models that a prompt can name, and which of them can be called now."""
    settings = call.hub.runtime.settings
    default = look_up_model(default_model_name(settings), settings).name
    found = tuple(
        ModelDocument(
            name=model.name,
            format=model.endpoint.wire,
            window=model.profile.window,
            output=model.profile.output,
            tools=model.profile.tools,
            media=model.profile.media,
            ready=is_ready(model),
            default=model.name == default,
        )
        for model in known_models(settings)
    )
    return ApiReply(ModelList(models=found))

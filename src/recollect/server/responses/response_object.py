"""The `response` object of the API, read from the log: status, output items, usage, and the echo of
what was asked. A stream's snapshots and a later `GET` come from here."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from typing import Any, NamedTuple

from recollect.entries import Usage
from recollect.server.responses.item_ids import CONVERSATION, RESPONSE
from recollect.server.responses.output_items import Item, reply_items, results_in
from recollect.server.responses.response_record import RecordedResponse
from recollect.tokens import add_usage

ENCRYPTED = "reasoning.encrypted_content"
_REASONS = {"length": "max_output_tokens", "safety": "content_filter"}
_INTERRUPTED = {"reason": "interrupted"}


class ResponseState(NamedTuple):
    """Where a response is in its life."""

    status: str
    incomplete: dict[str, str] | None = None
    error: dict[str, str] | None = None


IN_PROGRESS = ResponseState("in_progress")


def read_state(response: RecordedResponse) -> ResponseState:
    """How a response ended, from what the log has of it."""
    replies, notes = response.replies, response.notes
    failures = [note.text for note in notes if note.level == "error"]
    last = replies[-1][1] if replies else None
    if last is None or last.finish in ("interrupted", "", "error"):
        if failures:
            error = {"code": "server_error", "message": failures[-1]}
            return ResponseState("failed", error=error)
        return ResponseState("cancelled", incomplete=_INTERRUPTED)
    if last.finish in _REASONS:
        return ResponseState("incomplete", incomplete={"reason": _REASONS[last.finish]})
    warnings = [note.text for note in notes if note.level == "warning"]
    if warnings and not output_items(response):
        return ResponseState("failed", error={"code": "model_error", "message": warnings[-1]})
    return ResponseState("completed")


def output_items(response: RecordedResponse) -> list[Item]:
    results = results_in(response.output)
    signatures = ENCRYPTED in (response.asked.body.get("include") or ())
    return [
        shown.item
        for entry, reply in response.replies
        for shown in reply_items(entry.id, reply, results, signatures=signatures)
    ]


def describe_response(response: RecordedResponse, state: ResponseState | None = None) -> Item:
    """A response as the log has it; `state` where more is known than the log tells."""
    state = read_state(response) if state is None else state
    usage = reduce(add_usage, (reply.usage for _, reply in response.replies), Usage())
    models = [reply.model for _, reply in response.replies if reply.model]
    is_over = state.status != "in_progress"
    ended = response.entries[-1].time if response.entries and is_over else None
    return _describe(
        response.id,
        response.created,
        response.asked.body,
        state,
        output=output_items(response),
        usage=describe_usage(usage) if is_over and response.replies else None,
        model=models[-1] if models else "",
        completed=ended if state.status == "completed" else None,
        session=response.session,
    )


def describe_usage(usage: Usage) -> Item:
    return {
        "input_tokens": usage.input,
        "input_tokens_details": {"cached_tokens": usage.cached or 0},
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": usage.thoughts},
        "total_tokens": usage.total or usage.input + usage.output,
    }


def _describe(
    id_: str,
    created: int,
    asked: Mapping[str, Any],
    state: ResponseState,
    *,
    output: list[Item],
    usage: Item | None,
    model: str,
    completed: int | None,
    session: str,
) -> Item:
    conversation = {"id": f"{CONVERSATION}{session}"} if asked.get("conversation") else None
    return {
        "id": f"{RESPONSE}{id_}",
        "object": "response",
        "created_at": created // 1000,
        "completed_at": completed // 1000 if completed is not None else None,
        "status": state.status,
        "incomplete_details": state.incomplete,
        "error": state.error,
        "model": model or asked.get("model") or "recollect",
        "previous_response_id": asked.get("previous_response_id"),
        "conversation": conversation,
        "instructions": asked.get("instructions"),
        "output": output,
        "usage": usage,
        "store": asked.get("store", True),
        "background": False,
        **_echo(asked),
    }


def _echo(asked: Mapping[str, Any]) -> Item:
    text, reasoning = asked.get("text") or {}, asked.get("reasoning") or {}
    return {
        "tools": [_echo_tool(tool) for tool in asked.get("tools") or ()],
        "tool_choice": asked.get("tool_choice") or "auto",
        "parallel_tool_calls": asked.get("parallel_tool_calls") is not False,
        "text": {"format": {"type": "text"}, "verbosity": "medium"} | _without_none(text),
        "reasoning": {"effort": None, "summary": None} | reasoning,
        "temperature": _or(asked.get("temperature"), 1.0),
        "top_p": _or(asked.get("top_p"), 1.0),
        "presence_penalty": 0.0,
        "frequency_penalty": 0.0,
        "top_logprobs": 0,
        "max_output_tokens": asked.get("max_output_tokens"),
        "max_tool_calls": None,
        "truncation": asked.get("truncation") or "auto",
        "metadata": asked.get("metadata") or {},
        "service_tier": asked.get("service_tier") or "default",
        "user": asked.get("user"),
        "safety_identifier": asked.get("safety_identifier"),
        "prompt_cache_key": asked.get("prompt_cache_key"),
    }


def _echo_tool(tool: Mapping[str, Any]) -> Item:
    return {"description": None, "parameters": None, "strict": None} | dict(tool)


def _without_none(values: Mapping[str, Any]) -> Item:
    return {name: value for name, value in values.items() if value is not None}


def _or(value: Any, default: float) -> Any:
    return default if value is None else value

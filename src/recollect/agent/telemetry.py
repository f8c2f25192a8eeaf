"""OpenTelemetry spans of an agent's work, after the conventions for generative AI.

A hook makes a span for each prompt, and inside it one for each request to a model and each tool
call. Spans carry names and numbers, never messages. Needs the extra `telemetry`.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from recollect.agent.hook_events import (
    AfterAgent,
    AfterModel,
    AfterTool,
    BeforeAgent,
    HookEvent,
    SessionEnd,
)
from recollect.agent.hooks import PythonHook
from recollect.errors import BadSettings

try:
    from opentelemetry import trace
    from opentelemetry.trace import Span, Tracer
except ImportError:
    trace = None  # type: ignore[assignment]

SpanOperation: TypeAlias = Literal["invoke_agent", "chat", "execute_tool"]
AGENT_NAME = "recollect"
_EVENTS = ("BeforeAgent", "AfterModel", "AfterTool", "AfterAgent", "SessionEnd")
_MAX_VALUE = 200
# the attribute that names the operation's subject
_TARGET: dict[SpanOperation, str] = {
    "invoke_agent": "gen_ai.agent.name",
    "chat": "gen_ai.request.model",
    "execute_tool": "gen_ai.tool.name",
}


def telemetry_hook(tracer: Tracer | None = None) -> PythonHook:
    """Spans go where the program configured OpenTelemetry to send them."""
    if trace is None:
        why = "`agent.telemetry` needs OpenTelemetry: pip install 'recollect[telemetry]'"
        raise BadSettings("settings.toml", why)
    spans = _Spans(tracer or trace.get_tracer(AGENT_NAME))

    async def follow(event: HookEvent) -> None:
        spans.take(event)

    return PythonHook(call=follow, on=_EVENTS, name="telemetry")


class _Spans:
    def __init__(self, tracer: Tracer) -> None:
        self._tracer = tracer
        self._prompts: dict[str, Span] = {}  # the running prompt of each session

    def take(self, event: HookEvent) -> None:
        match event:
            case BeforeAgent():
                self._end_prompt(event)
                self._prompts[event.session] = self._start("invoke_agent", AGENT_NAME, event)
            case AfterModel():
                span = self._start("chat", event.model, event, event.duration)
                span.set_attribute("gen_ai.usage.input_tokens", event.input_tokens)
                span.set_attribute("gen_ai.usage.output_tokens", event.output_tokens)
                span.set_attribute("gen_ai.response.finish_reasons", event.finish[:_MAX_VALUE])
                _end(span, event)
            case AfterTool():
                span = self._start("execute_tool", event.tool, event, event.duration)
                span.set_attribute("gen_ai.tool.call.id", event.call[:_MAX_VALUE])
                if event.is_error:
                    span.set_attribute("error.type", "tool_error")
                    span.set_status(trace.StatusCode.ERROR)
                _end(span, event)
            case AfterAgent() | SessionEnd():
                self._end_prompt(event)
            case _:
                pass

    def _start(
        self, operation: SpanOperation, target: str, event: HookEvent, seconds: float = 0.0
    ) -> Span:
        target, parent = target[:_MAX_VALUE], self._prompts.get(event.session)
        return self._tracer.start_span(
            f"{operation} {target}".rstrip(),
            context=trace.set_span_in_context(parent) if parent is not None else None,
            kind=trace.SpanKind.CLIENT if operation == "chat" else trace.SpanKind.INTERNAL,
            attributes={
                "gen_ai.operation.name": operation,
                _TARGET[operation]: target,
                "gen_ai.conversation.id": event.session,
            },
            start_time=event.time * 1_000_000 - round(seconds * 1e9),
        )

    def _end_prompt(self, event: HookEvent) -> None:
        span = self._prompts.pop(event.session, None)
        if span is not None:
            _end(span, event)


def _end(span: Span, event: HookEvent) -> None:
    span.end(end_time=event.time * 1_000_000)

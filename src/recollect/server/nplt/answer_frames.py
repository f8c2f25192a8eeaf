"""The frames of one answer, made from the events of its run.

Pure. A client that knows only the seed's types gets `stream_start`, the text in pieces and an
empty CHAT_TEXT; errors come as one CHAT_TEXT after it. The text that was shown is the text that is
stored: what a retry voids is said, and where a stored reply differs from its pieces the stored one
follows. A client that asked for events gets that, results, notices and the end as fields.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from recollect.agent.corrections import CorrectionRequested
from recollect.agent.exchange import ReplyFinished, message_text
from recollect.agent.fit_context import ContextReduced
from recollect.agent.run_events import LoopFound, WindowLearned
from recollect.agent.tool_calls import ToolFinished, ToolStarted
from recollect.codecs.wire_protocol import Delta
from recollect.entries import Text, ToolResult
from recollect.models.model_protocol import Retrying
from recollect.redaction import redact
from recollect.runtime.prompt_run import RunResult, RunStarted
from recollect.server.nplt.frame_writer import encode_json
from recollect.server.nplt.frames import split_text
from recollect.server.nplt.message_types import HEARTBEAT_TEXT, MessageType
from recollect.server.nplt.server_texts import ServerTexts
from recollect.server.prompt_queue import (
    ApprovalDecided,
    ApprovalRequested,
    PromptRun,
    RunFailed,
    ServerEvent,
)
from recollect.text import clip, one_line

# characters in one frame, of which each may take six bytes of JSON
MAX_SHOWN = 4_000  # of a thought, a call's arguments or a result
MAX_APPROVAL = 8_000  # of the arguments of a call that waits for approval
MAX_RULES, MAX_RULE = 5, 200
BREAK = "\n\n"  # between two replies of one answer


class Outgoing(NamedTuple):
    """A message on its way to a client."""

    type: MessageType
    payload: bytes


class AnswerFrames:
    """The frames of one run for one client."""

    def __init__(
        self, run: PromptRun, texts: ServerTexts, *, events: bool, approvals: bool
    ) -> None:
        self._run, self._texts = run, texts
        self._events, self._approvals = events, approvals
        self._started = False
        self._shown: list[str] = []  # the pieces of the reply in progress
        self._break = False  # before the next piece

    def frames(self, event: ServerEvent) -> Iterator[Outgoing]:
        if isinstance(event, Delta):
            yield from self._delta(event)
        elif isinstance(event, ReplyFinished):
            yield from self._reconcile(message_text(event.message))
        elif isinstance(event, RunStarted):
            yield from self._start(event)
        elif isinstance(event, RunResult | RunFailed):
            yield from self._end(event)
        elif isinstance(event, Retrying):
            yield from self._retry(event)
        elif isinstance(event, ToolStarted | ToolFinished):
            yield self._tool(event)
        elif isinstance(event, ApprovalRequested | ApprovalDecided):
            yield from self._approval(event)
        elif (notice := _notice(event)) and self._events:
            yield thought("notice", notice)

    def _start(self, event: RunStarted) -> Iterator[Outgoing]:
        if self._shown:  # a model failed; the next one begins, and what came is stored
            self._shown, self._break = [], True
        more: dict[str, object] = {}
        if self._events:
            more = {"run": self._run.id, "model": event.model.name, "session_id": event.session.id}
        yield thought("thinking", self._texts.thinking, **more)

    def _delta(self, event: Delta) -> Iterator[Outgoing]:
        if event.kind == "text":
            yield from self._piece(event.text)
        elif event.kind == "thought" and event.text:
            yield thought("thinking", event.text[:MAX_SHOWN])

    def _piece(self, text: str) -> Iterator[Outgoing]:
        if not text:  # an empty piece would be the end
            return
        if not self._started:
            self._started = True
            yield thought("stream_start", "", **({"run": self._run.id} if self._events else {}))
        self._shown.append(text)
        shown, self._break = (BREAK + text if self._break else text), False
        for data in split_text(shown):
            # as one piece it would be taken for a heartbeat
            for part in (data[:5], data[5:]) if data == HEARTBEAT_TEXT else (data,):
                yield Outgoing(MessageType.CHAT_TEXT, part)

    def _reconcile(self, stored: str) -> Iterator[Outgoing]:
        """The reply is complete: what was shown becomes what is stored."""
        shown = "".join(self._shown)
        if stored.startswith(shown):
            yield from self._piece(stored[len(shown) :])
        elif stored.strip() != shown.strip():
            yield from self._void(self._texts.stored)
            yield from self._piece(stored)
        self._break, self._shown = self._break or bool(self._shown), []

    def _void(self, why: str) -> Iterator[Outgoing]:
        """What was shown of this reply does not count any more."""
        characters = sum(map(len, self._shown))
        if self._events:
            yield thought("void", why, characters=characters)
        else:
            yield from self._piece(f"{BREAK}{why}{BREAK}")
        self._shown = []

    def _retry(self, event: Retrying) -> Iterator[Outgoing]:
        if event.shown and self._shown:
            yield from self._void(self._texts.void)
        yield thought("thinking", redact(one_line(event.reason, 300)))

    def _tool(self, event: ToolStarted | ToolFinished) -> Outgoing:
        if isinstance(event, ToolStarted):
            name, shown = clip(event.call.name, MAX_RULE), clip(event.call.arguments, MAX_SHOWN)
            shown = redact(shown)
            more = {"name": name, "arguments": shown} if self._events else {}
            return thought("tool_call", f"{name} {shown}", **more)
        if not self._events:
            return thought("generating", self._texts.generating)
        result = event.result
        content = redact(clip(result_text(result), MAX_SHOWN))
        return thought(
            "tool_result", content, name=clip(result.name, MAX_RULE), is_error=result.is_error
        )

    def _approval(self, event: ApprovalRequested | ApprovalDecided) -> Iterator[Outgoing]:
        if not self._approvals:
            return
        if isinstance(event, ApprovalDecided):
            word = "allowed" if event.allowed else "denied"
            yield thought("approval_decided", word, approval=event.id, by=event.by)
            return
        call, rules = event.request.call, event.request.rules[:MAX_RULES]
        yield thought(
            "approval",
            clip(event.request.reason, MAX_RULE),
            approval=event.id,
            run=self._run.id,
            name=clip(call.name, MAX_RULE),
            arguments=clip(call.arguments, MAX_APPROVAL),
            rules=[clip(rule, MAX_RULE) for rule in rules],
            normal_form=clip(event.request.normal_form, MAX_RULE),
            expires=event.expires,
        )

    def _end(self, event: RunResult | RunFailed) -> Iterator[Outgoing]:
        if isinstance(event, RunResult) and not self._started:
            yield from self._piece(event.text)  # an answer that has no text: what it has instead
        if self._started:
            yield Outgoing(MessageType.CHAT_TEXT, b"")
        if self._events:
            yield self._end_event(event)
        elif problem := self._problem(event):
            yield Outgoing(MessageType.CHAT_TEXT, next(split_text(problem)))

    def _end_event(self, event: RunResult | RunFailed) -> Outgoing:
        more: dict[str, Any] = {"run": self._run.id, "session_id": self._run.session}
        if isinstance(event, RunFailed):
            reason = "cancelled" if event.cancelled else "failed"
            code = type(event.error).__name__ if event.error is not None else ""
            return thought("stream_end", self._problem(event), reason=reason, code=code, **more)
        usage = event.usage
        more["session_id"] = event.session.id
        return thought(
            "stream_end",
            self._problem(event),
            reason=event.finished.reason,
            model=event.model.name,
            input_tokens=usage.input,
            output_tokens=usage.output,
            **more,
        )

    def _problem(self, event: RunResult | RunFailed) -> str:
        """Why there is no answer, or not the whole one; empty if there is."""
        if isinstance(event, RunFailed) and event.cancelled:
            return self._texts.interrupted
        found = event.message if isinstance(event, RunFailed) else event.finished.problem
        if not found:
            return ""
        return self._texts.problem.format(problem=redact(one_line(found, MAX_SHOWN)))


def thought(kind: str, content: str, **more: object) -> Outgoing:
    """An AGENT_THOUGHT."""
    return Outgoing(
        MessageType.AGENT_THOUGHT, encode_json({"type": kind, "content": content, **more})
    )


def result_text(result: ToolResult) -> str:
    return "\n".join(part.text for part in result.content if isinstance(part, Text))


def _notice(event: ServerEvent) -> str:
    """What is worth saying of the other events."""
    if isinstance(event, ContextReduced):
        return f"the context was reduced: {event.before:,} → {event.after:,} tokens"
    if isinstance(event, WindowLearned):
        return f"the window of {event.model} is only {event.window:,} tokens"
    if isinstance(event, LoopFound):
        return f"the model repeats itself: {redact(clip(event.loop.what, 200))}"
    if isinstance(event, CorrectionRequested):
        problems = redact(one_line("; ".join(event.problems), 400))
        return f"asking again ({event.attempt} of {event.most}): {problems}"
    return ""

"""The events that hooks receive, and the decisions that they return.

`HookEvent` is a closed union; an event's name is that of its class. Every event has its session and
its time (milliseconds since 1970 in UTC); its other fields are its data. A `HookDecision` is the
answer of hooks. A command's output becomes one only if it is valid JSON of bounded size and depth.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, NoReturn, TypeAlias, get_args

import msgspec

from recollect.entries import (
    MAX_DEPTH,
    CompactionStatus,
    CompactionTrigger,
    Message,
    Text,
    ToolCall,
    Usage,
    json_text,
)
from recollect.loop_detection import Loop
from recollect.store.ids import now
from recollect.text import clip_middle

MAX_TEXT = 200_000  # characters of each text that a command receives, except arguments


class _CommonFields(msgspec.Struct, frozen=True, kw_only=True):
    session: str
    time: int = msgspec.field(default_factory=now)


class SessionStart(_CommonFields, frozen=True):
    source: Literal["new", "resumed", "forked"] = "new"


class BeforeAgent(_CommonFields, frozen=True):
    """Before a prompt is run; a hook may add to it or refuse it."""

    prompt: str = ""


class BeforeModel(_CommonFields, frozen=True):
    model: str = ""
    messages: int = 0
    tokens: int = 0


class AfterModel(_CommonFields, frozen=True):
    model: str = ""
    finish: str = ""
    text: str = ""
    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    duration: float = 0.0  # seconds


class BeforeTool(_CommonFields, frozen=True):
    """Before a tool runs; a hook may refuse it or change its arguments."""

    tool: str
    call: str = ""
    arguments: str = "{}"  # JSON text, as the model wrote it


class AfterTool(_CommonFields, frozen=True):
    tool: str
    call: str = ""
    arguments: str = "{}"
    output: str = ""
    is_error: bool = False
    duration: float = 0.0


class PreCompress(_CommonFields, frozen=True):
    """Before a compaction; a hook may name text that has to be kept."""

    trigger: CompactionTrigger = "auto"
    tokens: int = 0


class ChatCompressed(_CommonFields, frozen=True):
    status: CompactionStatus = "COMPRESSED"
    trigger: CompactionTrigger = "auto"
    tokens_before: int = 0
    tokens_after: int = 0


class ContextWindowWillOverflow(_CommonFields, frozen=True):
    tokens: int = 0  # of the request as it stands
    limit: int = 0  # of the model


class LoopDetected(_CommonFields, frozen=True):
    kind: Literal["calls", "text", "judged"] = "calls"
    what: str = ""
    times: int = 0


class AfterAgent(_CommonFields, frozen=True):
    text: str = ""
    turns: int = 0
    reason: str = ""  # why it ended: answered, turns or loop


class SessionEnd(_CommonFields, frozen=True):
    reason: str = ""


def after_model_event(session: str, reply: Message, seconds: float) -> AfterModel:
    usage = reply.usage or Usage()
    return AfterModel(
        session=session,
        model=reply.model,
        finish=reply.finish,
        text="".join(part.text for part in reply.parts if isinstance(part, Text)),
        calls=sum(isinstance(part, ToolCall) for part in reply.parts),
        input_tokens=usage.input,
        output_tokens=usage.output,
        duration=seconds,
    )


def loop_detected_event(session: str, loop: Loop) -> LoopDetected:
    kind: Literal["calls", "text", "judged"] = "calls"
    if loop.kind in ("text", "judged"):
        kind = loop.kind
    return LoopDetected(session=session, kind=kind, what=loop.what, times=loop.times)


HookEvent: TypeAlias = (
    SessionStart
    | BeforeAgent
    | BeforeModel
    | AfterModel
    | BeforeTool
    | AfterTool
    | PreCompress
    | ChatCompressed
    | ContextWindowWillOverflow
    | LoopDetected
    | AfterAgent
    | SessionEnd
)
HOOK_EVENTS: tuple[type[HookEvent], ...] = get_args(HookEvent)
EVENT_NAMES: tuple[str, ...] = tuple(kind.__name__ for kind in HOOK_EVENTS)


def event_name(event: HookEvent) -> str:
    return type(event).__name__


def event_data(event: HookEvent) -> dict[str, Any]:
    """An event's fields except its session and its time."""
    fields = msgspec.structs.asdict(event)
    return {name: value for name, value in fields.items() if name not in ("session", "time")}


class HookDecision(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of one hook, or of all together."""

    allowed: bool = True
    reason: str = ""  # of a refusal
    additional_context: str = ""
    arguments: str | None = None  # a JSON object as text that replaces the call's arguments
    keep: str = ""  # text that a compaction has to keep
    warnings: tuple[str, ...] = ()


def encode_command_input(event: HookEvent, cwd: Path, transcript: str) -> bytes:
    """A command's standard input: ASCII, so that any text is valid UTF-8."""
    data = {
        name: clip_middle(value, MAX_TEXT) if isinstance(value, str) else value
        for name, value in event_data(event).items()
    }
    time = datetime.fromtimestamp(event.time / 1_000, UTC)
    common = {
        "session_id": event.session,
        "transcript_path": transcript,
        "cwd": str(cwd),
        "hook_event_name": event_name(event),
        "timestamp": time.isoformat(timespec="milliseconds"),
    }
    if isinstance(event, BeforeTool | AfterTool):
        data["arguments"] = event.arguments
        # whole, and parsed as the tool parses them: the hook checks what will run
        with suppress(ValueError, RecursionError):
            parsed = json.loads(event.arguments or "{}", parse_constant=_reject_constant)
            return json.dumps({**common, "data": {**data, "arguments": parsed}}).encode()
    return json.dumps({**common, "data": data}).encode()


def parse_object(text: str, limit: int) -> dict[str, Any]:
    """Parse a JSON object of bounded length and depth, without duplicate names or NaN."""
    if len(text) > limit:
        raise ValueError(f"JSON of {len(text):,} characters; the limit is {limit:,}")
    value = json.loads(text, object_pairs_hook=_reject_duplicates, parse_constant=_reject_constant)
    if not isinstance(value, dict):
        raise ValueError("a JSON object was expected")
    level: list[Any] = [value]
    for _ in range(MAX_DEPTH):
        level = [
            below
            for item in level
            if isinstance(item, dict | list)
            for below in (item.values() if isinstance(item, dict) else item)
        ]
        if not level:
            return value
    raise ValueError(f"JSON nested deeper than {MAX_DEPTH} levels")


def _reject_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a JSON object has a name twice")
    return found


def _reject_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is not valid JSON")


def parse_decision(value: Mapping[str, Any]) -> HookDecision:
    """Parse the object that a command printed, or the mapping that a callable returned."""
    if value.get("decision") in ("block", "deny"):
        # first: no other field, however wrong, voids a refusal
        return HookDecision(allowed=False, reason=value.get("reason", ""))
    changed = value.get("arguments")
    if changed is not None and not isinstance(changed, dict):
        raise TypeError("arguments must be a JSON object")
    return HookDecision(
        additional_context=value.get("additionalContext", ""),
        arguments=None if changed is None else json_text(changed),
        keep=value.get("keep", ""),
    )

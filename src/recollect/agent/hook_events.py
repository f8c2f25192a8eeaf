"""What happens while an agent works, as values that hooks and watchers get.

`HookEvent` is a closed union, told apart by `event`, which is the name of the class. Every event names
its session and its time (milliseconds since 1970 in UTC); the rest of its fields is its data. JSON
in and out is exact: `decode(encode(event)) == event`, also for text that UTF-8 cannot carry.
Whatever is no event is a `BadInput`, however deep or long it is. A `HookDecision` is what hooks answer;
what a command prints is read as one only if it is sound JSON of bounded size and depth.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal, NoReturn, TypeAlias, get_args

import msgspec

from recollect.entries import MAX_DEPTH, CompactionStatus, Message, Text, ToolCall, Usage, json_text
from recollect.errors import BadInput
from recollect.loop_detection import Loop
from recollect.text import clip_middle

MAX_EVENT = (
    64_000_000  # bytes of JSON: a call's arguments may be long, and escapes make them longer
)
MAX_TEXT = 200_000  # characters of each text that a hook's command is told, but for arguments
_EPOCH, _LATEST = datetime(1970, 1, 1, tzinfo=UTC), 253_402_300_799_999  # the end of year 9999
CompressionTrigger: TypeAlias = Literal["manual", "auto", "overflow", "import"]


class _CommonFields(
    msgspec.Struct, frozen=True, kw_only=True, tag_field="event", forbid_unknown_fields=True
):
    session: str
    time: int


class SessionStart(_CommonFields, frozen=True, tag=True):
    source: Literal["new", "resumed", "forked"] = "new"


class BeforeAgent(_CommonFields, frozen=True, tag=True):
    """A person's prompt is about to be worked on; a hook may add to it or refuse it."""

    prompt: str = ""


class BeforeModel(_CommonFields, frozen=True, tag=True):
    model: str = ""
    messages: int = 0
    tokens: int = 0


class AfterModel(_CommonFields, frozen=True, tag=True):
    model: str = ""
    finish: str = ""
    text: str = ""
    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    duration: float = 0.0  # seconds


class BeforeTool(_CommonFields, frozen=True, tag=True):
    """A tool is about to run; a hook may refuse it or change its arguments."""

    tool: str
    call: str = ""
    arguments: str = "{}"  # JSON text, as the model wrote it


class AfterTool(_CommonFields, frozen=True, tag=True):
    tool: str
    call: str = ""
    arguments: str = "{}"
    output: str = ""
    is_error: bool = False
    duration: float = 0.0


class PreCompress(_CommonFields, frozen=True, tag=True):
    """The history is about to be compacted; a hook may name text that has to be kept."""

    trigger: CompressionTrigger = "auto"
    tokens: int = 0


class ChatCompressed(_CommonFields, frozen=True, tag=True):
    status: CompactionStatus = "COMPRESSED"
    trigger: CompressionTrigger = "auto"
    tokens_before: int = 0
    tokens_after: int = 0


class ContextWindowWillOverflow(_CommonFields, frozen=True, tag=True):
    tokens: int = 0  # of the request as it stands
    limit: int = 0  # what the model takes


class LoopDetected(_CommonFields, frozen=True, tag=True):
    kind: Literal["calls", "text", "judged"] = "calls"
    what: str = ""
    times: int = 0


class AfterAgent(_CommonFields, frozen=True, tag=True):
    text: str = ""
    turns: int = 0
    reason: str = ""  # why it ended: done, cancelled, turns, error …


class SessionEnd(_CommonFields, frozen=True, tag=True):
    reason: str = ""


def after_model_event(session: str, time: int, reply: Message, seconds: float) -> AfterModel:
    usage = reply.usage or Usage()
    return AfterModel(
        session=session,
        time=time,
        model=reply.model,
        finish=reply.finish,
        text="".join(part.text for part in reply.parts if isinstance(part, Text)),
        calls=sum(isinstance(part, ToolCall) for part in reply.parts),
        input_tokens=usage.input,
        output_tokens=usage.output,
        duration=seconds,
    )


def loop_detected_event(session: str, time: int, loop: Loop) -> LoopDetected:
    kind: Literal["calls", "text", "judged"] = "calls"
    if loop.kind in ("text", "judged"):
        kind = loop.kind
    return LoopDetected(session=session, time=time, kind=kind, what=loop.what, times=loop.times)


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
    """Everything of an event but its session and its time."""
    fields = msgspec.structs.asdict(event)
    return {name: value for name, value in fields.items() if name not in ("session", "time")}


def encode(event: HookEvent) -> bytes:
    try:
        return msgspec.json.encode(event)
    except UnicodeEncodeError:  # lone surrogates: as bytes that `decode` reads back
        return json_text(msgspec.to_builtins(event)).encode("utf-8", "surrogatepass")


def decode(data: bytes) -> HookEvent:
    if len(data) > MAX_EVENT:
        raise BadInput(f"an event of {len(data):,} bytes is refused; the limit is {MAX_EVENT:,}")
    try:
        return msgspec.json.decode(data, type=HookEvent)  # type: ignore[no-any-return]
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        pass
    try:
        value = json.loads(data.decode("utf-8", "surrogatepass"))
        return msgspec.convert(value, HookEvent)  # type: ignore[no-any-return]
    except (ValueError, RecursionError) as error:  # msgspec's errors are ValueErrors
        raise BadInput(f"this is no event: {str(error)[:200]}") from error


# --- hooks: what they are told, what they answer -----------------------------------------------


class HookDecision(msgspec.Struct, frozen=True, kw_only=True):
    """What hooks said, all together; a Python hook may return one of its own."""

    allowed: bool = True
    reason: str = ""  # why not
    additional_context: str = ""
    arguments: str | None = None  # a JSON object as text: what a tool shall be called with instead
    keep: str = ""  # what a compaction must not lose
    warnings: tuple[str, ...] = ()


def encode_command_input(event: HookEvent, cwd: Path, transcript: str) -> bytes:
    """What a command gets on its standard input. ASCII, so that any text is valid UTF-8."""
    data = {
        name: clip_middle(value, MAX_TEXT) if isinstance(value, str) else value
        for name, value in event_data(event).items()
    }
    around = {
        "session_id": event.session,
        "transcript_path": transcript,
        "cwd": str(cwd),
        "hook_event_name": event_name(event),
        "timestamp": _timestamp(event.time),
    }
    if not isinstance(event, BeforeTool | AfterTool):
        return json.dumps({**around, "data": data}).encode()
    try:
        # whole, and read as the tool reads them: what is checked is what runs
        data["arguments"] = json.loads(event.arguments or "{}", parse_constant=_reject_constant)
        return json.dumps({**around, "data": data}).encode()
    except (ValueError, RecursionError):
        data["arguments"] = event.arguments
        return json.dumps({**around, "data": data}).encode()


def _timestamp(time: int) -> str:
    bounded = timedelta(milliseconds=min(max(time, 0), _LATEST))
    return (_EPOCH + bounded).isoformat(timespec="milliseconds")


def parse_object(text: str, most: int) -> dict[str, Any]:
    """A JSON object from outside: not too long, not too deep, no name twice, no NaN."""
    if len(text) > most:
        raise ValueError(f"JSON of {len(text):,} characters; the limit is {most:,}")
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
        raise ValueError("a name stands twice in a JSON object")
    return found


def _reject_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is no JSON")


def parse_decision(value: Mapping[str, Any]) -> HookDecision:
    """What a hook printed, or a callable gave as a mapping."""
    if value.get("decision") in ("block", "deny"):
        # first: nothing else that stands there, however wrong, makes a refusal void
        return HookDecision(allowed=False, reason=value.get("reason", ""))
    changed = value.get("arguments")
    if changed is not None and not isinstance(changed, dict):
        raise TypeError("arguments must be a JSON object")
    return HookDecision(
        additional_context=value.get("additionalContext", ""),
        arguments=None if changed is None else json_text(changed),
        keep=value.get("keep", ""),
    )

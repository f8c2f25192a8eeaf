"""The events that hooks receive, and the decision that they return.

Each subclass of `HookEvent` is an event, under the name of the class; its fields are its data. This
is the only list of events: settings check the event of a hook against `EVENT_NAMES`.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from recollect.entries import CompactionStatus, CompactionTrigger


class HookEvent(msgspec.Struct, frozen=True, kw_only=True):
    session: str
    time: int = 0  # milliseconds since 1970 in UTC; `Hooks.fire` sets it


class SessionStart(HookEvent, frozen=True):
    source: Literal["new", "resumed", "forked"] = "new"


class BeforeAgent(HookEvent, frozen=True):
    """Before a prompt is run; a hook may add to it or refuse it."""

    prompt: str = ""


class BeforeModel(HookEvent, frozen=True):
    model: str = ""
    messages: int = 0
    tokens: int = 0


class AfterModel(HookEvent, frozen=True):
    model: str = ""
    finish: str = ""
    text: str = ""
    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    duration: float = 0.0  # seconds


class BeforeTool(HookEvent, frozen=True):
    """Before a tool runs; a hook may refuse it or change its arguments."""

    tool: str
    call: str = ""
    arguments: str = "{}"  # JSON text, as the model wrote it


class AfterTool(HookEvent, frozen=True):
    tool: str
    call: str = ""
    arguments: str = "{}"
    output: str = ""
    is_error: bool = False
    duration: float = 0.0


class PreCompress(HookEvent, frozen=True):
    """Before a compaction; a hook may name text that has to be kept."""

    trigger: CompactionTrigger = "auto"
    tokens: int = 0


class ChatCompressed(HookEvent, frozen=True):
    status: CompactionStatus = "COMPRESSED"
    trigger: CompactionTrigger = "auto"
    tokens_before: int = 0
    tokens_after: int = 0


class ContextWindowWillOverflow(HookEvent, frozen=True):
    tokens: int = 0  # of the request as it stands
    limit: int = 0  # of the model


class LoopDetected(HookEvent, frozen=True):
    kind: Literal["calls", "text", "judged"] = "calls"
    what: str = ""
    times: int = 0


class AfterAgent(HookEvent, frozen=True):
    text: str = ""
    turns: int = 0
    reason: str = ""  # why it ended: answered, turns, loop, cut_off, blocked, empty …


class SessionEnd(HookEvent, frozen=True):
    reason: str = ""


# A refusal at any other event comes too late.
REFUSABLE = (SessionStart, BeforeAgent, BeforeModel, BeforeTool)
EVENT_NAMES = tuple(event.__name__ for event in HookEvent.__subclasses__())


class HookDecision(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of one hook, or of all together."""

    allowed: bool = True
    reason: str = ""  # of a refusal or a question
    ask: bool = False  # the user has to agree to the tool call; where nobody can be asked: no
    stop: bool = False  # with a refusal: the run ends
    additional_context: str = ""
    arguments: str | None = None  # a JSON object as text that replaces the call's arguments
    keep: str = ""  # text that a compaction has to keep
    warnings: tuple[str, ...] = ()

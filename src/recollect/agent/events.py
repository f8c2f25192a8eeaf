"""What an agent tells while it works, in the order in which it happens."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from recollect.agent.exchange import ReplyFinished, Session
from recollect.agent.fit_context import ContextReduced
from recollect.agent.tool_calls import ToolFinished, ToolStarted
from recollect.codecs.wire_protocol import Delta
from recollect.entries import Usage
from recollect.loop_detection import Loop
from recollect.models.model_protocol import Retrying

StopReason: TypeAlias = Literal["answered", "turns", "loop"]


class WindowLearned(msgspec.Struct, frozen=True):
    """The model's window is smaller than we thought."""

    model: str
    window: int


class LoopFound(msgspec.Struct, frozen=True):
    """The model repeats itself; at the second time it is stopped."""

    loop: Loop
    stopped: bool


class RunFinished(msgspec.Struct, frozen=True):
    """The last event."""

    why: StopReason
    talk: Session
    turns: int
    usage: Usage
    seconds: float


AgentEvent: TypeAlias = (
    Delta
    | Retrying
    | ReplyFinished
    | ToolStarted
    | ToolFinished
    | ContextReduced
    | WindowLearned
    | LoopFound
    | RunFinished
)

"""The events of an agent's run, in the order in which they happen; `RunFinished` is the last."""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from recollect.agent.corrections import CorrectionRequested, StopReason
from recollect.agent.exchange import ReplyFinished, ReplyStarted
from recollect.agent.fit_context import ContextReduced
from recollect.agent.tool_calls import ToolFinished, ToolStarted
from recollect.codecs.wire_protocol import Delta
from recollect.entries import Usage
from recollect.loop_detection import Loop
from recollect.models.model_protocol import Retrying
from recollect.session import Session


class WindowLearned(msgspec.Struct, frozen=True):
    """The provider said that the model's window is smaller than we assumed."""

    model: str
    window: int


class LoopFound(msgspec.Struct, frozen=True):
    """The model repeats itself: it is warned the first time and stopped the second."""

    loop: Loop
    stopped: bool


class RunFinished(msgspec.Struct, frozen=True):
    """The result of a run."""

    reason: StopReason
    text: str  # of the last reply
    session: Session
    turns: int
    usage: Usage
    seconds: float
    problem: str = ""  # why the run ended with something else than an answer


AgentEvent: TypeAlias = (
    Delta
    | Retrying
    | ReplyStarted
    | ReplyFinished
    | ToolStarted
    | ToolFinished
    | ContextReduced
    | WindowLearned
    | LoopFound
    | CorrectionRequested
    | RunFinished
)

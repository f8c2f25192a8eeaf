"""What happens in a run: the events of `Agent.stream` and of a coding agent's `stream`."""

from __future__ import annotations

from recollect.agent.corrections import CorrectionRequested, StopReason
from recollect.agent.exchange import ReplyFinished, ReplyStarted
from recollect.agent.fit_context import ContextReduced
from recollect.agent.run_events import (
    AgentEvent,
    LoopFound,
    RunFinished,
    WindowLearned,
)
from recollect.agent.tool_calls import ToolFinished, ToolStarted
from recollect.codecs.wire_protocol import Delta
from recollect.models.model_protocol import Retrying
from recollect.runtime.permission_policy import ApprovalRequest, PermissionDenial
from recollect.runtime.prompt_run import RunEvent, RunResult, RunStarted

__all__ = [
    "AgentEvent",
    "ApprovalRequest",
    "ContextReduced",
    "CorrectionRequested",
    "Delta",
    "LoopFound",
    "PermissionDenial",
    "ReplyFinished",
    "ReplyStarted",
    "Retrying",
    "RunEvent",
    "RunFinished",
    "RunResult",
    "RunStarted",
    "StopReason",
    "ToolFinished",
    "ToolStarted",
    "WindowLearned",
]

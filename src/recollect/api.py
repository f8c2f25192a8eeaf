"""Every public name, listed once: `recollect` hands them on and loads this module on first use.

More is in grouped modules: `recollect.entries` (all that a log holds), `recollect.events` (what
happens in a run), `recollect.hook_events` (what hooks receive), `recollect.errors`,
`recollect.engine` (the parts below `Session`) and `recollect.testing`.
"""

from __future__ import annotations

from recollect.agent.decorators import elision_rule, hook, permission
from recollect.agent.loop import Agent
from recollect.agent.run_events import RunFinished
from recollect.agent.tool_calls import ToolFinished, ToolStarted
from recollect.builders import assistant, system, tool_result, user
from recollect.codecs.wire_protocol import Delta
from recollect.entries import (
    Compaction,
    Elide,
    Entry,
    InlineData,
    Message,
    Pin,
    Restore,
    Text,
    ToolCall,
    ToolResult,
    Usage,
)
from recollect.errors import RecollectError
from recollect.explanation import Explanation
from recollect.models.open_model import open_model
from recollect.runtime.library_agent import CodingAgent, coding_agent
from recollect.runtime.permission_policy import ApprovalRequest
from recollect.session import Session
from recollect.session_store import SessionStore, open  # noqa: A004 - `recollect.open`
from recollect.store.contract import SearchHit, SessionInfo
from recollect.tools.tool import Tool, ToolContext, ToolFailed, ToolOutput, tool
from recollect.view.view import View

__all__ = [
    "Agent",
    "ApprovalRequest",
    "CodingAgent",
    "Compaction",
    "Delta",
    "Elide",
    "Entry",
    "Explanation",
    "InlineData",
    "Message",
    "Pin",
    "RecollectError",
    "Restore",
    "RunFinished",
    "SearchHit",
    "Session",
    "SessionInfo",
    "SessionStore",
    "Text",
    "Tool",
    "ToolCall",
    "ToolContext",
    "ToolFailed",
    "ToolFinished",
    "ToolOutput",
    "ToolResult",
    "ToolStarted",
    "Usage",
    "View",
    "assistant",
    "coding_agent",
    "elision_rule",
    "hook",
    "open",
    "open_model",
    "permission",
    "system",
    "tool",
    "tool_result",
    "user",
]

"""Every public name, listed once: `recollect` hands them on and loads this module on first use."""

from __future__ import annotations

from recollect.agent.hooks import Hooks
from recollect.agent.loop import Agent
from recollect.codecs.repair import repair
from recollect.codecs.wire_protocol import (
    Delta,
    RequestOptions,
)
from recollect.compaction.budget import Budget
from recollect.compaction.proposal import propose_compaction
from recollect.compaction.view_reduction import fit_view
from recollect.entries import (
    Entry,
    FileRef,
    InlineData,
    Message,
    Note,
    Text,
    Thought,
    Title,
    ToolCall,
    ToolResult,
    Usage,
)
from recollect.errors import (
    HeadMoved,
    RecollectError,
)
from recollect.models.open_model import open_model
from recollect.session import Session
from recollect.session_compaction import compact
from recollect.store.contract import (
    Project,
    SearchHit,
    SearchQuery,
    SessionInfo,
    Store,
)
from recollect.store.sqlite import open_store
from recollect.tokens import counter_for
from recollect.tools.tool import (
    Tool,
    ToolFailed,
    tool,
)
from recollect.view.elision_rules import (
    ElisionRules,
    plan_elisions,
)
from recollect.view.view import View
from recollect.view_loader import load_view

__all__ = [
    "Agent",
    "Budget",
    "Delta",
    "ElisionRules",
    "Entry",
    "FileRef",
    "HeadMoved",
    "Hooks",
    "InlineData",
    "Message",
    "Note",
    "Project",
    "RecollectError",
    "RequestOptions",
    "SearchHit",
    "SearchQuery",
    "Session",
    "SessionInfo",
    "Store",
    "Text",
    "Thought",
    "Title",
    "Tool",
    "ToolCall",
    "ToolFailed",
    "ToolResult",
    "Usage",
    "View",
    "compact",
    "counter_for",
    "fit_view",
    "load_view",
    "open_model",
    "open_store",
    "plan_elisions",
    "propose_compaction",
    "repair",
    "tool",
]

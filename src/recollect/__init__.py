"""The history and context engine that LLM agents stand on.

A session is an append-only log of immutable entries; everything anyone sees of it is a fold over
that log. Importing this package does nothing but define names, and loads each when it is used.
"""

from __future__ import annotations

__version__ = "0.1.0"
TYPE_CHECKING = False  # type checkers know the name; importing `typing` would double the start-up

if TYPE_CHECKING:
    from recollect.agent.asking import Conversation as Conversation
    from recollect.agent.compacting import compact as compact
    from recollect.agent.hooks import Hooks as Hooks
    from recollect.agent.loop import Agent as Agent
    from recollect.codecs.repair import repair as repair
    from recollect.codecs.wire import Delta as Delta
    from recollect.codecs.wire import Prompt as Prompt
    from recollect.compaction.budget import Budget as Budget
    from recollect.compaction.fitting import fit as fit
    from recollect.compaction.proposing import propose as propose
    from recollect.entries import Entry as Entry
    from recollect.entries import FileRef as FileRef
    from recollect.entries import InlineData as InlineData
    from recollect.entries import Message as Message
    from recollect.entries import Note as Note
    from recollect.entries import Text as Text
    from recollect.entries import Thought as Thought
    from recollect.entries import Title as Title
    from recollect.entries import ToolCall as ToolCall
    from recollect.entries import ToolResult as ToolResult
    from recollect.entries import Usage as Usage
    from recollect.errors import HeadMoved as HeadMoved
    from recollect.errors import RecollectError as RecollectError
    from recollect.models.opening import open_model as open_model
    from recollect.resuming import resume as resume
    from recollect.store.contract import Hit as Hit
    from recollect.store.contract import Project as Project
    from recollect.store.contract import Query as Query
    from recollect.store.contract import Session as Session
    from recollect.store.contract import Store as Store
    from recollect.store.sqlite import open_store as open_store
    from recollect.tokens import counter_for as counter_for
    from recollect.tools.contract import Tool as Tool
    from recollect.tools.contract import ToolFailed as ToolFailed
    from recollect.tools.contract import tool as tool
    from recollect.view.rules import Rules as Rules
    from recollect.view.rules import plan as plan
    from recollect.view.view import View as View

_HOMES = {
    "recollect.entries": (
        "Entry",
        "FileRef",
        "InlineData",
        "Message",
        "Note",
        "Text",
        "Thought",
        "Title",
        "ToolCall",
        "ToolResult",
        "Usage",
    ),
    "recollect.errors": ("HeadMoved", "RecollectError"),
    "recollect.store.contract": ("Hit", "Project", "Query", "Session", "Store"),
    "recollect.store.sqlite": ("open_store",),
    "recollect.agent.asking": ("Conversation",),
    "recollect.agent.compacting": ("compact",),
    "recollect.agent.hooks": ("Hooks",),
    "recollect.agent.loop": ("Agent",),
    "recollect.codecs.repair": ("repair",),
    "recollect.codecs.wire": ("Delta", "Prompt"),
    "recollect.compaction.fitting": ("fit",),
    "recollect.compaction.budget": ("Budget",),
    "recollect.compaction.proposing": ("propose",),
    "recollect.models.opening": ("open_model",),
    "recollect.resuming": ("resume",),
    "recollect.tokens": ("counter_for",),
    "recollect.tools.contract": ("Tool", "ToolFailed", "tool"),
    "recollect.view.rules": ("Rules", "plan"),
    "recollect.view.view": ("View",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}
__all__ = [*sorted(_HOME_OF), "__version__"]  # noqa: PLE0604 - every name is a string


def __getattr__(name: str) -> object:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'recollect' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOME_OF[name]), name)


def __dir__() -> list[str]:
    return list(__all__)

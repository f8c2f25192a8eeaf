"""The history and context engine that LLM agents stand on.

A session is an append-only log of immutable entries; everything anyone sees of it is a fold over
that log.

Sessions
    open             Open a store: a file, an address, or the user's own.
    SessionStore     Creates, finds, lists and searches sessions.
    Session          Append to a session, see what a model sees of it, and change that.
    SessionInfo      Title, project, times and size of a session.
    SearchHit        An entry that a search found.
    Explanation      What the model sees, and what is left out and why; prints as a table.

Agent
    Agent            A model, the tools it may call, and its limits.
    coding_agent     The whole agent of the command line, for a folder.
    CodingAgent      What `coding_agent` returns.
    open_model       Open a model by its name.
    hook             Run a function when the agent does something.
    permission       Decide with a function whether a tool may run.
    elision_rule     Decide with a function what is left out of the context.

Tools
    tool             Make a tool of a function.
    Tool             Something the model may call.
    ToolContext      Where a call happens: what a tool may see and touch.
    ToolOutput       What a tool returns, part by part.
    ToolFailed       Raise it in a tool: the model reads the fact and the remedy.

Messages
    user             A message of the user.
    assistant        A reply of the model.
    system           Instructions for the model.
    tool_result      The result of a tool call.

Entries
    Entry            One line of the log: an id, its parent, a time and a body.
    Message          A message: who said it, and its parts.
    Text             A text in a message.
    InlineData       An image or another file in a message.
    ToolCall         A call that the model wrote.
    ToolResult       What a tool answered.
    Usage            Tokens that a provider counted.
    Compaction       The edit that replaces older messages with a snapshot.
    Elide            The edit that leaves something out.
    Pin              The edit that keeps messages in sight.
    Restore          The edit that undoes other edits.

Events
    Delta            A piece of a reply.
    ToolStarted      A tool call begins.
    ToolFinished     A tool call has its result.
    RunFinished      The result of a run.
    ApprovalRequest  A call that needs the user's approval.

Views
    View             What the model sees of a session, and what was left out.

Errors
    RecollectError   Every error that recollect raises on purpose.

More is in modules: `recollect.entries`, `recollect.events`, `recollect.hook_events`,
`recollect.errors`, `recollect.engine` and `recollect.testing`.
"""

from __future__ import annotations

__version__ = "0.1.0"
TYPE_CHECKING = False  # type checkers know the name; importing `typing` would double the start-up
# more public names, by subject
_MODULES = ("engine", "entries", "errors", "events", "hook_events", "testing")

if TYPE_CHECKING:
    # `as` tells type checkers that they are public
    from recollect import engine as engine
    from recollect import entries as entries
    from recollect import errors as errors
    from recollect import events as events
    from recollect import hook_events as hook_events
    from recollect import testing as testing
    from recollect.api import *  # noqa: F403 - its __all__ is the list
else:  # type checkers would take any misspelt name for an object

    def __getattr__(name: str) -> object:
        # late, because `recollect --version` passes through this module and must stay quick;
        # `from recollect import api` would call this function again
        import importlib

        if name in _MODULES:
            return importlib.import_module(f"recollect.{name}")
        api = importlib.import_module("recollect.api")
        if name == "__all__" or name in api.__all__:
            return getattr(api, name)
        raise AttributeError(f"module 'recollect' has no attribute {name!r}")

    def __dir__() -> list[str]:
        return [*__getattr__("__all__"), *_MODULES, "__version__"]

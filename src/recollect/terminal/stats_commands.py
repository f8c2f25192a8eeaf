"""`/stats`: what the session used. `/copy`: its last answer, for the door to copy."""

from __future__ import annotations

from recollect.display.last_reply import text_to_copy
from recollect.display.session_stats import count_session, stats_lines
from recollect.entries import Entry
from recollect.errors import BadInput
from recollect.terminal.session_runner import SessionRunner
from recollect.terminal.slash_commands import ANSWER_WIDTH


async def show_stats(runner: SessionRunner, arguments: str) -> str:
    if arguments:
        raise BadInput("/stats takes no argument")
    runtime = await runner.opened()
    if runner.session is None:
        return "this session has no prompt yet; there is nothing to count"
    view = runner.session.view()
    entries: tuple[Entry, ...] = ()
    if view.head is not None:
        entries = await runtime.store.path(runner.session.id, at=view.head)
    lines = list(stats_lines(count_session(entries, view), runtime.settings, ANSWER_WIDTH))
    return "\n".join(lines).rstrip()


async def copy_reply(runner: SessionRunner, arguments: str) -> str:
    """The text itself: the line-based program prints it, the screen puts it on the clipboard."""
    await runner.opened()
    entries = runner.session.view().entries if runner.session is not None else ()
    return text_to_copy(entries, arguments)

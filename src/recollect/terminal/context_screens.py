"""The screens of /context, /compact, /recall and /search, opened over the conversation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recollect.terminal.compaction_screen import CompactionScreen
from recollect.terminal.context_commands import (
    named_entry,
    nothing_found,
    opened_session,
    search,
    undo_compaction,
)
from recollect.terminal.context_screen import ContextScreen
from recollect.terminal.search_screen import SearchScreen
from recollect.terminal.terminal_events import NoticeGiven
from recollect.terminal.text_screen import TextScreen

if TYPE_CHECKING:
    from recollect.terminal.terminal_app import TerminalApp


async def show_context(app: TerminalApp, arguments: str) -> None:
    del arguments
    opened_session(app.runner)
    await app.push_screen_wait(ContextScreen(app.runner))


async def show_compaction(app: TerminalApp, arguments: str) -> None:
    opened_session(app.runner)
    if arguments == "undo":
        app.runner.notify(NoticeGiven(await undo_compaction(app.runner), "info"))
    else:
        await app.push_screen_wait(CompactionScreen(app.runner, arguments))


async def show_recalled(app: TerminalApp, arguments: str) -> None:
    entry = await named_entry(app.runner, arguments)
    text = await opened_session(app.runner).recall(entry)
    title = f"entry {entry.id[-8:]}"
    await app.push_screen_wait(TextScreen(title, text or "(this entry has no text)"))


async def show_found(app: TerminalApp, arguments: str) -> None:
    found = await search(app.runner, arguments)
    if found:
        await app.push_screen_wait(SearchScreen(app.runner, arguments, found))
    else:
        app.runner.notify(NoticeGiven(nothing_found(arguments), "info"))

"""Commands that open a screen of their own; the others answer in text."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeAlias

from textual.worker import Worker

from recollect.terminal import context_screens
from recollect.terminal.history_commands import fork_session, rename_session, rewind_by_words
from recollect.terminal.rewind_screen import RewindScreen
from recollect.terminal.rewind_steps import RewindDone
from recollect.terminal.session_list_commands import show_import, show_resume
from recollect.terminal.settings_commands import run_theme
from recollect.terminal.stats_commands import copy_reply
from recollect.terminal.terminal_events import NoticeGiven
from recollect.terminal.tree_screen import TreeScreen

if TYPE_CHECKING:
    from recollect.terminal.terminal_app import TerminalApp

LOAD_SECONDS = 0.5  # that a notice waits for the conversation to be shown anew

# What the command was given is the second argument; it returns when its screen is shown.
ScreenCommand: TypeAlias = Callable[["TerminalApp", str], Awaitable[None]]


async def _rewind(app: TerminalApp, arguments: str) -> None:
    if arguments:  # such as what a notice names
        done = await rewind_by_words(app.runner, arguments)
        app.chat.edit_prompt(done.prompt)
        await _show_notice(app, done.notice)
        return

    def close(done: RewindDone | None) -> None:
        if done is None:
            return
        app.chat.edit_prompt(done.prompt)
        app.run_worker(_show_notice(app, done.notice))

    # not `push_screen_wait`: a key opens this screen, too, and must not wait until it is closed
    await app.push_screen(RewindScreen(app.runner), close)


async def _tree(app: TerminalApp, arguments: str) -> None:
    del arguments

    def close(notice: str | None) -> None:
        app.run_worker(_show_notice(app, notice))

    await app.push_screen(TreeScreen(app.runner), close)


async def _fork(app: TerminalApp, arguments: str) -> None:
    await _show_notice(app, await fork_session(app.runner, arguments))


async def _rename(app: TerminalApp, arguments: str) -> None:
    await _show_notice(app, await rename_session(app.runner, arguments))


async def _show_notice(app: TerminalApp, text: str | None) -> None:
    """Below the conversation, which is being read anew."""
    end = time.monotonic() + LOAD_SECONDS
    while any(_is_loading(worker) for worker in app.workers) and time.monotonic() < end:
        await asyncio.sleep(0.01)
    if text:
        app.runner.notify(NoticeGiven(text, "info"))


def _is_loading(worker: Worker[object]) -> bool:
    return worker.group == "load" and not worker.is_finished


async def _copy(app: TerminalApp, arguments: str) -> None:
    text = await copy_reply(app.runner, arguments)
    app.copy_to_clipboard(text)
    app.chat.show_event(NoticeGiven(f"copied {len(text):,} characters", "info"))


async def _theme(app: TerminalApp, arguments: str) -> None:
    app.chat.show_event(NoticeGiven(await run_theme(app.runner, arguments), "info"))
    app.apply_theme()


SCREEN_COMMANDS: dict[str, ScreenCommand] = {
    "copy": _copy,
    "fork": _fork,
    "rename": _rename,
    "rewind": _rewind,
    "theme": _theme,
    "tree": _tree,
    "resume": show_resume,
    "import": show_import,
    "context": context_screens.show_context,
    "compact": context_screens.show_compaction,
    "recall": context_screens.show_recalled,
    "search": context_screens.show_found,
}

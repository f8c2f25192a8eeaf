"""Going back, step by step, for every door: read what there is, say what it would change, do it,
and say how to come back. Screens and text commands only ask.
"""

from __future__ import annotations

import asyncio

import msgspec

from recollect.display.rewind_points import describe_rewound
from recollect.display.short_ids import shorten_session_id
from recollect.errors import HeadMoved, RecollectError
from recollect.runtime.session_outline import SessionOutline, read_outline
from recollect.runtime.session_rewind import (
    RewindPreview,
    RewindScope,
    SentPrompt,
    preview_rewind,
    read_prompt,
    rewind_session,
    session_roots,
)
from recollect.session import Session
from recollect.session_log import uncancellable
from recollect.store.contract import SessionInfo
from recollect.terminal.session_runner import SessionRunner
from recollect.terminal.wanted_session import TerminalBusy
from recollect.tools.file_rewind import RewindResult

OPEN_SECONDS = 10.0  # for going to another session


class RewindChoice(msgspec.Struct, frozen=True):
    """What the user wants of a rewind that was shown."""

    scope: RewindScope
    beside: bool = False  # write the old content of files in conflict beside them


class RewindDone(msgspec.Struct, frozen=True):
    """What it came to, and the prompt to edit, if the conversation goes on before one."""

    notice: str
    prompt: SentPrompt = SentPrompt()


class SessionMoved(RecollectError):
    """Somebody else wrote to the session after it was read; nothing was changed."""

    def __init__(self) -> None:
        super().__init__(
            "the session was continued elsewhere meanwhile, so nothing was changed; look again"
        )


def current_session(runner: SessionRunner, what: str) -> Session:
    if runner.session is None:
        raise RecollectError(f"there is nothing to {what} yet; a session begins with a prompt")
    return runner.session


async def read_current(runner: SessionRunner, what: str) -> SessionOutline:
    return await read_outline(runner.runtime.store, current_session(runner, what).id)


async def look_ahead(
    runner: SessionRunner, outline: SessionOutline, to: str | None
) -> RewindPreview:
    """What going there would change."""
    roots = session_roots(outline.session, runner.runtime.folders.roots)
    return await preview_rewind(runner.runtime.store, outline, to, roots)


async def go_back(
    runner: SessionRunner, preview: RewindPreview, choice: RewindChoice, prompt: str = ""
) -> RewindDone:
    """Do what was shown; `prompt` is the entry of a prompt to edit."""
    store = runner.runtime.store
    roots = session_roots(preview.session, runner.runtime.folders.roots)

    async def work(session: Session) -> RewindResult:
        if session.id != preview.session.id:
            raise SessionMoved
        # a screen that is left, or a terminal that closes, must not stop it halfway
        return await uncancellable(
            rewind_session(
                store, preview.session, preview.to, choice.scope, roots, beside=choice.beside
            )
        )

    try:
        result = await runner.edit(work, "rewind")
    except HeadMoved:
        raise SessionMoved from None
    notice = "\n".join(describe_rewound(preview, result, choice.scope, roots[0]))
    if choice.scope == "files" or not prompt:
        return RewindDone(notice)
    return RewindDone(notice, await read_prompt(store, preview.session.id, prompt))


async def fork_here(
    runner: SessionRunner, session: SessionInfo, at: str | None, title: str = ""
) -> str:
    """Go on in a copy that shares the beginning up to this entry; says how to come back."""
    if runner.busy:
        raise TerminalBusy("fork")
    if at is None:
        raise RecollectError("there is nothing to share yet; /new begins a new session")
    store = runner.runtime.store
    forked = await store.fork(session.id, at=at, title=title)
    await go_to_session(runner, forked.id)
    left, new = [await shorten_session_id(store, each) for each in (session.id, forked.id)]
    return f"this is session {new}, a fork; `/resume {left}` returns to the original"


async def go_to_session(runner: SessionRunner, session: str) -> None:
    """Returns when it is open, so that what is said next is not cleared away with the old one."""
    runner.open(session)
    try:
        async with asyncio.timeout(OPEN_SECONDS):
            while runner.session is None or runner.session.id != session:
                await asyncio.sleep(0.01)
    except TimeoutError:
        raise RecollectError("the session is not open yet; /resume lists the sessions") from None

"""Two terminals on one session: what the second shows of it, and when the first has left.

The second stores nothing. It follows the other's appends, entry by entry, and asks every second
whether the other still holds the session's claim.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime

from recollect.display.display_text import one_line
from recollect.errors import RecollectError, UnknownEntry
from recollect.runtime.session_claims import SessionHolder, find_holder
from recollect.session import Session
from recollect.terminal.terminal_events import (
    EntriesAppended,
    NoticeGiven,
    SessionHeld,
    SessionReleased,
    SessionReloaded,
    TerminalEvent,
)

FOLLOW_SECONDS = 5.0  # how long one wait for another writer's append lasts
BUSY_SECONDS = 0.2  # between two looks while a prompt runs
CLAIM_SECONDS = 1.0  # between two looks at the claim


class HeldElsewhere(RecollectError):
    """Something was to be changed in a session that is open in another terminal."""

    def __init__(self, holder: SessionHolder) -> None:
        super().__init__(
            f"{describe_holder(holder)} and only watched here; nothing was sent or changed. "
            "/fork goes on in a copy, /new in a new session"
        )
        self.holder = holder


def describe_holder(holder: SessionHolder) -> str:
    """Where a session is open, in a sentence."""
    facts = [f"pid {holder.pid}" if holder.pid else "", one_line(holder.tty)]
    if holder.since:
        try:
            began = datetime.fromtimestamp(holder.since / 1_000).astimezone()
        except (OverflowError, OSError, ValueError):
            began = None
        today = began is not None and began.date() == datetime.now().astimezone().date()
        facts.append(f"since {began:{'%H:%M' if today else '%Y-%m-%d %H:%M'}}" if began else "")
    known = ", ".join(filter(None, facts))
    stopped = ", and stopped; `fg` there wakes it" if holder.is_stopped else ""
    return f"this session is open in another terminal{f' ({known})' if known else ''}{stopped}"


async def follow_appends(
    session: Session,
    lock: asyncio.Lock,
    is_idle: Callable[[], bool],
    notify: Callable[[TerminalEvent], None],
) -> None:
    """Tell what others append to a session while nothing runs here, until cancelled."""
    while True:
        try:
            event = await _next_append(session, lock, is_idle)
        except RecollectError as error:  # the store is away: reading on would say it for ever
            notify(NoticeGiven(f"what others append is not shown: {error}"))
            return
        if event is not None:
            notify(event)


async def _next_append(
    session: Session, lock: asyncio.Lock, is_idle: Callable[[], bool]
) -> TerminalEvent | None:
    head = session.view().head
    moved = await session.store.wait_for_append(session.id, head, FOLLOW_SECONDS)
    if not moved or not is_idle():
        await asyncio.sleep(0 if is_idle() else BUSY_SECONDS)  # it is the prompt's own work
        return None
    async with lock:
        if session.view().head != head:
            return None
        try:
            new = await session.store.path(session.id, since=head) if head else ()
        except UnknownEntry:  # a rewind left it
            new = ()
        await session.reload()
    if session.view().head == head:
        return None
    if new and new[-1].id == session.view().head:
        return EntriesAppended(session, new)
    return SessionReloaded(session, "it was continued elsewhere")


async def watch_claim(
    session: Session, holder: SessionHolder, notify: Callable[[TerminalEvent], None]
) -> None:
    """Tell when the holder of a session leaves it, is stopped or goes on, until cancelled."""
    shown: tuple[SessionHolder | None, bool] = (holder, holder.is_stopped)
    while True:
        await asyncio.sleep(CLAIM_SECONDS)
        found = find_holder(session.store.address, session.id)
        current = found, found is not None and found.is_stopped
        if current != shown:
            shown = current
            notify(SessionReleased(session) if found is None else SessionHeld(session, found))

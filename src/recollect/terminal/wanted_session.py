"""The session that a terminal goes to next, and why it cannot go there now."""

from __future__ import annotations

import msgspec

from recollect.errors import RecollectError
from recollect.runtime.prompt_run import SessionOrigin
from recollect.session import Session
from recollect.terminal.found_passage import FoundPassage


class WantedSession(msgspec.Struct, frozen=True):
    """The session to go to next; without an id a new one."""

    given: str | None = None
    fork: bool = False
    passage: FoundPassage | None = None  # what to show of it


class FoundSession(msgspec.Struct, frozen=True):
    """A session that was wanted, and is open."""

    wanted: WantedSession
    session: Session
    origin: SessionOrigin


class TerminalBusy(RecollectError):
    def __init__(self, what: str) -> None:
        super().__init__(f"cannot {what} while a prompt runs; press Esc to stop it first")

"""What a terminal program is told: the events of a run, and what happens around runs."""

from __future__ import annotations

import asyncio
from typing import Literal, TypeAlias

import msgspec

from recollect.entries import Entry, Message
from recollect.runtime.permission_policy import ApprovalAnswer, ApprovalRequest
from recollect.runtime.prompt_run import RunEvent, SessionOrigin
from recollect.runtime.session_claims import SessionHolder
from recollect.session import Session
from recollect.terminal.found_passage import FoundPassage
from recollect.workspace.sent_files import Attachable


class QueuedPrompt(msgspec.Struct, frozen=True):
    """A prompt that was typed; it runs after those before it."""

    text: str
    attachments: tuple[Attachable, ...] = ()
    number: int = 0  # which tells it from the others
    model: str = ""  # that answers this one alone
    is_command: bool = False  # a command of the user's own, not a prompt

    @property
    def typed(self) -> str:
        """What the user would type for it."""
        return f"!{self.text}" if self.is_command else self.text


class SessionOpened(msgspec.Struct, frozen=True):
    """Another session is shown; None: a new one, which is stored with its first prompt."""

    session: Session | None
    origin: SessionOrigin
    passage: FoundPassage | None = None  # what to show of it


class PassageWanted(msgspec.Struct, frozen=True):
    """The user goes to what a search found in the session that is shown."""

    passage: FoundPassage


class SessionReloaded(msgspec.Struct, frozen=True):
    """The session's path changed in a way that no event of a run tells: show it anew."""

    session: Session
    why: str


class EntriesAppended(msgspec.Struct, frozen=True):
    """Another program appended these entries to the session."""

    session: Session
    entries: tuple[Entry, ...]


class SessionHeld(msgspec.Struct, frozen=True):
    """The session that is shown is open in another terminal: it can be watched, not changed."""

    session: Session
    holder: SessionHolder


class SessionReleased(msgspec.Struct, frozen=True):
    """The other terminal has left the session that is watched."""

    session: Session


class PromptStarted(msgspec.Struct, frozen=True):
    """A prompt left the queue and is running."""

    prompt: QueuedPrompt


class PromptEnded(msgspec.Struct, frozen=True):
    """A prompt's run is over; an error ended it if there is one."""

    prompt: QueuedPrompt
    error: str = ""
    interrupted: bool = False
    stored: bool = True  # False: the session does not have it, it is for the user to send again


class QueueRestored(msgspec.Struct, frozen=True):
    """Prompts that waited when the session was left wait again; nothing has run."""

    prompts: tuple[QueuedPrompt, ...]


class QueueChanged(msgspec.Struct, frozen=True):
    """The prompts that wait; held back, if what ran before them did not end well."""

    waiting: tuple[QueuedPrompt, ...]
    held: bool = False
    kept: bool = True  # on disk, or the user knows that they are not


class ShellOutput(msgspec.Struct, frozen=True):
    """What a command of the user's own has just written."""

    text: str


class ShellFinished(msgspec.Struct, frozen=True):
    """The command and its output, as they are stored for the model."""

    message: Message
    entry: str


class ModeChanged(msgspec.Struct, frozen=True):
    """Another permission mode holds from the next call on."""

    mode: str


class ApprovalAsked(msgspec.Struct, frozen=True):
    """A tool call waits for the user; whoever shows it sets the answer."""

    request: ApprovalRequest
    answer: asyncio.Future[ApprovalAnswer]


class NoticeGiven(msgspec.Struct, frozen=True):
    """A line for the user, such as a warning of the runtime."""

    text: str
    level: Literal["info", "warning", "error"] = "warning"


class DownloadProgressed(msgspec.Struct, frozen=True):
    """How much of a model's weights is here."""

    done: int
    total: int


TerminalEvent: TypeAlias = (
    RunEvent
    | SessionOpened
    | PassageWanted
    | SessionReloaded
    | EntriesAppended
    | SessionHeld
    | SessionReleased
    | PromptStarted
    | PromptEnded
    | QueueChanged
    | QueueRestored
    | ShellOutput
    | ShellFinished
    | ModeChanged
    | ApprovalAsked
    | NoticeGiven
    | DownloadProgressed
)

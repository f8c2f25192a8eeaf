"""The prompts that wait in a terminal: in the order in which they run, held after a failure.

A prompt is in a file from when it is taken until the session's log has it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

import msgspec

from recollect.errors import RecollectError
from recollect.terminal.queue_file import QueueFile
from recollect.terminal.terminal_events import (
    NoticeGiven,
    PromptEnded,
    QueueChanged,
    QueuedPrompt,
    QueueRestored,
    TerminalEvent,
)
from recollect.workspace.sent_files import Attachable


class QueuedPrompts:
    """What a `SessionRunner` knows of its queue; every change goes to `notify`."""

    def __init__(self, notify: Callable[[TerminalEvent], None]) -> None:
        self.notify = notify
        self.held = False  # the prompts that wait are for the user to look at first
        self._waiting: deque[QueuedPrompt] = deque()
        self._starting: QueuedPrompt | None = None  # it runs, and the log does not have it yet
        self._file: QueueFile | None = None  # of the session that is open
        self._cannot_save = False  # and the user was told so
        self._ends: dict[int, asyncio.Future[bool]] = {}  # of prompts that somebody waits for
        self._number = 0
        self._news = asyncio.Event()
        self._closing = False

    @property
    def waiting(self) -> tuple[QueuedPrompt, ...]:
        return tuple(self._waiting)

    def _restore(self, file: QueueFile) -> None:
        """Take what waited when the session was left; it is held until the user says so. What waits
        already, in another session, goes along."""
        before, self._file = self._file, file
        found: tuple[QueuedPrompt, ...] = ()
        if before is None or before.session != file.session:
            try:
                found = file.load()
            except RecollectError as error:
                self.notify(NoticeGiven(str(error)))
        restored = tuple(
            msgspec.structs.replace(one, number=self._number + at)
            for at, one in enumerate(found, 1)
        )
        self._number += len(restored)
        self._waiting.extend(restored)
        if restored:
            self.held = True
            self.notify(QueueRestored(restored))
        self._notify_queue()
        if before is not None and before.session != file.session:
            _save_in(before, ())

    def _move_queue(self, session: str) -> None:
        """The work goes on in another session, and what waits goes along."""
        if self._file is not None and self._file.session != session:
            before, self._file = self._file, self._file.beside(session)
            self._save()
            _save_in(before, ())

    def _begin(self) -> QueuedPrompt:
        self._starting = self._waiting.popleft()
        return self._starting

    def _began(self) -> None:
        """The log has it."""
        self._starting = None
        self._save()

    def _enqueue(
        self, text: str, attachments: tuple[Attachable, ...], model: str, *, is_command: bool
    ) -> QueuedPrompt:
        self._number += 1
        prompt = QueuedPrompt(text, attachments, self._number, model, is_command)
        if self.held:
            self._waiting.appendleft(prompt)
        else:
            self._waiting.append(prompt)
        self.held = False
        self._changed()
        return prompt

    async def wait_for_end(self, prompt: QueuedPrompt) -> bool:
        """Until this prompt is over; whether it ran to its end."""
        if self._closing:
            return False
        return await self._ends.setdefault(prompt.number, asyncio.Future())

    def release(self) -> bool:
        """Let the prompts run that are held. Whether there were any."""
        released, self.held = self.held, False
        if released:
            self._changed()
        return released

    def take_back(self, number: int) -> QueuedPrompt | None:
        """Take a prompt out of the queue, to edit it."""
        found = next((one for one in self._waiting if one.number == number), None)
        if found is not None:
            self._waiting.remove(found)
            self._end(found, completed=False)
            self.held = self.held and bool(self._waiting)
            self._changed()
        return found

    def forget(self, restored: tuple[QueuedPrompt, ...]) -> None:
        """Take restored prompts out of the queue, and let the others run."""
        self._waiting = deque(one for one in self._waiting if one not in restored)
        self.held = False
        self._changed()

    def _end(self, prompt: QueuedPrompt, *, completed: bool) -> None:
        if (waiting := self._ends.pop(prompt.number, None)) is not None and not waiting.done():
            waiting.set_result(completed)

    def _changed(self) -> None:
        self._notify_queue()
        self._news.set()

    def _save(self) -> None:
        starting = () if self._starting is None else (self._starting,)
        if self._file is not None and (why := _save_in(self._file, (*starting, *self._waiting))):
            self._file, self._cannot_save = None, True
            self.notify(NoticeGiven(f"a killed terminal would lose what waits here: {why}"))

    def _notify_queue(self) -> None:
        """Before there is a session, nothing is on disk yet."""
        self._save()
        kept = self._file is not None or self._cannot_save
        self.notify(QueueChanged(self.waiting, self.held, kept))

    def _drop_waiting(self) -> None:
        """Prompts that can be sent nowhere are given back by the notice."""
        for prompt in self._waiting:
            self.notify(PromptEnded(prompt, error="not sent", stored=False))
            self._end(prompt, completed=False)
        self._waiting.clear()
        self.notify(QueueChanged(()))


def _save_in(file: QueueFile, prompts: tuple[QueuedPrompt, ...]) -> str:
    """Why it is not on disk, if it is not."""
    try:
        file.save(prompts)
    except OSError as error:  # such as a full disk
        return error.strerror or str(error)
    return ""

"""The prompts that wait in a terminal: in the order in which they run, held after a failure."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

from recollect.terminal.terminal_events import (
    PromptEnded,
    QueueChanged,
    QueuedPrompt,
    TerminalEvent,
)
from recollect.workspace.sent_files import Attachable


class QueuedPrompts:
    """What a `SessionRunner` knows of its queue; every change goes to `notify`."""

    def __init__(self, notify: Callable[[TerminalEvent], None]) -> None:
        self.notify = notify
        self.held = False  # the prompts that wait are for the user to look at first
        self._waiting: deque[QueuedPrompt] = deque()
        self._ends: dict[int, asyncio.Future[bool]] = {}  # of prompts that somebody waits for
        self._number = 0
        self._news = asyncio.Event()
        self._closing = False

    @property
    def waiting(self) -> tuple[QueuedPrompt, ...]:
        return tuple(self._waiting)

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

    def _end(self, prompt: QueuedPrompt, *, completed: bool) -> None:
        if (waiting := self._ends.pop(prompt.number, None)) is not None and not waiting.done():
            waiting.set_result(completed)

    def _changed(self) -> None:
        self._notify_queue()
        self._news.set()

    def _notify_queue(self) -> None:
        self.notify(QueueChanged(self.waiting, self.held))

    def _drop_waiting(self) -> None:
        """Prompts that can be sent nowhere are given back by the notice."""
        for prompt in self._waiting:
            self.notify(PromptEnded(prompt, error="not sent"))
            self._end(prompt, completed=False)
        self._waiting.clear()
        self.notify(QueueChanged(()))

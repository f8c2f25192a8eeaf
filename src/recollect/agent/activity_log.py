"""What an agent did lately: the last hundred events, first in, first out.

Long texts are shortened, so that its size is bounded whatever tools print.
"""

from __future__ import annotations

from collections import deque

import msgspec

from recollect.agent.hook_events import HookEvent
from recollect.text import clip_middle

MAX_EVENTS = 100
MAX_TEXT = 2_000  # characters of a text in a kept event


class ActivityLog:
    """The newest events, oldest first."""

    def __init__(self, kept: int = MAX_EVENTS) -> None:
        self._events: deque[HookEvent] = deque(maxlen=kept)

    def note(self, event: HookEvent) -> None:
        self._events.append(_shorten(event))

    @property
    def events(self) -> tuple[HookEvent, ...]:
        return tuple(self._events)


def _shorten(event: HookEvent) -> HookEvent:
    fields = msgspec.structs.asdict(event)
    long = {
        name: clip_middle(value, MAX_TEXT)
        for name, value in fields.items()
        if isinstance(value, str) and len(value) > MAX_TEXT
    }
    return msgspec.structs.replace(event, **long) if long else event

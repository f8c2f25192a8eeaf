"""The last hundred hook events of an agent, with long texts shortened."""

from __future__ import annotations

from collections import deque

import msgspec

from recollect.agent.hook_events import HookEvent
from recollect.text import clip_middle

MAX_EVENTS = 100
MAX_TEXT = 2_000  # characters of each text in an event


class ActivityLog:
    def __init__(self, size: int = MAX_EVENTS) -> None:
        self._events: deque[HookEvent] = deque(maxlen=size)

    def record(self, event: HookEvent) -> None:
        self._events.append(_shorten(event))

    @property
    def events(self) -> tuple[HookEvent, ...]:
        """Oldest first."""
        return tuple(self._events)


def _shorten(event: HookEvent) -> HookEvent:
    fields = msgspec.structs.asdict(event)
    long = {
        name: clip_middle(value, MAX_TEXT)
        for name, value in fields.items()
        if isinstance(value, str) and len(value) > MAX_TEXT
    }
    return msgspec.structs.replace(event, **long) if long else event

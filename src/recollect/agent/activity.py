"""What an agent did lately: the last hundred events, first in, first out.

Long texts are shortened, so that its size is bounded whatever tools print.
"""

from __future__ import annotations

from collections import deque

import msgspec

from recollect.agent.events import Event
from recollect.text import clip_middle

KEPT = 100
LONGEST = 2_000  # characters of a text in a kept event


class Activity:
    """The newest events, oldest first."""

    def __init__(self, kept: int = KEPT) -> None:
        self._events: deque[Event] = deque(maxlen=kept)

    def note(self, event: Event) -> None:
        self._events.append(_shortened(event))

    @property
    def events(self) -> tuple[Event, ...]:
        return tuple(self._events)


def _shortened(event: Event) -> Event:
    fields = msgspec.structs.asdict(event)
    long = {
        name: clip_middle(value, LONGEST)
        for name, value in fields.items()
        if isinstance(value, str) and len(value) > LONGEST
    }
    return msgspec.structs.replace(event, **long) if long else event

"""The system instructions of an agent, for sessions that have none."""

from __future__ import annotations

from collections.abc import Sequence

from recollect.builders import system
from recollect.entries import Body, Entry, Message, Pin
from recollect.store.ids import new_id, now
from recollect.view.view import View


async def lacking_instructions(text: str, view: View) -> Sequence[Body | Entry]:
    """The instructions to append, and to place first, unless the session has some: a session keeps
    what it began with, and what a user left out stays out."""
    bodies = (entry.body for entry in view.entries)
    if any(isinstance(body, Message) and body.role == "system" for body in bodies):
        return ()
    if view.state.last < 0:
        return (system(text),)
    entry = Entry(new_id(), None, now(), system(text))
    return entry, Pin(entries=(entry.id,), first=True)

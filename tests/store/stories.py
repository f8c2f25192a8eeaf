"""Runs stories on a store: async functions that use it as a program would."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from recollect import Entry, Message, SessionInfo, Text
from recollect.store.contract import Store
from recollect.testing import user

T = TypeVar("T")
Play = Callable[[Callable[[Store], Awaitable[T]]], T]


async def grown(store: Store, *texts: str) -> tuple[SessionInfo, tuple[Entry, ...]]:
    session = await store.create()
    entries = await store.append(session.id, [user(text) for text in texts], parent=None)
    return await store.session(session.id), entries


def texts(entries: tuple[Entry, ...]) -> list[str]:
    found = []
    for entry in entries:
        assert isinstance(entry.body, Message)
        part = entry.body.parts[0]
        assert isinstance(part, Text)
        found.append(part.text)
    return found

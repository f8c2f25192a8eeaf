"""Sessions in the store that the terminal program of a test opens."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TypeVar

from recollect.entries import Body, Message, Text, Usage
from recollect.store.contract import SessionInfo
from recollect.store.open_store import open_store
from recollect.store.sqlite import SqliteStore
from recollect.terminal.prompt_input import PromptInput
from recollect.workspace.project_identity import identify_project
from tests.terminal.pilot import DrivenTerminal, TerminalPlace

T = TypeVar("T")
HOUR = 3_600_000  # milliseconds


def exchange(prompt: str, answer: str, tokens: int = 1_000) -> list[Body]:
    return [
        Message(role="user", parts=(Text(prompt),)),
        Message(role="model", parts=(Text(answer),), model="m-1", usage=Usage(tokens, 10)),
    ]


async def in_store(place: TerminalPlace, work: Callable[[SqliteStore], Awaitable[T]]) -> T:
    async with open_store(place.home / "recollect.db") as store:
        return await work(store)


async def add_session(
    place: TerminalPlace,
    title: str,
    items: Sequence[Body] = (),
    *,
    folder: Path | None = None,
    owner: str = "",
) -> SessionInfo:
    async def work(store: SqliteStore) -> SessionInfo:
        project = identify_project(folder or place.project)
        made = await store.create(project=project, title=title, owner=owner)
        await store.append(made.id, [*items] or exchange("hello", "hi"), parent=None)
        return await store.session(made.id)

    return await in_store(place, work)


async def run_command(driven: DrivenTerminal, text: str) -> None:
    """Send a long line without typing it key by key."""
    prompt = driven.app.chat.query_one(PromptInput)
    prompt.text = text
    prompt.focus()
    await driven.press("enter")


async def add_many(place: TerminalPlace, count: int) -> None:
    async def work(store: SqliteStore) -> None:
        project = identify_project(place.project)

        async def one(number: int) -> None:
            made = await store.create(project=project, title=f"number {number}")
            await store.append(made.id, exchange(f"prompt {number}", "done"), parent=None)

        for start in range(0, count, 100):
            await asyncio.gather(*(one(n) for n in range(start, min(count, start + 100))))

    await in_store(place, work)

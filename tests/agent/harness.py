"""What the tests of the agent share: a store for one story, a session in it, and its results."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import psutil

from recollect.agent.tool_calls import CallPermission
from recollect.entries import Message, Text, ToolCall, ToolResult
from recollect.session import Session
from recollect.store.contract import Project, Store
from recollect.store.open_store import open_store
from recollect.store.sqlite import SqliteStore
from recollect.tools.tool import Tool
from recollect.view.view import View

T = TypeVar("T")


def in_store(folder: Path, story: Callable[[SqliteStore], Awaitable[T]]) -> T:
    async def play() -> T:
        async with open_store(folder / "s.db") as store:
            return await story(store)

    return asyncio.run(play())


async def new_session(
    store: SqliteStore, *messages: Message, project: Project | None = None, title: str = ""
) -> Session:
    created = await store.create(project=project, title=title)
    session = Session(store, created.id, View.fold())
    await session.append(*messages)
    return session


async def allow_all(tool: Tool, call: ToolCall) -> CallPermission:
    return CallPermission()


async def stored_results(store: Store, session: str) -> list[ToolResult]:
    bodies = [entry.body for entry in await store.path(session)]
    parts = [part for body in bodies if isinstance(body, Message) for part in body.parts]
    return [part for part in parts if isinstance(part, ToolResult)]


def result_text(result: ToolResult) -> str:
    return "".join(part.text for part in result.content if isinstance(part, Text))


def is_gone(pid: int) -> bool:
    """Waits up to a minute for a process to end."""
    for _ in range(3_000):
        if not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
            return True
        time.sleep(0.02)
    return False

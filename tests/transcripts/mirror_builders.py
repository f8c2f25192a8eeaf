"""What the tests of mirrors share: stores with sessions, an agent, and a look at the files."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

from recollect.agent.hooks import Hooks
from recollect.agent.loop import Agent
from recollect.agent.mirror_hook import mirror_hook
from recollect.agent.run_events import RunFinished
from recollect.api import Session
from recollect.store.open_store import open_store
from recollect.store.sqlite import SqliteStore
from recollect.testing import ScriptedModel, user
from recollect.tools.tool import tool
from recollect.transcripts.mirror import Mirror
from recollect.transcripts.session_export import export_session
from recollect.view.view import View


@tool("read")
async def look(what: str) -> str:
    """Looks at something."""
    return f"saw {what}"


def in_store(path: Path, story: Callable[[SqliteStore], Awaitable[None]]) -> None:
    async def opened() -> None:
        async with open_store(path / "s.db") as store:
            await story(store)

    asyncio.run(opened())


async def append_texts(store: SqliteStore, session: str, *texts: str) -> None:
    for text in texts:
        await store.append(session, [user(text)], parent=(await store.session(session)).head)


async def start_session(store: SqliteStore, *texts: str, **more: Any) -> str:
    session = (await store.create(**more)).id
    await append_texts(store, session, *(texts or ("hello",)))
    return session


async def run_prompts(
    mirror: Mirror, session: str, script: Sequence[Any], prompts: Sequence[str]
) -> AsyncIterator[None]:
    """An agent with the mirror's hook runs these prompts; yields after each of them."""
    hooks = Hooks([mirror_hook(mirror)])
    agent = Agent(model=ScriptedModel(script), tools=(look,), hooks=hooks)
    for prompt in prompts:
        view = View.fold(await mirror.store.tree(session))  # which has no branches
        events = [
            event async for event in agent.stream(prompt, Session(mirror.store, session, view))
        ]
        assert isinstance(events[-1], RunFinished)
        yield


def files(folder: Path) -> list[str]:
    if not folder.is_dir():
        return []
    return sorted(each.name for each in folder.iterdir() if not each.name.startswith("."))


def contents(folder: Path) -> list[bytes]:
    return [(folder / name).read_bytes() for name in files(folder)]


def said_in(file: Path | None) -> list[str]:
    assert file is not None
    return [message["content"] for message in json.loads(file.read_bytes())["messages"]]


async def exported(store: SqliteStore, session: str, to: str) -> bytes:
    return (await export_session(store, session, to))[1]


async def until_written(folder: Path, data: bytes) -> None:
    """Waits until this is the one file in the folder."""
    await until(lambda: contents(folder) == [data])


async def until(is_true: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not is_true():
            await asyncio.sleep(0.01)

"""A session's file and those of its subagents, for tests: builders, and a folder for them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from recollect.entries import Text
from recollect.store.contract import Store
from recollect.store.open_store import open_store
from recollect.store.sqlite import SqliteStore
from recollect.transcripts.import_result import ImportResult
from recollect.transcripts.json_values import Json
from recollect.transcripts.record_format import get_tag
from tests.transcripts.file_builders import import_value, line, messages_of, result_of, save, use


def task(id_: str, prompt: str, **more: Any) -> Json:
    given = {"prompt": prompt, "description": f"Do {prompt}", "subagent_type": "Explore", **more}
    return {"type": "tool_use", "id": id_, "name": "Task", "input": given}


def text(content: str) -> list[Json]:
    return [{"type": "text", "text": content}]


def sidechain_line(uuid: str, parent: str | None, kind: str, content: Any, **more: Any) -> Json:
    return line(uuid, parent, kind, content, isSidechain=True, **more)


def agent_records(agent: str, prompt: str = "look") -> list[Json]:
    """What is in a subagent's own file."""
    a, more = agent, {"agentId": agent}
    return [
        sidechain_line(f"{a}-1", None, "user", prompt, **more),
        sidechain_line(f"{a}-2", f"{a}-1", "assistant", [use(f"{a}-t")], id=f"{a}-m", **more),
        sidechain_line(f"{a}-3", f"{a}-2", "user", [result_of(f"{a}-t", "x")], **more),
        sidechain_line(f"{a}-4", f"{a}-3", "assistant", text(f"{a} is done"), id=f"{a}-n", **more),
    ]


def agent_result(agent: str, prompt: str = "look") -> dict[str, Any]:
    return {"toolUseResult": {"status": "completed", "prompt": prompt, "agentId": agent}}


MAIN: list[Json] = [
    line("u1", None, "user", "Please find out"),
    line("a1", "u1", "assistant", [task("t1", "look")], id="m"),
    line("r1", "a1", "user", [result_of("t1", "found it")], **agent_result("x7")),
    line("a2", "r1", "assistant", text("There it is."), id="n"),
]


def progress_reports(agent: str, call: str, records: list[Json]) -> list[Json]:
    """A subagent's records as they are seen in the progress reports of its caller."""
    fields = ("type", "uuid", "timestamp", "message")
    messages = [{key: record[key] for key in fields} for record in records]
    reports = [{"type": "agent_progress", "agentId": agent, "message": m} for m in messages]
    return [
        line(f"p-{agent}-{n}", "a1", "progress", data=data, parentToolUseID=call)
        for n, data in enumerate(reports)
    ]


class SessionFolder:
    """A store, and a folder with a session's file and those of its subagents."""

    def __init__(self, store: SqliteStore, folder: Path) -> None:
        self.store, self.folder, self.file = store, folder, folder / "C-1.jsonl"

    def add(self, agent: str, records: list[Json], meta: Any = None) -> Path:
        inside = self.folder / "C-1" / "subagents"
        inside.mkdir(parents=True, exist_ok=True)
        if meta is not None:
            (inside / f"agent-{agent}.meta.json").write_text(json.dumps(meta))
        return save(inside / f"agent-{agent}.jsonl", records)

    async def import_records(self, records: list[Json]) -> ImportResult:
        return await import_value(self.store, self.file, records)

    async def texts(self, session: str) -> list[str]:
        messages = messages_of(await self.store.path(session))
        return [p.text for m in messages for p in m.parts if isinstance(p, Text)]

    async def size(self) -> int:
        return sum([len(await self.store.tree(s.id)) for s in await self.store.sessions()])


async def links(store: Store, session: str) -> list[Json]:
    tags = (get_tag("claude-code", e.body) for e in await store.path(session))
    return [
        {k: v for k, v in tag.items() if k != "header"}
        for tag in tags
        if "header" in tag and len(tag) > 1
    ]


def with_session_folder(tmp_path: Path, work: Callable[[SessionFolder], Awaitable[None]]) -> None:
    async def run() -> None:
        async with open_store(tmp_path / "store.db") as store:
            await work(SessionFolder(store, tmp_path))

    asyncio.run(run())

"""A session in a real store, and the tools with which a model looks into its history."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from recollect.engine import Project, open_store
from recollect.entries import Body, Compaction, Entry
from recollect.store.contract import Store
from recollect.tools.builtin import recall, search_history
from recollect.tools.tool import ToolContext, ToolOutput
from recollect.view_loader import load_view
from tests.tools.calls import text


class Recorded:
    """A session in a real store, and the two tools in it."""

    def __init__(self, store: Store, root: Path, key: str) -> None:
        self.store, self.root, self.id = store, root, key

    async def say(self, *bodies: Body) -> tuple[Entry, ...]:
        head = (await self.store.session(self.id)).head
        return await self.store.append(self.id, bodies, parent=head)

    async def forget(self) -> None:
        """Compact everything, so that the model sees none of it."""
        await self.say(Compaction(status="COMPRESSED", snapshot="gone"))

    async def context(self) -> ToolContext:
        view = await load_view(self.store, self.id)
        return ToolContext(roots=(self.root,), session=self.id, store=self.store, view=view)

    async def recall(self, handle: str | list[str], **more: object) -> ToolOutput:
        return await recall(json.dumps({"handle": handle, **more}), await self.context())

    async def search(self, words: str, **more: object) -> ToolOutput:
        return await search_history(json.dumps({"words": words, **more}), await self.context())


def play(tmp_path: Path, story: Callable[[Recorded], Awaitable[Any]], project: str = "/p") -> Any:
    async def run() -> Any:
        async with open_store(tmp_path / "store.db") as store:
            created = await store.create(project=Project(path=project))
            return await story(Recorded(store, tmp_path, created.id))

    return asyncio.run(run())


def body(output: ToolOutput) -> str:
    """What stands between the marks."""
    assert not output.is_error, text(output)
    return text(output).split("\n", 1)[1].rsplit("\n", 1)[0]

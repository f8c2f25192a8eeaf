"""Runs tools through an agent with a scripted model, and gives what the store has afterwards."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from recollect import Agent, Message, Tool, ToolCall, ToolResult
from recollect.store.sqlite import SqliteStore
from recollect.testing import ScriptedModel, ScriptLine, call, says
from tests.agent.harness import in_store, new_session, stored_results


def run_tool(folder: Path, one: Tool) -> ToolResult:
    """The result that the store has of one call, after a run to its end."""
    (found,) = run_script(folder, [says(call(one.name)), "done"], tools=(one,))
    return found


def run_script(folder: Path, script: list[ScriptLine], **options: Any) -> list[ToolResult]:
    """The results of a run. Every call has one, and the script is played to its end."""

    async def story(store: SqliteStore) -> list[ToolResult]:
        session, model = await new_session(store), ScriptedModel(script)
        agent = Agent(model=model, **options)
        await agent.run("go", session)
        assert model.left == 0
        entries = await store.path(session.id)
        parts = [p for e in entries if isinstance(e.body, Message) for p in e.body.parts]
        results = await stored_results(store, session.id)
        calls = [part.id for part in parts if isinstance(part, ToolCall)]
        assert [result.call_id for result in results] == calls
        return results

    return in_store(folder, story)

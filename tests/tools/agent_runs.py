"""Runs tools through an agent with a scripted model, and gives what the store has afterwards."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from recollect import Agent, Message, Tool, ToolCall, ToolResult
from recollect.entries import Note
from recollect.store.sqlite import SqliteStore
from recollect.testing import ScriptedModel, ScriptLine, call, says
from tests.agent.harness import in_store, new_session, stored_results


def run_tool(folder: Path, one: Tool, **arguments: object) -> ToolResult:
    """The result that the store has of one call, after a run to its end."""
    script = [says(call(one.name, **arguments)), "done"]
    (found,) = run_script(folder, script, tools=(one,))
    return found


def run_script(folder: Path, script: list[ScriptLine], **options: Any) -> list[ToolResult]:
    """The results of a run. Every call has one, and the script is played to its end."""

    async def story(store: SqliteStore) -> list[ToolResult]:
        session, model = await new_session(store), ScriptedModel(script)
        agent = Agent(model=model, **options)
        async for _ in agent.run("go", session):
            pass
        assert model.left == 0
        entries = await store.path(session.id)
        parts = [p for e in entries if isinstance(e.body, Message) for p in e.body.parts]
        results = await stored_results(store, session.id)
        calls = [part.id for part in parts if isinstance(part, ToolCall)]
        assert [result.call_id for result in results] == calls
        return results

    return in_store(folder, story)


def notes_of(folder: Path, script: list[ScriptLine], **options: Any) -> list[str]:
    """The notes that a run leaves in its session."""

    async def story(store: SqliteStore) -> list[str]:
        session = await new_session(store)
        async for _ in Agent(model=ScriptedModel(script), **options).run("go", session):
            pass
        bodies = [entry.body for entry in await store.path(session.id)]
        return [body.text for body in bodies if isinstance(body, Note)]

    return in_store(folder, story)

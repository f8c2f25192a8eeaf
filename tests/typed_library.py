"""The library as a typed program uses it: not run, but read by type checkers."""

from __future__ import annotations

from pathlib import Path
from typing import assert_type

import openai

import recollect
from recollect import events


def show(*values: object) -> None:
    """Stands for whatever a program does with them."""


@recollect.tool
def weather(city: str) -> str:
    """Tells what the weather is like in a city."""
    return f"It rains in {city}."


@recollect.tool(effect="write")
async def remember(fact: str, context: recollect.ToolContext) -> dict[str, int]:
    """Remembers a fact."""
    if not fact:
        raise recollect.ToolFailed("there is no fact; give one")
    return {"characters": len(fact), "roots": len(context.roots)}


async def ask_me(request: recollect.ApprovalRequest) -> bool:
    return request.call.name == "write_file"


async def sessions(client: openai.OpenAI) -> None:
    async with recollect.open() as store:
        session = await store.create(title="limiter", project=Path.cwd(), model="gpt-5")
        assert_type(session, recollect.Session)
        entries = await session.append(recollect.user("Why does refillTokens run twice?"))
        assert_type(entries, tuple[recollect.Entry, ...])
        reply = client.chat.completions.create(
            model="gpt-5", messages=session.messages("openai", budget=100_000)
        )
        await session.append_openai(reply, {"role": "user", "content": "And now?"})
        explanation = await session.explain()
        assert_type(explanation, recollect.Explanation)
        for gone in explanation.left_out:
            await session.restore(gone.restore)
        await session.pin(*entries)
        await session.drop(entries[0].id)
        done = await session.compact(preview=True, budget=20_000, model="gpt-5")
        show(done, done.before - done.after, done.snapshot)
        await session.undo_compaction()
        fork = await session.fork(entries[0])
        await fork.rewind(None)
        text = await fork.recall(entries[0])
        assert_type(text, str)
        for hit in await store.search("tokens", project=Path.cwd()):
            show(hit.session.title, hit.snippet, (await fork.usage()).total, hit.entry.id)
        newest = await store.session("last")
        assert_type(newest.view(), recollect.View)
        assert_type(newest.last_turns(5), tuple[recollect.Message, ...])
        try:
            await newest.append(recollect.assistant("so"), on_conflict="raise")
        except recollect.errors.HeadMoved as moved:
            show(moved.actual)


async def agents(session: recollect.Session) -> None:
    model = recollect.testing.ScriptedModel(["one"])
    agent = recollect.Agent(
        model, tools=[weather, remember], instructions="Be brief.", hooks=[show]
    )
    result = await recollect.Agent("gpt-5").run("Do I need an umbrella?", session)
    assert_type(result, recollect.RunFinished)
    async for event in agent.stream("And now?", result.session):
        match event:
            case recollect.Delta(kind="text"):
                show(event.text)
            case recollect.ToolStarted() | recollect.ToolFinished():
                show(event.call.name)
            case events.ContextReduced():
                show(event.before, event.after)
            case _:
                pass
    coder = recollect.coding_agent(".", approve=ask_me, mode="edit", allow=["git status"])
    done = await coder.run("Fix the failing test.", session)
    show(done.text, done.usage.total, done.session.id, [denial.reason for denial in done.denials])
    coder.run_sync("And now?")
    recollect.coding_agent(approve=lambda request: input(request.reason) == "y")

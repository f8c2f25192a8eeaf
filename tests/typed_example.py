"""Tools, hooks, permissions and elision rules as a typed program writes them: not run, but read by
mypy in the suite, and clean under pyright in strict mode."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal, assert_type

import recollect
from recollect.engine import ElisionRules, Hooks, ViewItem
from recollect.hook_events import AfterTool, BeforeTool, HookDecision, HookEvent

HOUR = 3_600_000  # milliseconds


@recollect.tool
def weather(city: Annotated[str, "the name of a city"], days: int = 1) -> dict[str, str]:
    """Tells what the weather is like in a city.

    Args:
        days: how many days to look ahead
    """
    return {"city": city, "weather": "rain" * days}


@recollect.tool("write", "send_letter")
async def send(to: str, context: recollect.ToolContext) -> recollect.ToolOutput:
    """Sends a letter."""
    if not to:
        raise recollect.ToolFailed("a letter needs a name; give `to`")
    return recollect.ToolOutput(content=(recollect.Text(text=context.session),))


@recollect.tool(effect="run", description="Waters the flowers.")
def water(flowers: list[Literal["rose", "tulip"]]) -> None: ...


@recollect.hook
def no_mail_to_strangers(event: BeforeTool) -> HookDecision | None:
    if event.tool == "send_letter" and "Ada" not in event.arguments:
        return HookDecision(allowed=False, reason="only to Ada")
    return None


@recollect.hook
async def count_calls(event: BeforeTool | AfterTool) -> None: ...


@recollect.hook("AfterAgent", timeout=5)
def notify(event: HookEvent) -> str:
    return f"{event.session} is done"


@recollect.hook(BeforeTool, AfterTool)
def record(event: BeforeTool | AfterTool) -> None: ...


@recollect.permission
def office_hours(tool: recollect.Tool, call: recollect.ToolCall) -> bool | None:
    return None if tool.effect == "read" else "Ada" in call.arguments


@recollect.permission("send_letter", water)
async def ask(tool: recollect.Tool, call: recollect.ToolCall) -> str:
    return "" if call.arguments else f"{tool.name} needs arguments"


@recollect.elision_rule("old-forecast")
def old_forecasts(view: recollect.View, now: int) -> Iterator[tuple[ViewItem, str]]:
    for item in view.items:
        results = [part for part in item.message.parts if isinstance(part, recollect.ToolResult)]
        if item.entry.time < now - HOUR and any(part.name == "weather" for part in results):
            yield item, "a forecast of more than an hour ago"


def agents() -> tuple[recollect.Agent, recollect.Agent]:
    assert_type(weather, recollect.Tool)
    assert_type(send, recollect.Tool)
    assert_type(water, recollect.Tool)
    short = recollect.Agent(
        "gpt-5",
        tools=[weather, send, water],
        instructions="Be brief.",
        hooks=[no_mail_to_strangers, count_calls, notify, record],
        permissions=[office_hours, ask, lambda tool, call: None],
        rules=[old_forecasts],
    )
    rules = ElisionRules(min_saving=500, custom=(old_forecasts,))
    return short, recollect.Agent("gpt-5", hooks=Hooks([notify], warn=print), rules=rules)


async def talk(agent: recollect.Agent) -> str:
    async with recollect.open("letters.db") as store:
        session = await store.create(title="letters")
        async for event in agent.stream("Write to Ada.", session):
            if isinstance(event, recollect.ToolFinished):
                assert_type(event.result, recollect.ToolResult)
        result = await agent.run("And to Charles.", session)
        assert_type(result, recollect.RunFinished)
        assert_type(result.usage.total, int)
        await session.pin(*await session.append(recollect.user("Remember this.")))
        return f"{result.text}\n{await session.explain()}"

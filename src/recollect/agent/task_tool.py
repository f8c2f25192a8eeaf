"""The tool `task`: it gives a piece of work to another agent in a session of its own.

A sub-agent has the caller's model, permit, hooks and roots, and its tools but for `task`: there are
no sub-agents of sub-agents. The tool has the strongest effect of the sub-agent's tools: tasks that
only read run together, others one after the other. `delegating.py` carries it out, and is loaded
by the first call.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Final, TypeAlias

import msgspec

from recollect.agent.loop import Agent
from recollect.entries import Message
from recollect.store.contract import Project
from recollect.tools.tool import Effect, Tool, ToolContext, ToolOutput, tool

TASK_TOOL: Final = "task"
SUBAGENT_TURNS: Final = 30
_EFFECTS: tuple[Effect, ...] = ("read", "write", "run")

# What a sub-agent's session begins with: instructions, where and when we are.
InitialMessages: TypeAlias = Callable[[], Awaitable[Sequence[Message]]]


async def _no_messages() -> tuple[Message, ...]:
    return ()


def build_task_tool(
    agent: Agent,
    opening: InitialMessages = _no_messages,
    *,
    project: Project | None = None,
    max_turns: int = SUBAGENT_TURNS,
) -> Tool:
    """The tool `task` for an agent like this one: `replace(agent, tools=(*agent.tools, it))`."""
    tools = tuple(each for each in agent.tools if each.name != TASK_TOOL)
    helper = msgspec.structs.replace(agent, tools=tools, max_turns=max_turns)

    @tool(strongest_effect(tools), TASK_TOOL)
    async def task(description: str, prompt: str, place: ToolContext) -> ToolOutput:
        """Gives a piece of work to a sub-agent that has the same tools, and returns its last
        answer. It sees nothing of this conversation. For searches and other work whose details
        need not be remembered here.

        description: what it is about, in a few words
        prompt: the whole task, with all that has to be known and what is to be answered
        """
        from recollect.agent.subagents import check_task, open_subagent_session, run_subagent

        title = check_task(description, prompt)
        talk = await open_subagent_session(title, place, await opening(), project)
        return await run_subagent(helper, talk, prompt, place)

    return task


def strongest_effect(tools: Iterable[Tool]) -> Effect:
    """What a sub-agent with these tools may do at most."""
    return max((each.effect for each in tools), key=_EFFECTS.index, default="read")

"""Refuses a prompt that no reduction can make fit, before anything of it is stored or sent."""

from __future__ import annotations

import asyncio

from recollect.agent.exchange import count_tools
from recollect.errors import RecollectError
from recollect.models.resolve import ResolvedModel
from recollect.runtime.runtime import Door, Runtime
from recollect.text import one_line
from recollect.tokens import counter_for
from recollect.workspace.sent_files import Attachable


class PromptTooLarge(RecollectError):
    def __init__(self, tokens: int, window: int, tools: int, model: str) -> None:
        used = f", of which tools take {tools:,}" if tools else ""
        super().__init__(
            f"the prompt has {tokens:,} tokens, and the window of {one_line(model, 100)} has "
            f"{window:,}{used}; nothing was sent. Put the text into a file and name the file, or "
            "send a part of it"
        )
        self.tokens, self.window = tokens, window


async def check_prompt_size(
    runtime: Runtime, model: ResolvedModel, text: str, attachments: tuple[Attachable, ...] = ()
) -> None:
    """Raise `PromptTooLarge` if the prompt alone is larger than what the window leaves it. A file
    that cannot be attached is an error here already."""
    budget = runtime.budget(model)
    if not attachments and "@" not in text and len(text) * 3 < budget.window // 2:
        return  # a character has at most about three tokens: counting it would be for nothing
    quiet = runtime.for_door(Door(warn=lambda _: None))  # the run itself tells about its files
    message = await quiet.prompt_message(text, attachments)
    assert message is not None
    counter = counter_for(model.name)
    tools = count_tools(runtime.declared_tools(model), counter)
    tokens = await asyncio.to_thread(counter.message, message)
    if tokens + tools > budget.window:
        raise PromptTooLarge(tokens, budget.window, tools, model.name)

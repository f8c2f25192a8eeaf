"""The loop: make room, ask, keep the reply, run what it calls, keep the results, ask again.

Guarantees: what the person said is kept once, before anything else happens. A call is in the log
before its tool runs, and its result is kept before the model hears of it. Whoever stops the loop
finds a session that goes on later: calls that were cut off have a result that says so, and nothing
is run again by itself. What is sent always fits the model's window. Tools that only read run
together; others run one after the other. What a tool does wrong is told to the model.
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

import msgspec

from recollect.agent.asking import Answered, Conversation, exchange
from recollect.agent.compacting import Ask, compact
from recollect.agent.working import Calling, Permit, Ran, Work, only_reading
from recollect.codecs.wire import Delta, Generation, Prompt
from recollect.compaction.fitting import fit
from recollect.compaction.proposing import Budget, is_due
from recollect.entries import Compaction, Message, Text, ToolCall, Usage
from recollect.errors import Overflow
from recollect.models.contract import Model, Retrying
from recollect.store.ids import now
from recollect.tools.contract import Tool
from recollect.view.rules import Rules, plan
from recollect.view.view import View

FULL = 0.95  # of the window; the rest is for what is counted otherwise by the provider


class MadeRoom(NamedTuple):
    """The view became smaller, so that it fits: what was left out, or a compaction."""

    before: int
    after: int
    compaction: Compaction | None = None


class Finished(NamedTuple):
    """The last event."""

    why: Literal["answered", "turns"]
    talk: Conversation
    turns: int
    usage: Usage
    seconds: float


AgentEvent: TypeAlias = Delta | Retrying | Answered | Calling | Ran | MadeRoom | Finished


@dataclass(frozen=True, kw_only=True)
class Agent:
    """What answers: a model, the tools it may call, and how much it may do."""

    model: Model
    tools: tuple[Tool, ...] = ()
    roots: tuple[Path, ...] = ()
    permit: Permit = only_reading
    generation: Generation = field(default_factory=Generation)
    rules: Rules = field(default_factory=Rules)
    budget: Budget | None = None
    ask: Ask | None = None  # who writes snapshots; none: they are built by code alone
    max_turns: int = 100

    async def run(
        self, talk: Conversation, said: str | Message
    ) -> AsyncGenerator[AgentEvent, None]:
        """One prompt, until the model has nothing more to call."""
        began, usage = time.monotonic(), Usage()
        message = said if isinstance(said, Message) else _user(said)
        talk = await talk.append(message)
        edits = plan(talk.view, now(), self.rules).edits
        if edits:
            before = talk.view.tokens
            talk = await talk.append(*edits)
            yield MadeRoom(before, talk.view.tokens)
        for turn in range(1, self.max_turns + 1):
            answered = None
            async with aclosing(self._turn(talk)) as events:
                async for event in events:
                    if isinstance(event, Answered):
                        answered = event
                    yield event
            assert answered is not None
            talk, usage = answered.talk, _sum(usage, answered.message.usage)
            calls = [part for part in answered.message.parts if isinstance(part, ToolCall)]
            if not calls:
                yield Finished("answered", talk, turn, usage, time.monotonic() - began)
                return
            work = Work(talk, calls, self.tools, self.roots, self.permit)
            async with aclosing(work.events()) as done:
                async for ran in done:
                    yield ran
            talk = work.talk
        yield Finished("turns", talk, self.max_turns, usage, time.monotonic() - began)

    async def _turn(
        self, talk: Conversation
    ) -> AsyncGenerator[Delta | Retrying | Answered | MadeRoom, None]:
        """One reply. A window that turns out to be smaller than we thought is learnt from once."""
        budget = self.budget or Budget.of(self.model.name)
        for attempt in (1, 2):
            talk, made = await self._make_room(talk, budget)
            if made is not None:
                yield made
            try:
                async with aclosing(exchange(talk, self.model, self._prompt())) as events:
                    async for event in events:
                        yield event
                return
            except Overflow as overflow:
                if attempt == 2:
                    raise
                budget = _smaller(budget, talk.view, overflow.limit)
                # what failed is in the log: the request, and a note
                talk = await _caught_up(talk)

    async def _make_room(
        self, talk: Conversation, budget: Budget
    ) -> tuple[Conversation, MadeRoom | None]:
        before, found = talk.view.tokens, None
        if is_due(talk.view, budget):
            root = self.rules.root
            proposal = await compact(talk.view, budget, self.ask, trigger="auto", root=root)
            if proposal.compaction.status != "NOOP":
                found = proposal.compaction
                talk = await talk.append(found)
        fitted = fit(talk.view, int(budget.window * FULL), now(), self.rules, budget)
        if fitted.edits:
            talk = await talk.append(*fitted.edits)
            found = next((e for e in fitted.edits if isinstance(e, Compaction)), found)
        changed = found is not None or bool(fitted.edits)
        return talk, MadeRoom(before, talk.view.tokens, found) if changed else None

    def _prompt(self) -> Prompt:
        declared = tuple(tool.declaration for tool in self.tools)
        return Prompt(model=self.model.name, tools=declared, generation=self.generation)


def asking(model: Model, generation: Generation | None = None) -> Ask:
    """A model as the one who writes snapshots."""

    async def ask(messages: Sequence[Message], instruction: str) -> str:
        prompt = Prompt(model=model.name, generation=generation or Generation())
        async with aclosing(model.stream((*messages, _user(instruction)), prompt)) as events:
            async for event in events:
                if isinstance(event, Message):
                    return "".join(part.text for part in event.parts if isinstance(part, Text))
        return ""

    return ask


def _user(text: str) -> Message:
    return Message(role="user", parts=(Text(text=text),))


def _sum(one: Usage, other: Usage | None) -> Usage:
    if other is None:
        return one
    counted = ("input", "output", "cached", "thoughts", "tool", "total")
    return Usage(**{name: getattr(one, name) + getattr(other, name) for name in counted})


def _smaller(budget: Budget, view: View, limit: int | None) -> Budget:
    """What fits by the provider's word; without one, four fifths of what did not fit."""
    window = limit if limit is not None and limit < budget.window else view.tokens * 8 // 10
    return msgspec.structs.replace(
        budget,
        window=window,
        threshold=min(budget.threshold, window * 7 // 10),
        target=min(budget.target, window // 2),
        snapshot=min(budget.snapshot, max(300, window // 8)),
    )


async def _caught_up(talk: Conversation) -> Conversation:
    new = await talk.store.path(talk.session, since=talk.view.head)
    return talk._replace(view=talk.view.append(*new))

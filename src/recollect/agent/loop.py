"""The loop: make room, ask, keep the reply, run what it calls, keep the results, ask again.

Guarantees: what the person said is kept once, before anything else happens. A call is in the log
before its tool runs, and its result is kept before the model hears of it. Whoever stops the loop
finds a session that goes on later: calls that were cut off have a result that says so, and nothing
is run again by itself. What is sent always fits the model's window. Tools that only read run
together; others run one after the other. What a tool does wrong is told to the model. A model that
repeats itself is told once and stopped the second time.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, aclosing
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import msgspec

from recollect.agent.events import AgentEvent, LoopFound, RunFinished, StopReason, WindowLearned
from recollect.agent.exchange import (
    ReplyFinished,
    Session,
    add_usage,
    exchange,
    mark_calls_not_run,
    message_text,
    new_session,
    uncancellable,
    user_message,
)
from recollect.agent.fit_context import (
    ContextReduced,
    fit_context,
    reload,
    reserve_for_tools,
    shrink_budget,
)
from recollect.agent.hook_events import (
    AfterAgent,
    BeforeAgent,
    BeforeModel,
    after_model_event,
    loop_detected_event,
)
from recollect.agent.hooks import Hooks
from recollect.agent.tool_calls import (
    PermissionCheck,
    ToolRunner,
    WriteGuard,
    allow_reads_only,
    protect_config,
)
from recollect.codecs.wire_protocol import Delta, Generation, RequestOptions
from recollect.compaction.budget import Budget
from recollect.entries import Message, ToolCall, Usage
from recollect.errors import ContextOverflow, RecollectError
from recollect.loop_detection import Loop, LoopDetector, judge_is_due, loop_warning
from recollect.models.model_protocol import Model, Retrying
from recollect.store.ids import now
from recollect.tools.tool import Tool
from recollect.view.elision_rules import ElisionRules, plan_elisions
from recollect.view.view import View

if TYPE_CHECKING:
    from recollect.agent.compactor import Summarizer

MAX_ATTEMPTS = 4  # to send what fits


class RefusedByHook(RecollectError):
    """A hook did not let something happen."""


# What the model is told beside the conversation, asked before each request.
ReminderSource: TypeAlias = Callable[[View], Awaitable[Sequence[Message]]]


class Agent(msgspec.Struct, frozen=True, kw_only=True):
    """What answers: a model, the tools it may call, and how much it may do."""

    model: Model
    tools: tuple[Tool, ...] = ()
    roots: tuple[Path, ...] = ()
    permission_check: PermissionCheck = allow_reads_only
    write_guard: WriteGuard = protect_config
    generation: Generation = Generation()
    rules: ElisionRules = ElisionRules()
    budget: Budget | None = None
    ask: Summarizer | None = None  # who writes snapshots; none: they are built by code alone
    hooks: Hooks = msgspec.field(default_factory=Hooks)
    aside: ReminderSource | None = None
    summarise: tuple[str, ...] = ()  # tools whose long output is summed up by a model
    summary_tokens: int = 2_000
    max_turns: int = 100
    watch_loops: bool = True
    judge_after: int = 0  # turns after which a model judges whether it goes in circles; 0: never

    async def run(
        self, prompt: str | Message | None, talk: Session | None = None
    ) -> AsyncGenerator[AgentEvent, None]:
        """One prompt, until the model has nothing more to call; without one it goes on. Without a
        conversation it is kept as a new session in the person's own store."""
        message = user_message(prompt) if isinstance(prompt, str) else prompt
        async with AsyncExitStack() as stack:
            if talk is None:
                talk = await stack.enter_async_context(new_session(self.model.name))
            events = _AgentRun(self, talk).events(message)
            await stack.enter_async_context(aclosing(events))
            async for event in events:
                yield event

    def prompt(self) -> RequestOptions:
        declared = tuple(tool.declaration for tool in self.tools)
        return RequestOptions(model=self.model.name, tools=declared, generation=self.generation)


class _AgentRun:
    """One prompt on its way."""

    def __init__(self, agent: Agent, talk: Session) -> None:
        self.agent, self.talk = agent, talk
        budget, counter = agent.budget or Budget.of(agent.model.name), talk.view.log.counter
        self.budget = reserve_for_tools(budget, agent.tools, counter)
        self.usage, self.began, self.turn = Usage(), time.monotonic(), 0
        self.watch = LoopDetector(on=agent.watch_loops)
        self.reply: Message | None = None  # of this turn; none when it was cut off
        self.loop: Loop | None = None

    async def events(self, message: Message | None) -> AsyncGenerator[AgentEvent, None]:
        if message is not None:
            await self._begin(message)
        edits = plan_elisions(self.talk.view, now(), self.agent.rules).edits
        if edits:
            before = self.talk.view.tokens
            self.talk = await self.talk.append(*edits)
            yield ContextReduced(before, self.talk.view.tokens)
        why: StopReason = "turns"
        while why == "turns" and self.turn < self.agent.max_turns:
            self.turn += 1
            async with aclosing(self._turn()) as events:
                async for event in events:
                    yield event
            if self.loop is not None and self.watch.verdict == "stop":
                why = "loop"
            elif self.loop is None and not self._calls():
                why = "answered"
        text = message_text(self.reply) if self.reply is not None else ""
        ended = AfterAgent(
            session=self.talk.session, time=now(), text=text, turns=self.turn, reason=why
        )
        await self.agent.hooks.fire(ended)
        yield RunFinished(why, self.talk, self.turn, self.usage, time.monotonic() - self.began)

    async def _begin(self, message: Message) -> None:
        """What was said is kept first; a hook may add to it, or refuse to go on."""
        self.talk = await self.talk.append(message)
        told = BeforeAgent(session=self.talk.session, time=now(), prompt=message_text(message))
        decision = await self.agent.hooks.fire(told)
        if not decision.allowed:
            raise RefusedByHook(
                f"a hook refused the prompt: {decision.reason}; change it and try again"
            )
        if decision.additional_context:
            added = f"[added by a hook, not by the person]\n{decision.additional_context}"
            self.talk = await self.talk.append(user_message(added, "aside"))

    async def _turn(self) -> AsyncGenerator[AgentEvent, None]:
        """A reply, and what it calls."""
        self.loop = self.reply = None
        try:
            async with aclosing(self._answer()) as events:
                async for event in events:
                    yield event
            calls = self._calls()
            for call in calls:
                self.loop = self.watch.call(call.name, call.arguments) or self.loop
            if calls and self.loop is None and judge_is_due(self.turn, self.agent.judge_after):
                self.loop = await self._judged()
            stopped = self.watch.verdict == "stop"
            if self.loop is not None:
                yield await self._looping(self.loop, stopped=stopped)
        except (asyncio.CancelledError, GeneratorExit):
            if self.reply is not None:
                await uncancellable(mark_calls_not_run(self.talk, self.reply))
            raise
        agent = self.agent
        given = agent.tools, agent.roots, agent.permission_check, agent.hooks, agent.write_guard
        work = ToolRunner(self.talk, calls, *given)
        if self.loop is not None and stopped:
            await uncancellable(work.refuse("you repeat yourself, so it was not run"))
        async with aclosing(work.events()) as done:
            async for ran in done:
                yield ran
        self.talk = work.talk
        if self.loop is not None and not stopped:
            self.talk = await self.talk.append(user_message(loop_warning(self.loop), "aside"))

    async def _judged(self) -> Loop | None:
        from recollect.agent.loop_judge import judged

        ask = self.agent.ask
        return await judged(self.watch, self.talk.view, ask) if ask is not None else None

    def _calls(self) -> list[ToolCall]:
        parts = self.reply.parts if self.reply is not None else ()
        return [part for part in parts if isinstance(part, ToolCall)]

    async def _looping(self, loop: Loop, *, stopped: bool) -> LoopFound:
        await self.agent.hooks.fire(loop_detected_event(self.talk.session, now(), loop))
        return LoopFound(loop, stopped)

    async def _answer(
        self,
    ) -> AsyncGenerator[Delta | Retrying | ReplyFinished | ContextReduced | WindowLearned, None]:
        """One reply. That a window is smaller than we thought, or that a text has more tokens than
        we count, is learnt from the error, and less is sent."""
        await self._tell_aside()
        for attempt in range(1, MAX_ATTEMPTS + 1):
            made = await fit_context(self.talk, self.budget, self.agent)
            self.talk = made.talk
            if made.event is not None:
                await self._tell_aside()  # what a compaction took is told again
                yield made.event
            try:
                async with aclosing(self._exchange()) as events:
                    async for event in events:
                        yield event
                return
            except ContextOverflow as overflow:
                if attempt == MAX_ATTEMPTS:
                    raise
                self.budget = shrink_budget(self.budget, self.talk.view, overflow)
                self.talk = await reload(self.talk)  # with what failed, and why
                if overflow.limit is not None:
                    yield WindowLearned(self.agent.model.name, overflow.limit)

    async def _tell_aside(self) -> None:
        aside = self.agent.aside
        if aside is not None and (told := await aside(self.talk.view)):
            self.talk = await self.talk.append(*told)

    async def _exchange(self) -> AsyncGenerator[Delta | Retrying | ReplyFinished, None]:
        agent, talk, began = self.agent, self.talk, time.monotonic()
        asked = BeforeModel(
            session=talk.session,
            time=now(),
            model=agent.model.name,
            messages=len(talk.view.messages) if agent.hooks.hooks else 0,
            tokens=talk.view.tokens,
        )
        decision = await agent.hooks.fire(asked)
        if not decision.allowed:
            raise RefusedByHook(f"a hook refused to ask {agent.model.name}: {decision.reason}")
        self.watch.begin_reply()
        async with aclosing(exchange(talk, agent.model, agent.prompt())) as events:
            async for event in events:
                if isinstance(event, ReplyFinished):
                    self.reply, self.talk = event.message, event.talk
                yield event
                if isinstance(event, Retrying):
                    self.watch.begin_reply()
                elif isinstance(event, Delta) and event.kind == "text":
                    self.loop = self.watch.text(event.text)
                    if self.loop is not None:
                        break
        if self.reply is None:
            self.talk = await reload(talk)  # what came is kept as an interrupted reply
            return
        self.usage = add_usage(self.usage, self.reply.usage)
        ended = after_model_event(talk.session, now(), self.reply, time.monotonic() - began)
        await agent.hooks.fire(ended)

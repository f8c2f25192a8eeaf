"""The agent loop: fit the context, send it, store the reply, run its tool calls, send again.

Guarantees: the user's prompt is appended once, before anything else. A call is in the log before
its tool runs, and its result before the model is sent it. A run that is stopped leaves a session
that can continue: interrupted calls have a result that says so, and nothing runs again by itself.
Every request fits the model's window. A model that repeats itself is warned once and stopped the
second time.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, aclosing
from functools import partial
from pathlib import Path
from typing import TypeAlias

import msgspec

from recollect.agent.blocking import run_blocking
from recollect.agent.decorators import (
    Permission,
    PermissionFunction,
    combine_permissions,
    with_custom_rules,
)
from recollect.agent.exchange import (
    ReplyFinished,
    count_tools,
    exchange,
    mark_calls_not_run,
    message_text,
    user_message,
)
from recollect.agent.fit_context import ContextFitter, ContextReduced, RequestBudget
from recollect.agent.hooks import Hook, HookFunction, Hooks
from recollect.agent.instructions import lacking_instructions
from recollect.agent.prepared_request import PreparedRequest
from recollect.agent.run_events import AgentEvent, LoopFound, RunFinished, StopReason, WindowLearned
from recollect.agent.tool_calls import (
    PermissionCheck,
    ToolFinished,
    ToolRunner,
    WriteGuard,
    allow_reads_only,
    protect_config,
)
from recollect.codecs.wire_protocol import Delta, Generation, RequestOptions
from recollect.compaction.budget import Budget
from recollect.entries import Body, Entry, Message, Note, ToolCall, Usage
from recollect.errors import BadTool, ContextOverflow, RefusedByHook
from recollect.hook_events import (
    AfterAgent,
    AfterModel,
    BeforeAgent,
    BeforeModel,
    HookEvent,
    LoopDetected,
)
from recollect.loop_detection import Loop, LoopDetector, judge_is_due, loop_note, loop_warning
from recollect.models.model_protocol import Model, Retrying
from recollect.models.model_selection import CallModel, call_judge
from recollect.models.open_model import open_model
from recollect.session import Session
from recollect.session_log import uncancellable
from recollect.session_store import attach_session
from recollect.tokens import add_usage
from recollect.tools.tool import Tool
from recollect.view.custom_rules import CustomRule
from recollect.view.elision_rules import ElisionRules
from recollect.view.view import View

MAX_ATTEMPTS = 4  # to send a request that fits


async def fire_or_refuse(
    hooks: Hooks, event: HookEvent, session: Session, what: str, remedy: str = ""
) -> None:
    """Fire an event whose hooks may refuse to continue; what they add goes to the session."""
    decision = await hooks.fire(event)
    if not decision.allowed:
        raise RefusedByHook(f"a hook refused {what}: {decision.reason}{remedy}")
    if decision.additional_context:
        added = f"[added by a hook, not by the user]\n{decision.additional_context}"
        await session.append(user_message(added, "aside"), on_conflict="fork")


# Returns what the view lacks and must be appended before a request: the initial context of a
# session that has none, a new date, memory files.
ContextSource: TypeAlias = Callable[[View], Awaitable[Sequence[Body | Entry]]]


class Agent(msgspec.Struct, frozen=True):
    """A model, the tools it may call, and its limits."""

    model: str | Model
    tools: Sequence[Tool] = ()
    instructions: str = ""  # system instructions of sessions that have none
    initial: ContextSource | None = None  # the initial context of a session, where it is missing
    roots: tuple[Path, ...] = ()  # folders that tools may touch
    cwd: Path | None = None  # where relative paths begin; None: in the first root
    permission_check: PermissionCheck = allow_reads_only  # decides if `permissions` do not
    write_guard: WriteGuard = protect_config
    generation: Generation = Generation()
    rules: ElisionRules | Sequence[CustomRule] = ()
    budget: Budget | None = None
    summarizer: CallModel | None = None  # writes snapshots; none: they are built by code alone
    hooks: Hooks | Sequence[Hook | HookFunction] = ()
    reminders: ContextSource | None = None
    summarized_tools: tuple[str, ...] = ()  # the summarizer shortens their long output
    summary_tokens: int = 2_000
    max_turns: int = 100
    detect_loops: bool = True
    judge_after: int = 0  # after this many turns, ask a model whether the run is looping; 0: never
    permissions: Sequence[Permission | PermissionFunction] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.hooks, Hooks):
            msgspec.structs.force_setattr(self, "hooks", Hooks(self.hooks))
        if not isinstance(self.rules, ElisionRules):
            msgspec.structs.force_setattr(self, "rules", with_custom_rules(self.rules))
        combine_permissions(self.permissions)  # raises for what is no check
        for given in self.tools:
            if not isinstance(given, Tool):
                name = getattr(given, "__name__", type(given).__name__)
                raise BadTool(str(name), "it is not a tool; write `@tool` above the function")

    @property
    def fired_hooks(self) -> Hooks:
        """The hooks, as what fires them."""
        assert isinstance(self.hooks, Hooks)
        return self.hooks

    @property
    def elision_rules(self) -> ElisionRules:
        """The rules, the built-in ones among them."""
        assert isinstance(self.rules, ElisionRules)
        return self.rules

    async def stream(
        self, prompt: str | Message | None, session: Session | None = None
    ) -> AsyncGenerator[AgentEvent, None]:
        """Run one prompt until the model calls no more tools. Without a prompt the session
        continues; without a session a new one is created in the user's own store."""
        message = user_message(prompt) if isinstance(prompt, str) else prompt
        async with AsyncExitStack() as stack:
            model = await self._open_model(stack)
            session = await attach_session(session, model.name)
            run = _AgentRun(self, model, session)
            await run.begin(message)
            while run.reason == "turns" and run.turns < self.max_turns:
                for step in (run.reply, run.run_tools):
                    async with aclosing(step()) as events:
                        async for event in events:
                            yield event
            yield await run.finish()

    async def run(
        self, prompt: str | Message | None, session: Session | None = None
    ) -> RunFinished:
        """Run one prompt to its end: `.text`, `.usage` and `.session` of the result."""
        async with aclosing(self.stream(prompt, session)) as events:
            async for event in events:
                if isinstance(event, RunFinished):
                    return event
        raise AssertionError("the last event of a run is its result")

    def run_sync(self, prompt: str | Message | None, session: Session | None = None) -> RunFinished:
        """`run` for scripts: waits for the result. Inside an event loop `await agent.run(…)`."""
        return run_blocking(lambda: self.run(prompt, session))

    async def prepare(self, prompt: str | Message | None, session: Session) -> PreparedRequest:
        """The next request as `stream` would send it. Nothing is stored, no hook runs and no model
        is called, so a snapshot or summary that a model would write is built by code."""
        message = user_message(prompt) if isinstance(prompt, str) else prompt
        quiet = msgspec.structs.replace(self, hooks=Hooks(), summarizer=None)
        async with AsyncExitStack() as stack:
            model = await self._open_model(stack)
            run = _AgentRun(quiet, model, session.scratch())
            await run.begin(message)
            reduced = await run.make_ready()
            options = quiet.request_options(model.name)
            return PreparedRequest(run.session.view(), options, run.budget.messages, reduced)

    async def _open_model(self, stack: AsyncExitStack) -> Model:
        if isinstance(self.model, str):
            return await stack.enter_async_context(open_model(self.model))
        return self.model

    def initial_source(self) -> ContextSource | None:
        """What begins a session: its own source, else the instructions."""
        if self.initial is not None or not self.instructions:
            return self.initial
        return partial(lacking_instructions, self.instructions)

    def request_options(self, model: str) -> RequestOptions:
        """What a request has beside its messages: the model, the tools, the generation settings."""
        declared = tuple(tool.declaration for tool in self.tools)
        return RequestOptions(model=model, tools=declared, generation=self.generation)

    def context_fitter(self) -> ContextFitter:
        """What makes the context fit, with the settings of this agent."""
        return ContextFitter(
            self.elision_rules,
            self.fired_hooks,
            self.summarizer,
            self.summarized_tools,
            self.summary_tokens,
        )


class _AgentRun:
    """The state of one prompt's run. Nothing suspends between `reply` and `run_tools`, so a
    cancellation always finds one of them, which gives every open call its result."""

    def __init__(self, agent: Agent, model: Model, session: Session) -> None:
        self.agent, self.model, self.session = agent, model, session
        declared = count_tools((t.declaration for t in agent.tools), session.view().log.counter)
        budget = agent.budget or Budget.of(model.name)
        self.budget = RequestBudget(budget, declared, model.name)
        self.fitter = agent.context_fitter()
        self.usage, self.began, self.turns = Usage(), time.monotonic(), 0
        self.detector = LoopDetector(on=agent.detect_loops)
        self.last_reply: Message | None = None  # of this turn; none when it was cut off
        self.loop: Loop | None = None
        self.reason: StopReason = "turns"

    async def begin(self, message: Message | None) -> None:
        """Append the initial context if it is missing, and the prompt, which a hook may add to or
        refuse."""
        await self._append_from(self.agent.initial_source())
        if message is not None:
            await self.session.append(message)
            event = BeforeAgent(session=self.session.id, prompt=message_text(message))
            await fire_or_refuse(
                self.agent.fired_hooks,
                event,
                self.session,
                "the prompt",
                "; change it and try again",
            )

    async def reply(self) -> AsyncGenerator[AgentEvent, None]:
        """One reply of the model. When the provider answers that the request is too long, the
        budget shrinks and less is sent."""
        agent, self.turns, self.loop, self.last_reply = self.agent, self.turns + 1, None, None
        try:
            for attempt in range(1, MAX_ATTEMPTS + 1):
                for reduced in await self.make_ready():
                    yield reduced
                await self._fire_before_model()
                began = time.monotonic()
                try:
                    async with aclosing(
                        exchange(self.session, self.model, agent.request_options(self.model.name))
                    ) as events:
                        async for event in events:
                            self._observe(event)
                            yield event
                            if self.loop is not None:
                                break
                    break
                except ContextOverflow as overflow:
                    if (learned := await self._shrink_budget(overflow, attempt)) is not None:
                        yield learned
            if (found := await self._finish_reply(time.monotonic() - began)) is not None:
                yield found
        except (asyncio.CancelledError, GeneratorExit):
            if self.last_reply is not None:
                await uncancellable(mark_calls_not_run(self.session, self.last_reply))
            raise

    async def make_ready(self) -> tuple[ContextReduced, ...]:
        """Append the reminders that are due, and make the context fit the window."""
        await self._append_from(self.agent.reminders)
        reduced = await self._fit()
        if reduced:
            await self._append_from(self.agent.reminders)  # earlier ones may be hidden now
            reduced += await self._fit()
        return reduced

    async def _fit(self) -> tuple[ContextReduced, ...]:
        budget, view = self.budget, self.session.view()
        tools, because = budget.tool_tokens, budget.explain(view)
        return await self.fitter.fit(self.session, budget.now(view), tools, because)

    async def _append_from(self, source: ContextSource | None) -> None:
        if source is not None:
            await self.session.append(*await source(self.session.view()), on_conflict="fork")

    async def _fire_before_model(self) -> None:
        hooks, view, model = self.agent.fired_hooks, self.session.view(), self.model.name
        count = len(view.messages) if hooks.hooks else 0
        tokens = view.tokens + self.budget.tool_tokens
        decision = await hooks.fire(
            BeforeModel(session=self.session.id, model=model, messages=count, tokens=tokens)
        )
        if not decision.allowed:
            raise RefusedByHook(f"a hook refused the request to {model}: {decision.reason}")
        self.detector.begin_reply()

    def _observe(self, event: Delta | Retrying | ReplyFinished) -> None:
        if isinstance(event, ReplyFinished):
            self.last_reply = event.message
        elif isinstance(event, Retrying):
            self.detector.begin_reply()
        elif event.kind == "text":
            self.loop = self.detector.text(event.text)

    async def _shrink_budget(self, overflow: ContextOverflow, attempt: int) -> WindowLearned | None:
        if attempt == MAX_ATTEMPTS:
            raise overflow
        self.budget.shrink(self.session.view(), overflow)
        if overflow.limit is None:
            return None
        return WindowLearned(self.model.name, overflow.limit)

    async def _finish_reply(self, seconds: float) -> LoopFound | None:
        """Add the usage, fire `AfterModel`, look for a loop, and decide whether to go on."""
        hooks, calls = self.agent.fired_hooks, self._calls()
        if self.last_reply is not None:
            self.usage = add_usage(self.usage, self.last_reply.usage)
            await hooks.fire(self._after_model(self.last_reply, seconds))
        for call in calls:
            # many equal calls in one reply are one loop: the model has not been warned yet
            self.loop = self.loop or self.detector.call(call.name, call.arguments)
        if calls and self.loop is None and judge_is_due(self.turns, self.agent.judge_after):
            self.loop = await self._call_judge()
        if (loop := self.loop) is None:
            self.reason = "turns" if calls else "answered"
            return None
        stopped = self.detector.loops > 1 or self.turns >= self.agent.max_turns
        self.reason = "loop" if stopped else "turns"
        session, kind = self.session.id, loop.event_kind
        await hooks.fire(LoopDetected(session=session, kind=kind, what=loop.what, times=loop.times))
        return LoopFound(loop, stopped)

    def _after_model(self, reply: Message, seconds: float) -> AfterModel:
        usage = reply.usage or Usage()
        return AfterModel(
            session=self.session.id,
            model=reply.model,
            finish=reply.finish,
            text=message_text(reply),
            calls=len(self._calls()),
            input_tokens=usage.input,
            output_tokens=usage.output,
            duration=seconds,
        )

    async def _call_judge(self) -> Loop | None:
        judge = self.agent.summarizer
        if judge is None:
            return None
        return self.detector.judged(await call_judge(self.session.view(), judge))

    def _calls(self) -> list[ToolCall]:
        parts = self.last_reply.parts if self.last_reply is not None else ()
        return [part for part in parts if isinstance(part, ToolCall)]

    async def run_tools(self) -> AsyncGenerator[AgentEvent, None]:
        agent = self.agent
        permitted = combine_permissions(agent.permissions, agent.permission_check)
        checks = permitted, agent.fired_hooks, agent.write_guard
        runner = ToolRunner(
            self.session, self._calls(), agent.tools, agent.roots, *checks, cwd=agent.cwd
        )
        if self.reason == "loop":
            await uncancellable(runner.refuse("you repeat yourself, so it was not run"))
        async with aclosing(runner.events()) as events:
            async for event in events:
                if isinstance(event, ToolFinished):
                    self.detector.result(event.call.name, failed=event.result.is_error)
                yield event
        if self.loop is not None:
            await self.session.append(self._loop_entry(self.loop), on_conflict="fork")

    def _loop_entry(self, loop: Loop) -> Message | Note:
        """For the model, which goes on; or for people, when it was stopped."""
        if self.reason == "loop":
            return Note(text=loop_note(loop), level="warning")
        return user_message(loop_warning(loop), "aside")

    async def finish(self) -> RunFinished:
        reply, view = self.last_reply, self.session.view()
        if reply is None and self.loop is not None:  # it was cut off
            reply = view.log.message(view.state.last_reply)
        text = message_text(reply) if reply is not None else ""
        session, turns, reason = self.session, self.turns, self.reason
        event = AfterAgent(session=session.id, text=text, turns=turns, reason=reason)
        await self.agent.fired_hooks.fire(event)
        seconds = time.monotonic() - self.began
        return RunFinished(reason, text, session, turns, self.usage, seconds)

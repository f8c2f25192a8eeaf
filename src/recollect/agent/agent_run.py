"""One prompt's run, step by step: make the context ready, get a reply, run its calls, correct.

The state of a run lives here; `loop.py` repeats the steps. Nothing suspends between `reply` and
`run_tools`, so a cancellation always finds one of them, which gives every open call its result.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, TypeAlias

from recollect.agent.corrections import (
    CorrectionRequested,
    StopReason,
    describe_failure,
    describe_stop,
    find_problems,
)
from recollect.agent.decorators import (
    combine_permissions,
)
from recollect.agent.exchange import (
    ReplyFinished,
    ReplyStarted,
    count_tools,
    describe_media,
    exchange,
    mark_calls_not_run,
    message_text,
    user_message,
)
from recollect.agent.fit_context import ContextReduced, RequestBudget
from recollect.agent.hooks import Hooks
from recollect.agent.run_events import AgentEvent, LoopFound, RunFinished, WindowLearned
from recollect.agent.tool_calls import (
    ToolFinished,
    ToolRunner,
)
from recollect.codecs.endings import Ending, Outcome, cut_call, judge_reply
from recollect.codecs.wire_protocol import Delta, RequestOptions
from recollect.compaction.budget import Budget
from recollect.entries import Body, Entry, Message, Note, ToolCall, ToolResult, Usage
from recollect.errors import ContextOverflow, RefusedByHook
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
from recollect.models.model_selection import call_judge
from recollect.session import Session
from recollect.session_log import uncancellable
from recollect.tokens import add_usage
from recollect.tools.tool import BAD_CALL_STATUS
from recollect.view.view import View

if TYPE_CHECKING:
    from recollect.agent.loop import Agent

MAX_ATTEMPTS = 4  # to send a request that fits
_REASONS: dict[Outcome, StopReason] = {
    "answer": "answered",
    "calls": "turns",
    "continue": "turns",
    "ask_again": "turns",
    "interrupted": "interrupted",
    "cut_off": "cut_off",
    "blocked": "blocked",
}


_NOT_RUN = "the reply did not end as it should, so this call was not run"


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


# What a run begins with: the user's words, a message, or several entries, such as a client's items.
Prompt: TypeAlias = str | Message | Sequence[Body | Entry] | None


def _prompt_items(prompt: Message | Sequence[Body | Entry] | None) -> Sequence[Body | Entry]:
    if prompt is None:
        return ()
    return (prompt,) if isinstance(prompt, Message) else prompt


def _prompt_text(items: Sequence[Body | Entry]) -> str:
    """What the user said last."""
    bodies = [item.body if isinstance(item, Entry) else item for item in items]
    said = [each for each in bodies if isinstance(each, Message) and each.role == "user"]
    return message_text(said[-1]) if said else ""


def _refuse_overflow(tokens: int, window: int) -> None:
    if tokens > window:
        said = f"the context has {tokens:,} tokens, and {window:,} fit; nothing may be left out"
        raise ContextOverflow(said, limit=window, asked=tokens)


class AgentRun:
    """The state of one prompt's run."""

    def __init__(self, agent: Agent, model: Model, session: Session) -> None:
        self.agent, self.model, self.session = agent, model, session
        tools = agent.request_options(model.name).tools
        declared = count_tools(tools, session.view().log.counter)
        budget = agent.budget or Budget.of(model.name)
        self.budget = RequestBudget(budget, declared, model.name)
        self.fitter = agent.context_fitter()
        self.usage, self.began, self.turns = Usage(), time.monotonic(), 0
        self.detector = LoopDetector(on=agent.detect_loops)
        self.last_reply: Message | None = None  # of this turn; none when it was stopped
        self.ending: Ending | None = None  # of that reply
        self.loop: Loop | None = None
        self.reason: StopReason = "turns"
        self.problem = ""
        self.corrections, self.corrected = 0, 0  # rounds: in a row, and all of them

    @property
    def turns_left(self) -> int:
        """Replies that the model may still give; those that it has to write again do not count."""
        return self.agent.max_turns - (self.turns - self.corrected)

    async def begin(self, prompt: Message | Sequence[Body | Entry] | None) -> None:
        """Append the initial context if it is missing, and the prompt, which a hook may add to or
        refuse. A first entry that names its parent must follow it: where others were first, the
        run goes on in a fork."""
        items = _prompt_items(prompt)
        place = items[0].parent if items and isinstance(items[0], Entry) else None
        if place is not None:
            await self.session.continue_at(place)
        await self._append_from(self.agent.initial_source())
        if items:
            await self.session.append(*items, on_conflict="reload" if place is None else "fork")
            event = BeforeAgent(session=self.session.id, prompt=_prompt_text(items))
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
        self.turns, self.loop = self.turns + 1, None
        self.last_reply = self.ending = None
        try:
            for attempt in range(1, MAX_ATTEMPTS + 1):
                for reduced in await self.make_ready():
                    yield reduced
                await self._fire_before_model()
                began = time.monotonic()
                try:
                    async with aclosing(
                        exchange(self.session, self.model, self._request_options())
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
                left_open = self.agent.client_names
                await uncancellable(mark_calls_not_run(self.session, self.last_reply, left_open))
            raise

    def _request_options(self) -> RequestOptions:
        follows = self.turns - self.corrected > 1
        return self.agent.request_options(self.model.name, follows=follows)

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
        if not self.agent.reduces:
            _refuse_overflow(view.tokens, budget.now(view).window)
            return ()
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

    def _observe(self, event: ReplyStarted | Delta | Retrying | ReplyFinished) -> None:
        if isinstance(event, ReplyFinished):
            self.last_reply, self.ending = event.message, judge_reply(event.message)
        elif isinstance(event, ReplyStarted):
            return
        elif isinstance(event, Retrying):
            self.detector.begin_reply()
        elif event.kind == "text":
            self.loop = self.detector.text(event.text)

    async def _shrink_budget(self, overflow: ContextOverflow, attempt: int) -> WindowLearned | None:
        if attempt == MAX_ATTEMPTS or not self.agent.reduces:
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
            decision = await hooks.fire(self._after_model(self.last_reply, seconds))
            if decision.stop:
                left_open = self.agent.client_names
                await uncancellable(mark_calls_not_run(self.session, self.last_reply, left_open))
                raise RefusedByHook(f"a hook stopped the run: {decision.reason}")
        for call in (each for each in calls if each.name not in self.agent.client_names):
            # many equal calls in one reply are one loop: the model has not been warned yet
            self.loop = self.loop or self.detector.call(call.name, call.arguments)
        if calls and self.loop is None and judge_is_due(self.turns, self.agent.judge_after):
            self.loop = await self._call_judge()
        if (loop := self.loop) is None:
            self.reason = _REASONS[self.ending.outcome] if self.ending is not None else "turns"
            return None
        stopped = self.detector.loops > 1 or self.turns_left <= 0
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

    def _client_calls(self, cut: ToolCall | None) -> list[ToolCall]:
        """The calls that the client runs; none of a reply whose calls are not to be run."""
        is_run = self.ending is not None and self.ending.outcome == "calls"
        if not is_run or self.reason == "loop":
            return []
        names = self.agent.client_names
        return [call for call in self._calls() if call.name in names and call is not cut]

    async def run_tools(self) -> AsyncGenerator[AgentEvent, None]:
        agent = self.agent
        permitted = combine_permissions(agent.permissions, agent.permission_check)
        checks = permitted, agent.fired_hooks, agent.write_guard
        cut = cut_call(self.last_reply) if self.last_reply is not None else None
        left_open = self._client_calls(cut)
        calls = [call for call in self._calls() if not any(call is each for each in left_open)]
        runner = ToolRunner(
            self.session,
            calls,
            agent.tools,
            agent.roots,
            *checks,
            cwd=agent.cwd,
            cut=cut,
            ask_user=agent.ask_user,
            shown_secrets=agent.shown_secrets,
        )
        if self.reason == "loop":
            await uncancellable(runner.refuse("you repeat yourself, so it was not run"))
        elif self.ending is not None and self.ending.outcome != "calls":
            await uncancellable(runner.refuse(_NOT_RUN))
        results: list[ToolResult] = []
        async with aclosing(runner.events()) as events:
            async for event in events:
                if isinstance(event, ToolFinished):
                    self.detector.result(event.call.name, failed=event.result.is_error)
                    results.append(event.result)
                yield event
        if left_open:
            self.reason = "client_calls"
        elif self.loop is not None:
            await self.session.append(self._loop_entry(self.loop), on_conflict="fork")
        elif (correction := await self._correct(results)) is not None:
            yield correction

    async def _correct(self, results: Sequence[ToolResult]) -> CorrectionRequested | None:
        """Tell the model what was wrong with its reply, or end the run if it was told before."""
        if self.last_reply is None or self.ending is None:
            return None
        found = find_problems(self.last_reply, self.ending, results)
        if found is None:
            self.corrections = 0
            if self.reason not in ("answered", "turns"):
                await self._stop(self.reason, describe_stop(self.ending))
            return None
        # a reply of which something could be run is progress: it counts as a turn, and anew
        progress = any(each.status != BAD_CALL_STATUS for each in results)
        self.corrections = 1 if progress else self.corrections + 1
        if self.corrections > found.most:
            await self._stop(found.reason, describe_failure(found, self.corrections))
            return None
        self.reason, self.corrected = "turns", self.corrected + (not progress)
        if found.feedback:
            await self.session.append(user_message(found.feedback, "aside"), on_conflict="fork")
        return CorrectionRequested(found.texts, self.corrections, found.most)

    async def _stop(self, reason: StopReason, problem: str) -> None:
        self.reason, self.problem = reason, problem
        await self.session.append(Note(text=problem, level="warning"), on_conflict="fork")

    def _loop_entry(self, loop: Loop) -> Message | Note:
        """For the model, which goes on; or for people, when it was stopped."""
        if self.reason == "loop":
            return Note(text=loop_note(loop), level="warning")
        return user_message(loop_warning(loop), "aside")

    async def finish(self) -> RunFinished:
        reply, view = self.last_reply, self.session.view()
        if reply is None and self.loop is not None:  # it was cut off
            reply = view.log.message(view.state.last_reply)
        # calls that could not be run are no answer
        is_text = reply is not None and self.reason not in ("empty", "bad_calls")
        text = (message_text(reply) or describe_media(reply)) if reply and is_text else ""
        session, turns, reason = self.session, self.turns, self.reason
        event = AfterAgent(session=session.id, text=text, turns=turns, reason=reason)
        await self.agent.fired_hooks.fire(event)
        seconds = time.monotonic() - self.began
        return RunFinished(reason, text, session, turns, self.usage, seconds, self.problem)

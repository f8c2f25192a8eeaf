"""Makes the context fit the model's window before every request, also in the middle of a prompt.

In this order: a model summarizes new long output where the user wants that, the rules leave out
what is outdated and shorten what is oversized, a compaction follows when the view is still over its
model's threshold, and `fit_view` finds a view below the window whatever came of it. A prompt has at
most one compaction, unless the window itself forces more, and a model helps with at most one. Hooks
run before and after a compaction, and may name text that it has to keep. Nothing is deleted: every
step is an edit in the log.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from recollect.agent.hooks import Hooks
from recollect.compaction.budget import (
    MIN_WINDOW,
    Budget,
    calibrate_budget,
    is_compaction_due,
)
from recollect.compaction.proposal import Proposal, choose_cut, is_attempt_due
from recollect.compaction.view_reduction import fit_view, shorten_newest
from recollect.entries import Compaction, CompactionTrigger
from recollect.errors import ContextOverflow
from recollect.hook_events import ChatCompressed, ContextWindowWillOverflow, PreCompress
from recollect.models.model_calls import ModelCaller
from recollect.models.model_protocol import Model
from recollect.models.model_selection import CallModel
from recollect.session import Session
from recollect.session_compaction import compact
from recollect.snapshot_writer import OnRound, ignore_round
from recollect.store.ids import now
from recollect.view.elision_rules import ElisionRules, plan_elisions
from recollect.view.view import View

FILL_LIMIT = 0.95  # of the window; providers count somewhat differently


class ContextReduced(msgspec.Struct, frozen=True):
    """The view became smaller, by elisions or by a compaction."""

    before: int
    after: int
    compaction: Compaction | None = None


class ContextFitter(msgspec.Struct, frozen=True):
    rules: ElisionRules
    hooks: Hooks
    summarizer: CallModel | None  # none: snapshots are built by code alone
    summarized_tools: tuple[str, ...]
    summary_tokens: int
    warned: set[str] = msgspec.field(default_factory=set)  # problems that the user knows of

    async def fit(self, session: Session, budget: Budget) -> tuple[ContextReduced, ...]:
        """Make the next request fit; returns what the rules did and what a compaction did."""
        limit, before = int(budget.window * FILL_LIMIT), session.view().tokens
        await self._summarize_outputs(session, budget)
        await self._apply_rules(session, budget)
        huge = shorten_newest(session.view(), limit, budget, self.rules)
        await session.append(*huge, on_conflict="fork")
        between, compaction = session.view().tokens, None
        found = [ContextReduced(before, between)] if between != before else []
        if is_attempt_due(session.view(), budget):
            compaction = (await self.compact(session, budget, "auto")).compaction
            compaction = compaction if compaction.status != "NOOP" else None
        if session.view().tokens > limit:
            compaction = await self._force_fit(session, limit, budget) or compaction
        after = session.view().tokens
        if compaction is not None or after != between:
            found.append(ContextReduced(between, after, compaction))
        return tuple(found)

    async def _apply_rules(self, session: Session, budget: Budget) -> None:
        """Append what the rules leave out and shorten, in the order of their plan: a placeholder
        that names another result is true only of what was changed before it."""
        view = session.view()
        over = is_compaction_due(view, budget)
        plan = plan_elisions(view, now(), self.rules, over_budget=over)
        self._warn(session, plan.problems)
        await session.append(*plan.edits, on_conflict="fork")

    def _warn(self, session: Session, problems: Iterable[str]) -> None:
        for problem in problems:
            if problem not in self.warned:
                self.warned.add(problem)
                session.warn(problem)

    async def _summarize_outputs(self, session: Session, budget: Budget) -> None:
        """Output that no model has seen yet; what has a summary need not be shortened."""
        if not self.summarized_tools or self.summarizer is None:
            return
        # most sessions summarize nothing
        from recollect.agent.output_summaries import INPUT_LIMIT, plan_summaries

        input_limit = min(INPUT_LIMIT, budget.window // 2)  # a small model takes less
        tools, limit = self.summarized_tools, self.summary_tokens
        edits = await plan_summaries(session.view(), self.summarizer, tools, limit, input_limit)
        await session.append(*edits, on_conflict="fork")

    async def compact(
        self,
        session: Session,
        budget: Budget,
        trigger: CompactionTrigger,
        instructions: str = "",
        on_round: OnRound = ignore_round,
    ) -> Proposal:
        """Compact the session; whatever comes of it, unless there was nothing to do, is stored.
        Neither hooks nor a model are called where no cut is possible."""
        view, summarizer, wanted = session.view(), self.summarizer, instructions
        if choose_cut(view, budget) is None:
            summarizer = None
        else:
            event = PreCompress(session=session.id, trigger=trigger, tokens=view.tokens)
            decision = await self.hooks.fire(event)
            given = (instructions, decision.keep, decision.additional_context)
            wanted = "\n".join(filter(None, given))
        proposal = await compact(
            view,
            budget,
            summarizer,
            trigger=trigger,
            instructions=wanted,
            root=self.rules.root,
            on_round=on_round,
        )
        if proposal.compaction.status != "NOOP":
            await self._store_compaction(session, proposal.compaction)
        return proposal

    async def _store_compaction(self, session: Session, compaction: Compaction) -> None:
        # a run goes on in a fork; a user who asked for this one session is asked again
        by_hand = compaction.trigger == "manual"
        await session.append(compaction, on_conflict="raise" if by_hand else "fork")
        event = ChatCompressed(
            session=session.id,
            status=compaction.status,
            trigger=compaction.trigger,
            tokens_before=compaction.tokens_before,
            tokens_after=compaction.tokens_after,
        )
        await self.hooks.fire(event)

    async def _force_fit(self, session: Session, limit: int, budget: Budget) -> Compaction | None:
        tokens = session.view().tokens
        event = ContextWindowWillOverflow(session=session.id, tokens=tokens, limit=limit)
        await self.hooks.fire(event)
        fitted = fit_view(session.view(), limit, now(), self.rules, budget)
        self._warn(session, fitted.problems)
        found = next((edit for edit in fitted.edits if isinstance(edit, Compaction)), None)
        at = fitted.edits.index(found) if found is not None else len(fitted.edits)
        await session.append(*fitted.edits[:at], on_conflict="fork")
        if found is not None:
            self._warn(session, (found.reason,) if found.reason else ())  # pins that did not fit
            await self._store_compaction(session, found)
            await session.append(*fitted.edits[at + 1 :], on_conflict="fork")
        return found


class RequestBudget:
    """What a run's messages may take, in tokens as we count them: what the provider reports and
    refuses changes it."""

    def __init__(self, budget: Budget, tool_tokens: int, model: str) -> None:
        self.tool_tokens, self._model = tool_tokens, model
        self.messages = reserve_for_tools(budget, tool_tokens)  # in the provider's tokens
        self._limit: int | None = None  # what fits, learned from a refusal; in our tokens

    def now(self, view: View) -> Budget:
        budget = calibrate_budget(self.messages, view, self.tool_tokens, self._model)
        if self._limit is None or self._limit >= budget.window:
            return budget
        return clamp_budget(budget, self._limit)

    def shrink(self, view: View, overflow: ContextOverflow) -> None:
        """Take less from now on, because this view was too long for the provider."""
        self._limit = shrink_budget(self.now(view), view, overflow).window


def shrink_budget(budget: Budget, view: View, overflow: ContextOverflow) -> Budget:
    """The limit that the provider gave, in tokens as we count them; three fifths of what did not
    fit when it gave none."""
    limit, asked = overflow.limit, overflow.asked
    if limit is not None and asked is not None:
        return clamp_budget(budget, view.tokens * limit * 9 // (asked * 10))
    if limit is not None and limit < budget.window:
        return clamp_budget(budget, limit)
    return clamp_budget(budget, view.tokens * 6 // 10)


def reserve_for_tools(budget: Budget, tokens: int) -> Budget:
    """The budget of the messages alone: without the tokens that the declared tools take."""
    return clamp_budget(budget, max(MIN_WINDOW, budget.window - tokens))


def clamp_budget(budget: Budget, window: int) -> Budget:
    return msgspec.structs.replace(
        budget,
        window=window,
        threshold=min(budget.threshold, window * 7 // 10),
        target=min(budget.target, window // 2),
        snapshot=min(budget.snapshot, max(300, window // 8)),
    )


def summarizer_from(model: Model) -> CallModel:
    """A function that sends messages and an instruction to the model and returns its text."""
    return ModelCaller.of(model)

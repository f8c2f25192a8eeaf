"""Makes the context fit the model's window: summaries, then a compaction, then `fit_view`.

A compaction is tried when the view is over its model's threshold; whatever comes of it, `fit_view`
finds a view below the window. Hooks run before and after, and may name text that a compaction has
to keep. Nothing is deleted: every step is an edit in the log.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

import msgspec

from recollect.agent.exchange import count_tools
from recollect.agent.hooks import Hooks
from recollect.compaction.budget import Budget, is_compaction_due
from recollect.compaction.proposal import Proposal
from recollect.compaction.view_reduction import fit_view
from recollect.entries import Compaction, CompactionTrigger
from recollect.errors import ContextOverflow
from recollect.hook_events import ChatCompressed, ContextWindowWillOverflow, PreCompress
from recollect.models.model_calls import call_model
from recollect.models.model_protocol import Model
from recollect.models.model_selection import CallModel
from recollect.session import Session
from recollect.session_compaction import compact
from recollect.store.ids import now
from recollect.tokens import Counter
from recollect.tools.tool import Tool
from recollect.view.elision_rules import ElisionRules
from recollect.view.view import View

MIN_WINDOW = 1_000  # tokens that the messages get, however many the tools take
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

    async def fit(self, session: Session, budget: Budget) -> ContextReduced | None:
        before, compaction = session.view().tokens, None
        await self._summarize_outputs(session, budget)
        if is_compaction_due(session.view(), budget):
            compaction = (await self.compact(session, budget)).compaction
            compaction = compaction if compaction.status != "NOOP" else None
        limit = int(budget.window * FILL_LIMIT)
        if session.view().tokens > limit:
            compaction = await self._force_fit(session, limit, budget) or compaction
        if compaction is None and session.view().tokens == before:
            return None
        return ContextReduced(before, session.view().tokens, compaction)

    async def _summarize_outputs(self, session: Session, budget: Budget) -> None:
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
        trigger: CompactionTrigger = "auto",
        instructions: str = "",
    ) -> Proposal:
        """Compact the session; whatever comes of it, unless there was nothing to do, is stored."""
        view, root = session.view(), self.rules.root
        event = PreCompress(session=session.id, trigger=trigger, tokens=view.tokens)
        decision = await self.hooks.fire(event)
        given = (instructions, decision.keep, decision.additional_context)
        wanted = "\n".join(filter(None, given))
        proposal = await compact(
            view, budget, self.summarizer, trigger=trigger, instructions=wanted, root=root
        )
        if proposal.compaction.status != "NOOP":
            await self._store_compaction(session, proposal.compaction)
        return proposal

    async def _store_compaction(self, session: Session, compaction: Compaction) -> None:
        await session.append(compaction, on_conflict="fork")
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
        for problem in fitted.problems:
            session.warn(problem)
        edits = fitted.edits
        for edit in edits:
            if isinstance(edit, Compaction):
                await self._store_compaction(session, edit)
            else:
                await session.append(edit, on_conflict="fork")
        return next((edit for edit in edits if isinstance(edit, Compaction)), None)


def shrink_budget(budget: Budget, view: View, overflow: ContextOverflow) -> Budget:
    """The limit that the provider gave, in tokens as we count them; three fifths of what did not
    fit when it gave none."""
    limit, asked = overflow.limit, overflow.asked
    if limit is not None and asked is not None:
        return clamp_budget(budget, view.tokens * limit * 9 // (asked * 10))
    if limit is not None and limit < budget.window:
        return clamp_budget(budget, limit)
    return clamp_budget(budget, view.tokens * 6 // 10)


def reserve_for_tools(budget: Budget, tools: Iterable[Tool], counter: Counter) -> Budget:
    """The budget without the tokens that the tools' declarations take."""
    declared = count_tools((tool.declaration for tool in tools), counter)
    return clamp_budget(budget, max(MIN_WINDOW, budget.window - declared))


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

    return partial(call_model, model)

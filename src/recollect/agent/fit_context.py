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

from recollect.agent.apply_compaction import store_compaction
from recollect.agent.hooks import Hooks
from recollect.compaction.budget import (
    MIN_WINDOW,
    Budget,
    calibrate_budget,
    is_compaction_due,
)
from recollect.compaction.compaction_range import CompactionRange
from recollect.compaction.proposal import (
    OnRound,
    Proposal,
    choose_cut,
    ignore_round,
    is_attempt_due,
)
from recollect.compaction.view_reduction import fit_view, shorten_newest
from recollect.entries import Compaction, CompactionTrigger, Restore
from recollect.errors import ContextOverflow
from recollect.hook_events import ContextWindowWillOverflow, PreCompress
from recollect.models.model_calls import ModelCaller
from recollect.models.model_protocol import Model
from recollect.models.model_selection import CallModel
from recollect.session import Session
from recollect.session_compaction import compact
from recollect.store.ids import now
from recollect.view.edit_reasons import with_handles
from recollect.view.elision_rules import ElisionRules, plan_elisions
from recollect.view.provider_counts import count_as_provider
from recollect.view.view import View

FILL_LIMIT = 0.95  # of the window; providers count somewhat differently


class CutPrompt(msgspec.Struct, frozen=True):
    """What the user said last, where that alone is larger than the window."""

    entry: str
    tokens: int
    shown: int  # tokens that the model sees of it


class ContextReduced(msgspec.Struct, frozen=True):
    """The context became smaller, by elisions or by a compaction. The tokens are those of a whole
    request as we count them: of its messages and of the tools' declarations."""

    before: int
    after: int
    compaction: Compaction | None = None
    because: str = ""  # what the provider said that made it necessary; empty: our own count did
    undone: str = ""  # the compaction that the user had undone, and that this one takes back
    cut_prompt: CutPrompt | None = None

    @staticmethod
    def between(before: View, after: View, tool_tokens: int, because: str) -> ContextReduced:
        tokens = before.tokens + tool_tokens, after.tokens + tool_tokens
        cut = _find_cut_prompt(before, after)
        return ContextReduced(*tokens, because=because, cut_prompt=cut)


def _find_cut_prompt(before: View, after: View) -> CutPrompt | None:
    """The newest prompt, if more is left out of it than before."""
    at = after.log.last_prompt(after.n)
    entry = after.log.entries[at].id if at >= 0 else ""
    was, now = before.state.changed.get(entry), after.state.changed.get(entry)
    tokens = after.log.tokens(at) if now is not None else 0
    if now is None or now.tokens >= (was.tokens if was is not None else tokens):
        return None
    return CutPrompt(entry, tokens, now.tokens)


def _find_undone_compaction(view: View) -> str:
    """The newest compaction, if the user undid it."""
    log, at = view.log, view.state.attempt
    if at < 0 or at in view.state.compactions:
        return ""
    newest, later = log.entries[at], (entry.body for entry in log.entries[at + 1 : view.n])
    undone = any(isinstance(body, Restore) and newest.id in body.entries for body in later)
    return newest.id if undone else ""


class ContextFitter(msgspec.Struct, frozen=True):
    rules: ElisionRules
    hooks: Hooks
    summarizer: CallModel | None  # none: snapshots are built by code alone
    summarized_tools: tuple[str, ...]
    summary_tokens: int
    warned: set[str] = msgspec.field(default_factory=set)  # problems that the user knows of

    async def fit(
        self, session: Session, budget: Budget, tool_tokens: int = 0, because: str = ""
    ) -> tuple[ContextReduced, ...]:
        """Make the next request fit; returns what the rules did and what a compaction did. The
        tools' tokens and the reason are for the reports: the budget is that of the messages."""
        limit, before = int(budget.window * FILL_LIMIT), session.view()
        await self._summarize_outputs(session, budget)
        await self._apply_rules(session, budget)
        huge = shorten_newest(session.view(), limit, budget, self.rules)
        await session.append(*huge, on_conflict="fork")
        between, compaction = session.view(), None
        if is_attempt_due(session.view(), budget):
            compaction = (await self.compact(session, budget, "auto")).compaction
            compaction = compaction if compaction.status != "NOOP" else None
        if session.view().tokens > limit:
            compaction = await self._force_fit(session, limit, budget) or compaction
        after, found = session.view(), list[ContextReduced]()
        if between.tokens != before.tokens:
            found.append(ContextReduced.between(before, between, tool_tokens, because))
        if compaction is not None or after.tokens != between.tokens:
            made = ContextReduced.between(between, after, tool_tokens, because)
            again = after.compaction is not None and after.compaction != between.compaction
            undone = _find_undone_compaction(between) if again else ""
            found.append(msgspec.structs.replace(made, compaction=compaction, undone=undone))
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
        part: CompactionRange | None = None,
    ) -> Proposal:
        """Compact the session, or a part of it; whatever comes of it is stored, unless there was
        nothing to do. Neither hooks nor a model are called where no cut is possible."""
        view, summarizer, wanted = session.view(), self.summarizer, instructions
        if choose_cut(view, budget, part=part) is None:
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
            part=part,
        )
        if proposal.compaction.status != "NOOP":
            await store_compaction(session, proposal.compaction, self.hooks)
        return proposal

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
            # pins that did not fit
            self._warn(session, (with_handles(found.reason),) if found.reason else ())
            await store_compaction(session, found, self.hooks)
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

    def explain(self, view: View) -> str:
        """What the provider said that makes these messages too many; empty if our own count does,
        or if they are not."""
        if not is_compaction_due(view, self.now(view)):
            return ""
        if self._limit is not None:
            return "the provider refused a longer request"
        if is_compaction_due(view, self.messages):
            return ""
        window = self.messages.window + self.tool_tokens
        count = count_as_provider(view, self.tool_tokens, self._model, most=2 * window)
        if count.last is None or count.basis == "ours":
            return f"the provider counted {count.calibration.factor:.2f} tokens for one of ours"
        reported, counted = count.last.reported, count.last.counted
        return f"the provider reported {reported:,} tokens for what we count as {counted:,}"

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

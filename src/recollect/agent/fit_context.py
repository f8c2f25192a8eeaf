"""Makes what is sent fit: rules, then a compaction, then whatever it takes.

A compaction is tried when the view is over its model's threshold, with a model's help where there
is one; whatever comes of it, `fit` finds a view below the window. Hooks hear of it before and
after, and may name text that has to be kept. Nothing is deleted: every step is an edit in the log.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Protocol

import msgspec

from recollect.agent.exchange import Session, message_text, user_message
from recollect.agent.hook_events import ChatCompressed, ContextWindowWillOverflow, PreCompress
from recollect.agent.hooks import Hooks
from recollect.codecs.wire_protocol import Generation, RequestOptions
from recollect.compaction.budget import Budget, is_compaction_due
from recollect.entries import Compaction, Message
from recollect.errors import ContextOverflow
from recollect.models.model_protocol import Model
from recollect.store.ids import now
from recollect.tokens import Counter
from recollect.tools.tool import Tool
from recollect.view.elision_rules import ElisionRules
from recollect.view.view import View

if TYPE_CHECKING:
    from recollect.agent.compactor import Summarizer

MIN_WINDOW = 1_000  # tokens for a conversation, however much the tools take
FILL_LIMIT = 0.95  # of the window; the rest is for what is counted otherwise by the provider


class ContextReduced(msgspec.Struct, frozen=True):
    """The view became smaller: by what was left out, or by a compaction."""

    before: int
    after: int
    compaction: Compaction | None = None


class FitResult(msgspec.Struct, frozen=True):
    talk: Session
    event: ContextReduced | None = None


class Means(Protocol):
    """What an agent has to make room with."""

    @property
    def rules(self) -> ElisionRules: ...

    @property
    def ask(self) -> Summarizer | None: ...

    @property
    def hooks(self) -> Hooks: ...

    @property
    def summarise(self) -> tuple[str, ...]: ...

    @property
    def summary_tokens(self) -> int: ...


async def fit_context(talk: Session, budget: Budget, means: Means) -> FitResult:
    before, found = talk.view.tokens, None
    talk = await _summarize_outputs(talk, budget, means)
    if is_compaction_due(talk.view, budget):
        talk, found = await _compact(talk, budget, means)
    limit = int(budget.window * FILL_LIMIT)
    if talk.view.tokens > limit:
        talk, made = await _force_fit(talk, limit, budget, means)
        found = made or found
    if found is None and talk.view.tokens == before:
        return FitResult(talk)
    if found is not None:
        await means.hooks.fire(_compressed_event(talk, found))
    return FitResult(talk, ContextReduced(before, talk.view.tokens, found))


async def _force_fit(
    talk: Session, limit: int, budget: Budget, means: Means
) -> tuple[Session, Compaction | None]:
    from recollect.compaction.view_reduction import fit_view

    tokens = talk.view.tokens
    told = ContextWindowWillOverflow(session=talk.session, time=now(), tokens=tokens, limit=limit)
    await means.hooks.fire(told)
    edits = fit_view(talk.view, limit, now(), means.rules, budget).edits
    if edits:
        talk = await talk.append(*edits)
    return talk, next((edit for edit in edits if isinstance(edit, Compaction)), None)


async def _summarize_outputs(talk: Session, budget: Budget, means: Means) -> Session:
    """Long output of the tools that are to be summed up, by whoever writes snapshots."""
    if not means.summarise or means.ask is None:
        return talk
    from recollect.agent.output_summaries import INPUT_LIMIT, plan_summaries

    named, limit = means.summarise, means.summary_tokens
    room = min(
        INPUT_LIMIT, budget.window // 2
    )  # a small model would be asked for more than it takes
    edits = await plan_summaries(talk.view, means.ask, named, limit, room=room)
    return await talk.append(*edits) if edits else talk


async def _compact(
    talk: Session, budget: Budget, means: Means
) -> tuple[Session, Compaction | None]:
    from recollect.agent.compactor import compact

    asked = PreCompress(session=talk.session, time=now(), trigger="auto", tokens=talk.view.tokens)
    decision = await means.hooks.fire(asked)
    proposal = await compact(
        talk.view,
        budget,
        means.ask,
        trigger="auto",
        instructions="\n".join(filter(None, (decision.keep, decision.additional_context))),
        root=means.rules.root,
    )
    if proposal.compaction.status == "NOOP":
        return talk, None
    return await talk.append(proposal.compaction), proposal.compaction


def _compressed_event(talk: Session, made: Compaction) -> ChatCompressed:
    return ChatCompressed(
        session=talk.session,
        time=now(),
        status=made.status,
        trigger=made.trigger,
        tokens_before=made.tokens_before,
        tokens_after=made.tokens_after,
    )


def shrink_budget(budget: Budget, view: View, overflow: ContextOverflow) -> Budget:
    """What fits by the provider's word, in tokens as we count them; without one, three fifths of
    what did not fit."""
    limit, asked = overflow.limit, overflow.asked
    if limit is not None and asked is not None:
        return clamp_budget(budget, view.tokens * limit * 9 // (asked * 10))
    if limit is not None and limit < budget.window:
        return clamp_budget(budget, limit)
    return clamp_budget(budget, view.tokens * 6 // 10)


def reserve_for_tools(budget: Budget, tools: Iterable[Tool], counter: Counter) -> Budget:
    """What is left for the conversation when the tools are declared as well."""
    told = [each.declaration for each in tools]
    texts = (f"{each.name} {each.description} {each.parameters}" for each in told)
    return clamp_budget(budget, max(MIN_WINDOW, budget.window - sum(map(counter.text, texts))))


def clamp_budget(budget: Budget, window: int) -> Budget:
    return msgspec.structs.replace(
        budget,
        window=window,
        threshold=min(budget.threshold, window * 7 // 10),
        target=min(budget.target, window // 2),
        snapshot=min(budget.snapshot, max(300, window // 8)),
    )


async def reload(talk: Session) -> Session:
    new = await talk.store.path(talk.session, since=talk.view.head)
    return talk._replace(view=talk.view.append(*new))


def summarizer_from(model: Model, generation: Generation | None = None) -> Summarizer:
    """A model as the one who writes snapshots."""

    async def ask(messages: Sequence[Message], instruction: str) -> str:
        prompt = RequestOptions(model=model.name, generation=generation or Generation())
        asked = (*messages, user_message(instruction))
        async with aclosing(model.stream(asked, prompt)) as events:
            async for event in events:
                if isinstance(event, Message):
                    return message_text(event)
        return ""

    return ask

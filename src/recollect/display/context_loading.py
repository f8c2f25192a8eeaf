"""A context report for a screen: at once from the session at hand, completed behind it.

Nothing here holds the event loop: what takes long and reads no store runs in a thread, on copies
that nobody else has.
"""

from __future__ import annotations

import asyncio

from recollect.agent.exchange import count_tools
from recollect.display.context_report import ContextReport, prepare_next
from recollect.display.short_ids import shorten_session_id
from recollect.models.resolve import ResolvedModel
from recollect.runtime.model_choice import next_model
from recollect.runtime.prepare_apart import own_copy
from recollect.runtime.runtime import Runtime
from recollect.session import Session
from recollect.tokens import counter_for
from recollect.view.view import View
from recollect.view_loader import fold_stored, load_view


async def open_report(runtime: Runtime, session: Session, named: str = "") -> ContextReport:
    """What the model sees now, counted for the model that answers next."""
    entries = session.view().entries
    info = await session.info()
    model = await asyncio.to_thread(next_model, runtime.settings, entries, named)
    view = await fold_stored(runtime.store, entries, counter_for(model.name), runtime.curation)
    tools = await asyncio.to_thread(_count_tools, runtime, model, view)
    short = await shorten_session_id(runtime.store, info.id)
    budget, known = runtime.budget(model), runtime.knows_window(model)
    report = ContextReport(info, short, view, model, budget, known, tools)
    await asyncio.to_thread(_warm, report)
    return report


def _count_tools(runtime: Runtime, model: ResolvedModel, view: View) -> int:
    return count_tools(runtime.declared_tools(model), view.log.counter)


def _warm(report: ContextReport) -> None:
    """Work out what the view computes once."""
    view = report.view
    assert view.tokens >= 0
    assert len(view.items) <= view.n + 2


async def add_replaced(runtime: Runtime, report: ContextReport) -> ContextReport:
    """With the view before the compaction in force, if there is one."""
    compaction, counter = report.view.compaction, report.view.log.counter
    if compaction is None or compaction.parent is None:
        return report
    before = await load_view(
        runtime.store,
        report.session.id,
        at=compaction.parent,
        counter=counter,
        policy=runtime.curation,
    )
    report = report._replace(before_compaction=before)
    await asyncio.to_thread(lambda: before.items)
    return report


async def add_next(runtime: Runtime, report: ContextReport) -> ContextReport:
    """With what the next request adds and leaves out."""
    apart = report._replace(view=own_copy(report.view))
    return report._replace(next=await prepare_next(runtime, apart, ""))

"""Previews beside the event loop: the next request of a session, and a proposed compaction.

Both go over the whole history: with thousands of entries that takes a second or two, in which a
screen would stand still.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import TypeVar

from recollect.agent.agent_run import Prompt
from recollect.agent.prepared_request import PreparedRequest
from recollect.compaction.compaction_range import CompactionRange
from recollect.compaction.proposal import OnRound, Proposal, ignore_round
from recollect.models.resolve import ResolvedModel
from recollect.runtime.prompt_run import DEFAULT_OPTIONS, RunOptions
from recollect.runtime.runtime import Runtime
from recollect.session import Session
from recollect.view.view import View
from recollect.view_loader import LONG

T = TypeVar("T")


async def prepare_apart(
    runtime: Runtime,
    session: Session,
    model: ResolvedModel,
    prompt: Prompt = None,
    options: RunOptions = DEFAULT_OPTIONS,
) -> PreparedRequest:
    """As `Runtime.prepare`; a long session is prepared in a thread, on a copy of its view."""
    if session.view().n < LONG:
        return await runtime.prepare(session, model, prompt, options)
    await session.count_for(model.name)
    return await work_apart(
        runtime, session, lambda own, copy: own.prepare(copy, model, prompt, options)
    )


async def propose_apart(
    runtime: Runtime,
    session: Session,
    model: ResolvedModel,
    *,
    target: int | None = None,
    instructions: str = "",
    use_model: bool = True,
    on_round: OnRound = ignore_round,
    part: CompactionRange | None = None,
) -> Proposal:
    """The preview of `Runtime.compact`; cancelling it ends a model's writing."""
    await session.count_for(model.name)
    loop = asyncio.get_running_loop()

    def tell(number: int, count: int) -> None:
        loop.call_soon_threadsafe(on_round, number, count)

    return await work_apart(
        runtime,
        session,
        lambda own, copy: own.compact(
            copy,
            model,
            target=target,
            instructions=instructions,
            use_model=use_model,
            preview=True,
            on_round=tell,
            part=part,
        ),
    )


async def work_apart(
    runtime: Runtime, session: Session, work: Callable[[Runtime, Session], Awaitable[T]]
) -> T:
    """Do what writes nothing in a thread with an event loop of its own, on copies that nobody else
    has. If this is cancelled, the work is."""
    loop, running = asyncio.get_running_loop(), list[asyncio.Task[object]]()
    cancelled = threading.Event()

    def warn(text: str) -> None:
        loop.call_soon_threadsafe(runtime.door.warn, text)

    copy = Session(session.store, session.id, own_copy(session.view()), warn)
    own = runtime.for_thread(warn)

    async def run() -> T:
        task = asyncio.current_task()
        assert task is not None
        running.append(task)
        if cancelled.is_set():
            raise asyncio.CancelledError
        try:
            return await work(own, copy)
        finally:
            await own.aclose()

    try:
        return await asyncio.to_thread(lambda: asyncio.run(run()))
    except asyncio.CancelledError:
        cancelled.set()
        for task in running:
            task.get_loop().call_soon_threadsafe(task.cancel)
        raise


def own_copy(view: View) -> View:
    """The same view with a log of its own, for another thread."""
    return View(view.log.first(view.n), view.n, view.policy, view.state)

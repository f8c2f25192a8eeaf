"""Runs the prompts of one session on a server, one after the other.

A worker activates its session for the first prompt, with its hooks, mirror and commands, and closes
it when no prompt has come for a while. It ends with every run settled, however it ends.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from contextlib import aclosing
from typing import TYPE_CHECKING

from recollect.errors import RecollectError, ServerBusy
from recollect.runtime.permission_policy import ApprovalRequest
from recollect.runtime.prompt_run import ActiveSession
from recollect.runtime.runtime import Door, Runtime
from recollect.server.access import LOST_ACCESS
from recollect.server.problem_kinds import client_sentence
from recollect.server.prompt_queue import PromptRun, RunFailed
from recollect.session import Session

if TYPE_CHECKING:
    from recollect.server.session_hub import SessionHub

_log = logging.getLogger("recollect.server")


class SessionWorker:
    """Runs the prompts of one session, one after the other, and ends when there are no more."""

    def __init__(self, hub: SessionHub, session: str) -> None:
        self._hub, self._session = hub, session
        self._waiting: deque[PromptRun] = deque()
        self._news = asyncio.Event()
        self._current: PromptRun | None = None
        self.task = asyncio.create_task(self._work(), name=f"session {session}")

    def add(self, run: PromptRun) -> None:
        if len(self._waiting) >= self._hub.limits.queued:
            queued = len(self._waiting)
            raise ServerBusy(f"{queued} prompts wait in this session", "wait for their answers")
        self._waiting.append(run)
        self._hub.counts.queued += 1
        self._news.set()

    async def _work(self) -> None:
        hub = self._hub
        try:
            while await self._next_is_there():
                await self._serve()
        finally:
            hub.forget_worker(self._session)
            while self._waiting:
                run = self._take()
                run.cancel()
                hub.forget(run)

    async def _next_is_there(self) -> bool:
        if not self._waiting:
            self._news.clear()
            try:
                await asyncio.wait_for(self._news.wait(), self._hub.limits.idle_seconds)
            except TimeoutError:
                return False
        return True

    def _take(self) -> PromptRun:
        self._hub.counts.queued -= 1
        return self._waiting.popleft()

    async def _serve(self) -> None:
        """Run prompts while they come, in one activation: with its hooks, mirror and commands."""
        first = self._waiting[0]
        can_ask = first.approval_seconds > 0
        try:
            session = await self._hub.runtime.session(self._session)
            owner = (await self._hub.store.session(self._session)).owner
            approve = self._approve if can_ask else None
            door = Door(warn=self._warn, approve=approve, owner=owner)
            async with self._hub.runtime.for_door(door).activate(session) as active:
                while await self._next_is_there():
                    if (self._waiting[0].approval_seconds > 0) != can_ask:
                        return  # other people to ask: another activation
                    await self._run(self._take(), active)
                    if active.session.id != self._session:
                        return  # another server continued the session; this one went on in a fork
        except RecollectError as error:
            self._fail_first(error)

    def _fail_first(self, error: RecollectError) -> None:
        """The session could not be opened or activated: the prompt that wanted it failed."""
        if self._waiting:
            self._hub.settle(self._take(), RunFailed(client_sentence(error), error=error))
        else:
            _log.warning("session %s: %s", self._session, error)

    async def _run(self, run: PromptRun, active: ActiveSession) -> None:
        counts, hub = self._hub.counts, self._hub
        if not hub.admits(run):  # its token was removed while it waited
            run.cancel(LOST_ACCESS)
        if run.done:  # cancelled while it waited
            hub.forget(run)
            return
        counts.running += 1
        self._current = run
        run.task = asyncio.create_task(_stream(run, active, hub))
        try:
            await asyncio.wait([run.task])
        except asyncio.CancelledError:  # the server stops
            run.task.cancel()
            await asyncio.wait([run.task])
            raise
        finally:
            self._current = None
            counts.running -= 1
            hub.settle(run, end_of(run, run.task))

    async def _approve(self, request: ApprovalRequest) -> bool:
        return self._current is not None and await self._current.approve(request)

    def _warn(self, text: str) -> None:
        _log.warning("session %s: %s", self._session, text)


async def _stream(run: PromptRun, active: ActiveSession, hub: SessionHub) -> None:
    if run.head is None or run.head != active.session.view().head:
        await active.session.reload()  # where this misses another writer, the append does not
    prompt = run.prompt
    if isinstance(prompt, str):
        prompt = await hub.prompt_message(prompt)
    async with aclosing(active.stream(prompt, run.options)) as events:
        async for event in events:
            run.publish(event)


async def stream_scratch(run: PromptRun, session: Session, runtime: Runtime) -> None:
    async with (
        runtime.activate(session) as active,
        aclosing(active.stream(run.prompt, run.options)) as events,
    ):
        async for event in events:
            run.publish(event)


def end_of(run: PromptRun, task: asyncio.Task[None]) -> RunFailed | None:
    """The event for a run that ended without a result."""
    if task.cancelled():
        return run.cancelled()
    error = task.exception()
    if error is None:
        return None
    if isinstance(error, RecollectError):
        return RunFailed(client_sentence(error), error=error)
    _log.error("a run failed unexpectedly", exc_info=error)
    return RunFailed("an internal error; the server's log has it")

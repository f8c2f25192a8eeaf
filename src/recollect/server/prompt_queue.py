"""One prompt on its way through a server: its events, its approvals, its end.

Events stay in one list that every reader goes through at its own pace, so a slow or late reader
costs nothing and misses nothing. The last event is a `RunResult` or a `RunFailed`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import TypeAlias

import msgspec

from recollect.agent.agent_run import Prompt
from recollect.errors import NotFound, RecollectError
from recollect.runtime.permission_policy import ApprovalRequest
from recollect.runtime.prompt_run import RunEvent, RunOptions, RunResult
from recollect.server.access import Identity
from recollect.store.ids import new_id, now
from recollect.text import one_line


class ApprovalRequested(msgspec.Struct, frozen=True):
    """A tool call waits for a client's yes; without an answer by `expires` it is a no."""

    id: str
    request: ApprovalRequest
    expires: int  # milliseconds since 1970


class ApprovalDecided(msgspec.Struct, frozen=True):
    id: str
    allowed: bool
    by: str  # the name of who answered, or `timeout`


class RunFailed(msgspec.Struct, frozen=True):
    """The last event of a run without a result: it was cancelled, or raised an error."""

    message: str
    cancelled: bool = False
    error: RecollectError | None = None


ServerEvent: TypeAlias = RunEvent | ApprovalRequested | ApprovalDecided | RunFailed


def describe_end(run: PromptRun) -> str:
    """A run that has ended, for the log: whose, where, how long, with what result. Nothing of what
    was said is in it."""
    about = f"prompt of {run.owner or 'the user'} in session {run.session}"
    seconds, end = (now() - run.created) / 1_000, run.last_event
    if isinstance(end, RunResult):
        usage, denied = end.usage, len(end.denials)
        result = f"{end.finished.reason} by {end.model.name}"
        result += f", {usage.input} + {usage.output} tokens"
        result += f", {denied} calls denied" if denied else ""
    elif isinstance(end, RunFailed) and not end.cancelled:
        result = f"failed: {one_line(end.message, 300)}"
    else:
        result = "cancelled"
    return f"{about}: {result}, after {seconds:.1f} s"


class PromptRun:
    """A prompt that was accepted; it runs after those before it in its session."""

    def __init__(
        self,
        session: str,
        prompt: Prompt,
        options: RunOptions,
        *,
        who: Identity,
        approval_seconds: float,  # 0: nobody can be asked
    ) -> None:
        self.id, self.session, self.who, self.created = new_id(), session, who, now()
        self.prompt, self.options, self.approval_seconds = prompt, options, approval_seconds
        self.head: str | None = None  # of the session, when the prompt was accepted
        self.task: asyncio.Task[None] | None = None  # while it runs
        self._why = ""  # it was cancelled, if there is more to say
        self._events: list[ServerEvent] = []
        self._news = asyncio.Event()
        self._approvals: dict[str, asyncio.Future[tuple[bool, str]]] = {}

    @property
    def owner(self) -> str:
        """The name of the token that sent it; empty: the user's own."""
        return self.who.name

    @property
    def length(self) -> int:
        """How many events there are so far."""
        return len(self._events)

    @property
    def done(self) -> bool:
        return bool(self._events) and isinstance(self._events[-1], RunResult | RunFailed)

    @property
    def last_event(self) -> ServerEvent | None:
        return self._events[-1] if self._events else None

    def publish(self, event: ServerEvent) -> None:
        self._events.append(event)
        news, self._news = self._news, asyncio.Event()
        news.set()

    async def events(self, start: int = 0) -> AsyncIterator[ServerEvent]:
        """Every event from number `start` on, to the last one."""
        position = start
        while True:
            news = self._news
            while position < len(self._events):
                position += 1
                yield self._events[position - 1]
            if self.done:
                return
            await news.wait()

    async def batches(self) -> AsyncIterator[Sequence[ServerEvent]]:
        """Every event, those together that are there at the same moment."""
        position = 0
        while True:
            news, found = self._news, self._events[position:]
            position += len(found)
            if found:
                yield found
            elif self.done:
                return
            else:
                await news.wait()

    async def wait(self) -> RunResult | RunFailed:
        async for event in self.events(max(0, len(self._events) - 1)):
            if isinstance(event, RunResult | RunFailed):
                return event
        raise AssertionError("the last event of a run is its end")

    def cancel(self, why: str = "") -> None:
        """Stop it: what has come of the reply is kept, marked as interrupted."""
        if self.done:
            return
        if self.task is None:
            self.publish(_cancelled("cancelled before it began", why))
        else:
            self._why = why
            self.task.cancel()

    def cancelled(self) -> RunFailed:
        """How it ends whose task was cancelled."""
        return _cancelled("cancelled", self._why)

    async def approve(self, request: ApprovalRequest) -> bool:
        """Ask the clients; without an answer in time the answer is no."""
        approval = new_id()
        answer: asyncio.Future[tuple[bool, str]] = asyncio.get_running_loop().create_future()
        self._approvals[approval] = answer
        expires = now() + int(self.approval_seconds * 1000)
        self.publish(ApprovalRequested(approval, request, expires))
        try:
            allowed, by = await asyncio.wait_for(answer, self.approval_seconds)
        except TimeoutError:
            allowed, by = False, "timeout"
        finally:
            del self._approvals[approval]
        self.publish(ApprovalDecided(approval, allowed, by))
        return allowed

    def answer(self, approval: str, *, allowed: bool, by: str) -> None:
        waiting = self._approvals.get(approval)
        if waiting is None or waiting.done():
            raise NotFound(f"no approval {approval!r} is waiting: it was answered, or timed out")
        waiting.set_result((allowed, by))


def _cancelled(what: str, why: str) -> RunFailed:
    return RunFailed(f"{what}: {why}" if why else what, cancelled=True)

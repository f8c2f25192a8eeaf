"""The sessions of a server, for every protocol: who sees them, and the prompts that run in them.

One session's prompts run in order, those of different sessions at the same time. Nothing here is
the only copy of anything: a prompt's words, its reply and its results are in the log, and another
server on the same store can go on with any session. Closing stops what runs; what had come of a
reply is kept, marked as interrupted.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, deque

import msgspec

from recollect.agent.agent_run import Prompt
from recollect.entries import Message
from recollect.errors import (
    AmbiguousId,
    BadInput,
    NotFound,
    ServerBusy,
    UnknownSession,
)
from recollect.runtime.prompt_run import DEFAULT_OPTIONS, RunOptions, RunResult
from recollect.runtime.runtime import Door, Runtime
from recollect.server.access import (
    APPROVAL_RIGHT,
    CHECK_SECONDS,
    LOST_ACCESS,
    AccessTokens,
    Identity,
)
from recollect.server.allowance import Allowance
from recollect.server.prompt_queue import PromptRun, RunFailed, describe_end
from recollect.server.session_worker import SessionWorker, end_of, stream_scratch
from recollect.session import Session
from recollect.store.contract import SessionInfo, Store
from recollect.store.ids import normalize_id
from recollect.transcripts.find_session import refuse_trashed, session_by_id

_log = logging.getLogger("recollect.server")


class HubLimits(msgspec.Struct, frozen=True):
    """What one server accepts at a time."""

    queued: int = 20  # prompts waiting in one session
    running: int = 1_000  # prompts at the same time, in all sessions; of one client, half of them
    kept_events: int = 50_000  # of ended runs, in memory for readers that come back,
    kept_runs: int = 64  # and of at most so many: each may hold its session
    session_burst: int = 10_000  # sessions that a named token may make at once,
    sessions_per_second: float = 20.0  # and from then on
    idle_seconds: float = 30.0  # until the commands and hooks of a session are closed
    approval_seconds: float = 300.0


class HubCounts(msgspec.Struct):
    """For the metrics."""

    prompts: int = 0
    running: int = 0
    queued: int = 0
    failed: int = 0
    cancelled: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    connections: int = 0  # of NPLT clients, now
    refused_connections: int = 0


class SessionHub:
    """Finds sessions for clients, and runs their prompts."""

    def __init__(
        self,
        runtime: Runtime,
        limits: HubLimits = HubLimits(),  # noqa: B008 - a frozen value
        model: str = "",  # of prompts that name none; empty: the settings choose
        tokens: AccessTokens | None = None,  # none: a client that was let in stays
    ) -> None:
        self.runtime, self.limits, self.model, self._tokens = runtime, limits, model, tokens
        self.counts = HubCounts()
        # what a prompt mentions is not for the log, and its message says what was not read
        self.quiet = runtime.for_door(Door(warn=_log.debug))
        self._workers: dict[str, SessionWorker] = {}
        self._runs: dict[str, PromptRun] = {}  # by id, those that are not done
        self._of_owner: Counter[str] = Counter()  # how many of those
        self._finished: deque[PromptRun] = deque()
        self._kept_events = 0
        self._scratch_tasks = set[asyncio.Task[None]]()
        self._token_watch: asyncio.Task[None] | None = None
        self._new_sessions: dict[str, Allowance] = {}  # by owner
        self._closing = False

    @property
    def store(self) -> Store:
        return self.runtime.store

    # --- sessions --------------------------------------------------------------------------------

    async def find(self, who: Identity, given: str) -> SessionInfo:
        """The session with this id, or part of it, or with this id in the program it came from.
        Somebody else's does not exist."""
        who.require("read")
        try:
            found = await session_by_id(self.store, given)
        except AmbiguousId as vague:
            if who.all_sessions:
                raise
            found = await self._only_own(who, given, vague)
        if not who.sees(found):
            raise UnknownSession(given)
        return found

    async def _only_own(self, who: Identity, given: str, vague: AmbiguousId) -> SessionInfo:
        """Of several sessions that match, the client's; the error names only the first of all."""
        named = [await self.store.session(one) for one in vague.candidates]
        wanted = normalize_id(given)
        for trashed in (False, True):
            all_own = await self.store.sessions(owner=who.owner, trashed=trashed)
            named += [
                one for one in all_own if one.id.startswith(wanted) or one.id.endswith(wanted)
            ]
        own = list({info.id: info for info in named if who.sees(info)}.values())
        if not own:
            raise UnknownSession(given)
        if len(own) > 1:
            raise AmbiguousId(given, [info.id for info in own], [info.title for info in own])
        return own[0]

    async def find_writable(self, who: Identity, given: str) -> SessionInfo:
        who.require("chat")
        return await refuse_trashed(self.store, await self.find(who, given))

    async def sessions(
        self,
        who: Identity,
        *,
        limit: int,
        before: tuple[int, str] | None = None,
        trashed: bool = False,
    ) -> tuple[SessionInfo, ...]:
        who.require("read")
        return await self.store.sessions(
            owner=who.owner, limit=limit, before=before, trashed=trashed
        )

    async def create(
        self,
        who: Identity,
        title: str = "",
        *,
        id: str | None = None,  # noqa: A002
    ) -> SessionInfo:
        self.check_new_session(who)
        project = self.runtime.project
        return await self.store.create(project=project, title=title, id=id, owner=who.name)

    def check_new_session(self, who: Identity) -> None:
        """Raise if this client may make no session, or has made too many in a short time."""
        who.require("chat")
        if not who.name:
            return  # the user's own
        burst, rate = self.limits.session_burst, self.limits.sessions_per_second
        allowance = self._new_sessions.setdefault(who.name, Allowance(rate, burst))
        if wait := allowance.take(1):
            made = f"{who.name} has made {burst:,} sessions in a short time, which is the limit"
            raise ServerBusy(made, f"use one of them, or try again in {max(1, round(wait))} s")

    async def open(self, session: SessionInfo) -> Session:
        """A handle on a session that `find` gave."""
        return await self.runtime.session(session.id)

    # --- prompts ---------------------------------------------------------------------------------

    async def prompt(
        self,
        who: Identity,
        session: SessionInfo,
        prompt: Prompt,
        options: RunOptions = DEFAULT_OPTIONS,
        *,
        can_approve: bool = False,
    ) -> PromptRun:
        """Accept a prompt for a session that `find_writable` gave. `can_approve`: the client shows
        approval requests to a user and sends the answer; a client that may not answer is not
        asked."""
        if isinstance(prompt, str) and not prompt.strip():
            raise BadInput("the prompt is empty; nothing was sent")
        if not options.model and self.model:
            options = msgspec.structs.replace(options, model=self.model)
        can_approve = can_approve and who.may(APPROVAL_RIGHT)
        seconds = self.limits.approval_seconds if can_approve else 0.0
        run = PromptRun(session.id, prompt, options, who=who, approval_seconds=seconds)
        run.head = session.head
        self.check_limits(who)
        worker = self._workers.get(session.id)
        if worker is None:
            worker = self._workers[session.id] = SessionWorker(self, session.id)
        worker.add(run)
        self._count(run)
        return run

    async def prompt_message(self, text: str) -> Message:
        """A client's message, with the files of the folder that it mentions."""
        found = await self.quiet.prompt_message(text)
        assert found is not None
        return found

    async def prompt_scratch(
        self, who: Identity, session: Session, prompt: Prompt, options: RunOptions
    ) -> PromptRun:
        """Run a prompt at once in a scratch session: nothing of it is stored."""
        if not options.model and self.model:
            options = msgspec.structs.replace(options, model=self.model)
        run = PromptRun(session.id, prompt, options, who=who, approval_seconds=0.0)
        self.check_limits(who)
        self._count(run)
        task = asyncio.create_task(self._run_scratch(run, session), name=f"scratch {run.id}")
        self._scratch_tasks.add(task)
        task.add_done_callback(self._scratch_tasks.discard)
        return run

    async def _run_scratch(self, run: PromptRun, session: Session) -> None:
        self.counts.running += 1
        run.task = asyncio.create_task(stream_scratch(run, session, self.runtime))
        await asyncio.wait([run.task])
        self.counts.running -= 1
        self.settle(run, end_of(run, run.task))

    def check_limits(self, who: Identity) -> None:
        """Raise if a prompt of this client would be refused."""
        who.require("chat")
        if self._closing:
            raise ServerBusy("the server is stopping", "connect again in a moment")
        if len(self._runs) >= self.limits.running:
            raise ServerBusy(f"{len(self._runs)} prompts are running", "try again in a moment")
        own, most = self._of_owner[who.name], max(1, self.limits.running // 2)
        if own >= most:  # the rest is for others
            raise ServerBusy(f"{own} of your prompts are running", "wait for their answers")

    def admits(self, run: PromptRun) -> bool:
        """Whether the token that sent a prompt still may."""
        return self._tokens is None or self._tokens.admits(run.who)

    async def _watch_tokens(self) -> None:
        """While prompts run or wait: stop those of tokens that were removed or changed."""
        while self._runs:
            await asyncio.sleep(CHECK_SECONDS)
            for run in list(self._runs.values()):
                if not self.admits(run):
                    run.cancel(LOST_ACCESS)
        self._token_watch = None

    def _count(self, run: PromptRun) -> None:
        self._runs[run.id] = run
        self._of_owner[run.owner] += 1
        self.counts.prompts += 1
        if self._tokens is not None and self._token_watch is None:
            self._token_watch = asyncio.create_task(self._watch_tokens(), name="prompts' tokens")

    def run(self, who: Identity, given: str) -> PromptRun:
        """A run that is in progress, or ended a short time ago."""
        found = self._runs.get(given)
        if found is None:
            found = next((run for run in self._finished if run.id == given), None)
        if found is None or (found.owner != who.name and not who.all_sessions):
            raise NotFound(f"no run {given!r} on this server; the session's entries have its reply")
        return found

    def runs_of(self, session: str) -> tuple[PromptRun, ...]:
        """The runs of a session that have not ended, in their order."""
        return tuple(run for run in self._runs.values() if run.session == session)

    def forget(self, run: PromptRun) -> None:
        """A worker has ended this run."""
        if self._runs.pop(run.id, None) is not None:
            self._of_owner[run.owner] -= 1
        end = run.last_event
        failed = isinstance(end, RunFailed) and not end.cancelled
        if _log.isEnabledFor(level := logging.WARNING if failed else logging.INFO):
            _log.log(level, "%s", describe_end(run))
        self._finished.append(run)
        self._kept_events += run.length
        limits = self.limits
        while self._kept_events > limits.kept_events or len(self._finished) > limits.kept_runs:
            self._kept_events -= self._finished.popleft().length

    def settle(self, run: PromptRun, failed: RunFailed | None) -> None:
        """A run has ended, with its result if it has not failed: tell its readers, and count."""
        counts = self.counts
        if failed is not None:
            run.publish(failed)
            counts.cancelled += failed.cancelled
            counts.failed += not failed.cancelled
        elif isinstance(run.last_event, RunResult):
            counts.input_tokens += run.last_event.usage.input
            counts.output_tokens += run.last_event.usage.output
        self.forget(run)

    def forget_worker(self, session: str) -> None:
        self._workers.pop(session, None)

    async def close(self) -> None:
        """Stop every run and wait until what came of it is stored."""
        self._closing = True
        workers = [worker.task for worker in self._workers.values()]
        for run in list(self._runs.values()):
            run.cancel()
        for task in workers:
            task.cancel()
        watching = [self._token_watch] if self._token_watch is not None else []
        for task in watching:
            task.cancel()
        await asyncio.gather(*workers, *self._scratch_tasks, *watching, return_exceptions=True)

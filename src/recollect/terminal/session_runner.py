"""The session that a terminal works in: opens it, runs its prompts one after the other, and tells
everything that happens.

The terminal screen and the line-based program both stand on it and hold no state of a session
themselves. A prompt is on disk before a model is called; nothing that is queued is lost by an
interrupt. The session of a new terminal is stored with its first prompt, so that looking costs
nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import aclosing, closing, suppress
from pathlib import Path
from typing import TypeVar

import msgspec

from recollect.entries import Usage
from recollect.errors import RecollectError
from recollect.runtime.permission_policy import ApprovalAnswer, ApprovalRequest
from recollect.runtime.prompt_run import ActiveSession, RunResult, SessionOrigin
from recollect.runtime.runtime import Door, Overrides, Runtime, open_runtime
from recollect.runtime.session_claims import (
    SessionClaim,
    SessionHolder,
    claim_session,
    find_holder,
)
from recollect.runtime.session_model import model_choice
from recollect.session import Session
from recollect.terminal.found_passage import FoundPassage
from recollect.terminal.own_command import run_own_command
from recollect.terminal.queue_file import QueueFile
from recollect.terminal.queued_prompts import QueuedPrompts
from recollect.terminal.session_approvals import SessionApprovals
from recollect.terminal.shown_proposals import ShownProposals
from recollect.terminal.start_options import StartOptions
from recollect.terminal.terminal_events import (
    DownloadProgressed,
    ModeChanged,
    NoticeGiven,
    PassageWanted,
    PromptEnded,
    PromptStarted,
    QueueChanged,
    QueuedPrompt,
    SessionHeld,
    SessionOpened,
    SessionReloaded,
    TerminalEvent,
)
from recollect.terminal.wanted_session import FoundSession, TerminalBusy, WantedSession
from recollect.terminal.watching import HeldElsewhere, follow_appends, watch_claim
from recollect.tokens import add_usage
from recollect.workspace.sent_files import Attachable

T = TypeVar("T")


class SessionRunner(QueuedPrompts):
    """`run` serves until `close`; every event goes to `notify`, in order."""

    def __init__(self, options: StartOptions, notify: Callable[[TerminalEvent], None]) -> None:
        super().__init__(notify)
        self.options = options
        self.run_options = options.run  # of the next prompt: model, instructions, limits
        self.overrides = options.overrides
        self.session: Session | None = None
        self.active: ActiveSession | None = None
        self.holder: SessionHolder | None = None  # of the session: it is watched, not changed
        self._found: FoundSession | None = None  # the wanted session, opened already
        self._runtime: Runtime | None = None
        self._opened = asyncio.Event()  # there is a runtime, or there never will be
        self.approvals = SessionApprovals()
        self.usage = Usage()  # of the prompts that ran here
        self.shown = ShownProposals()
        self._wanted: WantedSession | None = WantedSession(options.session, options.fork)
        self._target: str | None = None  # the session that is being opened, or was last
        self._turn: asyncio.Task[None] | None = None
        self.may_be_unrestricted = False  # it was started without a sandbox
        self._warned: set[str] = set()
        self._lock = asyncio.Lock()  # edits, and the prompts, follow each other

    @property
    def busy(self) -> bool:
        return self._turn is not None

    @property
    def closing(self) -> bool:
        return self._closing

    @property
    def runtime(self) -> Runtime:
        assert self._runtime is not None, "wait for `opened` first"
        return self._runtime

    async def opened(self) -> Runtime:
        """The runtime, as soon as its store is open."""
        await self._opened.wait()
        if self._runtime is None:
            raise RecollectError("the store could not be opened")
        return self._runtime

    def send(
        self,
        text: str,
        attachments: tuple[Attachable, ...] = (),
        *,
        model: str = "",
        is_command: bool = False,
    ) -> QueuedPrompt:
        """Queue a prompt, or a command line of the user's own. It runs at once if nothing else
        does, and before those that are held: it is the user's answer to what held them. A session
        that is open elsewhere refuses it, unless the other terminal has left."""
        if self.is_released:
            self.take_over()
        else:
            self._refuse_held()
        return self._enqueue(text, attachments, model, is_command=is_command)

    def interrupt(self) -> bool:
        """Stop the prompt that runs; what has come is kept. Whether there was one."""
        if self._turn is None:
            return False
        self._turn.cancel()
        return True

    def open(self, given: str | None, *, fork: bool = False) -> None:
        """Go to another session, or to a new one; prompts that wait are sent there."""
        self._want(WantedSession(given, fork))

    def open_passage(self, passage: FoundPassage) -> None:
        """Go to what a search found, in this session or in another one."""
        here = self.session is not None and self.session.id == passage.session
        if here and self.holder is None:
            self.notify(PassageWanted(passage))
        else:
            self._want(WantedSession(passage.session, passage=passage))

    def _want(self, wanted: WantedSession) -> None:
        if self.busy:
            raise TerminalBusy("change the session")
        self._wanted = wanted
        self._news.set()

    @property
    def is_moving(self) -> bool:
        """Whether a session is wanted that is not open yet."""
        return self._wanted is not None or (self._target is not None and self.session is None)

    @property
    def is_released(self) -> bool:
        """Whether the session is watched, and the other terminal has left it."""
        if self.holder is None or self.session is None:
            return False
        return find_holder(self.runtime.store.address, self.session.id) is None

    def take_over(self) -> None:
        """Work in the session that is watched, if the other terminal has left it."""
        if self.session is not None and self.holder is not None:
            self.open(self.session.id)

    async def edit(self, work: Callable[[Session], Awaitable[T]], what: str) -> T:
        """Change the session between prompts, and show it anew."""
        self._refuse_held()
        if self.busy or self.session is None:
            raise TerminalBusy(what) if self.busy else RecollectError(f"no session yet to {what}")
        async with self._lock:
            result = await work(self.session)
            await self.session.reload()
            self.notify(SessionReloaded(self.session, what))
        return result

    async def choose_model(self, name: str) -> None:
        """The model of this session's prompts from the next one on, kept in its log; empty: the
        settings'. A session that is not stored yet gets it with its first prompt."""
        if self.session is None:
            self.run_options = msgspec.structs.replace(self.run_options, model=name)
            return
        await self.edit(lambda session: session.append(model_choice(name)), "change the model")
        self.run_options = msgspec.structs.replace(self.run_options, model="")

    async def _keep_model(self, session: Session) -> None:
        chosen = self.run_options.model
        if chosen and chosen != self.options.run.model:
            await session.append(model_choice(chosen))
            self.run_options = msgspec.structs.replace(self.run_options, model="")

    async def reconfigure(self, overrides: Overrides) -> None:
        """Other permissions from the next call on, also of the prompt that runs, and other folders
        from the next prompt on, which is told of them; settings are read again."""
        held: list[str] = []
        door = self.runtime.door
        quiet = self.runtime.for_door(msgspec.structs.replace(door, warn=held.append))
        runtime = quiet.reconfigured(overrides).for_door(door)
        for warning in held:
            if warning not in self._warned:  # the settings are read often, and warn alike
                door.warn(warning)
        self.overrides = overrides
        self._runtime = runtime
        if self.active is not None:
            self.active.use_permissions(runtime)
        self.notify(ModeChanged(runtime.settings.permissions.mode))

    def close(self) -> None:
        self._closing = True
        for waiting in self._ends.values():
            waiting.cancel()
        self.interrupt()
        self._news.set()

    async def run(self) -> None:
        """Serve until closed. An error that leaves no session to work in is raised."""
        door = Door(
            warn=self._warn,
            approve=self._approve,
            download_progress=lambda done, total: self.notify(DownloadProgressed(done, total)),
        )
        try:
            async with open_runtime(
                Path.cwd(), self.options.store, door=door, overrides=self.overrides
            ) as runtime:
                self._runtime = runtime
                mode = runtime.settings.permissions.mode
                self.may_be_unrestricted = mode == "unrestricted"
                self._opened.set()
                while not self._closing:
                    await self._serve_session()
        finally:
            self._opened.set()

    def _warn(self, text: str) -> None:
        self._warned.add(text)
        self.notify(NoticeGiven(text))

    async def _serve_session(self) -> None:
        wanted, self._wanted = self._wanted or WantedSession(), None
        self.session, self._target = None, wanted.given
        try:
            found = await self._open(wanted)
            if found is None:
                return
            session, origin = found
            claim = await claim_session(self.runtime.store.address, session.id)
            if isinstance(claim, SessionHolder):
                self.session, self.holder = session, claim
                self.notify(SessionOpened(session, origin, wanted.passage))
                await self._serve_held(session, claim)
                return
            with closing(claim):
                async with self.runtime.activate(session, origin) as active:
                    self.session, self.active = session, active
                    if origin == "new":
                        await self._keep_model(session)
                    self.notify(SessionOpened(session, origin, wanted.passage))
                    self._restore(QueueFile(self.runtime.store.address, session.id))
                    await self._serve_prompts(active, claim)
        except RecollectError as error:
            self.notify(NoticeGiven(str(error), "error"))
            self._drop_waiting()
        finally:
            self.active = None

    async def _open(self, wanted: WantedSession) -> tuple[Session, SessionOrigin] | None:
        """The wanted session; a new one as soon as there is a prompt. None: something else is
        wanted now."""
        found, self._found = self._found, None
        if found is not None and found.wanted is wanted:
            return found.session, found.origin
        if wanted.given is not None:
            return await self.runtime.open_session(wanted.given, fork=wanted.fork)
        self.notify(SessionOpened(None, "new"))
        while not self._waiting:
            if self._closing or await self._found_other():
                return None
            await self._wait()
        return await self.runtime.open_session(None, prompt=self._waiting[0].text)

    async def _found_other(self) -> bool:
        """Whether to leave the session, because another one is wanted and could be opened. One
        that does not exist, or is damaged, is an error, and this session goes on."""
        while (wanted := self._wanted) is not None and wanted.given is not None:
            try:
                opened = await self.runtime.open_session(wanted.given, fork=wanted.fork)
            except RecollectError as error:
                self.notify(NoticeGiven(str(error), "error"))
                if self._wanted is wanted:
                    self._wanted = None
                continue
            if self._wanted is wanted:
                self._found = FoundSession(wanted, *opened)
                return True
        return wanted is not None

    async def _serve_held(self, session: Session, holder: SessionHolder) -> None:
        """Show a session that another terminal works in, until another one is wanted."""
        self.notify(SessionHeld(session, holder))
        tasks = [
            asyncio.create_task(self._follow(session)),
            asyncio.create_task(watch_claim(session, holder, self.notify)),
        ]
        try:
            while not (self._closing or await self._found_other()):
                await self._wait(for_prompts=False)
        finally:
            self.holder = None
            for task in tasks:
                task.cancel()

    async def _serve_prompts(self, active: ActiveSession, claim: SessionClaim) -> None:
        following = asyncio.create_task(self._follow(active.session))
        try:
            while not (self._closing or await self._found_other()):
                if not self._waiting or self.held:
                    await self._wait()
                    continue
                self._turn = asyncio.create_task(self._run_prompt(active, self._begin()))
                self.notify(QueueChanged(self.waiting))  # `busy` already: there is no gap
                with suppress(asyncio.CancelledError):
                    await self._turn
                self._turn = None
                await claim.follow(active.session.id)
                self._move_queue(active.session.id)
        finally:
            following.cancel()
            if self._turn is not None:
                self._turn.cancel()
                await asyncio.wait([self._turn])
                self._turn = None

    async def _run_prompt(self, active: ActiveSession, prompt: QueuedPrompt) -> None:
        self.notify(PromptStarted(prompt))
        failed, ended, before = True, PromptEnded(prompt), active.session.view().head
        try:
            async with self._lock:
                if active.runtime is not self.runtime:
                    await active.move_to(self.runtime)
                failed = not await (self._run_shell if prompt.is_command else self._stream)(
                    active, prompt
                )
        except asyncio.CancelledError:
            ended = PromptEnded(prompt, interrupted=True)
            raise
        except RecollectError as error:
            ended = PromptEnded(prompt, error=str(error))
        finally:
            stored = active.session.view().head != before
            self.notify(msgspec.structs.replace(ended, stored=stored))
            self._end(prompt, completed=not failed)
            if stored or not self._closing:  # otherwise it stays in the file
                self._starting = None
            self.held = failed and bool(self._waiting)
            self._notify_queue()

    async def _stream(self, active: ActiveSession, prompt: QueuedPrompt) -> bool:
        """Whether it ended as it should."""
        model, files = prompt.model or self.run_options.model, prompt.attachments
        options = msgspec.structs.replace(self.run_options, attachments=files, model=model)
        problem, before = "", active.session.view().head
        async with aclosing(active.stream(prompt.text, options)) as events:
            async for event in events:
                if self._starting is not None and active.session.view().head != before:
                    self._began()
                if isinstance(event, RunResult):
                    self.usage = add_usage(self.usage, event.usage)
                    problem = event.finished.problem
                self.notify(event)
        return not problem

    async def _run_shell(self, active: ActiveSession, prompt: QueuedPrompt) -> bool:
        """A command that fails is the user's to judge: what waits goes on."""
        self.notify(await run_own_command(active, prompt.text, self.notify))
        return True

    async def _follow(self, session: Session) -> None:
        """Show what another program appends to the session while nothing runs here."""
        await follow_appends(session, self._lock, lambda: not self.busy, self.notify)

    def _refuse_held(self) -> None:
        if self.is_released:
            raise RecollectError(
                "the other terminal has left this session; take it over first: with a prompt, or "
                "with /resume and its id"
            )
        if self.holder is not None:
            raise HeldElsewhere(self.holder)

    async def _wait(self, *, for_prompts: bool = True) -> None:
        self._news.clear()
        idle = not for_prompts or not self._waiting or self.held
        if idle and self._wanted is None and not self._closing:
            await self._news.wait()

    async def _approve(self, request: ApprovalRequest) -> ApprovalAnswer:
        return await self.approvals.ask(request, lambda: self.runtime.effective, self.notify)

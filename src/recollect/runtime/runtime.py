"""An agent in a folder: settings, trust, store, models, hooks, permissions, mirrors, sub-agents.

Every door (a command, a screen, a server, a program) opens a `Runtime` and goes through it to a
model. A door parses, asks the user for approval where it can, and shows events; whatever it asks
for, a request is made in one way: with the initial context of its session, within the window, by
the settings in force. `prepare` shows that request without sending it.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from copy import copy
from functools import cached_property
from pathlib import Path

import msgspec

from recollect.agent.agent_run import Prompt
from recollect.agent.exchange import count_tools
from recollect.agent.fit_context import reserve_for_tools, summarizer_from
from recollect.agent.hooks import Hooks
from recollect.agent.loop import Agent
from recollect.agent.prepared_request import PreparedRequest
from recollect.codecs.encoder import EncodedRequest
from recollect.codecs.wire_protocol import Declaration, RequestOptions
from recollect.compaction.budget import Budget, calibrate_budget
from recollect.compaction.compaction_range import CompactionRange
from recollect.compaction.proposal import OnRound, Proposal, ignore_round
from recollect.entries import Message
from recollect.errors import BadSettings, RecollectError
from recollect.models.http_model import HttpModel
from recollect.models.idle_connections import IdleConnections
from recollect.models.open_model import open_model
from recollect.models.resolve import ResolvedModel
from recollect.profiles import is_known_model
from recollect.runtime.coding_agent import (
    LazyCommands,
    Workspace,
    build_agent,
    build_hooks,
    lazy_tools,
)
from recollect.runtime.permission_policy import Approve, build_permission_check
from recollect.runtime.prompt_run import (
    DEFAULT_OPTIONS,
    ActiveSession,
    AgentKind,
    RunOptions,
    SessionOrigin,
    activate_session,
)
from recollect.runtime.session_context import find_folders, memory_sources
from recollect.runtime.session_model import keep_session_model
from recollect.session import Session, open_session
from recollect.settings import Settings
from recollect.store.contract import Project, SessionInfo, Store
from recollect.store.ids import LAST
from recollect.store.open_store import open_store
from recollect.store.store_address import default_address
from recollect.text import one_line
from recollect.tools.tool import Tool
from recollect.transcripts.find_session import find_session, refuse_trashed
from recollect.transcripts.import_result import ImportProgress, ImportResult
from recollect.view.curation import CurationPolicy
from recollect.view.view import View
from recollect.workspace.effective_settings import (
    EffectiveSettings,
    default_settings,
    resolve_settings,
)
from recollect.workspace.file_mentions import attachment_parts, prompt_parts
from recollect.workspace.learned_windows import learned_window
from recollect.workspace.memory_reader import MemoryReader
from recollect.workspace.project_identity import identify_named, identify_project
from recollect.workspace.sent_files import Attachable
from recollect.workspace.working_folders import WorkingFolders

TITLE_LENGTH = 60  # characters of the prompt that become the session's title
_log = logging.getLogger("recollect")


class Door(msgspec.Struct, frozen=True):
    """What a door provides for the runtime."""

    warn: Callable[[str], None] = _log.warning
    approve: Approve | None = None  # none: nobody can be asked, and "ask" means no
    download_progress: Callable[[int, int], None] | None = None  # of a model's weights
    owner: str = ""  # of the sessions that are worked in; empty: the user of this machine
    accepts_bad_settings: bool = False  # goes on with the defaults, for what calls no model


class Overrides(msgspec.Struct, frozen=True):
    """What a user sets for one call, over the settings."""

    mode: str = ""
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    show_secrets: tuple[str, ...] = ()
    directories: tuple[str, ...] = ()  # further folders to work in

    def apply(self, effective: EffectiveSettings) -> EffectiveSettings:
        given = effective.settings.permissions
        changed = {
            "mode": self.mode or given.mode,
            "allow": (*given.allow, *self.allow),
            "deny": (*given.deny, *self.deny),
            "show_secrets": (*given.show_secrets, *self.show_secrets),
        }
        permissions = msgspec.structs.replace(given, **changed)
        settings = msgspec.structs.replace(effective.settings, permissions=permissions)
        return msgspec.structs.replace(effective, settings=settings)


class Runtime:
    """Made by `open_runtime`."""

    def __init__(
        self, store: Store, folders: WorkingFolders, effective: EffectiveSettings, door: Door
    ) -> None:
        self.store, self.folders, self.effective, self.door = store, folders, effective, door
        self.curation = CurationPolicy.from_settings(effective.settings)
        self._projects: dict[str, Project] = {}  # by folder: git takes its time
        self._connections = IdleConnections()  # to providers, for the next prompt
        self._memory: dict[bool, MemoryReader] = {}

    @cached_property
    def project(self) -> Project:
        """The project of the folder; asking git for it takes time that few commands need."""
        return identify_project(self.folders.cwd)

    @property
    def settings(self) -> Settings:
        return self.effective.settings

    def for_door(self, door: Door) -> Runtime:
        """The same runtime for another door: somebody else to warn and to ask."""
        other = copy(self)
        other.door = door
        return other

    def for_thread(self, warn: Callable[[str], None]) -> Runtime:
        """The same runtime for previews on another event loop."""
        other = self.for_door(msgspec.structs.replace(self.door, warn=warn, approve=None))
        other._memory, other._connections = {}, IdleConnections()
        return other

    def reconfigured(self, overrides: Overrides) -> Runtime:
        """The same folder and store, with the settings as they are now and other overrides."""
        other = build_runtime(self.store, self.folders.cwd, self.door, overrides)
        other._projects, other._connections = self._projects, self._connections
        return other

    async def open_session(
        self, given: str | None = None, *, fork: bool = False, prompt: str = ""
    ) -> tuple[Session, SessionOrigin]:
        """The session with this id, or a fork of it; without an id a new one of this project,
        titled by its first prompt."""
        if given is None:
            title = one_line(prompt, TITLE_LENGTH)
            created = await self.store.create(project=self.project, title=title)
            return await self.session(created.id), "new"
        info = await self.find_writable_session(given)
        if fork:
            return await self.session((await self.store.fork(info.id)).id), "forked"
        return await self.session(info.id), "resumed"

    async def session(self, given: str = LAST, model: str = "") -> Session:
        """The session with this id, or the project's most recent one."""
        found = await self.find_session(given)
        return await open_session(self.store, found.id, model, self.curation, self.door.warn)

    async def find_session(self, given: str = LAST) -> SessionInfo:
        """The session with this id, ours or its original one, or the project's latest."""
        return await find_session(self.store, given, self.project)

    async def find_writable_session(self, given: str = LAST) -> SessionInfo:
        """The same, for whoever continues or changes it: a session in the trash is refused."""
        return await refuse_trashed(self.store, await self.find_session(given))

    async def import_file(
        self,
        file: Path,
        progress: ImportProgress = lambda _done, _total: None,
        owner: str | None = None,
    ) -> ImportResult:
        """Import another program's session file. The session belongs to the folder that the file
        names as its own; to this project if it names none. A file that a client sent has an
        `owner`, and belongs to this project: the folder that it names is the client's."""
        # late: it loads every format
        from recollect.transcripts.session_import import import_file

        find = self._project_of if owner is None else lambda _folder: self.project
        return await import_file(
            self.store, file, project=find, progress=progress, owner=owner or ""
        )

    def _project_of(self, folder: str) -> Project:
        if not folder:
            return self.project
        if folder not in self._projects:
            self._projects[folder] = identify_named(folder)
        return self._projects[folder]

    async def check_model(self, options: RunOptions) -> None:
        """Raise if the model that a prompt begins with cannot be called, or not for that, or if
        a rule is invalid."""
        build_permission_check(self.effective)
        await self.open_model(options.model, kind=options.kind).aclose()

    def open_model(self, name: str = "", *, kind: AgentKind = "agent") -> HttpModel:
        return open_model(
            name,
            self.settings,
            for_agent=kind == "agent",
            progress=self.door.download_progress,
            connections=self._connections,
        )

    async def prompt_message(
        self, prompt: str | Message | None, attachments: tuple[Attachable, ...] = ()
    ) -> Message | None:
        """The user's message for a prompt, with the files that it mentions and has attached."""
        if not isinstance(prompt, str):
            return prompt
        roots = (self.folders.cwd, *self.folders.roots)
        parts = await prompt_parts(prompt, roots, self.door.warn)
        return Message(role="user", parts=(*parts, *await attachment_parts(attachments)))

    def activate(
        self, session: Session, origin: SessionOrigin = "resumed"
    ) -> AbstractAsyncContextManager[ActiveSession]:
        """Run prompts in this session: its hooks, mirror and commands live as long as that."""
        return activate_session(self, session, origin)

    async def prepare(
        self,
        session: Session,
        model: ResolvedModel,
        prompt: Prompt = None,
        options: RunOptions = DEFAULT_OPTIONS,
    ) -> PreparedRequest:
        """The next request of a session, exactly as it would be sent; nothing is stored or sent."""
        async with HttpModel(model, self.settings.transport) as called:
            await session.count_for(called.name)
            return await self._agent(called, options).prepare(prompt, session)

    def encode(
        self, view: View, model: ResolvedModel, options: RequestOptions, *, text_tools: bool = False
    ) -> tuple[EncodedRequest, RequestOptions]:
        """The body of a request, byte for byte, and its options with the model's defaults."""
        called = HttpModel(model, self.settings.transport)
        called.text_tools = called.text_tools or text_tools
        return called.encode(view, options), called.options(options)

    def declared_tools(self, model: ResolvedModel) -> tuple[Declaration, ...]:
        """The tools that the agent has with this model, as it is sent them."""
        return tuple(tool.declaration for tool in self.tools(model))

    def tools(self, model: ResolvedModel) -> Sequence[Tool]:
        """The tools that the agent has with this model."""
        return self._agent(HttpModel(model, self.settings.transport), DEFAULT_OPTIONS).tools

    def budget(self, model: ResolvedModel) -> Budget:
        """How much of a request to this model may be used, tools included."""
        learned = learned_window(model.name)
        return Budget.from_settings(model.profile, self.settings.context, learned)

    def knows_window(self, model: ResolvedModel) -> bool:
        """Whether the window of this model is more than a guess."""
        own = self.settings.models.get(model.name)
        given = own is not None and own.window is not None
        return given or is_known_model(model.wire_name) or learned_window(model.name) is not None

    def message_budget(self, model: ResolvedModel, session: Session) -> Budget:
        """What is left of it for the messages, in tokens as we count them."""
        view = session.view()
        tools = count_tools(self.declared_tools(model), view.log.counter)
        budget = reserve_for_tools(self.budget(model), tools)
        return calibrate_budget(budget, view, tools, model.name)

    async def compact(
        self,
        session: Session,
        model: ResolvedModel,
        *,
        target: int | None = None,
        instructions: str = "",
        use_model: bool = True,
        preview: bool = False,
        on_round: OnRound = ignore_round,
        part: CompactionRange | None = None,
    ) -> Proposal:
        """Compact a session, or a part of it, by the user's wish. The model writes the snapshot
        where it can be called; otherwise, and without `use_model`, code does. A preview stores
        nothing and runs no hooks."""
        async with self._open_resolved(model, start=use_model) as called:
            await session.count_for(called.name)
            hooks = None if preview else build_hooks(self.effective, warn=self.door.warn)
            agent = self._agent(called, DEFAULT_OPTIONS, hooks)
            fitter = agent.context_fitter()
            if not use_model or not (called.is_local or model.endpoint.url):
                fitter = msgspec.structs.replace(fitter, summarizer=None)
            elif fitter.summarizer is None:  # it writes only because the user named it
                fitter = msgspec.structs.replace(fitter, summarizer=summarizer_from(called))
            budget = self.message_budget(model, session)
            if target is not None:
                budget = budget.with_target(target)
            elif part is not None:  # the user chose what stays: whatever is smaller will do
                budget = budget.allowing(session.view().tokens)
            session = session.scratch() if preview else session
            before = session.view()
            proposal = await fitter.compact(session, budget, "manual", instructions, on_round, part)
            await keep_session_model(session, before)
            return proposal

    def _open_resolved(self, model: ResolvedModel, *, start: bool) -> HttpModel:
        """A model that was resolved; if it runs in a server of ours, one that does `start`, where
        it can."""
        if start and not model.endpoint.url:
            try:
                return self.open_model(model.name, kind="ask")
            except RecollectError as error:
                self.door.warn(str(error))
        return HttpModel(model, self.settings.transport)

    def _agent(self, model: HttpModel, options: RunOptions, hooks: Hooks | None = None) -> Agent:
        return build_agent(model, self.workspace(LazyCommands(self.effective), hooks), options)

    async def aclose(self) -> None:
        """Close the connections to providers; the store is its opener's."""
        await self._connections.aclose()

    def _memory_reader(self, own: bool) -> MemoryReader:  # noqa: FBT001 - a key
        if own not in self._memory:
            sources = memory_sources(self.folders, self.effective, own=own)
            self._memory[own] = MemoryReader(sources)
        return self._memory[own]

    def workspace(self, commands: LazyCommands, hooks: Hooks | None = None) -> Workspace:
        return Workspace(
            self.folders,
            self.effective,
            self.project,
            commands,
            Hooks() if hooks is None else hooks,
            lazy_tools(commands, self.effective),
            self._memory_reader,
            self.door.approve,
            self.door.warn,
            self.door.owner,
        )


def build_runtime(store: Store, folder: Path, door: Door, overrides: Overrides) -> Runtime:
    """The runtime for a folder over a store that is open already."""
    return Runtime(store, *_resolve_folder(folder, door, overrides), door)


def _resolve_folder(
    folder: Path, door: Door, overrides: Overrides
) -> tuple[WorkingFolders, EffectiveSettings]:
    try:
        effective = overrides.apply(resolve_settings(folder))
    except BadSettings as error:
        if not door.accepts_bad_settings:
            raise
        door.warn(str(error))
        effective = default_settings(folder)
    for warning in effective.warnings if not door.accepts_bad_settings else ():
        door.warn(warning)
    return find_folders(folder, effective, overrides.directories, door.warn), effective


@asynccontextmanager
async def open_runtime(
    folder: Path | None = None,
    store: Path | str | None = None,
    *,
    door: Door = Door(),  # noqa: B008 - a frozen value
    overrides: Overrides = Overrides(),  # noqa: B008 - a frozen value
) -> AsyncIterator[Runtime]:
    """The runtime for a folder, by default the current one, and a store by its path or URL, by
    default the user's."""
    held: list[str] = []  # a store that cannot be opened is one sentence
    quiet = msgspec.structs.replace(door, warn=held.append)
    found = _resolve_folder(Path.cwd() if folder is None else folder, quiet, overrides)
    address = store if store is not None else default_address(found[1].settings.store)
    async with open_store(address, wait=found[1].settings.store_wait) as opened:
        for warning in held:
            door.warn(warning)
        runtime = Runtime(opened, *found, door)
        try:
            yield runtime
        finally:
            await runtime.aclose()
            for warning in opened.warnings:
                door.warn(warning)

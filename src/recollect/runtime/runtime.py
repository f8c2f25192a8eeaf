"""An agent in a folder: settings, trust, store, models, hooks, permissions, mirrors, sub-agents.

Every door (a command, a screen, a server, a program) opens a `Runtime` and goes through it to a
model. A door parses, asks the user for approval where it can, and shows events; whatever it asks
for, a request is made in one way: with the initial context of its session, within the window, by
the settings in force. `prepare` shows that request without sending it.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import msgspec

from recollect.agent.hooks import Hooks
from recollect.agent.loop import PreparedRequest
from recollect.agent.subagents import read_link
from recollect.entries import Message
from recollect.errors import NotFound
from recollect.models.http_model import HttpModel
from recollect.models.open_model import open_model
from recollect.models.resolve import ResolvedModel, resolve_model
from recollect.runtime.coding_agent import LazyCommands, Workspace, build_agent
from recollect.runtime.permission_policy import Approve
from recollect.runtime.prompt_run import (
    DEFAULT_OPTIONS,
    ActiveSession,
    AgentKind,
    RunOptions,
    SessionOrigin,
    activate_session,
)
from recollect.session import Session, open_session
from recollect.settings import Settings
from recollect.store.contract import SessionInfo, Store
from recollect.store.sqlite import open_store
from recollect.text import one_line
from recollect.view.projections import last_turns
from recollect.workspace.effective_settings import EffectiveSettings, resolve_settings
from recollect.workspace.project_identity import identify_project

LAST = "last"  # the most recently used session of the project
TITLE_LENGTH = 60  # characters of the prompt that become the session's title
MAX_SUBAGENT_ENTRIES = 300  # far more than any sub-agent's session has
_log = logging.getLogger("recollect")


class Door(msgspec.Struct, frozen=True):
    """What a door provides for the runtime."""

    warn: Callable[[str], None] = _log.warning
    approve: Approve | None = None  # none: nobody can be asked, and "ask" means no
    download_progress: Callable[[int, int], None] | None = None  # of a model's weights


class Overrides(msgspec.Struct, frozen=True):
    """What a user sets for one call, over the settings."""

    mode: str = ""
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()

    def apply(self, effective: EffectiveSettings) -> EffectiveSettings:
        given = effective.settings.permissions
        changed = {
            "mode": self.mode or given.mode,
            "allow": (*given.allow, *self.allow),
            "deny": (*given.deny, *self.deny),
        }
        permissions = msgspec.structs.replace(given, **changed)
        settings = msgspec.structs.replace(effective.settings, permissions=permissions)
        return msgspec.structs.replace(effective, settings=settings)


class Runtime:
    """Made by `open_runtime`."""

    def __init__(
        self, store: Store, folder: Path, effective: EffectiveSettings, door: Door
    ) -> None:
        self.store, self.folder, self.effective, self.door = store, folder, effective, door
        self.project = identify_project(folder)

    @property
    def settings(self) -> Settings:
        return self.effective.settings

    # --- sessions --------------------------------------------------------------------------------

    async def open_session(
        self, given: str | None = None, *, fork: bool = False, prompt: str = ""
    ) -> tuple[Session, SessionOrigin]:
        """The session with this id, or a fork of it; without an id a new one of this project,
        titled by its first prompt."""
        if given is None:
            title = one_line(prompt, TITLE_LENGTH)
            created = await self.store.create(project=self.project, title=title)
            return await self.session(created.id), "new"
        info = await self.find_session(given)
        if fork:
            return await self.session((await self.store.fork(info.id)).id), "forked"
        return await self.session(info.id), "resumed"

    async def session(self, given: str = LAST, model: str = "") -> Session:
        """The session with this id, or the project's most recent one."""
        found = await self.find_session(given)
        return await open_session(self.store, found.id, model, warn=self.door.warn)

    async def find_session(self, given: str = LAST) -> SessionInfo:
        if given != LAST:
            return await self.store.session(given)
        for session in await self.store.sessions(project=self.project):
            if not await self._is_subagent_session(session):
                return session
        raise NotFound("this project has no session to continue; `recollect -p` starts one")

    async def _is_subagent_session(self, session: SessionInfo) -> bool:
        """Whether it belongs to a sub-agent: after a crash it can be the most recent one."""
        if session.entries > MAX_SUBAGENT_ENTRIES:
            return False
        first, *_ = await self.store.path(session.id) or (None,)
        link = read_link(first.body) if first is not None else None
        return link is not None and link.to == "parent"

    @staticmethod
    def last_turns(session: Session, turns: int = 5) -> tuple[Message, ...]:
        """The newest turns of a session as the model sees them."""
        return last_turns(session.view(), turns)

    # --- requests --------------------------------------------------------------------------------

    def resolve_model(self, options: RunOptions) -> ResolvedModel:
        """The model that a prompt begins with; an error if it cannot be called."""
        return resolve_model(options.model, self.settings)

    def open_model(self, name: str = "", *, kind: AgentKind = "agent") -> HttpModel:
        del kind
        return open_model(name, self.settings, progress=self.door.download_progress)

    def activate(
        self, session: Session, origin: SessionOrigin = "resumed"
    ) -> AbstractAsyncContextManager[ActiveSession]:
        """Run prompts in this session: its hooks, mirror and commands live as long as that."""
        return activate_session(self, session, origin)

    async def prepare(
        self,
        session: Session,
        model: ResolvedModel,
        prompt: Message | None = None,
        options: RunOptions = DEFAULT_OPTIONS,
    ) -> PreparedRequest:
        """The next request of a session, exactly as it would be sent; nothing is stored or sent."""
        async with HttpModel(model, self.settings.transport) as called:
            agent = build_agent(called, self.workspace(LazyCommands(self.effective)), options)
            await session.count_for(called.name)
            return await agent.prepare(prompt, session)

    def workspace(self, commands: LazyCommands, hooks: Hooks | None = None) -> Workspace:
        return Workspace(
            self.folder,
            self.effective,
            self.project,
            commands,
            Hooks() if hooks is None else hooks,
            self.door.approve,
            self.door.warn,
        )


@asynccontextmanager
async def open_runtime(
    folder: Path | None = None,
    store: Path | str | None = None,
    *,
    door: Door = Door(),  # noqa: B008 - a frozen value
    overrides: Overrides = Overrides(),  # noqa: B008 - a frozen value
) -> AsyncIterator[Runtime]:
    """The runtime for a folder, by default the current one, and a store, by default the user's."""
    folder = Path.cwd() if folder is None else folder
    effective = overrides.apply(resolve_settings(folder))
    for warning in effective.warnings:
        door.warn(warning)
    async with open_store(store) as opened:
        try:
            yield Runtime(opened, folder, effective, door)
        finally:
            for warning in opened.warnings:
                door.warn(warning)

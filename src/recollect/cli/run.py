"""Runs one prompt: opens its session, chooses the model, and runs the agent.

The session is stored before any model is called. If a model is down, the next fallback model of the
settings continues the session where it was; the prompt is appended once. Hooks are notified of the
start and the end, even when the run is interrupted.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

import msgspec

from recollect.agent.events import AgentEvent, RunFinished, WindowLearned
from recollect.agent.exchange import ReplyFinished, add_usage, message_text
from recollect.agent.fit_context import summarizer_from
from recollect.agent.hook_transcripts import HookTranscripts
from recollect.agent.hooks import Hook
from recollect.agent.loop import fire_or_refuse
from recollect.agent.subagents import TASK_TOOL, read_link, read_subagent_usage
from recollect.agent.tool_calls import ToolFinished
from recollect.cli.coding_agent import (
    LazyCommands,
    Workspace,
    build_agent,
    build_hooks,
    find_folders,
    initial_messages,
)
from recollect.cli.display_text import one_line
from recollect.entries import Entry, Message, Usage
from recollect.errors import ModelError, NoApiKey, NotFound, UnknownModel
from recollect.hook_events import SessionEnd, SessionStart
from recollect.models import model_selection
from recollect.models.http_model import HttpModel
from recollect.models.model_selection import SelectionContext, SelectionStrategy
from recollect.models.open_model import open_model
from recollect.session import Session
from recollect.settings import Settings
from recollect.store.contract import Project, SessionInfo, Store
from recollect.store.ids import now
from recollect.tokens import counter_for
from recollect.view.curation import CurationPolicy
from recollect.view.view import View
from recollect.view_loader import load_view
from recollect.workspace.effective_settings import EffectiveSettings
from recollect.workspace.file_mentions import prompt_parts
from recollect.workspace.learned_windows import remember_window
from recollect.workspace.project_identity import identify_project
from recollect.workspace.working_folders import WorkingFolders

OutputFormat: TypeAlias = Literal["text", "json", "stream-json"]
SessionOrigin: TypeAlias = Literal["new", "resumed", "forked"]
TITLE_LENGTH = 60  # characters of the prompt that become the session's title
MAX_SUBAGENT_ENTRIES = 300  # far more than any sub-agent's session has
INTERRUPTED_HOOK_SECONDS = 1.0  # for the hooks at the end of an interrupted run


class RunOptions(msgspec.Struct, frozen=True):
    prompt: str
    model: str = ""
    latest: bool = False  # continue this project's most recent session
    session: str | None = None
    fork: bool = False
    max_turns: int | None = None
    directories: tuple[str, ...] = ()  # further folders to work in
    format: OutputFormat = "text"
    store_persists: bool = True  # False: the store is deleted after the run


class RunObserver(msgspec.Struct, frozen=True):
    """Callbacks for the session that was opened, for every event, and for warnings."""

    opened: Callable[[SessionInfo], None]
    event: Callable[[AgentEvent], None]
    warn: Callable[[str], None]


class RunResult(msgspec.Struct, frozen=True):
    finished: RunFinished
    text: str  # of the last reply
    model: HttpModel
    subagent_usage: Usage


class _Run(NamedTuple):
    """What all steps of a run share."""

    store: Store
    options: RunOptions
    effective: EffectiveSettings
    observer: RunObserver
    project: Project
    folders: WorkingFolders

    @property
    def settings(self) -> Settings:
        return self.effective.settings


async def run_prompt(
    store: Store,
    first: HttpModel,
    options: RunOptions,
    effective: EffectiveSettings,
    observer: RunObserver,
) -> RunResult:
    """Run a prompt with model `first`, unless the settings choose another."""
    folders = find_folders(effective, options.directories, observer.warn)
    run = _Run(store, options, effective, observer, identify_project(Path.cwd()), folders)
    info, origin = await _open_session(run)
    observer.opened(info)
    async with session_scope(run, info) as workspace:
        session = await _start_session(run, info, origin, first.name, workspace)
        parts = await prompt_parts(options.prompt, (folders.cwd, *folders.roots))
        message: Message | None = Message(role="user", parts=parts)
        down: set[str] = set()
        while True:
            name = await _choose_model(run, session.view, message, first, down)
            try:
                model = first if name == first.name else open_model(name, run.settings)
                return await _run_agent(run, session, message, model, workspace)
            except ModelError as error:
                down.add(name)
                if not _can_try_another(error, first.name, run.settings, down):
                    raise
                why = one_line(str(error))[:200]
                observer.warn(f"{name} is not available ({why}); trying another model")
            session, message = await session.reload(), None  # the prompt is already in the log


async def _run_agent(
    run: _Run, session: Session, message: Message | None, model: HttpModel, workspace: Workspace
) -> RunResult:
    finished, text, subagent_usage = None, "", Usage()
    async with model:
        agent = build_agent(model, workspace, max_turns=run.options.max_turns)
        async with aclosing(agent.run(message, session)) as events:
            async for event in events:
                run.observer.event(event)
                if isinstance(event, ReplyFinished):
                    text = message_text(event.message)
                elif isinstance(event, ToolFinished) and event.call.name == TASK_TOOL:
                    subagent_usage = add_usage(subagent_usage, read_subagent_usage(event.result))
                elif isinstance(event, WindowLearned):
                    remember_window(event.model, event.window)
                elif isinstance(event, RunFinished):
                    finished = event
    assert finished is not None
    return RunResult(finished, text, model, subagent_usage)


# --- the session -------------------------------------------------------------------------------


async def _open_session(run: _Run) -> tuple[SessionInfo, SessionOrigin]:
    store, options = run.store, run.options
    session = await _find_session(run)
    if session is not None and options.fork:
        return await store.fork(session.id), "forked"
    if session is not None:
        return session, "resumed"
    messages = await initial_messages(run.folders, run.effective, run.observer.warn)
    title = one_line(options.prompt)[:TITLE_LENGTH]
    created = await store.create(project=run.project, title=title)
    await store.append(created.id, messages, parent=None)
    return created, "new"


async def _find_session(run: _Run) -> SessionInfo | None:
    if run.options.session is not None:
        return await run.store.session(run.options.session)
    if not run.options.latest:
        return None
    for session in await run.store.sessions(project=run.project):
        if not await _is_subagent_session(run.store, session):
            return session
    raise NotFound("this project has no session to continue; `recollect -p` starts one")


async def _is_subagent_session(store: Store, session: SessionInfo) -> bool:
    """Whether it belongs to a sub-agent: after a crash it can be the most recent one."""
    if session.entries > MAX_SUBAGENT_ENTRIES:
        return False
    first, *_ = await store.path(session.id) or (None,)
    link = read_link(first.body) if first is not None else None
    return link is not None and link.to == "parent"


async def _start_session(
    run: _Run, info: SessionInfo, origin: SessionOrigin, model: str, workspace: Workspace
) -> Session:
    policy = CurationPolicy.from_settings(run.settings)
    view = await load_view(run.store, info.id, counter=counter_for(model), policy=policy)
    session = Session(run.store, info.id, view)
    started = SessionStart(session=info.id, source=origin)
    return await fire_or_refuse(workspace.hooks, started, session, "the session")


@asynccontextmanager
async def session_scope(run: _Run, session: SessionInfo) -> AsyncIterator[Workspace]:
    """The workspace of a session: its commands, hooks and mirror, closed however the run ends."""
    settings, warn = run.settings, run.observer.warn
    mirror = None
    own_hooks: tuple[Hook, ...] = ()
    if settings.mirror:
        # late: most sessions have no mirror, and it brings every format along
        from recollect.agent.mirror_hook import mirror_hook
        from recollect.transcripts.mirror import Mirror

        mirror = Mirror(run.store, settings.mirror, autosave_seconds=settings.autosave_seconds)
        mirror.start()
        own_hooks = (mirror_hook(mirror),)
    transcripts = HookTranscripts(run.store, mirror, warn)
    hooks = build_hooks(run.effective, *own_hooks, warn=warn, transcript=transcripts)
    commands = LazyCommands(run.effective)
    reason = "done"
    try:
        yield Workspace(run.folders, run.effective, run.project, commands, hooks)
    except asyncio.CancelledError:
        reason = "interrupted"
        raise
    except BaseException as error:
        reason = type(error).__name__
        raise
    finally:
        await commands.close()
        ended = SessionEnd(session=session.id, time=now(), reason=reason)
        limit = None if reason == "done" else INTERRUPTED_HOOK_SECONDS
        try:
            await asyncio.wait_for(hooks.fire(ended), limit)
        except TimeoutError:
            warn(f"a SessionEnd hook was stopped because it ran longer than {limit:g} s")
        await transcripts.close()
        if mirror is not None:
            reported = set(mirror.warnings)
            await mirror.close()
            for warning in (each for each in mirror.warnings if each not in reported):
                warn(warning)


# --- the model ---------------------------------------------------------------------------------


async def _choose_model(
    run: _Run, view: View, message: Message | None, first: HttpModel, down: set[str]
) -> str:
    """The model's name, by the routing in the settings; it is used for the whole prompt."""
    routing = run.settings.routing
    if not routing.fallback and not routing.classifier:
        return first.name
    strategies = [model_selection.fallback(routing.fallback), model_selection.override]
    if routing.classifier and message is not None:
        view = view.append(Entry("prompt", view.head, now(), message))
        strategies.append(_classifier_strategy(run.settings))
    named = first.name if run.options.model else ""
    context = SelectionContext(view, first.name, named, frozenset(down))
    choice = await model_selection.select_model(strategies, context)
    for failure in choice.failures:
        run.observer.warn(f"model selection failed ({failure}); using {choice.model}")
    return choice.model


def _classifier_strategy(settings: Settings) -> SelectionStrategy:
    """Asks the classifier model; one that cannot be opened counts as one that fails."""
    routing = settings.routing
    choices = [
        model_selection.ModelOption(name, name, when) for name, when in routing.choices.items()
    ]

    async def classifier(context: SelectionContext) -> model_selection.ModelChoice | None:
        async with open_model(routing.classifier, settings) as judge:
            strategy = model_selection.classifier(summarizer_from(judge), choices)
            return await strategy(context)

    return classifier


def _can_try_another(error: ModelError, first: str, settings: Settings, down: set[str]) -> bool:
    """Whether the error makes the model unavailable and another is left: a fallback, or the default
    model if the classifier chose this one."""
    if not model_selection.is_down(error) and not isinstance(error, NoApiKey | UnknownModel):
        return False
    return not {first, *settings.routing.fallback} <= down

"""One prompt played without a screen: its session, the model that answers, everything around it.

The session exists before the model is asked. A model that is down is replaced by the next spare of
the settings, and the session goes on where it was; the prompt is kept once. Hooks hear of the
beginning and the end of it, also when it is interrupted.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

import msgspec

from recollect.agent.events import AgentEvent, RunFinished, WindowLearned
from recollect.agent.exchange import ReplyFinished, Session, add_usage, message_text, user_message
from recollect.agent.fit_context import reload, summarizer_from
from recollect.agent.hook_events import SessionEnd, SessionStart
from recollect.agent.loop import RefusedByHook
from recollect.agent.task_tool import TASK_TOOL
from recollect.agent.tool_calls import ToolFinished
from recollect.cli.coding_agent import (
    LazyCommands,
    Workspace,
    build_agent,
    build_hooks,
    initial_messages,
)
from recollect.cli.display_text import one_line
from recollect.entries import Entry, Message, ToolResult, Usage
from recollect.errors import ModelError, NoApiKey, NotFound, UnknownModel
from recollect.models.http_model import HttpModel
from recollect.models.open_model import open_model
from recollect.settings import Settings
from recollect.store.contract import Project, SessionInfo, Store
from recollect.store.ids import now
from recollect.tokens import counter_for
from recollect.view.view import View
from recollect.view_loader import load_view
from recollect.workspace.effective_settings import EffectiveSettings
from recollect.workspace.learned_windows import remember_window
from recollect.workspace.project_identity import identify_project

if TYPE_CHECKING:
    from recollect.models.model_selection import SelectionStrategy

OutputFormat: TypeAlias = Literal["text", "json", "stream-json"]
SessionOrigin: TypeAlias = Literal["new", "resumed", "forked"]
TITLE_LENGTH = 60
MAX_SUBAGENT_ENTRIES = 300  # entries that a sub-agent's session has at most, by far
INTERRUPTED_HOOK_SECONDS = 1.0  # seconds for hooks to hear of an interruption


class RunOptions(msgspec.Struct, frozen=True):
    """What the person asked for."""

    prompt: str
    model: str = ""
    latest: bool = False  # go on in this project's newest session
    session: str | None = None
    fork: bool = False
    max_turns: int | None = None
    format: OutputFormat = "text"
    lasts: bool = True  # the store is there when it is over


class RunObserver(msgspec.Struct, frozen=True):
    """Who is told: which session it is, every event, and what a person should know."""

    begun: Callable[[SessionInfo], None]
    event: Callable[[AgentEvent], None]
    warn: Callable[[str], None]


class RunResult(msgspec.Struct, frozen=True):
    finished: RunFinished
    text: str  # of the last reply
    model: HttpModel
    spent: Usage  # by sub-agents


async def run_prompt(
    store: Store, first: HttpModel, wish: RunOptions, found: EffectiveSettings, watcher: RunObserver
) -> RunResult:
    """`first` is the model that is asked unless another is chosen."""
    project = identify_project(Path.cwd())  # asks git, so once
    begun = await _open_session(store, wish, project, found, watcher)
    watcher.begun(begun.session)
    async with session_scope(store, begun.session, project, found, watcher) as where:
        talk = await _start_session(store, begun, first.name, where)
        message: Message | None = await _prompt_message(wish.prompt, (where.cwd, found.root))
        down: set[str] = set()
        while True:
            name = await _choose_model(
                talk.view, message, wish, found.settings, first, down, watcher
            )
            try:
                model = first if name == first.name else open_model(name, found.settings)
                return await _run_agent(talk, message, model, where, wish, watcher)
            except ModelError as error:
                down.add(name)
                if not _can_try_another(error, first.name, found.settings, down):
                    raise
                why = one_line(str(error))[:200]
                watcher.warn(f"{name} cannot be asked ({why}); asking another model")
            talk, message = await reload(talk), None  # the prompt is in the log


async def _prompt_message(text: str, folders: tuple[Path, ...]) -> Message:
    if "@" not in text:
        return user_message(text)
    from recollect.workspace.file_mentions import prompt_parts

    return Message(role="user", parts=await prompt_parts(text, folders))


def _add_task_usage(spent: Usage, result: ToolResult) -> Usage:
    from recollect.agent.subagents import read_subagent_usage

    given = read_subagent_usage(result)
    return spent if given is None else add_usage(spent, given.usage)


async def _run_agent(
    talk: Session,
    message: Message | None,
    model: HttpModel,
    where: Workspace,
    wish: RunOptions,
    watcher: RunObserver,
) -> RunResult:
    finished, last, spent = None, "", Usage()
    async with model:
        agent = build_agent(model, where, max_turns=wish.max_turns)
        async with aclosing(agent.run(message, talk)) as events:
            async for event in events:
                watcher.event(event)
                if isinstance(event, ReplyFinished):
                    last = message_text(event.message)
                elif isinstance(event, ToolFinished) and event.call.name == TASK_TOOL:
                    spent = _add_task_usage(spent, event.result)
                elif isinstance(event, WindowLearned):
                    remember_window(event.model, event.window)
                elif isinstance(event, RunFinished):
                    finished = event
    assert finished is not None
    return RunResult(finished, last, model, spent)


# --- the session -------------------------------------------------------------------------------


class _OpenedSession(msgspec.Struct, frozen=True):
    session: SessionInfo
    source: SessionOrigin
    entries: tuple[Entry, ...] = ()  # of a new one: what it begins with


async def _open_session(
    store: Store, wish: RunOptions, project: Project, found: EffectiveSettings, watcher: RunObserver
) -> _OpenedSession:
    session = await _find_session(store, wish, project)
    if session is not None and wish.fork:
        return _OpenedSession(await store.fork(session.id), "forked")
    if session is not None:
        return _OpenedSession(session, "resumed")
    messages = await initial_messages(Path.cwd(), found, watcher.warn)
    created = await store.create(project=project, title=one_line(wish.prompt)[:TITLE_LENGTH])
    entries = await store.append(created.id, messages, parent=None)
    return _OpenedSession(created, "new", entries)


async def _find_session(store: Store, wish: RunOptions, project: Project) -> SessionInfo | None:
    if wish.session is not None:
        return await store.session(wish.session)
    if not wish.latest:
        return None
    for session in await store.sessions(project=project):
        if not await _is_subagent_session(store, session):
            return session
    raise NotFound("no session of this project to go on with; `recollect -p` begins one")


async def _is_subagent_session(store: Store, session: SessionInfo) -> bool:
    """Whether it is a sub-agent's, which a crash can leave as the newest one."""
    if session.entries > MAX_SUBAGENT_ENTRIES:
        return False
    from recollect.agent.subagents import read_link

    first, *_ = await store.path(session.id) or (None,)
    link = read_link(first.body) if first is not None else None
    return link is not None and link.to == "parent"


async def _start_session(
    store: Store, begun: _OpenedSession, model: str, where: Workspace
) -> Session:
    session, counter = begun.session, counter_for(model)
    if begun.source == "new":
        view = View.fold(counter=counter).append(*begun.entries)
    else:
        view = await load_view(store, session.id, counter=counter)
    talk = Session(store, session.id, view)
    started = SessionStart(session=session.id, time=now(), source=begun.source)
    decision = await where.hooks.fire(started)
    if not decision.allowed:
        raise RefusedByHook(f"a hook refused the session: {decision.reason}")
    if decision.additional_context:
        added = f"[added by a hook, not by the person]\n{decision.additional_context}"
        talk = await talk.append(user_message(added, "aside"))
    return talk


@asynccontextmanager
async def session_scope(
    store: Store,
    session: SessionInfo,
    project: Project,
    found: EffectiveSettings,
    watcher: RunObserver,
) -> AsyncIterator[Workspace]:
    """What stands around a session: commands, hooks, a mirror; and its end, whatever ends it."""
    settings, folder = found.settings, Path.cwd()
    mirror = None
    if settings.mirror:
        from recollect.agent.mirroring import Mirror

        mirror = Mirror(store, settings.mirror, autosave_seconds=settings.autosave_seconds)
        mirror.start()
    more = (mirror.hook(),) if mirror is not None else ()
    hooks = build_hooks(found, *more, tell=watcher.warn)
    commands = LazyCommands(found)
    reason = "done"
    try:
        yield Workspace(folder, found, project, commands, hooks)
    except asyncio.CancelledError:
        reason = "interrupted"
        raise
    except BaseException as error:
        reason = type(error).__name__
        raise
    finally:
        await commands.close()
        ended = SessionEnd(session=session.id, time=now(), reason=reason)
        try:
            await asyncio.wait_for(
                hooks.fire(ended), None if reason == "done" else INTERRUPTED_HOOK_SECONDS
            )
        except TimeoutError:
            watcher.warn(
                f"a hook for the end had not ended after {INTERRUPTED_HOOK_SECONDS:g} s and was stopped"
            )
        if mirror is not None:
            told = set(mirror.warnings)
            await mirror.close()
            for warning in (each for each in mirror.warnings if each not in told):
                watcher.warn(warning)


# --- the model ---------------------------------------------------------------------------------


async def _choose_model(
    view: View,
    message: Message | None,
    wish: RunOptions,
    settings: Settings,
    first: HttpModel,
    down: set[str],
    watcher: RunObserver,
) -> str:
    """By the settings' routing; the choice holds for the prompt."""
    given = settings.routing
    if not given.fallback and not given.classifier:
        return first.name
    from recollect.models import model_selection

    chain: list[model_selection.SelectionStrategy] = [
        model_selection.fallback(given.fallback),
        model_selection.override,
    ]
    named = first.name if wish.model else ""
    if given.classifier and message is not None:
        view = view.append(Entry("prompt", view.head, now(), message))
        chain.append(_classifier_strategy(settings))
    situation = model_selection.SelectionContext(view, first.name, named, frozenset(down))
    choice = await model_selection.select_model(chain, situation)
    for failure in choice.failures:
        watcher.warn(f"no model was chosen ({failure}); {choice.model} is asked")
    return choice.model


def _classifier_strategy(settings: Settings) -> SelectionStrategy:
    """Opened only when it is asked; one that cannot be opened passes on like one that fails."""
    from recollect.models import model_selection

    given = settings.routing
    options = [
        model_selection.ModelOption(name, name, when) for name, when in given.choices.items()
    ]

    async def classifier(
        situation: model_selection.SelectionContext,
    ) -> model_selection.ModelChoice | None:
        async with open_model(given.classifier, settings) as judge:
            return await model_selection.classifier(summarizer_from(judge), options)(situation)

    return classifier


def _can_try_another(error: ModelError, first: str, settings: Settings, down: set[str]) -> bool:
    """Whether the model is down, or one that nobody named cannot even be opened, and one is left
    to ask: a spare, or the default where the classifier chose another."""
    from recollect.models.model_selection import is_down

    if not is_down(error) and not isinstance(error, NoApiKey | UnknownModel):
        return False
    return not {first, *settings.routing.fallback} <= down

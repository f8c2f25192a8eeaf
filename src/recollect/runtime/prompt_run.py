"""Runs prompts in one session: model choice, fallback, hooks, mirror, commands and sub-agents.

The session is stored before any model is called. If a model is down, the next fallback model of the
settings continues the session where it was; the prompt is appended once. Hooks are notified of the
start and the end of the session, even when a run is interrupted. Prompts run one after the other.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

import msgspec

from recollect.agent.agent_run import Prompt, fire_or_refuse
from recollect.agent.fit_context import summarizer_from
from recollect.agent.hook_transcripts import HookTranscripts
from recollect.agent.hooks import Hook, Hooks
from recollect.agent.loop import Agent
from recollect.agent.run_events import AgentEvent, RunFinished, WindowLearned
from recollect.agent.subagents import TASK_TOOL, read_subagent_usage
from recollect.agent.tool_calls import CallPermission, PermissionCheck, ToolFinished
from recollect.codecs.wire_protocol import Declaration, Generation
from recollect.entries import Body, Entry, Message, ToolCall, Usage
from recollect.errors import ModelError, NoApiKey, UnknownModel
from recollect.hook_events import SessionEnd, SessionStart
from recollect.models import model_selection
from recollect.models.http_model import HttpModel
from recollect.models.model_selection import SelectionContext, SelectionStrategy
from recollect.models.open_model import open_model
from recollect.models.resolve import ResolvedModel
from recollect.runtime.coding_agent import LazyCommands, Workspace, build_agent, build_hooks
from recollect.runtime.permission_policy import PermissionDenial
from recollect.runtime.session_model import keep_session_model, session_model
from recollect.session import Session
from recollect.settings import Settings
from recollect.store.ids import new_id, now
from recollect.text import one_line
from recollect.tokens import add_usage
from recollect.tools.tool import Tool
from recollect.workspace.learned_windows import learned_window, remember_window
from recollect.workspace.sent_files import Attachable

if TYPE_CHECKING:
    from recollect.runtime.runtime import Runtime

SessionOrigin: TypeAlias = Literal["new", "resumed", "forked"]
# `ask`: no tools, one reply. `client`: the same, with the client's instructions and tools alone
AgentKind: TypeAlias = Literal["agent", "ask", "client"]
INTERRUPTED_HOOK_SECONDS = 1.0  # for the hooks at the end of an interrupted run


class RunOptions(msgspec.Struct, frozen=True):
    """How one prompt is run."""

    model: str = ""  # empty: the settings choose
    kind: AgentKind = "agent"
    max_turns: int | None = None
    system: str = ""  # system instructions instead of the usual ones
    generation: Generation = Generation()
    attachments: tuple[Attachable, ...] = ()
    client_tools: tuple[Declaration, ...] = ()  # their calls are left to the client
    tool_choice: str = "auto"
    reduces: bool = True  # False: a context that does not fit is an error


class RunStarted(msgspec.Struct, frozen=True):
    """The first event: what answers, where, and with which tools."""

    session: Session
    model: ResolvedModel
    folder: Path
    tools: tuple[str, ...]
    mode: str  # of permissions


class RunResult(msgspec.Struct, frozen=True):
    """The last event of a prompt's run."""

    finished: RunFinished
    model: HttpModel
    subagent_usage: Usage
    denials: tuple[PermissionDenial, ...] = ()
    mode: str = ""  # of permissions

    @property
    def text(self) -> str:
        return self.finished.text

    @property
    def session(self) -> Session:
        return self.finished.session

    @property
    def usage(self) -> Usage:
        return add_usage(self.finished.usage, self.subagent_usage)


DEFAULT_OPTIONS = RunOptions()
_UNRESTRICTED = (
    "mode unrestricted: every command runs without a question and without a sandbox, except what "
    "a deny rule names; use it only in a container or on a throw-away machine"
)
RunEvent: TypeAlias = RunStarted | AgentEvent | RunResult


class ActiveSession:
    """A session in which prompts are run; made by `Runtime.activate`."""

    def __init__(self, runtime: Runtime, session: Session, workspace: Workspace) -> None:
        self.runtime, self.session, self.workspace = runtime, session, workspace
        self._turn = asyncio.Lock()
        self._models: dict[str, HttpModel] = {}
        self._built: tuple[tuple[object, ...], Agent] | None = None  # what it was built of, and it
        self.denials: list[PermissionDenial] = []  # of the prompt that runs
        self._permitted: PermissionCheck | None = None

    async def take_model(self, name: str, kind: AgentKind) -> HttpModel:
        """The model of an earlier prompt, which encodes only what is new, unless its settings,
        its address or its key have changed since."""
        opened = self.runtime.open_model(name, kind=kind)
        known = self._models.get(opened.name)
        if known is not None and known.resolved == opened.resolved:
            return known
        self._models[opened.name] = opened
        if known is not None:
            await known.aclose()
        return opened

    def agent(self, model: HttpModel, options: RunOptions) -> Agent:
        """The agent of the prompt before, unless it is to be another one."""
        built_of = (model, options, learned_window(model.name))
        if self._permitted is None:  # here, because an invalid rule ends the prompt
            self._permitted = self.workspace.permission_check(self._note_denial)
        if self._built is None or self._built[0] != built_of:
            agent = build_agent(
                model, self.workspace, options, self._note_denial, self._check_permission
            )
            self._built = (built_of, agent)
        return self._built[1]

    async def _check_permission(self, tool: Tool, call: ToolCall) -> CallPermission:
        """By the permissions as they are now: the user may change them while a prompt runs."""
        assert self._permitted is not None  # there is an agent
        return await self._permitted(tool, call)

    def use_permissions(self, runtime: Runtime) -> None:
        """Judge every call from now on, also of the prompt that runs, by these permissions; where
        the sandbox would be another one, from the next prompt on, because a running command keeps
        the one it has."""
        if _sandbox_of(self.runtime) == _sandbox_of(runtime):
            judged = runtime.workspace(self.workspace.commands, self.workspace.hooks)
            self._permitted = judged.permission_check(self._note_denial)

    async def move_to(self, runtime: Runtime) -> None:
        """Go on with another runtime of the same store: other permissions, other folders. Commands
        that run in the background go on only in the sandbox they were begun in."""
        async with self._turn:
            before, self.runtime = self.runtime, runtime
            commands = self.workspace.commands
            if _sandbox_of(before) != _sandbox_of(runtime):
                await commands.close()
                commands = LazyCommands(runtime.effective)
            self.workspace = runtime.workspace(commands, self.workspace.hooks)
            self._permitted = None
            self._built = None

    def _note_denial(self, denial: PermissionDenial) -> None:
        self.denials.append(denial)

    async def aclose(self) -> None:
        for model in self._models.values():
            await model.aclose()

    async def stream(
        self, prompt: Prompt, options: RunOptions = DEFAULT_OPTIONS
    ) -> AsyncGenerator[RunEvent, None]:
        """Run a prompt, after those before it; a `RunResult` is the last event."""
        async with self._turn:
            message: Message | Sequence[Body | Entry] | None
            if prompt is None or isinstance(prompt, str | Message):
                message = await self.runtime.prompt_message(prompt, options.attachments)
            else:
                message = prompt
            self.denials = []  # also those with a model that is down then
            if not options.model:
                chosen = session_model(self.session.view().entries)
                options = msgspec.structs.replace(options, model=chosen)
            before = self.session.view()
            choice = await _choose_models(self, options)
            while True:
                try:
                    run = _PromptRun(self, await choice.open_next(message), options)
                    yield run.started()
                    async with aclosing(run.agent.stream(message, self.session)) as events:
                        async for event in events:
                            run.observe(event)
                            yield event
                    await keep_session_model(self.session, before)
                    yield run.result()
                    return
                except ModelError as error:
                    choice.exclude(error)
                    if choice.opened:
                        message = None  # the prompt is already in the log

    async def run(self, prompt: Prompt, options: RunOptions = DEFAULT_OPTIONS) -> RunResult:
        async with aclosing(self.stream(prompt, options)) as events:
            async for event in events:
                if isinstance(event, RunResult):
                    return event
        raise AssertionError("the last event of a run is its result")


def _sandbox_of(runtime: Runtime) -> tuple[object, ...]:
    """What of the settings a command runner was made with."""
    given = runtime.settings.permissions
    open_to = given.sandbox, given.network, given.show_secrets
    return given.mode == "unrestricted", *open_to, runtime.effective.root


class _PromptRun:
    """One prompt with one model: the agent, and what its events add up to."""

    def __init__(self, active: ActiveSession, model: HttpModel, options: RunOptions) -> None:
        self.active, self.model = active, model
        self.agent = active.agent(model, options)
        self.subagent_usage = Usage()
        self.finished: RunFinished | None = None

    def started(self) -> RunStarted:
        runtime, tools = self.active.runtime, tuple(tool.name for tool in self.agent.tools)
        mode = runtime.settings.permissions.mode
        if mode == "unrestricted":
            runtime.door.warn(_UNRESTRICTED)
        folder = runtime.folders.cwd
        return RunStarted(self.active.session, self.model.chosen, folder, tools, mode)

    def observe(self, event: AgentEvent) -> None:
        if isinstance(event, ToolFinished) and event.call.name == TASK_TOOL:
            used = read_subagent_usage(event.result)
            self.subagent_usage = add_usage(self.subagent_usage, used)
        elif isinstance(event, WindowLearned):
            remember_window(event.model, event.window)
        elif isinstance(event, RunFinished):
            self.finished = event

    def result(self) -> RunResult:
        assert self.finished is not None
        denials = tuple(self.active.denials)
        mode = self.active.runtime.settings.permissions.mode
        return RunResult(self.finished, self.model, self.subagent_usage, denials, mode)


class _ModelChoice:
    """The models for one prompt, by the routing in the settings, one after the other."""

    def __init__(self, active: ActiveSession, options: RunOptions, first: HttpModel) -> None:
        self._active, self._first = active, first
        self._runtime, self._session, self._options = active.runtime, active.session, options
        self._name, self._down = "", set[str]()
        self._trouble = ""  # why the last one is left
        self.opened = False  # whether the last one chosen could be opened

    async def open_next(self, prompt: Message | Sequence[Body | Entry] | None) -> HttpModel:
        self.opened, self._name = False, await self._choose(prompt)
        if self._trouble:
            self._runtime.door.warn(f"{self._trouble}; trying {self._name}")
            self._trouble = ""
        if self._name == self._first.name:
            model = self._first
        else:
            model = await self._active.take_model(self._name, self._options.kind)
        self.opened = True
        return model

    def exclude(self, error: ModelError) -> None:
        """Take another model if this one is down, and raise the error if there is none."""
        self._down.add(self._name)
        if not _can_try_another(error, self._first.name, self._runtime.settings, self._down):
            raise error
        why = one_line(str(error), 200)
        self._trouble = f"{self._name} is not available ({why})"

    async def _choose(self, prompt: Message | Sequence[Body | Entry] | None) -> str:
        settings, view = self._runtime.settings, self._session.view()
        routing, first = settings.routing, self._first.name
        if not routing.fallback and not routing.classifier:
            return first
        strategies = [model_selection.fallback(routing.fallback), model_selection.override]
        if routing.classifier and prompt is not None:
            for item in (prompt,) if isinstance(prompt, Message) else prompt:
                body = item.body if isinstance(item, Entry) else item
                view = view.append(Entry(new_id(), view.head, now(), body))
            strategies.append(_classifier_strategy(settings))
        named = first if self._options.model else ""
        context = SelectionContext(view, first, named, frozenset(self._down))
        choice = await model_selection.select_model(strategies, context)
        for failure in choice.failures:
            self._runtime.door.warn(f"model selection failed ({failure}); using {choice.model}")
        return choice.model


async def _choose_models(active: ActiveSession, options: RunOptions) -> _ModelChoice:
    first = await active.take_model(options.model, options.kind)
    return _ModelChoice(active, options, first)


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


# --- the session's surroundings ------------------------------------------------------------------


@asynccontextmanager
async def activate_session(
    runtime: Runtime, session: Session, origin: SessionOrigin
) -> AsyncIterator[ActiveSession]:
    """The session with its commands, hooks and mirror, closed however the work in it ends."""
    settings, warn, effective = runtime.settings, runtime.door.warn, runtime.effective
    mirror = None
    own_hooks: tuple[Hook, ...] = ()
    if settings.mirror and session.is_stored:
        # late: most sessions have no mirror, and it brings every format along
        from recollect.agent.mirror_hook import mirror_hook
        from recollect.transcripts.mirror import Mirror

        mirror = Mirror(runtime.store, settings.mirror, autosave_seconds=settings.autosave_seconds)
        mirror.start()
        own_hooks = (mirror_hook(mirror),)
    transcripts = HookTranscripts(runtime.store, mirror, warn)
    hooks = build_hooks(effective, *own_hooks, warn=warn, transcript=transcripts)
    commands = LazyCommands(effective)
    workspace = runtime.workspace(commands, hooks)
    active, reason = ActiveSession(runtime, session, workspace), "done"
    try:
        started = SessionStart(session=session.id, source=origin)
        await fire_or_refuse(hooks, started, session, "the session")
        yield active
    except asyncio.CancelledError:
        reason = "interrupted"
        raise
    except BaseException as error:
        reason = type(error).__name__
        raise
    finally:
        await active.aclose()
        await commands.close()
        await _fire_end(hooks, session, reason, runtime)
        await transcripts.close()
        if mirror is not None:
            reported = set(mirror.warnings)
            await mirror.close()
            for warning in (each for each in mirror.warnings if each not in reported):
                warn(warning)


async def _fire_end(hooks: Hooks, session: Session, reason: str, runtime: Runtime) -> None:
    ended = SessionEnd(session=session.id, time=now(), reason=reason)
    limit = None if reason == "done" else INTERRUPTED_HOOK_SECONDS
    try:
        await asyncio.wait_for(hooks.fire(ended), limit)
    except TimeoutError:
        runtime.door.warn(f"a SessionEnd hook was stopped because it ran longer than {limit:g} s")

"""The agent loop: fit the context, send it, store the reply, run its tool calls, send again.

Guarantees: the user's prompt is appended once, before anything else. A call is in the log before
its tool runs, and its result before the model is sent it. A run that is stopped leaves a session
that can continue: interrupted calls have a result that says so, and nothing runs again by itself.
Every request fits the model's window. A model that repeats itself is warned once and stopped the
second time. A reply that cannot be used as it is goes back with what was wrong (`corrections.py`).
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, aclosing
from functools import partial
from pathlib import Path

import msgspec

from recollect.agent.agent_run import AgentRun, ContextSource, Prompt
from recollect.agent.blocking import run_blocking
from recollect.agent.decorators import (
    Permission,
    PermissionFunction,
    combine_permissions,
    with_custom_rules,
)
from recollect.agent.exchange import (
    user_message,
)
from recollect.agent.fit_context import ContextFitter
from recollect.agent.hooks import Hook, HookFunction, Hooks
from recollect.agent.instructions import lacking_instructions
from recollect.agent.prepared_request import PreparedRequest
from recollect.agent.run_events import AgentEvent, RunFinished
from recollect.agent.tool_calls import (
    AskUser,
    PermissionCheck,
    WriteGuard,
    allow_reads_only,
    protect_config,
    refuse_unasked,
)
from recollect.codecs.wire_protocol import Declaration, Generation, RequestOptions
from recollect.compaction.budget import Budget
from recollect.errors import BadTool
from recollect.models.model_protocol import Model
from recollect.models.model_selection import CallModel
from recollect.models.open_model import open_model
from recollect.session import Session
from recollect.session_store import attach_session
from recollect.tools.tool import Tool
from recollect.view.custom_rules import CustomRule
from recollect.view.elision_rules import ElisionRules
from recollect.workspace.workspace_secrets import ShownSecrets


class Agent(msgspec.Struct, frozen=True):
    """A model, the tools it may call, and its limits."""

    model: str | Model
    tools: Sequence[Tool] = ()
    instructions: str = ""  # system instructions of sessions that have none
    initial: ContextSource | None = None  # the initial context of a session, where it is missing
    roots: tuple[Path, ...] = ()  # folders that tools may touch
    cwd: Path | None = None  # where relative paths begin; None: in the first root
    permission_check: PermissionCheck = allow_reads_only  # decides if `permissions` do not
    write_guard: WriteGuard = protect_config
    ask_user: AskUser = refuse_unasked  # for a call that a hook wants the user to agree to
    shown_secrets: ShownSecrets = msgspec.field(default_factory=ShownSecrets)  # tools may read them
    generation: Generation = Generation()
    rules: ElisionRules | Sequence[CustomRule] = ()
    budget: Budget | None = None
    summarizer: CallModel | None = None  # writes snapshots; none: they are built by code alone
    hooks: Hooks | Sequence[Hook | HookFunction] = ()
    reminders: ContextSource | None = None
    summarized_tools: tuple[str, ...] = ()  # the summarizer shortens their long output
    summary_tokens: int = 2_000
    max_turns: int = 100
    detect_loops: bool = True
    judge_after: int = 0  # after this many turns, ask a model whether the run is looping; 0: never
    permissions: Sequence[Permission | PermissionFunction] = ()
    client_tools: tuple[Declaration, ...] = ()  # run by the client; they hide ours of their name
    tool_choice: str = "auto"  # for the first request; a tool's name: that one is called
    reduces: bool = True  # False: a context that does not fit is an error

    def __post_init__(self) -> None:
        if not isinstance(self.hooks, Hooks):
            msgspec.structs.force_setattr(self, "hooks", Hooks(self.hooks))
        if not isinstance(self.rules, ElisionRules):
            msgspec.structs.force_setattr(self, "rules", with_custom_rules(self.rules))
        combine_permissions(self.permissions)  # raises for what is no check
        for given in self.tools:
            if not isinstance(given, Tool):
                name = getattr(given, "__name__", type(given).__name__)
                raise BadTool(str(name), "it is not a tool; write `@tool` above the function")

    @property
    def fired_hooks(self) -> Hooks:
        """The hooks, as what fires them."""
        assert isinstance(self.hooks, Hooks)
        return self.hooks

    @property
    def elision_rules(self) -> ElisionRules:
        """The rules, the built-in ones among them."""
        assert isinstance(self.rules, ElisionRules)
        return self.rules

    async def stream(
        self, prompt: Prompt, session: Session | None = None
    ) -> AsyncGenerator[AgentEvent, None]:
        """Run one prompt until the model calls no more tools. Without a prompt the session
        continues; without a session a new one is created in the user's own store."""
        message = user_message(prompt) if isinstance(prompt, str) else prompt
        async with AsyncExitStack() as stack:
            model = await self._open_model(stack)
            session = await attach_session(session, model.name)
            run = AgentRun(self, model, session)
            await run.begin(message)
            while run.reason == "turns" and run.turns_left:
                for step in (run.reply, run.run_tools):
                    async with aclosing(step()) as events:
                        async for event in events:
                            yield event
            yield await run.finish()

    async def run(self, prompt: Prompt, session: Session | None = None) -> RunFinished:
        """Run one prompt to its end: `.text`, `.usage` and `.session` of the result."""
        async with aclosing(self.stream(prompt, session)) as events:
            async for event in events:
                if isinstance(event, RunFinished):
                    return event
        raise AssertionError("the last event of a run is its result")

    def run_sync(self, prompt: Prompt, session: Session | None = None) -> RunFinished:
        """`run` for scripts: waits for the result. Inside an event loop `await agent.run(…)`."""
        return run_blocking(lambda: self.run(prompt, session))

    async def prepare(self, prompt: Prompt, session: Session) -> PreparedRequest:
        """The next request as `stream` would send it. Nothing is stored, no hook runs and no model
        is called, so a snapshot or summary that a model would write is built by code."""
        message = user_message(prompt) if isinstance(prompt, str) else prompt
        quiet = msgspec.structs.replace(self, hooks=Hooks(), summarizer=None)
        async with AsyncExitStack() as stack:
            model = await self._open_model(stack)
            run = AgentRun(quiet, model, session.scratch())
            await run.begin(message)
            reduced = await run.make_ready()
            options = quiet.request_options(model.name)
            return PreparedRequest(run.session.view(), options, run.budget.messages, reduced)

    async def _open_model(self, stack: AsyncExitStack) -> Model:
        if isinstance(self.model, str):
            return await stack.enter_async_context(open_model(self.model))
        return self.model

    def initial_source(self) -> ContextSource | None:
        """What begins a session: its own source, else the instructions."""
        if self.initial is not None or not self.instructions:
            return self.initial
        return partial(lacking_instructions, self.instructions)

    @property
    def client_names(self) -> frozenset[str]:
        """The tools whose calls are left to the client."""
        return frozenset(tool.name for tool in self.client_tools)

    def request_options(self, model: str, *, follows: bool = False) -> RequestOptions:
        """What a request has beside its messages: the model, the tools, the generation settings.
        `follows`: the model was sent results of its calls, so it is not forced to call again."""
        hidden = self.client_names
        own = (tool.declaration for tool in self.tools if tool.name not in hidden)
        choice = "auto" if follows and self.tool_choice != "none" else self.tool_choice
        return RequestOptions(
            model=model,
            tools=(*own, *self.client_tools),
            tool_choice=choice,
            generation=self.generation,
        )

    def context_fitter(self) -> ContextFitter:
        """What makes the context fit, with the settings of this agent."""
        return ContextFitter(
            self.elision_rules,
            self.fired_hooks,
            self.summarizer,
            self.summarized_tools,
            self.summary_tokens,
        )

"""The agent of the command line for a program: `coding_agent(folder, approve=ask)`.

It works in a folder with the user's settings, tools, permissions, hooks and memory files, exactly
as `recollect -p` does. `approve` is asked about every call that the permissions leave to the user;
without it nobody can be asked, and such calls are refused.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Literal, TypeAlias, get_args

from recollect.agent.blocking import run_blocking
from recollect.entries import Message
from recollect.errors import BadInput
from recollect.permissions.command_rules import PermissionMode
from recollect.runtime.permission_policy import ApprovalRequest, Approve
from recollect.runtime.prompt_run import RunEvent, RunOptions, RunResult
from recollect.runtime.runtime import Door, Overrides, build_runtime
from recollect.session import Session
from recollect.session_store import SessionStore, kept_store, reopen_store
from recollect.store.contract import Store

# Asks the user whether a call may run; one that is not async runs in a thread.
AskApproval: TypeAlias = Callable[[ApprovalRequest], bool | Awaitable[bool]]


class CodingAgent:
    """Made by `coding_agent`."""

    def __init__(
        self,
        folder: Path,
        store: SessionStore | Path | str | None,
        door: Door,
        overrides: Overrides,
        options: RunOptions,
    ) -> None:
        self.folder, self._store, self._door = folder, store, door
        self._overrides, self._options = overrides, options

    async def stream(
        self, prompt: str | Message, session: Session | None = None
    ) -> AsyncGenerator[RunEvent, None]:
        """Run a prompt; yields what happens, a `RunResult` last. Without a session a new one is
        created for the folder's project."""
        store = await self._find_store(session)
        runtime = build_runtime(store, self.folder, self._door, self._overrides)
        if session is None:
            text = prompt if isinstance(prompt, str) else ""
            session, origin = await runtime.open_session(prompt=text)
        else:
            origin = "resumed"
        async with (
            aclosing(runtime),
            runtime.activate(session, origin) as active,
            aclosing(active.stream(prompt, self._options)) as events,
        ):
            async for event in events:
                yield event

    async def run(self, prompt: str | Message, session: Session | None = None) -> RunResult:
        """Run a prompt to its end: `.text`, `.usage`, `.session` and `.denials` of the result."""
        async with aclosing(self.stream(prompt, session)) as events:
            async for event in events:
                if isinstance(event, RunResult):
                    return event
        raise AssertionError("the last event of a run is its result")

    def run_sync(self, prompt: str | Message, session: Session | None = None) -> RunResult:
        """`run` for scripts: waits for the result. Inside an event loop `await agent.run(…)`."""
        return run_blocking(lambda: self.run(prompt, session))

    async def _find_store(self, session: Session | None) -> Store:
        if session is not None:
            await reopen_store(session)
            return session.store
        if isinstance(self._store, SessionStore):
            return self._store.store
        return await kept_store(self._store)


def coding_agent(
    folder: Path | str = ".",
    *,
    approve: AskApproval | None = None,
    model: str = "",
    store: SessionStore | Path | str | None = None,
    mode: PermissionMode | Literal[""] = "",
    allow: Sequence[str] = (),
    deny: Sequence[str] = (),
    directories: Sequence[Path | str] = (),
    system: str = "",
    max_turns: int | None = None,
) -> CodingAgent:
    """The agent of the command line, in a folder.

    folder: where it works; its settings, memory files and trust apply.
    approve: gets an `ApprovalRequest` and returns whether the call may run; without it, calls that
        need the user's approval are refused.
    model: by default the one in the settings.
    store: an open store, or the path or URL of one; by default the user's own.
    mode, allow, deny: permissions over those in the settings, as `--mode`, `--allow` and `--deny`.
    directories: further folders that it may work in, as `--add-dir`.
    system: instructions of new sessions instead of the usual ones.
    max_turns: the most replies of the model to one prompt; by default as in the settings.
    """
    where = Path(folder).resolve()
    if not where.is_dir():
        raise BadInput(f"there is no folder {where}; give one that the agent can work in")
    if mode and mode not in get_args(PermissionMode):
        modes = ", ".join(get_args(PermissionMode))
        raise BadInput(f"there is no mode {mode!r}; the modes are {modes}")
    door = Door() if approve is None else Door(approve=_as_async(approve))
    added = tuple(str(directory) for directory in directories)
    overrides = Overrides(mode=mode, allow=tuple(allow), deny=tuple(deny), directories=added)
    options = RunOptions(model, system=system, max_turns=max_turns)
    return CodingAgent(where, store, door, overrides, options)


def _as_async(approve: AskApproval) -> Approve:
    is_async = inspect.iscoroutinefunction(approve)

    async def ask(request: ApprovalRequest) -> bool:
        answer = approve(request) if is_async else await asyncio.to_thread(approve, request)
        return bool(await answer) if inspect.isawaitable(answer) else bool(answer)

    return ask

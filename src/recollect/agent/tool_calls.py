"""Runs the tool calls of one reply and stores each result.

Read-only calls run together, others one after the other, in the order of the reply. A run that is
stopped leaves no call without a result: the results of interrupted calls say that they were not
run, or that the outcome is unknown, and nothing runs them again. An exception in a tool becomes an
error that the model reads.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TypeAlias

import msgspec

from recollect.agent.exchange import NOT_BEGUN, error_output, tool_result
from recollect.agent.hooks import Hooks
from recollect.entries import Message, Note, Text, ToolCall, ToolResult, handle_of
from recollect.errors import RecollectError, RefusedByHook
from recollect.hook_events import AfterTool, BeforeTool, HookDecision
from recollect.session import Session
from recollect.session_log import uncancellable
from recollect.store.output_notes import output_part
from recollect.tools.file_backups import FileBackups
from recollect.tools.tool import (
    BAD_CALL_STATUS,
    BROKEN_STATUS,
    Tool,
    ToolContext,
    ToolFailed,
    ToolOutput,
)
from recollect.workspace.protected_links import find_linked_names
from recollect.workspace.protected_names import find_protected, makes_bare_repository
from recollect.workspace.untrusted_text import one_line
from recollect.workspace.workspace_secrets import ShownSecrets

CUT_CALL = (
    "the output limit cut this call off, so it was not run; write it again, in smaller pieces "
    "if it is long"
)
UNKNOWN_OUTCOME = "this call was interrupted: its outcome is unknown, and it was not run again"


class CallPermission(msgspec.Struct, frozen=True):
    """Whether a tool call may run."""

    refusal: str = ""  # why it may not; empty: it may
    approved: bool = False  # the user allowed this very call, so it may read secrets


PermissionCheck: TypeAlias = Callable[[Tool, ToolCall], Awaitable[CallPermission]]
# Returns why a tool may not change a file. The path has its links resolved and starts at the root.
WriteGuard: TypeAlias = Callable[[Path], Awaitable[str]]
# Asks the user about a call, for a reason; returns why it may not run, or an empty text.
AskUser: TypeAlias = Callable[[ToolCall, str], Awaitable[str]]


async def refuse_unasked(call: ToolCall, reason: str) -> str:
    """The default: nobody can be asked."""
    return f"a hook wants the user to agree to {call.name}, and nobody can be asked here: {reason}"


async def allow_reads_only(tool: Tool, call: ToolCall) -> CallPermission:
    """The default: no tool that writes or runs programs is allowed."""
    del call
    needs = "" if tool.effect == "read" else f"{tool.name} needs a permission that nobody gave"
    return CallPermission(needs)


async def protect_config(path: Path) -> str:
    """What starts something or is taken for the user's words is theirs: no tool changes it."""
    text = path.as_posix()
    if find_protected(text) is None and not makes_bare_repository(text):
        return ""
    return f"{one_line(text)} decides what runs later; only the user changes it"


class ToolStopped(RecollectError):
    """A tool failed because of the machine, such as a full disk; another request cannot help."""

    def __init__(self, result: ToolResult) -> None:
        text = " ".join(part.text for part in result.content if isinstance(part, Text))
        fact = text.removeprefix("Error: ")[:500]
        super().__init__(f"{result.name}: {fact}; fix that, then continue the session")


class ToolStarted(msgspec.Struct, frozen=True):
    """A tool call is about to run, or to be refused."""

    call: ToolCall


class ToolFinished(msgspec.Struct, frozen=True):
    """A tool call has its result, which is stored."""

    call: ToolCall
    result: ToolResult


class ToolRunner:
    """Runs the calls of one reply."""

    def __init__(
        self,
        session: Session,
        calls: Sequence[ToolCall],
        tools: Sequence[Tool],
        roots: tuple[Path, ...],
        permission_check: PermissionCheck,
        hooks: Hooks,
        write_guard: WriteGuard = protect_config,
        cwd: Path | None = None,
        cut: ToolCall | None = None,  # one of the calls, of which the end is missing
        ask_user: AskUser = refuse_unasked,
        shown_secrets: ShownSecrets | None = None,
    ) -> None:
        self.session = session
        self._pending, self._cut = list(calls), cut
        self._tools = {tool.name: tool for tool in tools}
        self._roots, self._cwd, self._hooks = roots, cwd, hooks
        self._permission_check, self._write_guard = permission_check, write_guard
        self._ask_user, self._stopped = ask_user, ""  # why a hook stopped the run
        self._shown_secrets = shown_secrets or ShownSecrets()
        self._store_lock = asyncio.Lock()
        self._begun: set[str] = set()  # ids of calls whose tools were called
        self._printed: dict[str, str] = {}  # by call: the entry with what a command printed
        self._backups = FileBackups(session.store, roots, self._note)

    async def events(self) -> AsyncGenerator[ToolStarted | ToolFinished, None]:
        try:
            while self._pending:
                batch = self._next_batch()
                for call in batch:
                    yield ToolStarted(call)
                results = await asyncio.gather(*(self._run(call) for call in batch))
                for call, result in zip(batch, results, strict=True):
                    await self._store(call, result)
                    yield ToolFinished(call, result)
                if self._stopped:
                    await self.refuse(f"it was not run: a hook stopped the run: {self._stopped}")
                    raise RefusedByHook(f"a hook stopped the run: {self._stopped}")
                broken = next((each for each in results if each.status == BROKEN_STATUS), None)
                if broken is not None:
                    await self.refuse("it was not run: the machine has to be put right before")
                    raise ToolStopped(broken)
        except (asyncio.CancelledError, GeneratorExit):
            await uncancellable(self._mark_interrupted())
            raise

    async def refuse(self, reason: str) -> None:
        """Store a result for every pending call that says why it was not run."""
        for call in list(self._pending):
            await self._store(call, tool_result(call, error_output(reason, "refused")))

    def _next_batch(self) -> list[ToolCall]:
        """The read-only calls before the first that does more, or that one alone."""
        reads = []
        for call in self._pending:
            tool = self._tools.get(call.name)
            if tool is not None and tool.effect != "read":
                break
            reads.append(call)
        return reads or self._pending[:1]

    async def _run(self, call: ToolCall) -> ToolResult:
        output, duration = await self._call_tool(call)
        result = msgspec.structs.replace(tool_result(call, output), duration=duration)
        event = AfterTool(
            session=self.session.id,
            tool=call.name,
            call=call.id,
            arguments=call.arguments,
            output="".join(part.text for part in result.content if isinstance(part, Text)),
            is_error=result.is_error,
            duration=duration,
        )
        self._note_stop(await self._hooks.fire(event))
        return result

    def _note_stop(self, decision: HookDecision) -> None:
        if decision.stop:
            self._stopped = self._stopped or decision.reason

    async def _call_tool(self, call: ToolCall) -> tuple[ToolOutput, float]:
        """What came of it, and the seconds that the tool took: hooks and questions do not count."""
        # before anybody is asked: a hook or a user should not judge what cannot be run
        if problem := self._problem_with(call):
            return error_output(problem, BAD_CALL_STATUS), 0.0
        tool = self._tools[call.name]
        # hooks and permissions judge the arguments under the names with which the tool runs
        call = msgspec.structs.replace(call, arguments=tool.fit(call.arguments))
        decision = await self._hooks.fire(
            BeforeTool(
                session=self.session.id, tool=tool.name, call=call.id, arguments=call.arguments
            )
        )
        self._note_stop(decision)
        if not decision.allowed:
            return error_output(f"a hook refused it: {decision.reason}", "refused"), 0.0
        if decision.arguments is not None:
            call = msgspec.structs.replace(call, arguments=tool.fit(decision.arguments))
        permission = await self._find_permission(tool, call, decision)
        if permission.refusal:
            return error_output(permission.refusal, "refused"), 0.0
        context = ToolContext(
            self._roots,
            self.session.id,
            self.session.store,
            self.session.view(),
            before_change=self._before_change,
            call=call.id,
            note=partial(self._note, call=call.id),
            cwd=self._cwd,
            approved=permission.approved,
            shown=self._shown_secrets,
        )
        began = time.monotonic()
        self._begun.add(call.id)
        try:
            output = await tool(call.arguments, context)
        except Exception as error:  # noqa: BLE001 - a bug in a tool must not end the session
            why = f"{tool.name} failed: {type(error).__name__}: {str(error)[:1_000]}"
            output = error_output(why)
        return output, round(time.monotonic() - began, 3)

    async def _find_permission(
        self, tool: Tool, call: ToolCall, decision: HookDecision
    ) -> CallPermission:
        """Permissions decide as always; whatever they allow, a hook can have the user asked."""
        permission = await self._permission_check(tool, call)
        if permission.refusal or not decision.ask:
            return permission
        refusal = await self._ask_user(call, decision.reason)
        return msgspec.structs.replace(permission, refusal=refusal)

    def _problem_with(self, call: ToolCall) -> str:
        """Why the model has to write this call again; empty if it can be run."""
        if call is self._cut:
            return CUT_CALL
        tool = self._tools.get(call.name)
        if tool is None:
            known = ", ".join(self._tools) or "none"
            return f"there is no tool {call.name[:100]!r}; the tools are {known}"
        return tool.problem_with(call.arguments)

    async def _before_change(self, path: Path) -> None:
        """Tools call this, with links resolved, before they change a file."""
        inside = (root for root in map(Path.resolve, self._roots) if path.is_relative_to(root))
        names: tuple[Path, ...] = (path,)
        if (root := next(inside, None)) is not None:
            links = await asyncio.to_thread(find_linked_names, path, root)
            names = (path.relative_to(root), *links)
        for name in names:
            if refusal := await self._write_guard(name):
                raise ToolFailed(refusal)
        await self._backups.before_change(path)

    async def _note(self, note: Note, call: str = "") -> str:
        """Append a tool's note: a file before and after a change, a sub-agent's session, or output
        that the result does not show."""
        (entry,) = await self.session.append(note, on_conflict="fork")
        if output_part(note) is not None:
            self._printed[call] = entry.id
        return entry.id

    async def _store(self, call: ToolCall, result: ToolResult) -> None:
        # cancelled halfway we would not know the session's head
        await uncancellable(self._store_result(call, result))

    async def _store_result(self, call: ToolCall, result: ToolResult) -> None:
        async with self._store_lock:
            if call not in self._pending:
                return  # it was stored while `_mark_interrupted` waited
            await self._backups.settle()
            await self.session.append(Message(role="user", parts=(result,)), on_conflict="fork")
            self._pending.remove(call)

    async def _mark_interrupted(self) -> None:
        for call in list(self._pending):
            printed = self._printed.get(call.id)
            more = f"; recall {handle_of(printed)} gives what it had printed" if printed else ""
            known = UNKNOWN_OUTCOME + more if call.id in self._begun else NOT_BEGUN
            await self._store(call, tool_result(call, error_output(known, "interrupted")))

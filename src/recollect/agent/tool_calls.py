"""Runs the calls of one reply and keeps each result.

Calls that only read run together, others one after the other, in the order of the reply. Whoever
stops it leaves no call without a result: those that were cut off get one that says their outcome is
unknown. Nobody runs them again. What a tool raises becomes an error that the model reads.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from pathlib import Path
from typing import TypeAlias

import msgspec

from recollect.agent.exchange import Session, uncancellable
from recollect.agent.hook_events import AfterTool, BeforeTool
from recollect.agent.hooks import Hooks
from recollect.entries import Body, Message, Note, Text, ToolCall, ToolResult
from recollect.errors import RecollectError
from recollect.store.ids import now
from recollect.tools.tool import BROKEN_STATUS, Tool, ToolContext, ToolFailed, ToolOutput

UNKNOWN_OUTCOME = "this call was interrupted: its outcome is unknown, and it was not run again"
# Why a tool may not run, or nothing when it may.
PermissionCheck: TypeAlias = Callable[[Tool, ToolCall], Awaitable[str]]
# Why a tool may not change a file, given by its path from the root with all links resolved.
WriteGuard: TypeAlias = Callable[[Path], Awaitable[str]]


async def allow_reads_only(tool: Tool, call: ToolCall) -> str:
    """Without a rule nothing is changed and nothing is run."""
    del call
    return "" if tool.effect == "read" else f"{tool.name} needs a permission that nobody gave"


async def protect_config(path: Path) -> str:
    """Settings, memory, hooks and start-up files are the person's: no tool changes them."""
    from recollect.permissions.protected_paths import names_config

    named = names_config(str(path))
    return f"{path.name} decides what runs later; only the person changes it" if named else ""


class ToolStopped(RecollectError):
    """A tool found that the machine is at fault; asking the model again would not help."""

    def __init__(self, result: ToolResult) -> None:
        said = " ".join(part.text for part in result.content if isinstance(part, Text))
        told = said.removeprefix("Error: ")[:500]
        super().__init__(f"{result.name}: {told}; put that right, then go on with the session")


class ToolStarted(msgspec.Struct, frozen=True):
    """A tool is about to run."""

    call: ToolCall


class ToolFinished(msgspec.Struct, frozen=True):
    call: ToolCall
    result: ToolResult


class ToolRunner:
    """The calls of one reply, on their way to results."""

    def __init__(
        self,
        talk: Session,
        calls: Sequence[ToolCall],
        tools: Sequence[Tool],
        roots: tuple[Path, ...],
        permit: PermissionCheck,
        hooks: Hooks,
        guard: WriteGuard = protect_config,
    ) -> None:
        from recollect.tools.file_backups import FileBackups

        self.talk = talk
        self._left = list(calls)
        self._tools = {tool.name: tool for tool in tools}
        self._roots, self._permit, self._hooks, self._guard = roots, permit, hooks, guard
        self._appending, self._keeping = asyncio.Lock(), asyncio.Lock()
        self._keeper = FileBackups(talk.store, roots, self._note)

    async def events(self) -> AsyncGenerator[ToolStarted | ToolFinished, None]:
        try:
            while self._left:
                together = self._first_to_run()
                for call in together:
                    yield ToolStarted(call)
                results = await asyncio.gather(*(self._run(call) for call in together))
                for call, result in zip(together, results, strict=True):
                    await self._keep(call, result)
                    yield ToolFinished(call, result)
                broken = next((each for each in results if each.status == BROKEN_STATUS), None)
                if broken is not None:
                    await self.refuse("it was not run: the machine has to be put right before")
                    raise ToolStopped(broken)
        except (asyncio.CancelledError, GeneratorExit):
            await uncancellable(self._give_up())
            raise

    def _first_to_run(self) -> list[ToolCall]:
        """All that only read, up to the first that does more; that one alone."""
        reading = []
        for call in self._left:
            tool = self._tools.get(call.name)
            if tool is not None and tool.effect != "read":
                break
            reading.append(call)
        return reading or self._left[:1]

    async def _run(self, call: ToolCall) -> ToolResult:
        began = time.monotonic()
        outcome = await self._outcome(call)
        took = round(time.monotonic() - began, 3)
        result = msgspec.structs.replace(_tool_result(call, outcome), duration=took)
        await self._hooks.fire(self._after(call, result))
        return result

    def _after(self, call: ToolCall, result: ToolResult) -> AfterTool:
        return AfterTool(
            session=self.talk.session,
            time=now(),
            tool=call.name,
            call=call.id,
            arguments=call.arguments,
            output="".join(part.text for part in result.content if isinstance(part, Text)),
            is_error=result.is_error,
            duration=result.duration or 0.0,
        )

    async def refuse(self, why: str) -> None:
        """Keep a result for every call that says why it was not run."""
        for call in list(self._left):
            await self._keep(call, _tool_result(call, _refusal(why)))

    async def _outcome(self, call: ToolCall) -> ToolOutput:
        tool = self._tools.get(call.name)
        if tool is None:
            known = ", ".join(self._tools) or "none"
            return _error(f"there is no tool {call.name[:100]!r}; the tools are {known}")
        told = BeforeTool(
            session=self.talk.session,
            time=now(),
            tool=tool.name,
            call=call.id,
            arguments=call.arguments,
        )
        decision = await self._hooks.fire(told)
        if not decision.allowed:
            return _refusal(f"a hook refused it: {decision.reason}")
        if decision.arguments is not None:
            call = msgspec.structs.replace(call, arguments=decision.arguments)
        refused = await self._permit(tool, call)
        if refused:
            return _refusal(refused)
        talk, keep = self.talk, self._before_change
        where = (self._roots, talk.session, talk.store, talk.view)
        place = ToolContext(*where, before_change=keep, call=call.id, note=self._note)
        try:
            return await tool(call.arguments, place)
        except Exception as error:  # noqa: BLE001 - whatever a tool does wrong, the session goes on
            return _error(f"{tool.name} failed: {type(error).__name__}: {str(error)[:1_000]}")

    async def _before_change(self, path: Path) -> None:
        """Asked by tools, with links resolved, before they change a file."""
        inside = (root for root in map(Path.resolve, self._roots) if path.is_relative_to(root))
        why = await self._guard(next((path.relative_to(root) for root in inside), path))
        if why:
            raise ToolFailed(why)
        await self._keeper.before_change(path)

    async def _note(self, note: Note) -> None:
        """What a file was before a tool changed it, and after; or which session a call began."""
        await uncancellable(self._append(note))

    async def _append(self, body: Body) -> None:
        async with self._appending:  # calls that run together may each have something to note
            self.talk = await self.talk.append(body)

    async def _keep(self, call: ToolCall, result: ToolResult) -> None:
        # cancelled between a write and our knowing of it, we would not know where to go on
        await uncancellable(self._kept(call, result))

    async def _kept(self, call: ToolCall, result: ToolResult) -> None:
        async with self._keeping:
            if call not in self._left:
                return  # it was kept after all, while we gave up
            await self._keeper.settle()
            await self._append(Message(role="user", parts=(result,)))
            self._left.remove(call)

    async def _give_up(self) -> None:
        unknown = msgspec.structs.replace(_error(UNKNOWN_OUTCOME), status="interrupted")
        for call in list(self._left):
            await self._keep(call, _tool_result(call, unknown))


def _tool_result(call: ToolCall, outcome: ToolOutput) -> ToolResult:
    return ToolResult(
        call_id=call.id,
        name=call.name,
        content=outcome.content,
        is_error=outcome.is_error,
        status=outcome.status or ("error" if outcome.is_error else "success"),
        time=now(),
    )


def _refusal(why: str) -> ToolOutput:
    return msgspec.structs.replace(_error(why), status="refused")


def _error(text: str) -> ToolOutput:
    return ToolOutput(content=(Text(text=f"Error: {text}"),), is_error=True)

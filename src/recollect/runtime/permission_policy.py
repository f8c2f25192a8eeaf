"""Which tool calls may run: by the settings, and by the user where somebody can be asked.

Reading inside the folder needs no permission. Changing files, storing facts and running commands
need a rule, a mode, or the user's approval. A refusal names the rule that would allow it. Only the
user changes files that decide what runs later, whatever the mode.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

import msgspec

from recollect.agent.tool_calls import PermissionCheck, protect_config
from recollect.entries import ToolCall
from recollect.toolkinds import parse_arguments
from recollect.tools.tool import Tool
from recollect.workspace.effective_settings import EffectiveSettings
from recollect.workspace.hidden_paths import AGENT_IGNORE_FILES

if TYPE_CHECKING:
    from recollect.permissions.command_rules import PermissionMode
    from recollect.runtime.command_permission import CommandPermission

SHELL_TOOL = "run_shell_command"
MEMORY_TOOL = "save_memory"
_READING = ("plan", "ask")  # modes in which no rule allows to write files
_NOBODY = ": nobody can be asked here"
_ALWAYS_ALLOWED = frozenset({"note", "todo", "task"})  # what these do is checked elsewhere


class ApprovalRequest(msgspec.Struct, frozen=True):
    """A tool call that needs the user's approval."""

    call: ToolCall
    reason: str
    rules: tuple[str, ...] = ()  # rules that would allow it from now on
    normal_form: str = ""  # what a command line means, if that is not what it says


class ApprovalAnswer(msgspec.Struct, frozen=True):
    """What the user decided about a call, and for how long it holds; true if it may run."""

    allowed: bool
    lasts: Literal["once", "session", "always"] = "once"
    reason: str = ""  # of a no, for the model
    shown: bool = True  # False: an earlier answer covers this call, which nobody has seen

    def __bool__(self) -> bool:
        return self.allowed


# Asks the user whether a call may run.
Approve: TypeAlias = Callable[[ApprovalRequest], Awaitable[bool | ApprovalAnswer]]


def refusal_text(refused: str, answer: bool | ApprovalAnswer) -> str:  # noqa: FBT001 - an answer
    """What the model is told of a no, with the user's reason."""
    why = answer.reason.strip() if isinstance(answer, ApprovalAnswer) else ""
    return f"the user refused {refused}" + (f"; the user says: {why}" if why else "")


class PermissionDenial(msgspec.Struct, frozen=True):
    """A tool call that was not allowed, and why."""

    tool: str
    call: str  # its id
    arguments: str
    reason: str
    rules: tuple[str, ...] = ()  # rules that would allow it, in `mode` if one is named
    mode: str = ""  # the mode that would allow it; empty: any, or none does


class _Verdict(msgspec.Struct, frozen=True):
    reason: str = ""  # why it may not run; empty: it may
    may_ask: bool = False
    rules: tuple[str, ...] = ()
    mode: str = ""
    normal_form: str = ""


def build_permission_check(
    effective: EffectiveSettings,
    approve: Approve | None = None,
    denied: Callable[[PermissionDenial], None] = lambda _: None,
    cwd: Path | None = None,
) -> PermissionCheck:
    """The check of every call; without `approve` nobody can be asked. `denied` gets refusals;
    `cwd` is the folder in which commands run, if it is not the root."""
    permissions = effective.settings.permissions
    judge = cache(partial(_build_judge, effective, interactive=approve is not None, cwd=cwd))
    if permissions.allow or permissions.ask or permissions.deny or effective.project_ask:
        judge()  # an invalid rule is reported before a model is called

    def decide(tool: Tool, call: ToolCall) -> _Verdict:
        if tool.effect == "read" or tool.name in _ALWAYS_ALLOWED:
            return _Verdict()
        if tool.name == SHELL_TOOL:
            judged = judge()(*_command_of(tool, call))
            return _Verdict(*msgspec.structs.astuple(judged))
        if tool.name == MEMORY_TOOL:
            return _judge_memory(effective, interactive=approve is not None)
        return _judge_change(tool.name, permissions.mode, interactive=approve is not None)

    async def check(tool: Tool, call: ToolCall) -> str:
        # a command is judged in a thread: looking into large folders takes its time
        judging = asyncio.to_thread(decide, tool, call) if tool.name == SHELL_TOOL else None
        verdict = decide(tool, call) if judging is None else await judging
        if not verdict.reason:
            return ""
        if approve is not None and verdict.may_ask:
            rules = () if verdict.mode else verdict.rules
            request = ApprovalRequest(call, verdict.reason, rules, verdict.normal_form)
            if answer := await approve(request):
                return ""
            verdict = msgspec.structs.replace(verdict, reason=refusal_text(tool.name, answer))
        denied(
            PermissionDenial(
                tool.name, call.id, call.arguments, verdict.reason, verdict.rules, verdict.mode
            )
        )
        return verdict.reason

    return check


def _judge_change(tool: str, mode: PermissionMode, *, interactive: bool) -> _Verdict:
    """Whether a tool may change files, by the mode."""
    if mode not in _READING:
        return _Verdict()
    nobody = "" if interactive else _NOBODY
    remedy = '`--mode edit`, or mode = "edit" under [permissions] in the settings, allows it'
    return _Verdict(f"{tool} is not allowed{nobody}; {remedy}", mode != "plan", mode="edit")


def _judge_memory(effective: EffectiveSettings, *, interactive: bool) -> _Verdict:
    """Whether a fact may be stored. No mode allows it: a model that obeys a text it has read would
    tell every later session the same. A rule can, or the user."""
    given = effective.settings.permissions
    refused = f"{MEMORY_TOOL} is not allowed"
    if _names_memory(given.deny):
        return _Verdict(f"{refused}: a deny rule names it")
    nobody = "" if interactive else _NOBODY
    if _names_memory((*given.ask, *effective.project_ask)):
        return _Verdict(f"{refused}: an ask rule names it{nobody}", may_ask=True)
    if _names_memory(given.allow):
        return _Verdict()
    remedy = (
        f"--allow or `allow` under [permissions] with `{MEMORY_TOOL}` would allow it; the user can "
        "add it with `recollect memory add TEXT`"
    )
    return _Verdict(f"{refused}{nobody}; {remedy}", given.mode != "plan", (MEMORY_TOOL,))


def _names_memory(rules: Iterable[str]) -> bool:
    return any(rule.split() in ([MEMORY_TOOL], [MEMORY_TOOL, "*"]) for rule in rules)


def _build_judge(
    effective: EffectiveSettings, *, interactive: bool, cwd: Path | None
) -> Callable[[str, str], CommandPermission]:
    # late: only commands need the parser of the shell's language
    from recollect.runtime.command_permission import build_command_judge

    return build_command_judge(effective, interactive=interactive, cwd=cwd)


def _command_of(tool: Tool, call: ToolCall) -> tuple[str, str]:
    """Exactly the command that the tool will run, and the directory that the call names."""
    given = parse_arguments(tool.fit(call.arguments)) or {}
    command, directory = given.get("command"), given.get("directory")
    return (
        command if isinstance(command, str) else "",
        directory if isinstance(directory, str) else "",
    )


def build_write_guard(memory: tuple[str, ...]) -> Callable[[Path], Awaitable[str]]:
    names = {Path(name).name.lower() for name in memory}

    async def guard(path: Path) -> str:
        if path.name.lower() in names:
            return f"{path.name} is memory; only the user changes it"
        if path.name.lower() in AGENT_IGNORE_FILES:
            return f"{path.name} says what tools may not see; only the user changes it"
        return await protect_config(path)

    return guard

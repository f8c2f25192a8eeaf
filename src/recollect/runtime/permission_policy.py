"""Which tool calls may run: by the settings, and by the user where somebody can be asked.

Reading inside the folder needs no permission. Changing files, storing facts and running commands
need a rule, a mode, or the user's approval. A refusal names the rule that would allow it. Only the
user changes files that decide what runs later, whatever the mode.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

import msgspec

from recollect.agent.tool_calls import CallPermission, PermissionCheck, protect_config
from recollect.entries import ToolCall
from recollect.toolkinds import parse_arguments, parse_paths
from recollect.tools.secret_access import names_secret_file
from recollect.tools.tool import Tool, ToolContext
from recollect.workspace.effective_settings import EffectiveSettings
from recollect.workspace.hidden_paths import AGENT_IGNORE_FILES
from recollect.workspace.untrusted_text import one_line
from recollect.workspace.workspace_secrets import SecretFinder, ShownSecrets

if TYPE_CHECKING:
    from recollect.permissions.command_rules import PermissionMode
    from recollect.runtime.command_permission import CommandPermission

SHELL_TOOL = "run_shell_command"
MEMORY_TOOL = "save_memory"
_READING = ("plan", "ask")  # modes in which no rule allows to write files
_NOBODY = ": nobody can be asked here"
# The parameters of the file tools that name files whose content a result shows.
_PATH_PARAMETERS = {
    "read_file": "absolute_path",
    "search_file_content": "path",
    "write_file": "file_path",
    "replace": "file_path",
}
_SECRET_READERS = ("read_file", "search_file_content")
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
    word_for_word: bool = False  # a rule gives the whole command line
    asked_because: str = ""  # for the user who is asked: why, without what else would allow it


class _Policy:
    """What the settings say of a call, before anybody is asked."""

    def __init__(
        self,
        effective: EffectiveSettings,
        roots: tuple[Path, ...],
        cwd: Path | None,
        shown: ShownSecrets,
        *,
        interactive: bool,
    ) -> None:
        self._effective, self._interactive = effective, interactive
        self._given = given = effective.settings.permissions
        roots = roots or (effective.root,)
        self._where = ToolContext(roots, cwd=cwd, shown=shown)
        finder = SecretFinder(roots, shown)
        self._judge = cache(
            partial(_build_judge, effective, interactive=interactive, cwd=cwd, finder=finder)
        )
        if given.allow or given.ask or given.deny or effective.project_ask:
            self._judge()  # an invalid rule is reported before a model is called

    def decide(self, tool: Tool, call: ToolCall) -> _Verdict:
        asks = self._interactive
        if secret := _find_secret(tool, call, self._where):
            return _judge_secret(tool.name, secret, self._given.mode, interactive=asks)
        if tool.effect == "read" or tool.name in _ALWAYS_ALLOWED:
            return _Verdict()
        if tool.name == SHELL_TOOL:
            judged = self._judge()(*_command_of(tool, call))
            return _Verdict(*msgspec.structs.astuple(judged))
        if tool.name == MEMORY_TOOL:
            return _judge_memory(self._effective, interactive=asks)
        return _judge_change(tool.name, self._given.mode, interactive=asks)


def build_permission_check(
    effective: EffectiveSettings,
    approve: Approve | None = None,
    denied: Callable[[PermissionDenial], None] = lambda _: None,
    cwd: Path | None = None,
    roots: Sequence[Path] = (),
    shown: ShownSecrets | None = None,
) -> PermissionCheck:
    """The check of every call; without `approve` nobody can be asked. `denied` gets refusals;
    `cwd` is the folder in which commands run, if it is not the root; `roots` are all folders that
    the session works in; `shown` are secrets that it may read."""
    shown = shown or ShownSecrets(effective.settings.permissions.show_secrets)
    decide = _Policy(effective, tuple(roots), cwd, shown, interactive=approve is not None).decide

    async def check(tool: Tool, call: ToolCall) -> CallPermission:
        # in a thread: looking into large folders takes its time
        looks = tool.name in (SHELL_TOOL, *_PATH_PARAMETERS)
        verdict = await asyncio.to_thread(decide, tool, call) if looks else decide(tool, call)
        if not verdict.reason:
            return CallPermission(approved=verdict.word_for_word)
        if approve is not None and verdict.may_ask:
            if answer := await approve(_request(call, verdict)):
                # what nobody has seen was not allowed word for word
                seen = not isinstance(answer, ApprovalAnswer) or answer.shown
                return CallPermission(approved=seen)
            verdict = msgspec.structs.replace(verdict, reason=refusal_text(tool.name, answer))
        denied(
            PermissionDenial(
                tool.name, call.id, call.arguments, verdict.reason, verdict.rules, verdict.mode
            )
        )
        return CallPermission(verdict.reason)

    return check


class ToolPermission(msgspec.Struct, frozen=True):
    """Whether a tool's calls need the user, as far as the settings alone decide."""

    answer: Literal["runs", "asks", "refused", "by command"]
    reason: str = ""


def tool_permission(effective: EffectiveSettings, tool: Tool) -> ToolPermission:
    """What becomes of a tool's calls where the user can be asked."""
    if tool.effect == "read" or tool.name in _ALWAYS_ALLOWED:
        return ToolPermission("runs")
    if tool.name == SHELL_TOOL:
        return ToolPermission("by command", "its rules and the mode decide on each command")
    if tool.name == MEMORY_TOOL:
        verdict = _judge_memory(effective, interactive=True)
    else:
        verdict = _judge_change(tool.name, effective.settings.permissions.mode, interactive=True)
    if not verdict.reason:
        return ToolPermission("runs")
    return ToolPermission("asks" if verdict.may_ask else "refused", verdict.reason)


def _request(call: ToolCall, verdict: _Verdict) -> ApprovalRequest:
    rules = () if verdict.mode else verdict.rules
    return ApprovalRequest(call, verdict.asked_because, rules, verdict.normal_form)


def _find_secret(tool: Tool, call: ToolCall, where: ToolContext) -> str:
    """The first secret of the workspace that a call of a file tool names, if any."""
    parameter = _PATH_PARAMETERS.get(tool.name)
    if parameter is None:
        return ""
    arguments = tool.fit(call.arguments)
    if parameter == "absolute_path":
        named = tuple(file.path for file in parse_paths(arguments))
    else:
        given = (parse_arguments(arguments) or {}).get(parameter)
        named = (given,) if isinstance(given, str) else ()
    return next((path for path in named if names_secret_file(where, path)), "")


def _judge_secret(tool: str, path: str, mode: PermissionMode, *, interactive: bool) -> _Verdict:
    """No mode lets a tool read or change a secret of the workspace; the user does."""
    nobody = "" if interactive else _NOBODY
    because = f"{one_line(path)!r} is a secret of the workspace"
    reason = (
        f"not allowed: {because}{nobody}; the user "
        "can show it with --show-secret or show_secrets under [permissions]"
    )
    return _Verdict(reason, mode != "plan" or tool in _SECRET_READERS, asked_because=because)


def _judge_change(tool: str, mode: PermissionMode, *, interactive: bool) -> _Verdict:
    """Whether a tool may change files, by the mode."""
    if mode not in _READING:
        return _Verdict()
    nobody = "" if interactive else _NOBODY
    remedy = '`--mode edit`, or mode = "edit" under [permissions] in the settings, allows it'
    refused = f"{tool} is not allowed{nobody}; {remedy}"
    because = f"mode {mode} asks before each change"
    return _Verdict(refused, mode != "plan", mode="edit", asked_because=because)


def _judge_memory(effective: EffectiveSettings, *, interactive: bool) -> _Verdict:
    """Whether a fact may be stored. No mode allows it: a model that obeys a text it has read would
    tell every later session the same. A rule can, or the user."""
    given = effective.settings.permissions
    refused = f"{MEMORY_TOOL} is not allowed"
    if _names_memory(given.deny):
        return _Verdict(f"{refused}: a deny rule names it")
    nobody = "" if interactive else _NOBODY
    if _names_memory((*given.ask, *effective.project_ask)):
        because = "an ask rule names it"
        return _Verdict(f"{refused}: {because}{nobody}", may_ask=True, asked_because=because)
    if _names_memory(given.allow):
        return _Verdict()
    remedy = (
        f"--allow or `allow` under [permissions] with `{MEMORY_TOOL}` would allow it; the user can "
        "add it with `recollect memory add TEXT`"
    )
    because = "every later session here would be told this"
    return _Verdict(
        f"{refused}{nobody}; {remedy}", given.mode != "plan", (MEMORY_TOOL,), asked_because=because
    )


def _names_memory(rules: Iterable[str]) -> bool:
    return any(rule.split() in ([MEMORY_TOOL], [MEMORY_TOOL, "*"]) for rule in rules)


def _build_judge(
    effective: EffectiveSettings, *, interactive: bool, cwd: Path | None, finder: SecretFinder
) -> Callable[[str, str], CommandPermission]:
    # late: only commands need the parser of the shell's language
    from recollect.runtime.command_permission import build_command_judge

    return build_command_judge(effective, interactive=interactive, cwd=cwd, finder=finder)


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

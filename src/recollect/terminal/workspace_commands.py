"""`/memory`, `/directory` and `/permissions`: what surrounds every prompt in this folder."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import get_args

import msgspec

from recollect.display.display_text import GAP, one_line, sanitize
from recollect.display.home_paths import abbreviate_home
from recollect.display.isolation_lines import isolation_texts
from recollect.display.memory_report import memory_changes, memory_rows
from recollect.entries import Message
from recollect.errors import BadInput
from recollect.execution.sandbox import find_isolation
from recollect.permissions.command_rules import PermissionMode
from recollect.runtime.runtime import Runtime
from recollect.runtime.session_context import memory_sources
from recollect.terminal.session_runner import SessionRunner
from recollect.terminal.slash_commands import ANSWER_WIDTH
from recollect.workspace.memory_files import MemoryFiles, memory_text, read_memory
from recollect.workspace.memory_writer import own_memory_file, save_fact
from recollect.workspace.working_folders import add_directories

MODES: tuple[PermissionMode, ...] = get_args(PermissionMode)
_MEANINGS: dict[PermissionMode, str] = {
    "plan": "reads only",
    "ask": "asks before it changes files or runs a command that no rule allows",
    "edit": "may change files of this folder; asks before commands",
    "free": "may run commands too, in a sandbox",
    "unrestricted": "may do anything, without a sandbox",
}


# --- /memory -------------------------------------------------------------------------------------


async def run_memory(runner: SessionRunner, arguments: str) -> str:
    runtime = await runner.opened()
    action, _, text = arguments.partition(" ")
    if action == "add":
        return await _add_memory(runtime, text.strip())
    if text or action not in ("", "show", "list", "refresh"):
        raise BadInput("/memory takes show, list, add TEXT or refresh")
    found = await asyncio.to_thread(_read_memory, runtime)
    if action == "refresh":
        return "\n".join(_memory_changes(runner, found))
    if action == "list":
        return "\n".join(_memory_list(found))
    if not found.files:
        return "no memory files; /memory add TEXT starts yours, /init this project's"
    more = len(found.problems)
    left = [f"{more:,} not read; /memory list says why"] if more else []
    return sanitize("\n".join([memory_text(found.files), *left]))


def _read_memory(runtime: Runtime) -> MemoryFiles:
    return read_memory(memory_sources(runtime.folders, runtime.effective))


async def _add_memory(runtime: Runtime, text: str) -> str:
    if not text:
        raise BadInput("say what to remember: /memory add TEXT")
    sources = memory_sources(runtime.folders, runtime.effective)
    path = own_memory_file(sources.home, sources.names)
    saved = await asyncio.to_thread(save_fact, path, text)
    shown = one_line(abbreviate_home(str(path)))
    if not saved.difference:
        return f"{shown} has this fact already; nothing was added"
    return sanitize(f"{saved.difference}\nadded to {shown}; the next prompt sends it")


def _memory_list(found: MemoryFiles) -> Iterator[str]:
    yield from (GAP.join(row).rstrip() for row in memory_rows(found, ANSWER_WIDTH))
    yield from (one_line(warning) for warning in found.warnings)
    yield from (one_line(f"not read: {why}") for why in (*found.problems, *found.hidden))
    if not found.files:
        yield "no memory files; /memory add TEXT starts yours, /init this project's"


def _memory_changes(runner: SessionRunner, found: MemoryFiles) -> Iterator[str]:
    entries = runner.session.view().entries if runner.session is not None else ()
    bodies = (entry.body for entry in entries)
    told = [body for body in bodies if isinstance(body, Message) and body.context]
    if not told:
        yield f"{len(found.files):,} memory files were read; the first prompt sends them"
        return
    changes = list(memory_changes(found.files, told))
    for change, path in changes:
        yield f"{change:<8}  {one_line(abbreviate_home(path))}"
    yield "the next prompt says so" if changes else "nothing has changed since the model was told"


# --- /directory ----------------------------------------------------------------------------------


async def run_directory(runner: SessionRunner, arguments: str) -> str:
    runtime = await runner.opened()
    action, _, name = arguments.partition(" ")
    if action == "add" and name.strip():
        add_directories(runtime.folders, (name.strip(),))  # raises if it cannot be one
        given = (*runner.overrides.directories, name.strip())
        await runner.reconfigure(msgspec.structs.replace(runner.overrides, directories=given))
        runtime = runner.runtime
    elif action not in ("", "show"):
        raise BadInput("/directory takes show, or add DIR")
    folders = runtime.folders
    lines = [f"working directory  {one_line(str(folders.cwd))}"]
    if folders.root != folders.cwd:
        lines.append(f"project            {one_line(str(folders.root))}")
    lines += [f"added              {one_line(str(path))}" for path in folders.added]
    return "\n".join(lines)


# --- /permissions --------------------------------------------------------------------------------


async def run_permissions(runner: SessionRunner, arguments: str) -> str:
    runtime = await runner.opened()
    if not arguments:
        return "\n".join(_permission_lines(runtime, runner.approvals.approved))
    mode = next((mode for mode in MODES if mode == arguments.lower()), None)
    if mode is None:
        raise BadInput(f"there is no mode {arguments[:40]!r}; take {', '.join(MODES)}")
    await switch_mode(runner, mode)
    return f"mode {mode}: {_MEANINGS[mode]}"


async def switch_mode(runner: SessionRunner, mode: PermissionMode) -> None:
    """Another mode from the next prompt on. `unrestricted` takes away the sandbox: only whoever
    started the program with it may come back to it."""
    if mode == "unrestricted" and not runner.may_be_unrestricted:
        raise BadInput("start recollect with `--mode unrestricted` to run without a sandbox")
    await runner.reconfigure(msgspec.structs.replace(runner.overrides, mode=mode))


def _permission_lines(runtime: Runtime, approved: tuple[str, ...]) -> Iterator[str]:
    given = runtime.settings.permissions
    yield f"mode {given.mode}: {_MEANINGS[given.mode]}"
    rules = {
        "always run": given.allow,
        "always ask": (*given.ask, *runtime.effective.project_ask),
        "never run": given.deny,
        "approved here, until you leave": approved,
    }
    for title, some in rules.items():
        yield from (f"{title}: {one_line(rule)}" for rule in some)
    if not any(rules.values()):
        yield "no rules; `always` at a question stores one, /settings permissions lists them"
    isolation = find_isolation("none" if given.mode == "unrestricted" else given.sandbox)
    first, *rest = isolation_texts(isolation)
    yield f"sandbox: {first}"
    yield from (f"  {text}" for text in rest)
    yield f"network in the sandbox: {'yes' if given.network else 'no'}"
    yield f"/permissions MODE switches: {', '.join(MODES)}"

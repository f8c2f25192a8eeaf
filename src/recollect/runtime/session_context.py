"""What every session is sent with: instructions, environment, memory; and what changed of it since.

A session that lacks instructions or the environment gets them as entries of its own, placed first
in the view, whichever way it came to be. The environment is read only where it is missing.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path

import msgspec

from recollect.agent.reminders import ContextReminders
from recollect.entries import Body, Entry, Message, Note, Request
from recollect.errors import BadInput
from recollect.settings import data_directory
from recollect.store.ids import new_id, now
from recollect.view.initial_messages import (
    is_environment,
    mark_environment,
    plan_initial_context,
)
from recollect.view.view import View
from recollect.workspace.effective_settings import EffectiveSettings
from recollect.workspace.initial_context import initial_message, read_environment
from recollect.workspace.memory_files import MemorySources, read_memory
from recollect.workspace.memory_reader import MemoryReader
from recollect.workspace.safe_files import resolve_named
from recollect.workspace.trusted_folders import is_trusted
from recollect.workspace.working_folders import WorkingFolders, add_directories
from recollect.workspace.workspace_secrets import SecretFinder, ShownSecrets

MAX_MEMORY_WARNINGS = 3


def find_folders(
    cwd: Path, effective: EffectiveSettings, given: tuple[str, ...], warn: Callable[[str], None]
) -> WorkingFolders:
    """Where the user stands, the project, and the directories added by settings and by hand."""
    folders = WorkingFolders(cwd.resolve(), effective.root)
    for name in effective.settings.agent.directories:
        try:
            folders = add_directories(folders, (name,))
        except BadInput as error:
            warn(f"agent.directories: {error}")
    return add_directories(folders, given)


def memory_sources(
    folders: WorkingFolders, effective: EffectiveSettings, *, own: bool = True
) -> MemorySources:
    """Where memory comes from; without `own`, only from the project: in the session of a server's
    client, what the machine's user noted for themselves is none of the client's business."""
    settings = effective.settings.agent
    named = [name for name in settings.memory_files if "/" in name]
    return MemorySources(
        cwd=folders.cwd,
        root=folders.root,
        home=data_directory(),
        trusted=is_trusted,
        names=tuple(name for name in settings.memory_files if "/" not in name),
        files=tuple(resolve_named(Path("/"), name) for name in named),
        import_style=settings.memory_imports,
        added=folders.added,
        has_own=own,
    )


class InitialContext:
    """What to append so that a view begins with the instructions and the environment. A view in
    which nothing was missing is not searched again, only what came after it."""

    def __init__(self, instructions: Message, read_block: Callable[[], Awaitable[Message]]) -> None:
        self._instructions, self._read_block = instructions, read_block
        self._complete = (0, "")  # so many entries, up to the one with this id

    async def __call__(self, view: View) -> Sequence[Body | Entry]:
        if self._is_complete(view):
            return ()
        plan = partial(plan_initial_context, new_id=new_id, now=now())
        blank = Message(role="user")  # what is missing does not depend on what the block says
        if plan(view, self._instructions, blank):
            return plan(view, self._instructions, await self._read_block())
        self._complete = (view.n, view.log.entries[view.n - 1].id)
        return ()

    def _is_complete(self, view: View) -> bool:
        (count, newest), entries = self._complete, view.log.entries
        if not 0 < count <= view.n or entries[count - 1].id != newest:
            return False
        if not all(_is_said(entry.body) for entry in entries[count : view.n]):
            return False
        self._complete = (view.n, entries[view.n - 1].id)
        return True


def _is_said(body: Body) -> bool:
    """Whether it changes nothing of what comes before it, and belongs at its place."""
    if isinstance(body, Message):
        return not body.context and body.role != "system" and not is_environment(body)
    return isinstance(body, Request | Note)


async def environment_block(
    folders: WorkingFolders,
    effective: EffectiveSettings,
    warn: Callable[[str], None],
    *,
    tree: bool = True,
    own: bool = True,
) -> Message:
    """The environment and the memory files, the user's `own` too; `warn` gets which of those were
    not read, and why, and which ignore files could not be read in full."""
    sources = memory_sources(folders, effective, own=own)
    memory = await asyncio.to_thread(read_memory, sources)
    for problems in (memory.warnings, memory.problems):
        for problem in problems[:MAX_MEMORY_WARNINGS]:
            warn(problem)
    environment = read_environment(folders.root)
    block = await initial_message(folders, environment, memory.files, tree=tree)
    return msgspec.structs.replace(block, extra=mark_environment(block.extra))


def build_reminders(
    folders: WorkingFolders,
    effective: EffectiveSettings,
    memory: MemoryReader,
    *,
    own: bool = True,
) -> ContextReminders:
    """Of changes in memory and, in the user's `own` sessions, of what their editor shows."""
    editor = effective.settings.agent.editor if own else ""
    shown = ShownSecrets(effective.settings.permissions.show_secrets)
    secrets = SecretFinder(folders.roots, shown)
    return ContextReminders(
        memory.sources,
        memory=memory,
        editor=Path(editor).expanduser() if editor else None,
        locale=read_environment(folders.root).locale,
        is_secret=lambda path: secrets.is_secret(path, os.path.realpath(path)),
    )

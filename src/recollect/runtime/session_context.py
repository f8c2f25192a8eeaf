"""What every session is sent with: instructions, environment, memory; and what changed of it since.

A session that lacks instructions or the environment gets them as entries of its own, placed first
in the view, whichever way it came to be. The environment is read only where it is missing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path

import msgspec

from recollect.agent.reminders import ContextReminders
from recollect.entries import Body, Entry, Message
from recollect.errors import BadInput
from recollect.settings import data_directory
from recollect.store.ids import new_id, now
from recollect.view.initial_messages import mark_environment, plan_initial_context
from recollect.view.view import View
from recollect.workspace.effective_settings import EffectiveSettings
from recollect.workspace.initial_context import initial_message, read_environment
from recollect.workspace.memory_files import MemorySources, read_memory
from recollect.workspace.safe_files import resolve_named
from recollect.workspace.trusted_folders import is_trusted
from recollect.workspace.working_folders import WorkingFolders, add_directories

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


async def ensure_initial(
    view: View,
    instructions: Message,
    read_block: Callable[[], Awaitable[Message]],
) -> Sequence[Body | Entry]:
    """What to append so that the view begins with the instructions and the environment."""
    plan = partial(plan_initial_context, new_id=new_id, now=now())
    blank = Message(role="user")  # what is missing does not depend on what the block says
    if not plan(view, instructions, blank):
        return ()
    return plan(view, instructions, await read_block())


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
    folders: WorkingFolders, effective: EffectiveSettings, *, own: bool = True
) -> ContextReminders:
    """Of changes in memory and, in the user's `own` sessions, of what their editor shows."""
    editor = effective.settings.agent.editor if own else ""
    return ContextReminders(
        memory_sources(folders, effective, own=own),
        editor=Path(editor).expanduser() if editor else None,
        locale=read_environment(folders.root).locale,
    )

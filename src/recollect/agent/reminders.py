"""Reminders for the model beside the messages: date, folders, the editor's state, memory.

`ContextReminders` is called before each request, when every call has its result. It knows from the
log what the session already has, so a resumed session gets the date only on another day, the
working directories only if they are others, and each memory file once. Memory is read again for
each prompt, and what has changed since it was given is given again. The editor's state comes whole
at first and after a compaction, then only its changes. A date or a directory that a compaction hid
is repeated. Only new entries of the log are looked at; one that is not the log of the last call,
after a rewind or in a sub-agent's session, is read from its beginning.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from datetime import date, datetime
from pathlib import Path

import msgspec

from recollect.agent.exchange import message_text, user_message
from recollect.entries import Entry, Message, Text, ToolCall, json_text
from recollect.toolkinds import parse_paths
from recollect.view.curation import is_spoken
from recollect.view.initial_messages import memory_in
from recollect.view.view import View
from recollect.workspace.editor_state import (
    EditorState,
    editor_context,
    is_editor_context,
    read_editor,
    without_secrets,
)
from recollect.workspace.initial_context import (
    DEFAULT_LOCALE,
    date_change_line,
    directory_message,
)
from recollect.workspace.memory_files import (
    MemoryChanges,
    MemoryFile,
    MemorySources,
    find_memory_changes,
    memory_message,
    read_given_memory,
    read_memory_near,
    seen_memory,
)
from recollect.workspace.memory_reader import MemoryReader
from recollect.workspace.working_folders import (
    WorkingFolders,
    folder_change_line,
    stated_folders,
)

MAX_PATHS = 50  # of one turn
_DAY = "told_day"


class ContextReminders:
    def __init__(
        self,
        sources: MemorySources,
        *,
        memory: MemoryReader | None = None,  # for several sessions
        editor: Path | None = None,
        today: Callable[[], date] = date.today,
        locale: str = DEFAULT_LOCALE,
        is_secret: Callable[[str], bool] = lambda _: False,
    ) -> None:
        self._sources, self._editor_file, self._is_secret = sources, editor, is_secret
        self._today, self._locale = today, locale
        self._read_memory = memory or MemoryReader(sources)
        self._folders = WorkingFolders(sources.cwd, sources.root, sources.added)
        self._forget_all()

    def _forget_all(self) -> None:
        self._processed, self._newest = 0, ""  # entries, and the id of the last one
        self._first: WorkingFolders | None = None  # that the log states
        self._last: WorkingFolders | None = None
        self._given: dict[str, str] = {}  # memory: the digest of each file
        self._prompted = True  # a prompt came since memory was last read
        self._day: date | None = None  # the last one in the log
        self._editor: EditorState | None = None
        self._compaction: str | None = None

    async def __call__(self, view: View) -> Sequence[Message]:
        entries, done = view.log.entries, self._processed
        if done > view.n or (done and entries[done - 1].id != self._newest):
            self._forget_all()
        new = entries[self._processed : view.n]
        self._processed, self._newest = view.n, entries[view.n - 1].id if view.n else ""
        touched = self._read_entries(new)
        self._forget_compacted(view)
        found = [self._date(), *await self._folder_change(), await self._editor_change()]
        found += await self._memory_changes(), await self._memory(touched)
        return [message for message in found if message is not None]

    def _read_entries(self, entries: Sequence[Entry]) -> list[str]:
        """Note the reminders in new entries; returns the paths in the newest reply's calls.

        The paths of earlier replies were handled before the next request.
        """
        touched: dict[str, None] = {}
        for entry in entries:
            body = entry.body
            if not isinstance(body, Message):
                continue
            if body.role == "model":
                touched.clear()
            self._prompted |= is_spoken(body)
            if body.context:
                self._read_statement(entry, body)
            for part in body.parts:
                if isinstance(part, ToolCall):
                    touched |= dict.fromkeys(one.path for one in parse_paths(part.arguments))
        return list(touched)[:MAX_PATHS]

    def _read_statement(self, entry: Entry, message: Message) -> None:
        self._day = _stated_day(entry, message) or self._day
        self._last = stated_folders(message) or self._last
        self._first = self._first or self._last
        for path, digest in seen_memory((message,)).items():
            here = self._relocate(path)
            if digest is None:
                self._given.pop(here, None)
            else:
                self._given[here] = digest

    def _relocate(self, path: str) -> str:
        """Where a memory file is now that was in the project when its path was recorded."""
        was, root = self._last, self._folders.root.resolve()
        if was is None or was.root == root or not Path(path).is_relative_to(was.root):
            return path
        return str(root / Path(path).relative_to(was.root))

    def _forget_compacted(self, view: View) -> None:
        """A compaction hides dates, folders and editor states; memory stays in every view."""
        compaction = view.compaction.id if view.compaction is not None else None
        if compaction != self._compaction:
            days = (_stated_day(item.entry, item.message) for item in view.items)
            self._day = max((day for day in days if day is not None), default=None)
            stated = {
                view.log.at[item.entry.id]: folders
                for item in view.items
                if (folders := stated_folders(item.message)) is not None
            }
            self._last = stated[max(stated)] if stated else self._last
            self._editor, self._compaction = None, compaction

    def _date(self) -> Message | None:
        today = self._today()
        line = date_change_line(self._day or today, today, self._locale)
        if not line:
            return None
        self._day = today
        extra = json_text({_DAY: today.isoformat()})
        return msgspec.structs.replace(user_message(line, "aside"), extra=extra)

    async def _folder_change(self) -> list[Message]:
        last, now = self._last, self._folders
        if last is None or last == now:
            return []
        self._last, extra = now, json_text(now.record())
        line = folder_change_line(self._first or last, last, now)
        found = [msgspec.structs.replace(user_message(line, "aside"), extra=extra)] if line else []
        if not set(now.added) <= set(last.added):
            found.append(await directory_message(now))
        return found

    async def _editor_change(self) -> Message | None:
        if self._editor_file is None:
            return None
        read = await asyncio.to_thread(read_editor, self._editor_file)
        now = await asyncio.to_thread(without_secrets, read, self._is_secret)
        text = editor_context(self._editor, now)
        self._editor = now
        return user_message(text, "aside") if text else None

    async def _memory_changes(self) -> Message | None:
        if not self._prompted:
            return None
        self._prompted = False
        found = await self._read_memory()
        elsewhere = self._given.keys() - {file.path for file in found.files}
        if elsewhere:  # what was found while tools worked in other folders
            sources, given = self._sources, self._given
            found = await asyncio.to_thread(read_given_memory, sources, given, found)
        changes = find_memory_changes(found, self._given)
        for path in changes.removed:
            del self._given[path]
        self._given |= {file.path: file.digest for file in (*changes.new, *changes.changed)}
        return memory_message(changes) if changes else None

    async def _memory(self, paths: Sequence[str]) -> Message | None:
        found: dict[str, MemoryFile] = {}
        for path in paths:
            seen = self._given.keys() | found.keys()
            memory = await asyncio.to_thread(
                read_memory_near, self._sources.cwd / path, self._sources, seen
            )
            found |= {file.path: file for file in memory.files}
        self._given |= {path: file.digest for path, file in found.items()}
        return memory_message(MemoryChanges(new=tuple(found.values()))) if found else None


def name_addition(message: Message) -> str:
    """What a message is about that the program adds to a request."""
    if message.role == "system":
        return "the instructions"
    if message.context == "initial":
        memory = any(memory_in(p.text) for p in message.parts if isinstance(p, Text))
        return "the environment and memory" if memory else "the environment"
    if message.context == "memory":
        return "memory"
    if _DAY in message.extra:
        return "the date"
    if stated_folders(message) is not None:
        return "the folders"
    if message.context == "aside" and is_editor_context(message_text(message)):
        return "the editor's state"
    return "a note" if message.context else "the prompt"


def _stated_day(entry: Entry, message: Message) -> date | None:
    """The day that a message states; the initial message states the day it was written."""
    if message.context == "initial" and message.role == "user":
        return datetime.fromtimestamp(entry.time / 1_000).date()  # noqa: DTZ006 - the user's day
    if message.context == "aside" and _DAY in message.extra:
        try:
            return date.fromisoformat(str(json.loads(message.extra).get(_DAY)))
        except (ValueError, AttributeError, RecursionError):
            return None
    return None

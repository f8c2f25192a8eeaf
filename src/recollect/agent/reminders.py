"""What the model is told beside the conversation: the date, the editor, memory of folders in use.

Asked before each request, when every call has its result. What a session was told is known from
its log, so a resumed session is told the date only on another day and a memory file only once. Of
the editor it is told everything at first and after a compaction, then only what changed, and
nothing when nothing did. A date that a compaction took away is told again. Only what is new in the
log is looked at.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from recollect.agent.exchange import user_message
from recollect.entries import Entry, Message, ToolCall, json_text
from recollect.toolkinds import parse_paths
from recollect.view.view import View
from recollect.workspace.initial_context import DEFAULT_LOCALE, date_change_line
from recollect.workspace.memory_files import (
    MemoryFile,
    MemorySources,
    memory_message,
    read_memory_near,
    seen_memory,
)

if TYPE_CHECKING:
    from recollect.workspace.editor_state import EditorState

MAX_PATHS = 50  # of one turn
_DAY = "told_day"


class ContextReminders:
    """Made once for a session that goes on; called with its view."""

    def __init__(
        self,
        sources: MemorySources,
        *,
        editor: Path | None = None,
        today: Callable[[], date] = date.today,
        locale: str = DEFAULT_LOCALE,
    ) -> None:
        self._sources, self._editor_file = sources, editor
        self._today, self._locale = today, locale
        self._looked = 0  # at so many entries
        self._seen: set[str] = set()
        self._day: date | None = None  # that was told last
        self._editor: EditorState | None = None
        self._compaction: str | None = None

    async def __call__(self, view: View) -> Sequence[Message]:
        new = view.log.entries[self._looked : view.n]
        self._looked = view.n
        touched = self._take(new)
        self._forget(view)
        found = [self._date(), await self._shown()]
        if touched:
            found.append(await self._memory(touched))
        return [message for message in found if message is not None]

    def _take(self, entries: Sequence[Entry]) -> list[str]:
        """What the entries have told, and the paths that calls of the newest reply touch.

        What earlier replies touched was told before the next one was asked for.
        """
        touched: dict[str, None] = {}
        for entry in entries:
            body = entry.body
            if not isinstance(body, Message):
                continue
            if body.role == "model":
                touched.clear()
            if body.context:
                self._seen |= seen_memory((body,))
                self._day = _stated_day(entry, body) or self._day
            for part in body.parts:
                if isinstance(part, ToolCall):
                    touched |= dict.fromkeys(one.path for one in parse_paths(part.arguments))
        return list(touched)[:MAX_PATHS]

    def _forget(self, view: View) -> None:
        """What a compaction took away counts as not told; memory stays in every view."""
        held = view.compaction.id if view.compaction is not None else None
        if held != self._compaction:
            days = (_stated_day(item.entry, item.message) for item in view.items)
            self._day = max((day for day in days if day is not None), default=None)
            self._editor, self._compaction = None, held

    def _date(self) -> Message | None:
        today = self._today()
        line = date_change_line(self._day or today, today, self._locale)
        if not line:
            return None
        self._day = today
        extra = json_text({_DAY: today.isoformat()})
        return msgspec.structs.replace(user_message(line, "aside"), extra=extra)

    async def _shown(self) -> Message | None:
        """What the editor shows now, as far as the model does not know it."""
        if self._editor_file is None:
            return None
        from recollect.workspace.editor_state import editor_context, read_editor

        now = await asyncio.to_thread(read_editor, self._editor_file)
        text = editor_context(self._editor, now)
        self._editor = now
        return user_message(text, "aside") if text else None

    async def _memory(self, paths: Sequence[str]) -> Message | None:
        found: dict[str, MemoryFile] = {}
        for path in paths:
            place = self._sources.root / path
            seen = self._seen | found.keys()
            memory = await asyncio.to_thread(read_memory_near, place, self._sources, seen)
            found |= {file.path: file for file in memory.files}
        self._seen |= found.keys()
        return memory_message(tuple(found.values())) if found else None


def _stated_day(entry: Entry, message: Message) -> date | None:
    """The day that a message tells: the first one's is the day it was written."""
    if message.context == "initial" and message.role == "user":
        return datetime.fromtimestamp(entry.time / 1_000).date()  # noqa: DTZ006 - the person's day
    if message.context == "aside" and _DAY in message.extra:
        try:
            return date.fromisoformat(str(json.loads(message.extra).get(_DAY)))
        except (ValueError, AttributeError, RecursionError):
            return None
    return None

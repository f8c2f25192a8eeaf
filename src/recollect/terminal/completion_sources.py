"""Where the candidates of a completion come from: commands, settings, the store, the folders.

Reading folders and comparing paths happens in a thread, so that no key waits for it; what was asked
for a key that is no longer the last one is given up.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from threading import Event
from types import ModuleType
from typing import TYPE_CHECKING, TypeAlias

from recollect.display.display_text import one_line
from recollect.models.resolve import known_models
from recollect.terminal.prompt_completion import (
    MOST,
    Candidate,
    CompletionTarget,
    complete_command,
    complete_path,
    complete_word,
)
from recollect.terminal.session_runner import SessionRunner
from recollect.terminal.slash_commands import COMMANDS, SlashCommand
from recollect.terminal.user_command_table import command_rows, load_user_commands

if TYPE_CHECKING:
    from recollect.tools.path_index import IndexedPath, PathMatches

FRESH_SECONDS = 10.0  # how long a reading of the folders is believed
MAX_SESSIONS = 50
MODES = ("plan", "ask", "edit", "free")

Choices: TypeAlias = Callable[[SessionRunner], Awaitable[list[tuple[str, str]]]]


class CompletionSources:
    def __init__(self, runner: SessionRunner) -> None:
        self.runner = runner
        self.paths = _PathSource()
        self._arguments: dict[str, Choices] = {
            "model": _models,
            "resume": _sessions,
            "theme": lambda _: _words("auto", "light", "dark"),
            "memory": lambda _: _words("show", "list", "add", "refresh"),
            "directory": lambda _: _words("show", "add"),
            "permissions": lambda _: _words(*MODES),
        }

    async def commands(self) -> tuple[SlashCommand, ...]:
        """The program's and the user's own."""
        own = await load_user_commands(await self.runner.opened())
        return (*COMMANDS, *command_rows(own))

    async def candidates(self, target: CompletionTarget) -> list[Candidate]:
        if target.kind == "command":
            return complete_command(target.typed, await self.commands())
        if target.kind == "path":
            runtime = await self.runner.opened()
            roots = (runtime.folders.cwd, *runtime.folders.roots)
            return complete_path(await self.paths.find(roots, target.typed))
        names = (one.name for one in COMMANDS if target.command in (one.name, *one.aliases))
        source = self._arguments.get(next(names, ""))
        if source is None:
            return []
        return complete_word(target.typed, await source(self.runner))

    def close(self) -> None:
        self.paths.close()


class _PathSource:
    """The paths of the working folders, read when they are first asked for and again after a
    while; until then the last reading serves."""

    def __init__(self) -> None:
        self._roots: tuple[Path, ...] = ()
        self._paths: tuple[IndexedPath, ...] = ()
        self._matches: PathMatches | None = None
        self._read_at = -FRESH_SECONDS
        self._reading: asyncio.Task[None] | None = None
        self._closing, self._stop = Event(), Event()

    async def find(self, roots: tuple[Path, ...], query: str) -> tuple[str, ...]:
        self._stop.set()  # an earlier search is for what is no longer typed
        stop = self._stop = Event()
        changed = roots != self._roots
        if changed or time.monotonic() - self._read_at > FRESH_SECONDS:
            self._begin(roots)
        if self._reading is not None and (changed or not self._paths):
            await asyncio.shield(self._reading)
        before = self._matches
        found: PathMatches | None = await asyncio.to_thread(
            _path_index().match_paths, self._paths, query, stop, limit=MOST, before=before
        )
        if found is None:
            return ()
        if self._matches is before and not stop.is_set():
            self._matches = found
        return found.best

    def use(self, roots: tuple[Path, ...], paths: tuple[IndexedPath, ...]) -> None:
        """Take these paths as just read."""
        self._roots, self._paths, self._matches = roots, paths, None
        self._read_at = time.monotonic()

    def _begin(self, roots: tuple[Path, ...]) -> None:
        if self._reading is None:
            self._roots = roots
            self._reading = asyncio.create_task(self._read(roots))

    async def _read(self, roots: tuple[Path, ...]) -> None:
        try:
            self.use(roots, await asyncio.to_thread(_path_index().read_paths, roots, self._closing))
        finally:
            self._read_at, self._reading = time.monotonic(), None

    def close(self) -> None:
        self._closing.set()
        self._stop.set()


def _path_index() -> ModuleType:
    # late: walking folders is a tool's work, and loaded by its first use
    from recollect.tools import path_index

    return path_index


async def _words(*words: str) -> list[tuple[str, str]]:
    return [(word, "") for word in words]


async def _models(runner: SessionRunner) -> list[tuple[str, str]]:
    runtime = await runner.opened()
    own = [(name, "yours") for name in runtime.settings.models]
    return own + [(one.name, one.endpoint.name) for one in known_models(runtime.settings)]


async def _sessions(runner: SessionRunner) -> list[tuple[str, str]]:
    runtime = await runner.opened()
    found = await runtime.store.sessions(project=runtime.project, limit=MAX_SESSIONS)
    short = await runtime.store.short_session_ids([one.id for one in found])
    return [(short[one.id], one_line(one.title)) for one in found]

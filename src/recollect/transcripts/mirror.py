"""Mirrors: a session as another program's file, kept up to date while an agent works.

Guarantees: the file is what `recollect export` writes, whole at every moment, for its owner only;
`mirror_file` keeps it from replacing anything else. Nothing here raises into the agent: failures
are listed in `warnings`, and the next write tries again. Composing and writing happen in a thread;
for each session at most one write is running and one is waiting.
"""

from __future__ import annotations

import asyncio
import math
import time
from pathlib import Path
from typing import TypeAlias

from recollect.errors import BadInput
from recollect.settings import data_directory
from recollect.store.contract import SessionInfo, Store
from recollect.store.output_notes import without_output
from recollect.text import one_line
from recollect.transcripts.format_table import writer_of
from recollect.transcripts.mirror_file import write_mirror_file

_WARNING_LIMIT, _WARNING_CHARACTERS = 20, 500
# head, title and project of a session: the same state gives the same file
_MirroredState: TypeAlias = tuple[str | None, str, str | None]


class Mirror:
    """Files of one format in one folder, for the sessions of a store that it follows."""

    def __init__(
        self,
        store: Store,
        format: str,  # noqa: A002 - the word everybody looks for
        folder: Path | None = None,
        *,
        autosave_seconds: float = 30.0,
        outputs: bool = True,
    ) -> None:
        """With `autosave_seconds=0` no timer runs. `outputs=False` leaves out what commands printed
        and no result shows."""
        if not (math.isfinite(autosave_seconds) and autosave_seconds >= 0):
            raise BadInput(f"autosave_seconds must be 0 or more seconds, not {autosave_seconds}")
        self.store, self._writer = store, writer_of(format)
        self.folder = (data_directory() / "mirrors" if folder is None else folder).absolute()
        self.autosave_seconds, self._outputs = autosave_seconds, outputs
        self.warnings: list[str] = []  # the newest; the caller may clear them
        self._new_warnings: list[str] = []
        self._followed: dict[str, _MirroredState | None] = {}  # None: not written yet
        self._running: dict[str, asyncio.Task[Path | None]] = {}
        self._waiting: dict[str, asyncio.Task[Path | None]] = {}
        self._timer: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Mirror:
        self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def start(self) -> None:
        if self._timer is None and self.autosave_seconds:
            self._timer = asyncio.get_running_loop().create_task(self._autosave())

    async def close(self) -> None:
        """Stop the timer and write sessions that have changed. The store must still be open."""
        timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()
            await asyncio.wait((timer,))
        while under_way := {*self._running.values(), *self._waiting.values()}:
            await asyncio.wait(under_way)
        for session in tuple(self._followed):
            await self.write_if_changed(session)

    def follow(self, session_id: str) -> None:
        """From now on the timer writes this session when it has changed."""
        self._followed.setdefault(session_id, None)

    async def write(self, session_id: str) -> Path | None:
        """The file, once it holds everything that the log holds now; None if that failed. A write
        continues when its caller is cancelled."""
        return await asyncio.shield(self.schedule_write(session_id))

    async def write_if_changed(self, session_id: str) -> None:
        self.follow(session_id)
        try:
            state = _state(await self.store.session(session_id))
        except Exception:  # noqa: BLE001 - the write fails in the same way and reports it
            state = None
        if state is None or state != self._followed.get(session_id):
            await self.write(session_id)

    async def finish(self, session_id: str) -> None:
        """At the end of a session: write what has changed; on success, stop following it."""
        await self.write_if_changed(session_id)
        if self._followed.get(session_id) is not None:
            del self._followed[session_id]

    def take_warnings(self) -> tuple[str, ...]:
        """The warnings since the last call."""
        taken, self._new_warnings = self._new_warnings, []
        return tuple(taken)

    def schedule_write(self, session_id: str) -> asyncio.Task[Path | None]:
        """The next write that has not read the log yet, and so will hold all that is there now."""
        waiting = self._waiting.get(session_id)
        if waiting is None:
            waiting = asyncio.get_running_loop().create_task(self._write_next(session_id))
            self._waiting[session_id] = waiting
        return waiting

    async def _write_next(self, session_id: str) -> Path | None:
        if session_id in self._running:
            await asyncio.wait((self._running[session_id],))
        self._running[session_id] = self._waiting.pop(session_id)
        try:
            return await self._write_now(session_id)
        finally:
            del self._running[session_id]

    async def _write_now(self, session_id: str) -> Path | None:
        self.follow(session_id)
        as_of = time.time_ns()
        try:
            session = await self.store.session(session_id)
            path = await self.store.path(session.id)
            path = path if self._outputs else without_output(path)
            name, abandoned = await asyncio.to_thread(
                write_mirror_file, self.folder, self._writer, session, path, as_of
            )
        except Exception as error:  # noqa: BLE001 - a warning; a mirror must not end the agent
            why = str(error) or type(error).__name__
            self._warn(f"the mirror of session {session_id} was not written: {why}")
            return None
        if abandoned:
            self._warn(
                f"{self.folder / abandoned} was changed by someone else and is left alone; "
                f"the mirror of session {session_id} is {name} from now on"
            )
        if session_id in self._followed:
            self._followed[session_id] = _state(session)
        return self.folder / name

    async def _autosave(self) -> None:
        while True:
            await asyncio.sleep(self.autosave_seconds)
            for session in tuple(self._followed):
                await self.write_if_changed(session)

    def _warn(self, text: str) -> None:
        text = one_line(text, _WARNING_CHARACTERS)
        for warnings in (self.warnings, self._new_warnings):
            if text not in warnings:
                warnings.append(text)
                del warnings[:-_WARNING_LIMIT]


def _state(session: SessionInfo) -> _MirroredState:
    return session.head, session.title, session.project

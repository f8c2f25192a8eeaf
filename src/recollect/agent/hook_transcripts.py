"""The file that hook commands are given as `transcript_path`: the session as it is at that moment.

It is the session's mirror where the settings ask for one. Otherwise it is a private temporary file
in the history-server format, written for the first hook command that runs and removed with the run.
It is written again only if the session has changed. A failure is a warning, and the path is empty.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from recollect.errors import RecollectError
from recollect.store.contract import Store

if TYPE_CHECKING:  # the seam below
    from recollect.transcripts.mirror import Mirror

FORMAT = "history-server"


class HookTranscripts:
    def __init__(self, store: Store, mirror: Mirror | None, warn: Callable[[str], None]) -> None:
        self._store, self._mirror, self._warn = store, mirror, warn
        self._folder: Path | None = None
        self._written: dict[str, tuple[str | None, str]] = {}  # by session: its head, the path

    async def __call__(self, session: str) -> str:
        """The path of a file that holds all of this session; empty if it cannot be written."""
        try:
            head = (await self._store.session(session)).head
        except RecollectError as error:
            self._warn(f"hooks get no transcript: {error}")
            return ""
        known = self._written.get(session)
        if known is None or known[0] != head:
            mirror = self._mirror or self._open()
            path = await mirror.write(session)
            if path is None and self._folder is not None:
                for warning in mirror.take_warnings():
                    self._warn(warning)
            known = self._written[session] = (head, str(path or ""))
        return known[1]

    def _open(self) -> Mirror:
        # late: most sessions run no hook command, and a mirror brings every format along
        from recollect.transcripts.mirror import Mirror

        self._folder = Path(tempfile.mkdtemp(prefix="recollect-hooks-"))
        # many hooks run in a turn, and each would wait for megabytes that nobody else sees
        self._mirror = Mirror(self._store, FORMAT, self._folder, autosave_seconds=0, outputs=False)
        return self._mirror

    async def close(self) -> None:
        """Remove the file, unless it is a mirror."""
        if self._folder is not None and self._mirror is not None:
            await self._mirror.close()  # a write that is under way would make the folder again
            await asyncio.to_thread(shutil.rmtree, self._folder, ignore_errors=True)

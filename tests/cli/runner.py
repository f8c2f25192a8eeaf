"""Runs the real command: in a process, or in a terminal of its own."""

from __future__ import annotations

import asyncio
import json
import os
import select
import subprocess
import sys
import termios
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from recollect.entries import Body, Entry
from recollect.store.contract import SessionInfo
from recollect.store.sqlite import SqliteStore, open_store
from recollect.workspace.project_identity import identify_project

T = TypeVar("T")
COMMAND = [sys.executable, "-m", "recollect"]
PATIENCE = 60
# what a shell in a terminal window does before it runs anything
OWN_TERMINAL = (
    "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0);"
    "os.execvp(sys.argv[1], sys.argv[1:])"
)


class Result(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


class Cli:
    """A home for data, a project folder to work in, and the command."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        self.project = folder / "project"
        self.project.mkdir()
        self.store = self.home / "recollect.db"

    def env(self, more: dict[str, str] | None = None) -> dict[str, str]:
        kept = {k: v for k, v in os.environ.items() if k in ("PATH", "PYTHONPATH", "COVERAGE_FILE")}
        given = {"RECOLLECT_HOME": str(self.home), "TZ": "UTC", "LC_ALL": "C.UTF-8"}
        return (
            kept | {"HOME": str(self.home.parent), "TERM": "xterm-256color"} | given | (more or {})
        )

    def __call__(self, *arguments: str, env: dict[str, str] | None = None) -> Result:
        done = subprocess.run(
            [*COMMAND, *arguments],
            cwd=self.project,
            env=self.env(env),
            capture_output=True,
            timeout=PATIENCE,
            stdin=subprocess.DEVNULL,
        )
        return Result(done.returncode, done.stdout.decode(), done.stderr.decode())

    def ok(self, *arguments: str, env: dict[str, str] | None = None) -> Result:
        result = self(*arguments, env=env)
        assert result.code == 0, result
        return result

    def terminal(
        self,
        *arguments: str,
        keys: str = "",
        columns: int = 80,
        env: dict[str, str] | None = None,
    ) -> Result:
        """In a terminal: what appeared on it, and the exit code."""
        return in_terminal(
            [*COMMAND, *arguments], self.project, self.env(env), keys=keys, columns=columns
        )

    def write(self, work: Callable[[SqliteStore], Awaitable[T]]) -> T:
        async def opened() -> T:
            async with open_store(self.store) as store:
                return await work(store)

        return asyncio.run(opened())

    def session(
        self, items: Sequence[Body | Entry] = (), *, title: str = "", folder: Path | None = None
    ) -> tuple[SessionInfo, tuple[Entry, ...]]:
        """A session of this project, or of another folder, with these items."""

        async def work(store: SqliteStore) -> tuple[SessionInfo, tuple[Entry, ...]]:
            made = await store.create(project=identify_project(folder or self.project), title=title)
            entries = await store.append(made.id, items, parent=None)
            return await store.session(made.id), entries

        return self.write(work)


def in_terminal(
    command: list[str], cwd: Path, env: dict[str, str], *, keys: str, columns: int
) -> Result:
    ours, theirs = os.openpty()
    termios.tcsetwinsize(theirs, (24, columns))
    process = subprocess.Popen(
        [sys.executable, "-c", OWN_TERMINAL, *command],
        cwd=cwd,
        env=env,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    os.close(theirs)
    seen = bytearray()
    deadline = time.monotonic() + PATIENCE
    try:
        while time.monotonic() < deadline:
            if keys and seen:
                time.sleep(0.3)  # let a pager settle before its keys arrive
                os.write(ours, keys[0].encode())
                keys = keys[1:]
            if select.select([ours], [], [], 0.2)[0]:
                seen += os.read(ours, 65_536)
    except OSError:  # this is how Linux reports the end of a terminal
        process.wait(PATIENCE)
    finally:
        process.kill()
        os.close(ours)
    return Result(process.wait(), seen.decode(errors="replace"), "")

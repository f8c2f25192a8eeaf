"""Runs the real command in one of four ways.

`cli(…)` and `cli.ok(…)` call `main` in this process, with streams, an environment and a working
directory of its own: the way for everything but signals, start-up and real terminals. `cli.screen`
does so on a pseudo-terminal. `cli.process` and `cli.start` start a process, `cli.terminal` one
with a terminal of its own, for pagers and keys.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import os
import select
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple, TypeVar

from recollect.__main__ import main
from recollect.entries import Body, Entry
from recollect.store.contract import SessionInfo
from recollect.store.open_store import open_store
from recollect.store.sqlite import SqliteStore
from recollect.workspace.project_identity import identify_project

T = TypeVar("T")
COMMAND = [sys.executable, "-m", "recollect"]
PATIENCE = 60  # seconds, for a process on a busy machine
INTERRUPT_KEY = "\x03"
UNHEARD = 4  # seconds: Python drops an interrupt that comes while it frees an object
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
        self.project.mkdir(exist_ok=True)
        self.store = self.home / "recollect.db"

    def env(self, more: Mapping[str, str] | None = None) -> dict[str, str]:
        kept = {k: v for k, v in os.environ.items() if k in ("PATH", "PYTHONPATH", "COVERAGE_FILE")}
        own = {"RECOLLECT_HOME": str(self.home), "HOME": str(self.home.parent)}
        return {
            **kept,
            **own,
            "TERM": "xterm-256color",
            "TZ": "UTC",
            "LC_ALL": "C.UTF-8",
            **(more or {}),
        }

    def __call__(
        self,
        *arguments: str,
        env: Mapping[str, str] | None = None,
        stdin: str = "",
        cwd: Path | None = None,
    ) -> Result:
        """In this process."""
        given = io.TextIOWrapper(io.BytesIO(stdin.encode()), encoding="utf-8")
        out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
        with surroundings(self.env(env), cwd or self.project):
            code = run_main(arguments, given, out, err)
        return Result(code, written(out), written(err))

    def ok(
        self,
        *arguments: str,
        env: Mapping[str, str] | None = None,
        stdin: str = "",
        cwd: Path | None = None,
    ) -> Result:
        result = self(*arguments, env=env, stdin=stdin, cwd=cwd)
        assert result.code == 0, result
        return result

    def screen(
        self, *arguments: str, columns: int = 80, env: Mapping[str, str] | None = None
    ) -> Result:
        """In this process, on a pseudo-terminal without a pager: what appeared on it."""
        ours, theirs = os.openpty()
        seen = bytearray()
        reader = threading.Thread(target=read_to_end, args=(ours, seen))
        reader.start()
        own = {"PAGER": "cat", "COLUMNS": str(columns), **(env or {})}
        with (
            os.fdopen(os.dup(theirs), encoding="utf-8") as keyboard,
            os.fdopen(theirs, "w", encoding="utf-8") as display,
            surroundings(self.env(own), self.project),
        ):
            code = run_main(arguments, keyboard, display, display)
        reader.join(PATIENCE)
        os.close(ours)
        return Result(code, seen.decode(errors="replace"), "")

    def process(
        self,
        *arguments: str,
        env: Mapping[str, str] | None = None,
        before: Sequence[str] = (),
    ) -> Result:
        """In a process of its own; `before` is a command that ends by running it."""
        done = subprocess.run(
            [*before, *COMMAND, *arguments],
            cwd=self.project,
            env=self.env(env),
            capture_output=True,
            timeout=PATIENCE,
            stdin=subprocess.DEVNULL,
        )
        return Result(done.returncode, done.stdout.decode(), done.stderr.decode())

    def start(
        self, *arguments: str, env: Mapping[str, str] | None = None
    ) -> subprocess.Popen[bytes]:
        """A process that a test signals or reads while it runs."""
        return subprocess.Popen(
            [*COMMAND, *arguments],
            cwd=self.project,
            env=self.env(env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
        )

    def terminal(
        self,
        *arguments: str,
        keys: Sequence[tuple[str, str]] = (),
        env: Mapping[str, str] | None = None,
    ) -> Result:
        """In a process with a terminal of its own: what appeared on it, and the exit code.

        Of `keys`, each text is typed when its mark appears after the one before; the last is typed
        again while nothing happens.
        """
        return in_terminal([*COMMAND, *arguments], self.project, self.env(env), keys)

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


def run_main(arguments: Sequence[str], stdin: IO[str], stdout: IO[str], stderr: IO[str]) -> int:
    """The exit code of the command, on these streams."""
    own = sys.stdin
    sys.stdin = stdin
    try:
        with contextlib.redirect_stdout(stdout), contextlib.redirect_stderr(stderr):
            main(list(arguments))
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    finally:
        sys.stdin = own
    return 0


def written(stream: io.TextIOWrapper) -> str:
    stream.flush()
    assert isinstance(stream.buffer, io.BytesIO)
    return stream.buffer.getvalue().decode()


@contextlib.contextmanager
def surroundings(env: Mapping[str, str], cwd: Path) -> Iterator[None]:
    """This environment and no other, and this working directory, until the end of the block."""
    before, here = dict(os.environ), Path.cwd()
    try:
        _set_environment(env)
        os.chdir(cwd)
        yield
    finally:
        os.chdir(here)
        _set_environment(before)


def _set_environment(env: Mapping[str, str]) -> None:
    os.environ.clear()
    os.environ.update(env)
    time.tzset()


def read_to_end(terminal: int, seen: bytearray) -> None:
    with contextlib.suppress(OSError):  # this is how Linux reports the end of a terminal
        while data := os.read(terminal, 65_536):
            seen += data


def in_terminal(
    command: list[str], cwd: Path, env: dict[str, str], keys: Sequence[tuple[str, str]]
) -> Result:
    ours, theirs = os.openpty()
    termios.tcsetwinsize(theirs, (24, 80))
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
    seen, waiting, looked = bytearray(), list(keys), 0
    deadline = time.monotonic() + PATIENCE
    again = deadline  # when an interrupt that nobody heard is typed once more
    try:
        while time.monotonic() < deadline:
            if waiting and (at := seen.find(waiting[0][0].encode(), looked)) >= 0:
                mark, typed = waiting.pop(0)
                looked = at + len(mark)
                os.write(ours, typed.encode())
                again = time.monotonic() + UNHEARD if typed == INTERRUPT_KEY else deadline
            if time.monotonic() > again:
                os.write(ours, INTERRUPT_KEY.encode())
                again = deadline
            if select.select([ours], [], [], 1)[0]:
                seen += os.read(ours, 65_536)
            elif keys and not waiting:
                os.write(ours, keys[-1][1].encode())
    except OSError:  # this is how Linux reports the end of a terminal
        process.wait(PATIENCE)
    finally:
        process.kill()
        os.close(ours)
    return Result(process.wait(), seen.decode(errors="replace"), "")

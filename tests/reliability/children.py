"""Starts worker processes, reads their acknowledgements, and checks the store afterwards."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any, TypeVar

from recollect.entries import Entry, Message, Text
from recollect.store.open_store import open_store
from recollect.store.sqlite import SqliteStore
from recollect.testing import user

T = TypeVar("T")
WORKER = Path(__file__).with_name("worker.py")
PATIENCE = 60.0
Fact = dict[str, Any]
STARTED: list[Child] = []


def in_store(path: Path, work: Callable[[SqliteStore], Coroutine[Any, Any, T]]) -> T:
    """Open the store, run `work`, close it."""

    async def run() -> T:
        async with open_store(path) as store:
            return await work(store)

    return asyncio.run(run())


def new_session(path: Path, *, title: str = "") -> str:
    async def work(store: SqliteStore) -> str:
        return (await store.create(title=title)).id

    return in_store(path, work)


class Child:
    """A worker whose lines are read as they come, until it ends or is ended."""

    def __init__(
        self, mode: str, path: Path, *arguments: str, before: Sequence[str] = (), **options: Any
    ) -> None:
        command = [*before, sys.executable, str(WORKER), mode, str(path), *arguments]
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            **options,
        )
        STARTED.append(self)
        self.facts: list[Fact] = []
        self.errors = ""
        self._heard = threading.Condition()
        self._ended = False
        self._threads = [
            threading.Thread(target=self._listen, daemon=True),
            threading.Thread(target=self._listen_for_errors, daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    def _listen(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.endswith("\n"):  # the last one may have been cut by the kill
                with self._heard:
                    self.facts.append(json.loads(line))
                    self._heard.notify_all()
        with self._heard:
            self._ended = True
            self._heard.notify_all()

    def _listen_for_errors(self) -> None:
        assert self.process.stderr is not None
        self.errors = self.process.stderr.read()

    def wait_for(self, what: str, count: int = 1) -> Fact:
        """The `count`-th fact of this kind, as soon as it is heard."""

        def there() -> bool:
            return self._ended or len(self.said(what)) >= count

        with self._heard:
            assert self._heard.wait_for(there, PATIENCE), f"{what} was never said"
        facts = self.said(what)
        assert len(facts) >= count, f"ended without {what}: {self.facts[-2:]} {self.errors}"
        return facts[count - 1]

    def said(self, *what: str) -> list[Fact]:
        return [fact for fact in self.facts if fact["what"] in what]

    def tell(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def signal(self, number: signal.Signals) -> None:
        os.kill(self.process.pid, number)

    def kill(self) -> list[Fact]:
        """SIGKILL, and everything it had said."""
        self.process.kill()
        return self.reap()

    def finish(self) -> list[Fact]:
        """Let it end by itself, in order."""
        assert self.process.stdin is not None
        if not self.process.stdin.closed:
            self.process.stdin.close()
        facts = self.reap()
        assert self.process.returncode == 0, (self.errors, facts[-3:])
        return facts

    def reap(self) -> list[Fact]:
        self.process.wait(timeout=PATIENCE * 4)
        for thread in self._threads:
            thread.join(PATIENCE)
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            assert pipe is not None
            pipe.close()
        return self.facts


def end_all() -> None:
    """End what a failed test left running."""
    while STARTED:
        child = STARTED.pop()
        if child.process.returncode is None:
            child.process.kill()
            child.process.send_signal(signal.SIGCONT)
            child.reap()


def note_figures(name: str, figures: object) -> None:
    """Append a line of JSON to the file that RELIABILITY_FIGURES names, for the documentation."""
    if place := os.environ.get("RELIABILITY_FIGURES"):
        with Path(place).open("a") as file:
            file.write(json.dumps({name: figures}) + "\n")


def acknowledged(facts: Sequence[Fact]) -> list[str]:
    return [entry for fact in facts if fact["what"] == "ok" for entry in fact["ids"]]


def text_of(entry: Entry) -> str:
    assert isinstance(entry.body, Message)
    return "".join(part.text for part in entry.body.parts if isinstance(part, Text))


def assert_contiguous(path: Sequence[Entry]) -> None:
    """From the root on, each entry's parent is the one before it."""
    parents = [None, *(entry.id for entry in path)]
    assert [entry.parent for entry in path] == parents[:-1]


def assert_goes_on(path: Path, session: str) -> None:
    """The next append works, and is there after another open."""

    async def append(store: SqliteStore) -> str:
        head = (await store.session(session)).head
        return (await store.append(session, [user("and on it goes")], parent=head))[0].id

    async def head(store: SqliteStore) -> str | None:
        return (await store.path(session))[-1].id

    assert in_store(path, append) == in_store(path, head)


def copy_store(source: Path, target: Path) -> Path:
    """The files as they are at this moment, without the shared memory: what a power cut leaves."""
    target.parent.mkdir(parents=True, exist_ok=True)
    for suffix in ("", "-wal"):
        if (file := source.with_name(source.name + suffix)).exists():
            # by another process: closing a file gives up every lock this process has on it
            subprocess.run(
                ["cp", str(file), str(target.with_name(target.name + suffix))], check=True
            )
    return target

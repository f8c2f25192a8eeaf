"""The model that needs no key and no network: a child process that speaks OpenAI on loopback.

`server_address()` gives the address and key of a running child. The child is started when it is
first needed, and again after it has died. One child serves the whole process, across event loops;
it exits with the last `EmbeddedServer.aclose()`, and with this process however that ends. Its key
is random and never shown. A failure is a `ModelError` with its reason.
"""

from __future__ import annotations

import asyncio
import atexit
import importlib.util
import json
import os
import secrets
import socket
import subprocess
import sys
import tempfile
import threading
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple
from weakref import WeakKeyDictionary, WeakSet

from recollect.errors import ModelError
from recollect.models.api_keys import MASK
from recollect.models.embedded_weights import ProgressCallback, ensure_weights, printable_tail
from recollect.models.llama_server import HOST, ServerConfig

MODEL_NAME = "smollm2-135m"
WINDOW = 8_192  # tokens of each request
SLOTS = 2
MAX_OUTPUT = 2_048  # tokens, where a request sets no limit
_START_TIMEOUT = 60.0  # seconds; one is usual, a busy machine takes longer
_EXIT_TIMEOUT = 3.0
_PROBE_TIMEOUT = 2.0
_MAX_STDERR = 400  # characters of the child's last output that an error shows


class ServerAddress(NamedTuple):
    url: str  # without `/chat/completions`
    key: str

    def __repr__(self) -> str:
        return f"ServerAddress({self.url!r}, {MASK})"


class EmbeddedModelFailed(ModelError):
    """The embedded model's child process did not start, or died."""

    def __init__(self, why: str, remedy: str = "try again to restart it") -> None:
        super().__init__(
            f"the embedded model failed: {why}; {remedy}, "
            "or use another model (`recollect models` lists them)"
        )
        self.why = why


class EmbeddedServer:
    """One user of the shared child process. `path` names other weights than the usual ones."""

    def __init__(
        self, *, path: Path | None = None, progress: ProgressCallback | None = None
    ) -> None:
        self._path, self._progress = path, progress
        self._child: _ServerProcess | None = None

    async def address(self) -> ServerAddress:
        """Where the child listens now; call it before each request, since a restart changes it."""
        child = self._child
        if child is None or not await asyncio.to_thread(child.answers):
            async with _start_lock():
                child = self._child = await self._start()
        return ServerAddress(f"http://{HOST}:{child.port}/v1", child.key)

    async def aclose(self) -> None:
        self._child = None
        await asyncio.to_thread(_pool.leave, self)

    async def _start(self) -> _ServerProcess:
        child = await asyncio.to_thread(_pool.join, self._path, self)
        if child is not None:
            return child
        path = self._path or await ensure_weights(progress=self._progress)
        return await asyncio.to_thread(_pool.start, self._path, path, self)


class _ServerProcess:
    """A process that has announced its port."""

    def __init__(self, path: Path) -> None:
        self.key = secrets.token_urlsafe(32)
        self.users: WeakSet[EmbeddedServer] = WeakSet()
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115 - it lives as long as the child
        self.process = subprocess.Popen(
            # -P: a module in the current directory must not be taken for one of ours
            [sys.executable, "-P", "-m", "recollect.models.llama_server"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            start_new_session=True,  # Ctrl-C stops a reply, not the model
        )
        self.port = self._await_port(path)

    def answers(self) -> bool:
        """A process that is about to exit still counts as running, but takes no connection."""
        if self.process.poll() is not None:
            return False
        try:
            with suppress(TimeoutError):  # very busy, but alive
                socket.create_connection((HOST, self.port), _PROBE_TIMEOUT).close()
        except ConnectionError:
            return False
        return True

    def _await_port(self, path: Path) -> int:
        # more threads wait for each other on a busy machine, which makes it several times slower
        threads = max(1, min(4, _cpu_count() // 2))
        config = ServerConfig(str(path), self.key, MODEL_NAME, WINDOW, SLOTS, MAX_OUTPUT, threads)
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        late = threading.Timer(_START_TIMEOUT, self.process.kill)
        late.start()
        try:
            self.process.stdin.write(json.dumps(config._asdict()).encode() + b"\n")
            self.process.stdin.flush()
            return int(json.loads(self.process.stdout.readline(200))["port"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            self.process.kill()
            why = self._describe_exit()
            self.end()
            raise EmbeddedModelFailed(f"it did not start: {why}") from error
        finally:
            late.cancel()

    def _describe_exit(self) -> str:
        status = self.process.wait()
        how = f"signal {-status} killed it" if status < 0 else f"it exited with status {status}"
        if self._stderr.closed:
            return how
        self._stderr.seek(max(0, self._stderr.seek(0, os.SEEK_END) - 4 * _MAX_STDERR))
        shown = printable_tail(self._stderr.read(), _MAX_STDERR)
        return f"{how} ({shown})" if shown else how

    def end(self) -> None:
        """Close its input, upon which it exits; kill it if it hangs."""
        try:
            self.process.communicate(timeout=_EXIT_TIMEOUT)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.communicate()
        self._stderr.close()


class _ServerPool:
    """The children of this process, one for each path of weights. A start takes seconds, so only
    threads hold the lock, never an event loop."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._running: dict[Path | None, _ServerProcess] = {}

    def join(self, key: Path | None, user: EmbeddedServer) -> _ServerProcess | None:
        """Add a user to the running child; None if there is none."""
        with self._lock:
            child = self._running.get(key)
            if child is not None and not child.answers():
                self._running.pop(key).end()
                return None
            if child is not None:
                child.users.add(user)
            return child

    def start(self, key: Path | None, path: Path, user: EmbeddedServer) -> _ServerProcess:
        if importlib.util.find_spec("xllamacpp") is None:
            why = "the package xllamacpp, which runs it, is not installed"
            raise EmbeddedModelFailed(why, "install it if there is a wheel for your machine")
        with self._lock:
            child = self.join(key, user)
            if child is None:
                child = self._running[key] = _ServerProcess(path)
                child.users.add(user)
            return child

    def leave(self, user: EmbeddedServer) -> None:
        with self._lock:
            for key, child in list(self._running.items()):
                child.users.discard(user)
                if not child.users:
                    self._running.pop(key).end()

    def end(self) -> None:
        with self._lock:
            while self._running:
                self._running.popitem()[1].end()


_pool = _ServerPool()
atexit.register(_pool.end)
# of a child that runs until this process ends; nothing has to be closed
_process_wide = EmbeddedServer()
server_address = _process_wide.address
_locks: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()


def _start_lock() -> asyncio.Lock:
    """Held while the weights are downloaded and the child starts, so that neither happens twice."""

    return _locks.setdefault(asyncio.get_running_loop(), asyncio.Lock())


def _cpu_count() -> int:
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1

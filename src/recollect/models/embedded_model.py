"""The models that need no key and no network: child processes that speak OpenAI on loopback.

`EmbeddedServer.address()` gives the address and key of a running child. The child is started when
it is first needed, and again after it has died. One child for each model serves the whole process,
across event loops; it exits with the last `EmbeddedServer.aclose()`, and with this process however
that ends. Its key is random and never shown. A failure is a `ModelError` with its reason.
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
from weakref import WeakSet

from recollect.errors import ModelError
from recollect.models.api_keys import MASK
from recollect.models.embedded_weights import (
    EMBEDDED_MODELS,
    SMALL,
    EmbeddedModel,
    WeightsMissing,
    has_weights,
)
from recollect.models.llama_server import HOST, ServerConfig
from recollect.models.weights_download import ProgressCallback, ensure_weights, printable_tail
from recollect.profiles import find_profile

ENGINE = "xllamacpp"
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


class EngineMissing(ModelError):
    """The extra that runs embedded models is not installed."""

    def __init__(self, model: str) -> None:
        super().__init__(
            f"{model} runs on this machine with the package {ENGINE}, which is not installed; "
            "`pip install 'recollect[embedded]'` installs it, "
            "or use another model (`recollect models` lists them)"
        )
        self.model = model


def check_ready(model: EmbeddedModel) -> None:
    """Raise what would fail later: no engine, or weights that only the user downloads."""
    if importlib.util.find_spec(ENGINE) is None:
        raise EngineMissing(model.model)
    if not model.automatic and not has_weights(model.weights):
        size = f"{model.weights.size / 1e9:.1f} GB"
        remedy = f"`recollect models get {model.name}` downloads {size}"
        raise WeightsMissing(model.weights, "they were not downloaded yet", remedy)


class EmbeddedServer:
    """One user of the shared child process of a model."""

    def __init__(
        self, model: EmbeddedModel = SMALL, *, progress: ProgressCallback | None = None
    ) -> None:
        self._model, self._shared, self._progress = model, _shared[model.name], progress

    async def address(self) -> ServerAddress:
        """Where the child listens now; call it before each request, since a restart changes it."""
        child = await asyncio.to_thread(self._shared.join, self)
        if child is None:
            for closed in [loop for loop in _locks if loop.is_closed()]:
                _locks.pop(closed, None)
            # so that weights are not downloaded, nor the child started, twice at a time
            async with _locks.setdefault(asyncio.get_running_loop(), asyncio.Lock()):
                check_ready(self._model)
                path = await ensure_weights(self._model.weights, self._progress)
                child = await asyncio.to_thread(self._shared.start, path, self)
        return ServerAddress(f"http://{HOST}:{child.port}/v1", child.key)

    async def aclose(self) -> None:
        await asyncio.to_thread(self._shared.leave, self)


class _ServerProcess:
    """A process that has announced its port."""

    def __init__(self, model: EmbeddedModel, path: Path) -> None:
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
        self.port = self._await_port(model, path)

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

    def _await_port(self, model: EmbeddedModel, path: Path) -> int:
        profile, threads = find_profile(model.model), _thread_count(model)
        config = ServerConfig(
            str(path), self.key, model.model, profile.window, model.slots, profile.output, threads
        )
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


def _thread_count(model: EmbeddedModel) -> int:
    """Half of the cores, or those that are idle: on a busy machine, threads wait for each other,
    which makes a model many times slower."""
    affinity = getattr(os, "sched_getaffinity", None)
    cores = len(affinity(0)) if affinity else os.cpu_count() or 1
    idle = round(cores - os.getloadavg()[0]) if model.uses_idle_cores else 0
    return max(1, min(model.threads, max(cores // 2, idle)))


class _SharedServer:
    """The child of a model in this process, if one runs. A start takes seconds, so only threads
    hold the lock, never an event loop."""

    def __init__(self, model: EmbeddedModel) -> None:
        self._model, self._lock = model, threading.RLock()
        self.child: _ServerProcess | None = None

    def join(self, user: EmbeddedServer) -> _ServerProcess | None:
        """Add a user to the running child; None if there is none."""
        with self._lock:
            if self.child is not None and not self.child.answers():
                self.end()
            if self.child is not None:
                self.child.users.add(user)
            return self.child

    def start(self, path: Path, user: EmbeddedServer) -> _ServerProcess:
        with self._lock:
            child = self.child = self.join(user) or _ServerProcess(self._model, path)
            child.users.add(user)
            return child

    def leave(self, user: EmbeddedServer) -> None:
        with self._lock:
            if self.child is not None:
                self.child.users.discard(user)
                if not self.child.users:
                    self.end()

    def end(self) -> None:
        with self._lock:
            child, self.child = self.child, None
            if child is not None:
                child.end()


_shared = {model.name: _SharedServer(model) for model in EMBEDDED_MODELS}
for _each in _shared.values():
    atexit.register(_each.end)
# of children that run until this process ends; nothing has to be closed
_process_wide = {model.name: EmbeddedServer(model) for model in EMBEDDED_MODELS}
_locks: dict[asyncio.AbstractEventLoop, asyncio.Lock] = {}


async def server_address(model: EmbeddedModel = SMALL) -> ServerAddress:
    """Of a child that runs until this process ends."""
    return await _process_wide[model.name].address()

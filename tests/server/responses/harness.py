"""A real server of the Responses face: uvicorn on a free port, SQLite, a scripted provider."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import openai
import pytest

from recollect.entries import Entry
from recollect.profiles import WireName
from recollect.runtime.runtime import Door, open_runtime
from recollect.server.access import AccessToken, AccessTokens, Identity, hash_token
from recollect.server.http.http_app import build_app
from recollect.server.http.http_server import HttpServer
from recollect.server.responses.responses_routes import responses_routes
from recollect.server.session_hub import SessionHub
from recollect.store.open_store import open_store
from recollect.testing import ProviderLine, ProviderServer

TOKENS = {
    "token-of-ann": Identity("ann", "chat"),
    "token-of-bob": Identity("bob", "chat"),
    "token-that-reads": Identity("ann", "read"),
    "token-of-root": Identity("root", "admin", all_sessions=True),
}
PATIENCE = 60.0  # seconds, on a busy machine


class ServerThread:
    """The server in a thread of its own, with its own event loop."""

    def __init__(self, folder: Path, store: Path) -> None:
        self._folder, self._store = folder, store
        self._ready, self._stop = threading.Event(), asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._failure: BaseException | None = None
        self._clients: list[openai.OpenAI] = []
        self.port = 0
        self.hub: SessionHub | None = None
        self._thread = threading.Thread(target=self._main, daemon=True)

    def start(self) -> ServerThread:
        self._thread.start()
        assert self._ready.wait(PATIENCE)
        if self._failure is not None:
            raise self._failure
        return self

    def stop(self) -> None:
        for client in self._clients:
            client.close()
        if self._loop is not None and self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stop.set)
            self._thread.join(PATIENCE)
        assert not self._thread.is_alive()

    def _main(self) -> None:
        try:
            asyncio.run(self._serve())
        except BaseException as error:  # noqa: BLE001 - `start` raises it
            self._failure = error
        finally:
            self._ready.set()

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        known = [AccessToken(who, hash_token(token)) for token, who in TOKENS.items()]
        async with open_runtime(self._folder, self._store, door=Door()) as runtime:
            self.hub = hub = SessionHub(runtime)
            app = build_app(hub, AccessTokens(known), responses=responses_routes(hub))
            server = HttpServer(app)
            await server.start()
            self.port = server.port
            self._ready.set()
            await self._stop.wait()
            await hub.close()
            await server.stop()

    def wait_until(self, is_so: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE
        while not is_so():
            assert time.monotonic() < deadline
            time.sleep(0.01)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def client(self, token: str = "token-of-ann", **options: Any) -> openai.OpenAI:
        options = {"max_retries": 0, "timeout": PATIENCE} | options
        client = openai.OpenAI(base_url=self.url, api_key=token, **options)
        self._clients.append(client)
        return client

    def async_client(self, token: str = "token-of-ann") -> openai.AsyncOpenAI:
        return openai.AsyncOpenAI(base_url=self.url, api_key=token, max_retries=0, timeout=PATIENCE)


class Stage:
    """A home with settings that name a scripted provider, and servers over one store."""

    def __init__(self, folder: Path, provider: ProviderServer, wire: WireName) -> None:
        self.folder, self.provider, self.wire = folder, provider, wire
        self.store = folder / "store.db"
        self._servers: list[ServerThread] = []

    def serve(self) -> ServerThread:
        work = self.folder / "work"
        work.mkdir(exist_ok=True)
        server = ServerThread(work, self.store).start()
        self._servers.append(server)
        return server

    def close(self) -> None:
        for server in self._servers:
            server.stop()

    def sessions(self) -> int:
        async def count() -> int:
            async with open_store(self.store) as store:
                return len(await store.sessions())

        return asyncio.run(count())

    def entries(self, session: str) -> tuple[Entry, ...]:
        async def read() -> tuple[Entry, ...]:
            async with open_store(self.store) as store:
                return await store.path(session)

        return asyncio.run(read())


@contextmanager
def stage(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    script: Sequence[ProviderLine],
    wire: WireName = "openai",
    more: str = "",
    window: int = 30_000,
    **options: Any,
) -> Iterator[Stage]:
    home = folder / "home"
    home.mkdir()
    monkeypatch.setenv("RECOLLECT_HOME", str(home))
    monkeypatch.setenv("MY_KEY", "sk-fake-0123456789abcdef")
    with ProviderServer(wire, script, **options) as provider:
        (home / "settings.toml").write_text(
            'model = "mine"\n[transport]\nretries = 1\nlongest_wait = 0.01\n'
            f'[models.mine]\nurl = "{provider.url}"\nwire = "{wire}"\nkey = "MY_KEY"\n'
            f"window = {window}\n{more}"
        )
        found = Stage(folder, provider, wire)
        try:
            yield found
        finally:
            found.close()

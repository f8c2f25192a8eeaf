"""An NPLT server over a real hub, in a thread of its own with its own event loop."""

from __future__ import annotations

import asyncio
import ssl
import threading
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from recollect.server.access import AccessTokens
from recollect.server.downloads import DownloadOffers
from recollect.server.nplt.nplt_limits import NpltLimits
from recollect.server.nplt.nplt_server import NpltServer
from recollect.server.session_hub import HubLimits, SessionHub
from tests.server.hubs import opened_hub

T = TypeVar("T")
PATIENCE = 60.0


class RunningServer:
    """A server for a test that uses sockets of its own."""

    def __init__(self, loop: asyncio.AbstractEventLoop, hub: SessionHub, nplt: NpltServer) -> None:
        self.loop, self.hub, self.nplt, self.port = loop, hub, nplt, nplt.port

    def call(self, work: Callable[[], Awaitable[T]]) -> T:
        """Run this on the server's loop, and give its result."""

        async def run() -> T:
            return await work()

        return asyncio.run_coroutine_threadsafe(run(), self.loop).result(PATIENCE)

    def tasks(self) -> int:
        async def count() -> int:
            return len(asyncio.all_tasks()) - 1

        return self.call(count)


class _ServerThread:
    def __init__(self, start: Callable[[Future[RunningServer], asyncio.Event], Awaitable[None]]):
        self._ready: Future[RunningServer] = Future()
        self._stop: asyncio.Event | None = None
        self._failure: BaseException | None = None
        self._start = start
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        async def story() -> None:
            self._stop = asyncio.Event()
            await self._start(self._ready, self._stop)
            left = asyncio.all_tasks() - {asyncio.current_task()}
            assert not left, f"tasks are left over: {left}"

        try:
            asyncio.run(story())
        except BaseException as error:  # noqa: BLE001 - raised in the test's thread
            self._failure = error
            if not self._ready.done():
                self._ready.set_exception(error)

    def begin(self) -> RunningServer:
        self._thread.start()
        return self._ready.result(PATIENCE)

    def end(self) -> None:
        running = self._ready.result(PATIENCE)
        assert self._stop is not None
        if self._thread.is_alive():
            running.loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive(), "the server does not stop"
        if self._failure is not None:
            raise self._failure


@contextmanager
def running_server(
    folder: Path,
    limits: NpltLimits | None = None,
    *,
    tokens: AccessTokens | None = None,
    require_token: bool = False,
    tls: ssl.SSLContext | None = None,
    hub_limits: HubLimits | None = None,
    downloads: DownloadOffers | None = None,
    cancel_on_disconnect: bool = False,
    mode: str = "",
) -> Iterator[RunningServer]:
    """Started on a free port; at the end it is closed, and no task may be left over."""

    async def serve(ready: Future[RunningServer], stop: asyncio.Event) -> None:
        async with opened_hub(folder, hub_limits, mode=mode) as hub:
            nplt = NpltServer(
                hub,
                tokens or AccessTokens(()),
                limits or NpltLimits(),
                require_token=require_token,
                downloads=downloads,
                cancel_on_disconnect=cancel_on_disconnect,
            )
            await nplt.start("127.0.0.1", 0, tls)
            ready.set_result(RunningServer(asyncio.get_running_loop(), hub, nplt))
            await stop.wait()
            await hub.close()
            await nplt.close()

    thread = _ServerThread(serve)
    running = thread.begin()
    try:
        yield running
    finally:
        thread.end()

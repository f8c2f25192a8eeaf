"""The NPLT server: accepts connections within its limits, and closes them without leaving anything.

On a loopback address a client needs no token unless the server was told to want one; elsewhere it
says HELLO with a token first. When all places are taken, the connection that has been silent the
longest gives its place to a new one.
"""

from __future__ import annotations

import asyncio
import logging
import ssl as tls
import time

from recollect.server.access import CHECK_SECONDS, LOCAL_USER, AccessTokens
from recollect.server.downloads import DownloadOffers
from recollect.server.listen_address import ListenAddress
from recollect.server.nplt.connection import Connection
from recollect.server.nplt.frame_writer import FrameWriter
from recollect.server.nplt.history_index import HistoryIndex
from recollect.server.nplt.nplt_limits import NpltLimits
from recollect.server.nplt.server_texts import BY_LANGUAGE
from recollect.server.nplt.surroundings import Surroundings
from recollect.server.nplt.uploads import UploadBudget
from recollect.server.session_hub import SessionHub

DEFAULT_PORT = 9999
BACKLOG = 1_024  # connections that wait to be accepted
TLS_SECONDS = 10.0  # for a handshake
READ_BUFFER = 131_072  # bytes of one client that wait to be read
MIN_SILENCE = 5.0  # seconds, before a silent connection gives its place away
_log = logging.getLogger("recollect.server.nplt")


class NpltServer:
    """Serves the sessions of a hub. `start` it, and `close` it after the hub."""

    def __init__(
        self,
        hub: SessionHub,
        tokens: AccessTokens,
        limits: NpltLimits = NpltLimits(),  # noqa: B008 - a frozen value
        *,
        require_token: bool = False,
        downloads: DownloadOffers | None = None,
        cancel_on_disconnect: bool = False,
    ) -> None:
        self._hub, self._tokens, self._limits = hub, tokens, limits
        self._require_token, self._cancel = require_token, cancel_on_disconnect
        self._downloads = DownloadOffers() if downloads is None else downloads
        self._connections: dict[asyncio.Task[None], Connection] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._closing = False
        self._server: asyncio.Server | None = None
        self._watch: asyncio.Task[None] | None = None
        self._shared: Surroundings | None = None

    @property
    def port(self) -> int:
        assert self._server is not None
        return int(self._server.sockets[0].getsockname()[1])

    @property
    def open_connections(self) -> int:
        return len(self._connections)

    async def start(self, host: str, port: int, ssl: tls.SSLContext | None = None) -> None:
        is_open = ListenAddress(host, port).is_loopback and not self._require_token
        self._shared = Surroundings(
            self._hub,
            self._tokens,
            self._limits,
            BY_LANGUAGE[self._hub.runtime.settings.language],
            HistoryIndex(self._hub.store),
            self._downloads,
            UploadBudget(self._limits.all_uploads_bytes),
            LOCAL_USER if is_open else None,
            self._cancel,
        )
        self._watch = asyncio.create_task(self._watch_tokens(), name="nplt tokens")
        # asking git for the project takes a moment that the first client must not wait for
        await asyncio.to_thread(lambda: self._hub.runtime.project)
        handshake = TLS_SECONDS if ssl is not None else None
        self._server = await asyncio.start_server(
            self._accept,
            host,
            port,
            ssl=ssl,
            ssl_handshake_timeout=handshake,
            backlog=BACKLOG,
            limit=READ_BUFFER,
        )

    async def close(self) -> None:
        """Stop listening, tell every client, and wait until nothing of them is left."""
        if self._watch is not None:
            self._watch.cancel()
            await asyncio.gather(self._watch, return_exceptions=True)
        if self._server is None:
            return
        self._closing = True
        self._server.close()
        await asyncio.gather(*(one.say_goodbye() for one in self._connections.values()))
        while self._tasks:
            tasks = list(self._tasks)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await asyncio.sleep(0)  # for what was accepted a moment before
        await self._server.wait_closed()

    async def _watch_tokens(self) -> None:
        while True:
            await asyncio.sleep(CHECK_SECONDS)
            for connection in list(self._connections.values()):
                connection.check_token()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # a task of our own: asyncio's would log it as an error when it is cancelled
        task = asyncio.create_task(self._serve(reader, writer))
        self._tasks.add(task)

        def end(ended: asyncio.Task[None]) -> None:
            self._tasks.discard(ended)
            writer.transport.abort()  # closed already, unless the task was cancelled too early

        task.add_done_callback(end)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert self._shared is not None
        peer, task = writer.get_extra_info("peername"), asyncio.current_task()
        address = str(peer[0]) if isinstance(peer, tuple) else "?"
        if self._closing or not self._has_room(address):
            self._hub.counts.refused_connections += 1
            out = FrameWriter(writer, self._limits)
            out.send_text(self._shared.texts.full.format(count=self.open_connections))
            await out.close()
            return
        self._hub.counts.connections += 1
        assert task is not None
        connection = self._connections[task] = Connection(self._shared, reader, writer, address)
        try:
            await connection.serve()
        except Exception:  # noqa: BLE001 - it ends one connection, not the server
            _log.exception("%s: the connection failed", address)
        finally:
            del self._connections[task]
            self._hub.counts.connections -= 1

    def _has_room(self, address: str) -> bool:
        limits = self._limits
        if not ListenAddress(address, 0).is_loopback:
            same = sum(one.address == address for one in self._connections.values())
            if same >= limits.per_address:
                return False
        if self.open_connections < limits.connections:
            return True
        return self._end_most_silent()

    def _end_most_silent(self) -> bool:
        """Close the connection that has said nothing for the longest time; False if none may go."""
        latest = time.monotonic() - MIN_SILENCE
        silent = (
            (task, one)
            for task, one in self._connections.items()
            if one.is_silent and one.began < latest
        )
        found = next(silent, None)  # they are in the order in which they came
        if found is not None:
            found[0].cancel()
        return found is not None

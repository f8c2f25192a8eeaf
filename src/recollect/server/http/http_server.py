"""uvicorn inside our own event loop: a port, a certificate, limits, and a stop that takes seconds.

Signals are the caller's business. Stopping closes the listening socket first, ends event streams,
lets running requests finish for a few seconds, and cuts off the rest.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import socket
import ssl
from collections.abc import Iterator, Sequence

import uvicorn
from starlette.applications import Starlette

from recollect.server.http.http_protocol import ConnectionLimits, TimedProtocol

_DEFAULT_LIMITS = ConnectionLimits()


class HttpServer:
    """An application on a port. `start` binds it; `stop` waits until everything is closed."""

    def __init__(
        self,
        app: Starlette,
        host: str = "127.0.0.1",
        port: int = 0,
        *,
        tls: ssl.SSLContext | None = None,
        limits: ConnectionLimits = _DEFAULT_LIMITS,
    ) -> None:
        self._app, self._host, self._given_port = app, host, port
        config = uvicorn.Config(
            app,
            http="h11",
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            limit_concurrency=limits.connections,
            timeout_keep_alive=math.ceil(limits.head_seconds),
            timeout_graceful_shutdown=limits.stop_seconds,
            h11_max_incomplete_event_size=limits.head_bytes,
        )
        self._server = _Server(config, limits, tls)
        self._task: asyncio.Task[None] | None = None
        self.port = 0

    async def start(self) -> None:
        """Listen; raises `OSError` if the address cannot be had."""
        self._server.config.load()
        bound = await _bind(self._host, self._given_port)
        self.port = bound.getsockname()[1]
        self._task = asyncio.create_task(self._server.serve([bound]), name="http server")
        while not self._server.started and not self._task.done():
            await asyncio.sleep(0.01)
        if self._task.done():
            await self._task  # raises what went wrong

    async def stop(self) -> None:
        """Stop listening, end the streams, finish what runs, close every connection."""
        if self._task is None:
            return
        self._app.state.stopping.set()
        self._server.should_exit = True
        await self._task
        for connection in list(self._server.server_state.connections):
            connection.transport.abort()


async def _bind(host: str, port: int) -> socket.socket:
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(
        host, port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP, flags=socket.AI_PASSIVE
    )
    family, kind, protocol, _, address = found[0]
    # with its protocol: asyncio switches off Nagle's algorithm only where a socket names TCP, and
    # with it the body of a response waits 40 ms for the client to acknowledge the head
    bound = socket.socket(family, kind, protocol)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(address)
    except OSError:
        bound.close()
        raise
    return bound


class _Server(uvicorn.Server):
    """Without signal handlers, and with limits on every connection."""

    def __init__(
        self, config: uvicorn.Config, limits: ConnectionLimits, tls: ssl.SSLContext | None
    ) -> None:
        super().__init__(config)
        self._limits, self._tls = limits, tls

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: Sequence[socket.socket] | None = None) -> None:
        config, loop = self.config, asyncio.get_running_loop()
        await self.lifespan.startup()

        def connect() -> asyncio.Protocol:
            return TimedProtocol(self._limits, config, self.server_state, self.lifespan.state, loop)

        timeout = self._limits.head_seconds if self._tls is not None else None
        self.servers = [
            await loop.create_server(
                connect,
                sock=bound,
                ssl=self._tls,
                ssl_handshake_timeout=timeout,
                backlog=config.backlog,
            )
            for bound in sockets or ()
        ]
        self.started = True

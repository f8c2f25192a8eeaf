"""Runs the servers over one runtime: NPLT and HTTP share the sessions, the tokens and the hub.

Stopping is in order: runs are cancelled and what had come of their replies is stored as
interrupted, then clients are told and connections closed; whoever opened the store closes it last.
"""

from __future__ import annotations

import logging
import ssl
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec

from recollect.errors import CannotListen
from recollect.runtime.runtime import Runtime
from recollect.server.access import AccessTokens
from recollect.server.downloads import DownloadOffers
from recollect.server.http.http_app import build_app
from recollect.server.http.http_server import HttpServer
from recollect.server.http.request_guard import HttpOptions
from recollect.server.listen_address import ListenAddress, load_tls
from recollect.server.nplt.nplt_server import NpltServer
from recollect.server.responses.responses_routes import responses_routes
from recollect.server.session_hub import HubLimits, SessionHub

DisconnectPolicy: TypeAlias = Literal["finish", "cancel"]
_log = logging.getLogger("recollect.server")


class TlsFiles(msgspec.Struct, frozen=True):
    """A certificate with its chain, and its key, in PEM."""

    certificate: Path
    key: Path


class ServeOptions(msgspec.Struct, frozen=True):
    """What a server was started with."""

    nplt: ListenAddress | None = None  # none: no NPLT
    http: ListenAddress | None = None
    model: str = ""  # of prompts that name none
    nplt_token: bool = False  # clients on this machine need a token too
    hosts: tuple[str, ...] = ()  # names under which others reach the HTTP server
    tls: TlsFiles | None = None
    on_disconnect: DisconnectPolicy = "finish"
    limits: HubLimits = HubLimits()


class RunningServers(msgspec.Struct, frozen=True):
    """Where the servers listen."""

    hub: SessionHub
    nplt: ListenAddress | None
    http: ListenAddress | None


@asynccontextmanager
async def run_servers(
    runtime: Runtime, tokens: AccessTokens, options: ServeOptions
) -> AsyncIterator[RunningServers]:
    """The servers, listening; they stop in order at the end of the block."""
    hub, downloads = SessionHub(runtime, options.limits, options.model, tokens), DownloadOffers()
    tls = load_tls(options.tls.certificate, options.tls.key) if options.tls else None
    async with AsyncExitStack() as stack:
        http = await _start_http(stack, hub, tokens, options, downloads, tls)
        if http is not None:
            downloads.url = f"{'http' if options.tls is None else 'https'}://{http}"
        nplt = await _start_nplt(stack, hub, tokens, options, downloads, tls)
        stack.push_async_callback(hub.close)  # first: clients hear of the end of their runs
        yield RunningServers(hub, nplt, http)
        _log.info("stopping: %d prompts are running", hub.counts.running)


async def _start_http(
    stack: AsyncExitStack,
    hub: SessionHub,
    tokens: AccessTokens,
    options: ServeOptions,
    downloads: DownloadOffers,
    tls: ssl.SSLContext | None,
) -> ListenAddress | None:
    address = options.http
    if address is None:
        return None
    served = HttpOptions(allowed_hosts=options.hosts)
    app = build_app(hub, tokens, served, responses_routes(hub), downloads)
    server = HttpServer(app, address.host, address.port, tls=tls)
    try:
        await server.start()
    except OSError as error:
        raise CannotListen(str(address), error.strerror or str(error)) from error
    stack.push_async_callback(server.stop)
    return ListenAddress(address.host, server.port)


async def _start_nplt(
    stack: AsyncExitStack,
    hub: SessionHub,
    tokens: AccessTokens,
    options: ServeOptions,
    downloads: DownloadOffers,
    tls: ssl.SSLContext | None,
) -> ListenAddress | None:
    address = options.nplt
    if address is None:
        return None
    server = NpltServer(
        hub,
        tokens,
        require_token=options.nplt_token,
        downloads=downloads,
        cancel_on_disconnect=options.on_disconnect == "cancel",
    )
    try:
        await server.start(address.host, address.port, tls)
    except OSError as error:
        raise CannotListen(str(address), error.strerror or str(error)) from error
    stack.push_async_callback(server.close)
    return ListenAddress(address.host, server.port)

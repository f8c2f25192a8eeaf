"""The HTTP application: both faces behind one guard, with one form of errors.

`build_app` takes the hub whose sessions it serves. Nothing is remembered between requests but open
event streams; another server on the same store can answer the next request.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount, Route

from recollect.errors import CannotReach, RecollectError
from recollect.server.access import AccessTokens
from recollect.server.downloads import DownloadOffers
from recollect.server.http.api_call import ApiState
from recollect.server.http.api_endpoint import starlette_route
from recollect.server.http.api_table import ROUTES
from recollect.server.http.event_stream import StreamSlots
from recollect.server.http.http_metrics import METRICS_TYPE, HttpMetrics
from recollect.server.http.openapi import describe_api
from recollect.server.http.problem_details import (
    RequestRefused,
    error_response,
    json_bytes,
    json_response,
)
from recollect.server.http.request_guard import HttpOptions, RequestGuard, identity_of
from recollect.server.session_hub import SessionHub

_DEFAULT_OPTIONS = HttpOptions()
READY_SECONDS = 2.0


def build_app(
    hub: SessionHub,
    tokens: AccessTokens,
    options: HttpOptions = _DEFAULT_OPTIONS,
    responses: Sequence[BaseRoute] = (),
    downloads: DownloadOffers | None = None,
) -> Starlette:
    """`responses`: the routes of the Open Responses face, mounted below `/v1`; `downloads`: the
    files that other protocols offer for download."""
    stopping = asyncio.Event()
    slots = StreamSlots(options.streams, options.heartbeat_seconds, stopping)
    metrics = HttpMetrics(hub, lambda: slots.count)
    state = ApiState(hub, options, slots, downloads or DownloadOffers())
    app = Starlette(
        routes=[
            # first, because a stream's first byte waits for every route that is tried before
            Mount("/v1", routes=[_measured(route, metrics) for route in responses]),
            *_service_routes(hub, metrics),
            *(metrics.measured(starlette_route(route, state)) for route in ROUTES),
        ],
        middleware=[Middleware(RequestGuard, tokens=tokens, options=options)],
        exception_handlers={RecollectError: _handle_error, HTTPException: _handle_http_error},
    )
    app.router.redirect_slashes = False
    app.state.stopping = stopping  # event streams end when it is set
    return app


def _measured(route: BaseRoute, metrics: HttpMetrics) -> BaseRoute:
    return metrics.measured(route, "/v1") if isinstance(route, Route) else route


def _service_routes(hub: SessionHub, metrics: HttpMetrics) -> list[Route]:
    """Health, metrics and the description, which have no session in them."""
    description = json_bytes(describe_api())

    async def live(_: Request) -> Response:
        return json_response({"status": "live"})

    async def ready(_: Request) -> Response:
        try:
            async with asyncio.timeout(READY_SECONDS):  # whoever asks does not wait for long
                await hub.store.check_usable()
        except TimeoutError:
            raise CannotReach(hub.store.address, f"no answer in {READY_SECONDS:g} s") from None
        return json_response({"status": "ready"})

    async def show_metrics(request: Request) -> Response:
        identity_of(request).require("read")
        return Response(metrics.render(), media_type=METRICS_TYPE)

    async def describe(_: Request) -> Response:
        return Response(description, media_type="application/json")

    return [
        Route("/health/live", live),
        Route("/health/ready", ready),
        Route("/metrics", show_metrics),
        Route("/openapi.json", describe),
    ]


async def _handle_error(request: Request, error: Exception) -> Response:
    return error_response(error, request.scope["path"])


async def _handle_http_error(request: Request, error: Exception) -> Response:
    """What Starlette itself refuses: an unknown path, or a method that a path does not have."""
    assert isinstance(error, HTTPException)
    code = {404: "not-found", 405: "method-not-allowed"}.get(error.status_code, "refused")
    detail = f"{request.method} {request.scope['path'][:200]}: {error.detail.lower()}"
    refusal = RequestRefused(error.status_code, code, error.detail, f"{detail}; see /openapi.json")
    refusal.headers.update(error.headers or {})
    return error_response(refusal, request.scope["path"])

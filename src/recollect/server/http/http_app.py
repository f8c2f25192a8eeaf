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

from recollect.errors import RecollectError
from recollect.server.access import AccessTokens
from recollect.server.http.problem_details import RequestRefused, error_response, json_response
from recollect.server.http.request_guard import HttpOptions, RequestGuard
from recollect.server.session_hub import SessionHub

_DEFAULT_OPTIONS = HttpOptions()


def build_app(
    hub: SessionHub,
    tokens: AccessTokens,
    options: HttpOptions = _DEFAULT_OPTIONS,
    responses: Sequence[BaseRoute] = (),
) -> Starlette:
    """`responses`: the routes of the Open Responses face, mounted below `/v1`."""

    async def live(_: Request) -> Response:
        return json_response({"status": "live"})

    async def ready(_: Request) -> Response:
        await hub.store.sessions(limit=1)
        return json_response({"status": "ready"})

    app = Starlette(
        routes=[
            Route("/health/live", live),
            Route("/health/ready", ready),
            Mount("/v1", routes=list(responses)),
        ],
        middleware=[Middleware(RequestGuard, tokens=tokens, options=options)],
        exception_handlers={
            RecollectError: _handle_error,
            HTTPException: _handle_http_error,
        },
    )
    app.state.stopping = asyncio.Event()  # event streams end when it is set
    return app


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

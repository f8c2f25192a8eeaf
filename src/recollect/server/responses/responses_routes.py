"""The routes of the Open Responses face, mounted below `/v1`."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import BaseRoute, Route

from recollect.errors import RecollectError
from recollect.server.access import Identity
from recollect.server.http.problem_details import json_response
from recollect.server.http.request_guard import identity_of
from recollect.server.http.request_json import read_json
from recollect.server.responses.api_error import api_error
from recollect.server.responses.create_body import read_create_body
from recollect.server.responses.respond import Responder, StartedResponse
from recollect.server.session_hub import SessionHub

_EVENT_HEADERS = {"cache-control": "no-store", "x-accel-buffering": "no"}


def responses_routes(hub: SessionHub) -> list[BaseRoute]:
    """The routes, for an application that identifies its clients."""
    face = _ResponsesFace(hub)
    return [
        _route("/responses", face.create, "POST"),
    ]


Handler = Callable[[Identity, Request], Awaitable[Response]]


def _route(path: str, handler: Handler, *methods: str) -> Route:
    async def endpoint(request: Request) -> Response:
        try:
            return await handler(identity_of(request), request)
        except RecollectError as error:
            told = api_error(error)
            return json_response({"error": told.payload}, told.status, told.headers)

    return Route(path, endpoint, methods=list(methods))


class _ResponsesFace:
    def __init__(self, hub: SessionHub) -> None:
        self._hub, self._responder = hub, Responder(hub)

    async def create(self, who: Identity, request: Request) -> Response:
        raw: Any = await read_json(request)
        body = read_create_body(raw)
        started = await self._responder.start(who, raw, body)
        if body.stream:
            events = self._responder.stream(started)
            return StreamingResponse(events, headers=_EVENT_HEADERS, media_type="text/event-stream")
        return json_response(await self._finish(started, request))

    async def _finish(self, started: StartedResponse, request: Request) -> Any:
        """The response, unless its client hangs up before: then it is stopped."""
        end = asyncio.ensure_future(self._responder.finish(started))
        gone = asyncio.ensure_future(_hang_up(request))
        try:
            await asyncio.wait([end, gone], return_when=asyncio.FIRST_COMPLETED)
            if not end.done():
                started.run.cancel()
            return await end
        finally:
            gone.cancel()


async def _hang_up(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass

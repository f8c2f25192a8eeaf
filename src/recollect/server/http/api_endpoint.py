"""The road of a request from Starlette to a handler and back: checks, values, conditions."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from recollect.errors import BadInput
from recollect.server.access import Identity
from recollect.server.http.api_call import (
    ApiCall,
    ApiReply,
    ApiState,
    FileBytes,
    NotModified,
)
from recollect.server.http.api_table import ApiRoute
from recollect.server.http.problem_details import json_response
from recollect.server.http.request_guard import identity_of
from recollect.server.http.request_json import convert_value, read_json

MAX_PARAMETERS = 50
_NOBODY = Identity("", "read")  # the holder of a download's address


def starlette_route(api: ApiRoute, state: ApiState) -> Route:
    async def endpoint(request: Request) -> Response:
        return await _answer(api, state, request)

    route = Route(api.path, endpoint, methods=[api.method], name=api.name)
    route.methods = {api.method}  # without the HEAD that Starlette adds: a stream has none
    return route


async def _answer(api: ApiRoute, state: ApiState, request: Request) -> Response:
    who = _NOBODY
    if api.right is not None:
        who = identity_of(request)
        who.require(api.right)
    query: Any = convert_value(_read_query(request), api.query, "query", strict=False)
    body = api.body() if api.body is FileBytes else await _read_body(request, api.body)
    try:
        reply = await api.handler(ApiCall(state, who, request, query, body))
    except NotModified as known:
        return Response(status_code=304, headers={"etag": known.tag})
    if isinstance(reply, Response):
        return reply
    assert isinstance(reply, ApiReply)
    return json_response(reply.value, reply.status, reply.headers)


def _read_query(request: Request) -> dict[str, str]:
    raw = request.scope["query_string"].decode("latin-1")
    try:
        pairs = parse_qsl(
            raw, keep_blank_values=True, errors="strict", max_num_fields=MAX_PARAMETERS
        )
    except ValueError as error:
        raise BadInput(f"the query cannot be read: {error}") from None
    found = dict(pairs)
    if len(found) < len(pairs):
        raise BadInput("a name stands twice in the query; send each once")
    return found


async def _read_body(request: Request, kind: type[Any]) -> Any:
    """An absent body is an empty object."""
    value = await read_json(request) if await request.body() else {}
    return convert_value(value, kind, "body")

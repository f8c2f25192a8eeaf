"""The routes of the Open Responses face, mounted below `/v1`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import Any, TypeAlias

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import BaseRoute, Route

from recollect.errors import RecollectError
from recollect.server.access import AccessCheck, Identity
from recollect.server.http.problem_details import json_response
from recollect.server.http.request_guard import access_of, identity_of
from recollect.server.http.request_json import read_json
from recollect.server.responses.api_error import ApiError, api_error, invalid
from recollect.server.responses.compact_input import compact_input
from recollect.server.responses.conversation_items import (
    append_at_head,
    deletion,
    read_conversation,
)
from recollect.server.responses.conversation_routes import ConversationFace
from recollect.server.responses.create_body import read_create_body
from recollect.server.responses.item_ids import RESPONSE
from recollect.server.responses.model_list import find_model, list_models
from recollect.server.responses.paging import read_page_request, take_items
from recollect.server.responses.respond import PlannedResponse, Responder, StartedResponse
from recollect.server.responses.response_object import IN_PROGRESS, describe_response
from recollect.server.responses.response_record import find_response
from recollect.server.session_hub import SessionHub

_EVENT_HEADERS = {"cache-control": "no-store", "x-accel-buffering": "no"}
Handler: TypeAlias = Callable[[Identity, Request], Awaitable[Response]]


def responses_routes(hub: SessionHub) -> list[BaseRoute]:
    """The routes, for an application whose guard has identified the client."""
    face, talks = _ResponsesFace(hub), ConversationFace(hub)
    one, items = "/conversations/{conversation}", "/conversations/{conversation}/items"
    return [
        _route("/responses", POST=face.create),
        _route("/responses/compact", POST=face.compact),
        _route("/responses/{response}", GET=face.get, DELETE=face.delete),
        _route("/responses/{response}/cancel", POST=face.cancel),
        _route("/responses/{response}/input_items", GET=face.list_input),
        _route("/conversations", POST=talks.create),
        _route(one, GET=talks.get, POST=talks.update, DELETE=talks.delete),
        _route(items, GET=talks.list_items, POST=talks.create_items),
        _route(f"{items}/{{item}}", GET=talks.get_item, DELETE=talks.delete_item),
        _route("/models", GET=face.list_models),
        _route("/models/{model:path}", GET=face.get_model),
    ]


def _route(path: str, **handlers: Handler) -> Route:
    async def endpoint(request: Request) -> Response:
        try:
            method = "GET" if request.method == "HEAD" else request.method
            return await handlers[method](identity_of(request), request)
        except RecollectError as error:
            told = api_error(error)
            return json_response({"error": told.payload}, told.status, told.headers)

    return Route(path, endpoint, methods=list(handlers))


class _ResponsesFace:
    def __init__(self, hub: SessionHub) -> None:
        self._hub, self._responder = hub, Responder(hub)

    async def create(self, who: Identity, request: Request) -> Response:
        raw: Any = await read_json(request)
        body = read_create_body(raw)
        plan = await self._responder.plan(who, raw, body)
        if body.stream:
            events = self._follow(plan, access_of(request))
            return StreamingResponse(events, headers=_EVENT_HEADERS, media_type="text/event-stream")
        return json_response(await self._finish(await self._responder.start(plan), request))

    async def _follow(
        self, plan: PlannedResponse, access: AccessCheck
    ) -> AsyncGenerator[bytes, None]:
        """The events of a response; it is stopped when the client's token is removed."""

        async def watch() -> None:
            await access.until_lost()
            if (active := self._responder.active.get(plan.id)) is not None:
                active.run.cancel()

        watching = asyncio.ensure_future(watch())
        try:
            async with aclosing(self._responder.follow(plan)) as events:
                async for event in events:
                    yield event
        finally:
            watching.cancel()

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

    async def get(self, who: Identity, request: Request) -> Response:
        who.require("read")
        given = request.path_params["response"]
        if request.query_params.get("stream") == "true":
            raise invalid("a stream cannot be resumed here; get the response without it", "stream")
        active = self._responder.active.get(given)
        if active is not None and (who.all_sessions or active.run.owner == who.name):
            return json_response(describe_response(active.plan.begun(), IN_PROGRESS))
        return json_response(describe_response(await find_response(self._hub.store, who, given)))

    async def delete(self, who: Identity, request: Request) -> Response:
        who.require("chat")
        store = self._hub.store
        found = await find_response(store, who, request.path_params["response"])
        if self._hub.runs_of(found.session):
            message = "a response is being written in this session; try again after it"
            raise ApiError(message, status=409, code="conversation_locked")
        edit = deletion(read_conversation(found.entries), found.id)
        await append_at_head(store, await store.session(found.session), (edit,))
        told = {"id": f"{RESPONSE}{found.id}", "object": "response", "deleted": True}
        return json_response(told)

    async def cancel(self, who: Identity, request: Request) -> Response:
        who.require("chat")
        given = request.path_params["response"]
        active = self._responder.active.get(given)
        if active is not None and (who.all_sessions or active.run.owner == who.name):
            active.run.cancel()
            await active.run.wait()
        return json_response(describe_response(await find_response(self._hub.store, who, given)))

    async def list_input(self, who: Identity, request: Request) -> Response:
        who.require("read")
        page = read_page_request(request)
        found = await find_response(self._hub.store, who, request.path_params["response"])
        items = [one.item for one in read_conversation(found.input)]
        return json_response(take_items(items, page))

    async def compact(self, who: Identity, request: Request) -> Response:
        return json_response(await compact_input(self._responder, who, await read_json(request)))

    async def list_models(self, who: Identity, request: Request) -> Response:
        who.require("read")
        del request
        return json_response({"object": "list", "data": list_models(self._hub.runtime)})

    async def get_model(self, who: Identity, request: Request) -> Response:
        who.require("read")
        return json_response(find_model(self._hub.runtime, request.path_params["model"]))


async def _hang_up(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass

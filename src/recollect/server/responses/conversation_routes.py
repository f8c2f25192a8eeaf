"""`/v1/conversations`: sessions as conversations, with their items."""

from __future__ import annotations

from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from recollect.entries import Body
from recollect.server.access import Identity
from recollect.server.http.problem_details import json_response
from recollect.server.http.request_json import read_json
from recollect.server.responses.api_error import ApiError, invalid, not_found
from recollect.server.responses.conversation_items import (
    ConversationLists,
    PlacedItem,
    append_at_head,
    deletion,
    find_conversation,
    metadata_edit,
    read_conversation,
    read_metadata,
)
from recollect.server.responses.create_body import check_metadata, convert_body
from recollect.server.responses.input_items import first_words, read_input
from recollect.server.responses.item_ids import CONVERSATION
from recollect.server.responses.output_items import Item
from recollect.server.responses.paging import item_list, read_page_request, take_items
from recollect.server.session_hub import SessionHub
from recollect.store.contract import SessionInfo
from recollect.text import one_line

TITLE_LENGTH = 60


class _NewConversation(msgspec.Struct, frozen=True):
    items: list[Any] | None = None
    metadata: dict[str, str] | None = None


class _NewItems(msgspec.Struct, frozen=True):
    items: list[Any]


class _ChangedConversation(msgspec.Struct, frozen=True):
    metadata: dict[str, str] | None = None


class ConversationFace:
    """The handlers of the routes."""

    def __init__(self, hub: SessionHub) -> None:
        self._hub, self._lists = hub, ConversationLists(hub.store)

    async def create(self, who: Identity, request: Request) -> Response:
        raw = await read_json(request) if await request.body() else {}
        body = convert_body(raw, _NewConversation)
        check_metadata(body.metadata)
        messages = await read_input(self._hub.store, who, body.items, "items")
        info = await self._hub.create(who, one_line(first_words(messages), TITLE_LENGTH))
        more: list[Body] = [metadata_edit(body.metadata)] if body.metadata else []
        if more or messages:
            await append_at_head(self._hub.store, info, (*more, *messages))
        return json_response(_describe(info, body.metadata or {}))

    async def get(self, who: Identity, request: Request) -> Response:
        info = await self._find(who, request)
        entries = await self._hub.store.path(info.id)
        return json_response(_describe(info, read_metadata(entries)))

    async def update(self, who: Identity, request: Request) -> Response:
        info = await self._find_free(who, request)
        body = convert_body(await read_json(request), _ChangedConversation)
        check_metadata(body.metadata)
        metadata = body.metadata or {}
        await append_at_head(self._hub.store, info, (metadata_edit(metadata),))
        return json_response(_describe(info, metadata))

    async def delete(self, who: Identity, request: Request) -> Response:
        info = await self._find_free(who, request)
        await self._hub.store.trash(info.id)
        told = {"id": f"{CONVERSATION}{info.id}", "object": "conversation.deleted"}
        return json_response(told | {"deleted": True})

    # --- items -----------------------------------------------------------------------------------

    async def list_items(self, who: Identity, request: Request) -> Response:
        page = read_page_request(request)
        placed = await self._lists.items(await self._find(who, request))
        return json_response(take_items([one.item for one in placed], page))

    async def create_items(self, who: Identity, request: Request) -> Response:
        info = await self._find_free(who, request)
        body = convert_body(await read_json(request), _NewItems)
        messages = await read_input(self._hub.store, who, body.items, "items")
        if not messages:
            raise invalid("give at least one item", "items")
        entries = await append_at_head(self._hub.store, info, messages)
        return json_response(item_list([one.item for one in read_conversation(entries)]))

    async def get_item(self, who: Identity, request: Request) -> Response:
        info = await self._find(who, request)
        return json_response((await self._find_item(info, request)).item)

    async def delete_item(self, who: Identity, request: Request) -> Response:
        info = await self._find_free(who, request)
        placed = await self._find_item(info, request)
        await append_at_head(self._hub.store, info, (deletion([placed]),))
        return await self.get(who, request)

    async def _find_item(self, info: SessionInfo, request: Request) -> PlacedItem:
        given = request.path_params["item"]
        placed = await self._lists.items(info)
        found = next((one for one in placed if one.item["id"] == given), None)
        if found is None:
            raise not_found("item", given)
        return found

    async def _find(self, who: Identity, request: Request) -> SessionInfo:
        return await find_conversation(self._hub, who, request.path_params["conversation"])

    async def _find_free(self, who: Identity, request: Request) -> SessionInfo:
        """To change it, while no response is being written there."""
        who.require("chat")
        info = await self._find(who, request)
        if self._hub.runs_of(info.id):
            message = "a response is being written in this conversation; try again after it"
            raise ApiError(message, status=409, code="conversation_locked")
        return info


def _describe(info: SessionInfo, metadata: dict[str, str]) -> Item:
    return {
        "id": f"{CONVERSATION}{info.id}",
        "object": "conversation",
        "created_at": info.created // 1000,
        "metadata": metadata,
    }

"""Lists of the API: a page of items after another one, in either direction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from starlette.requests import Request

from recollect.server.responses.api_error import invalid, not_found
from recollect.server.responses.output_items import Item

MAX_PAGE, USUAL_PAGE = 100, 20


class PageRequest(NamedTuple):
    after: str | None
    limit: int
    is_descending: bool


def read_page_request(request: Request) -> PageRequest:
    query = request.query_params
    limit, order = query.get("limit") or str(USUAL_PAGE), query.get("order") or "desc"
    if not limit.isascii() or not limit.isdecimal() or not 1 <= int(limit[:9]) <= MAX_PAGE:
        raise invalid(f"the limit is a number from 1 to {MAX_PAGE}", "limit")
    if order not in ("asc", "desc"):
        raise invalid("the order is 'asc' or 'desc'", "order")
    return PageRequest(query.get("after") or None, int(limit), order == "desc")


def take_items(items: Sequence[Item], page: PageRequest) -> Item:
    """One page of items that are given oldest first."""
    ordered = items[::-1] if page.is_descending else items
    start = 0
    if page.after is not None:
        ids = [item["id"] for item in ordered]
        if page.after not in ids:
            raise not_found("item", page.after, "after")
        start = ids.index(page.after) + 1
    return item_list(ordered[start : start + page.limit], start + page.limit < len(ordered))


def item_list(items: Sequence[Item], has_more: bool = False) -> Item:  # noqa: FBT001, FBT002
    return {
        "object": "list",
        "data": list(items),
        "first_id": items[0]["id"] if items else "",
        "last_id": items[-1]["id"] if items else "",
        "has_more": has_more,
    }

"""One call of our own face: who calls, with which query and body, and the head that it expects.

A handler is an async function of an `ApiCall[Query, Body]` that returns an `ApiReply[Value]`, an
`EventStream` or a plain response. Its annotations are the description: the checks of a request and
the OpenAPI page are both made from them, so they cannot differ.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

import msgspec
from starlette.requests import Request

from recollect.errors import HeadMoved
from recollect.server.access import Identity
from recollect.server.downloads import DownloadOffers
from recollect.server.http.event_stream import EventStream, StreamEvent, StreamSlots
from recollect.server.http.problem_details import RequestRefused
from recollect.server.http.request_guard import HttpOptions, access_of
from recollect.server.session_hub import SessionHub
from recollect.store.contract import SessionInfo

QueryT = TypeVar("QueryT")
BodyT = TypeVar("BodyT")
ValueT = TypeVar("ValueT")
START = "start"  # stands for the head of a session without entries


class ApiState(msgspec.Struct, frozen=True):
    """What every call has at hand."""

    hub: SessionHub
    options: HttpOptions
    slots: StreamSlots
    downloads: DownloadOffers


class NoQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A route without parameters in the query."""


class NoBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A route without a body, or with an empty one."""


class FileBytes(msgspec.Struct, frozen=True):
    """A route whose body is a file; the handler reads it as it comes."""


class NotModified(Exception):
    """The client has what it asks for."""

    def __init__(self, tag: str) -> None:
        super().__init__(tag)
        self.tag = tag


class ApiReply(Generic[ValueT]):
    """What a handler returns: a value that becomes JSON, and its headers."""

    def __init__(
        self, value: ValueT, status: int = 200, *, tag: str = "", location: str = ""
    ) -> None:
        self.value, self.status = value, status
        self.headers = {
            name: text for name, text in (("etag", tag), ("location", location)) if text
        }


class ApiCall(Generic[QueryT, BodyT]):
    def __init__(
        self, state: ApiState, who: Identity, request: Request, query: QueryT, body: BodyT
    ) -> None:
        self.state, self.who, self.request = state, who, request
        self.query, self.body = query, body

    @property
    def hub(self) -> SessionHub:
        return self.state.hub

    def path(self, name: str) -> str:
        return str(self.request.path_params[name])

    def header(self, name: str) -> str:
        return self.request.headers.get(name, "")

    def stream(self, events: AsyncGenerator[StreamEvent, None]) -> EventStream:
        """A response of these events, as long as the client's token is known."""
        return self.state.slots.stream(events, self.who.name, access_of(self.request))

    async def session(self) -> SessionInfo:
        """The session that the path names; another's does not exist."""
        return await self.hub.find(self.who, self.path("session"))

    async def writable(self) -> SessionInfo:
        """The same, for a change: not one in the trash, and at the head that the client expects."""
        info = await self.hub.find_writable(self.who, self.path("session"))
        self.check_expected(info)
        return info

    def check_expected(self, info: SessionInfo) -> None:
        """Raise if `If-Match` names another head."""
        wanted = self.header("if-match")
        if wanted and "*" not in _tags(wanted) and tag_of(info) not in _tags(wanted):
            raise head_moved(info.head)

    @contextmanager
    def expecting(self) -> Iterator[None]:
        """A head that moved after `If-Match` was checked fails like one that moved before."""
        try:
            yield
        except HeadMoved as moved:
            if self.header("if-match"):
                raise head_moved(moved.actual) from None
            raise

    async def entry_id(self, info: SessionInfo, given: str) -> str:
        """The id of an entry of this session, from a part of it."""
        return (await self.hub.store.entry(given, session=info.id))[1].id

    def unless_known(self, tag: str) -> str:
        """The tag for the reply; raises if the client has exactly that already."""
        wanted = _tags(self.header("if-none-match"))
        if tag in wanted or f"W/{tag}" in wanted or "*" in wanted:
            raise NotModified(tag)
        return tag


def tag_of(info: SessionInfo) -> str:
    """The entity tag of everything that follows from a session's log: its head."""
    return f'"{info.head or START}"'


def head_moved(actual: str | None) -> RequestRefused:
    detail = (
        f"the session is at {actual or 'its start'}, another head than `If-Match` names; "
        "read what is new and send the request again"
    )
    return RequestRefused(412, "head-moved", "Another writer was first", detail)


def _tags(header: str) -> list[str]:
    return [tag.strip() for tag in header.split(",")]

"""The requests of a session as they were sent, read from its log alone.

The messages are those that were shown then; the format, the model's profile, the tools, the
generation settings and the curation are those that the request recorded. So later settings change
nothing, and two requests can be compared byte for byte. A request of an older version, which did
not record its setup, cannot be read here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from recollect.codecs.cache_breaks import CacheComparison, SentRequest, compare_requests
from recollect.codecs.wire_protocol import Generation, RequestOptions, Wire
from recollect.entries import Entry, Message, Request, Usage
from recollect.errors import UnknownEntry
from recollect.models.request_record import RequestSetup, read_setup
from recollect.models.resolve import ResolvedModel, build_wire, fill_options
from recollect.settings import GenerationDefaults
from recollect.store.contract import Store
from recollect.tokens import counter_for
from recollect.view.view import View
from recollect.view_loader import fold_stored, read_needed_entries

WINDOW = 128  # entries that are read at first to find requests
MAX_WINDOW = 32_768


class PastRequest(NamedTuple):
    """What is needed to encode it again."""

    view: View
    model: ResolvedModel
    options: RequestOptions
    text_tools: bool = False

    @property
    def wire(self) -> Wire:
        off = self.filled.generation.effort == "none"
        tools = self.options.tools
        return build_wire(self.model, tools, text_tools=self.text_tools, thinking_off=off)

    @property
    def filled(self) -> RequestOptions:
        """The options with the model's own name and defaults, as they are sent."""
        return fill_options(self.model, self.options)

    def with_generation(self, asked: Request) -> PastRequest:
        """With the generation settings that a request recorded, the defaults of then in them."""
        try:
            found = msgspec.json.decode(asked.generation or "null", type=Generation | None)
        except (msgspec.MsgspecError, RecursionError):  # not written by us
            return self
        if found is None:
            return self
        model = msgspec.structs.replace(self.model, generation=GenerationDefaults())
        options = msgspec.structs.replace(self.options, generation=found)
        return self._replace(model=model, options=options)


async def load_setup(store: Store, request: Request) -> RequestSetup | None:
    """What the request recorded, or the earlier one that it names."""
    if request.setup or request.settings is None:
        return read_setup(request.setup)
    try:
        _, holder = await store.entry(request.settings)
    except UnknownEntry:
        return None
    return read_setup(holder.body.setup) if isinstance(holder.body, Request) else None


async def read_past_entries(store: Store, session: str, at: Entry) -> tuple[Entry, ...]:
    """What the view at an entry depends on; a request records the head it was sent for."""
    head = at.body.head if isinstance(at.body, Request) else at.id
    return await read_needed_entries(store, session, at=head) if head else ()


async def load_recorded(store: Store, session: str, at: Entry) -> PastRequest | None:
    """A request as it was sent; None if it did not record its setup."""
    if not isinstance(at.body, Request):
        return None
    setup = await load_setup(store, at.body)
    if setup is None:
        return None
    model = setup.resolved(at.body.model)
    entries = await read_past_entries(store, session, at)
    view = await fold_stored(store, entries, counter_for(model.name), setup.curation)
    past = PastRequest(view, model, setup.options(model.name), at.body.text_tools)
    return past.with_generation(at.body)


async def compare_recorded(
    store: Store, session: str, old: Entry, new: Entry
) -> CacheComparison | None:
    """What two requests have in common, as a prompt cache sees it; None if that was not
    recorded."""
    sides = [await load_recorded(store, session, one) for one in (old, new)]
    sent = [SentRequest(one.view, one.wire, one.filled) for one in sides if one is not None]
    if len(sent) < len(sides):
        return None
    return await asyncio.to_thread(compare_requests, *sent)  # both are encoded for it


class AnsweredRequest(NamedTuple):
    """A request, and what the provider reported for it."""

    request: Entry
    reply: Entry | None = None
    usage: Usage | None = None


async def recent_requests(
    store: Store, session: str, count: int, at: str | None = None
) -> tuple[AnsweredRequest, ...]:
    """The newest requests up to the head, or up to an entry, oldest first."""
    found = await _read_requests(store, session, count, last=at)
    if found is None:  # not a request, or on another branch: its reply is not looked for
        found = await _read_requests(store, session, count, head=at)
    return found or ()


async def _read_requests(
    store: Store, session: str, count: int, *, head: str | None = None, last: str | None = None
) -> tuple[AnsweredRequest, ...] | None:
    """Up to the request `last`; None if there is no such request on the path."""
    window = WINDOW
    while True:
        path = await store.path(session, at=head, last=window)
        found = pair_requests(path)
        ends = [n for n, one in enumerate(found, 1) if last in (None, one.request.id)]
        at_end = len(path) < window or window >= MAX_WINDOW
        if ends and (ends[-1] >= count or at_end):
            return found[max(0, ends[-1] - count) : ends[-1]]
        if at_end:
            return None if last is not None else ()
        window *= 4


def pair_requests(path: Sequence[Entry]) -> tuple[AnsweredRequest, ...]:
    """The requests of a path, each with its reply."""
    found: list[AnsweredRequest] = []
    for entry in path:
        body = entry.body
        if isinstance(body, Request):
            found.append(AnsweredRequest(entry))
        elif not found or found[-1].reply is not None:
            continue
        elif isinstance(body, Message) and body.role == "model":
            found[-1] = AnsweredRequest(found[-1].request, entry, body.usage)
    return tuple(found)

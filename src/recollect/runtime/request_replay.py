"""The requests of a session, encoded: the next one, or one of the past exactly as it was sent.

What the request recorded decides, whatever the settings say today. A request of an older version,
which did not record its setup, is made with the settings of today, as is the one that would have
followed a message. The digest in the log tells whether the bytes are those that were sent.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import NamedTuple

import msgspec

from recollect.codecs.encoder import EncodedRequest
from recollect.codecs.wire_protocol import Declaration, RequestOptions
from recollect.entries import Entry, Request
from recollect.models.resolve import ResolvedModel
from recollect.past_requests import PastRequest, load_recorded, load_setup, read_past_entries
from recollect.profiles import WireName
from recollect.runtime.model_choice import model_for_wire, next_model
from recollect.runtime.prepare_apart import prepare_apart
from recollect.runtime.prompt_run import DEFAULT_OPTIONS, RunOptions
from recollect.runtime.runtime import Runtime
from recollect.session import Session
from recollect.store.contract import SessionInfo
from recollect.tokens import counter_for
from recollect.view_loader import fold_stored, read_needed_entries


class Replay(NamedTuple):
    """A request to encode again, and what is known of the bytes that were sent."""

    past: PastRequest
    of_request: bool = False  # not one that would have followed a message
    recorded: bool = False
    digest: str = ""  # of the bytes that were sent; empty: not known, or for another model

    def judge(self, body: EncodedRequest) -> str:
        """Whether these bytes are those that were sent, in a sentence."""
        if not self.of_request:
            return ""
        if not self.recorded:
            return "the request did not record its tools and format: made with today's settings"
        if not self.digest:
            return "it was sent to another model or in another format"
        if body.digest == self.digest:
            return f"the very bytes that were sent: SHA-256 {body.digest}…"
        return (
            f"not the bytes that were sent: SHA-256 {body.digest}…, and {self.digest}… was sent; "
            "another version of recollect encoded it"
        )


async def past_tools(
    runtime: Runtime, model: ResolvedModel, at: Entry | None
) -> tuple[Declaration, ...]:
    """The tools that an earlier request declared; else those of the next one."""
    if at is None or not isinstance(at.body, Request):
        return runtime.declared_tools(model)
    setup = await load_setup(runtime.store, at.body)
    if setup is not None:
        return setup.tools
    return tuple(tool for tool in runtime.declared_tools(model) if tool.name in at.body.tools)


async def load_next(
    runtime: Runtime,
    session: SessionInfo,
    prompt: str = "",
    to: WireName | None = None,
    options: RunOptions = DEFAULT_OPTIONS,
) -> Replay:
    """The request that a prompt would be answered by now, with what the session's owner is sent;
    nothing is stored, sent or called. `to` encodes it in another format."""
    runtime = runtime.for_door(msgspec.structs.replace(runtime.door, owner=session.owner))
    store = runtime.store
    entries = await read_needed_entries(store, session.id) if session.head else ()
    model = next_model(runtime.settings, entries, options.model)
    if to is not None:
        model = model_for_wire(model, to, runtime.settings, named=bool(options.model))
    view = await fold_stored(store, entries, counter_for(model.name), runtime.curation)
    message = await runtime.prompt_message(prompt) if prompt else None
    own = Session(store, session.id, view)
    prepared = await prepare_apart(runtime, own, model, message, options)
    return Replay(PastRequest(prepared.view, model, prepared.options))


async def encode_next(
    runtime: Runtime,
    session: SessionInfo,
    to: WireName | None = None,
    options: RunOptions = DEFAULT_OPTIONS,
) -> bytes:
    """The next request byte for byte, in the model's own format or in another."""
    past = (await load_next(runtime, session, "", to, options)).past
    encode = partial(runtime.encode, text_tools=past.text_tools)
    encoded, _ = await asyncio.to_thread(encode, past.view, past.model, past.options)
    return b"".join(encoded.chunks)


async def load_replay(
    runtime: Runtime,
    session: SessionInfo,
    at: Entry,
    to: WireName | None = None,
    named: str | None = None,
) -> Replay:
    """The request itself, or the one that would have followed a message. `to` and `named` encode
    it for another format or model."""
    asked = at.body if isinstance(at.body, Request) else None
    known = asked is not None and await load_setup(runtime.store, asked) is not None
    past = recorded = await load_recorded(runtime.store, session.id, at)
    if past is None or (asked is not None and named not in (None, asked.model)):
        past = await _load_with_settings(runtime, session, at, named)
        recorded = None
    same = to in (None, past.model.endpoint.wire)
    if to is not None and not (recorded and same):
        model = model_for_wire(past.model, to, runtime.settings, named=named is not None)
        past = past._replace(model=model)
    if asked is None:
        return Replay(past)
    digest = asked.digest if same and past.model.name == asked.model else ""
    return Replay(past.with_generation(asked), of_request=True, recorded=known, digest=digest)


async def _load_with_settings(
    runtime: Runtime, session: SessionInfo, at: Entry, named: str | None
) -> PastRequest:
    store, asked = runtime.store, at.body if isinstance(at.body, Request) else None
    entries = await read_past_entries(store, session.id, at)
    name = named or (asked.model if asked is not None else "")
    model = next_model(runtime.settings, entries, name)
    view = await fold_stored(store, entries, counter_for(model.name), runtime.curation)
    tools = await past_tools(runtime, model, at)
    options = RequestOptions(model=model.name, tools=tools)
    return PastRequest(view, model, options, asked is not None and asked.text_tools)

"""What a request's bytes depend on beside its messages, recorded so that it can be replayed.

A `Request` names the generation settings, and its `setup` the rest: the wire format, what was known
of the model, the tools as they were declared, the curation of the messages. A request whose setup
is that of an earlier one names that one instead; so a session holds each setup about once. The
digest tells whether a replay is exact.
"""

from __future__ import annotations

from itertools import islice

import msgspec

from recollect.codecs.wire_protocol import Declaration, RequestOptions
from recollect.entries import Entry, Request
from recollect.models.http_model import HttpModel
from recollect.models.resolve import ResolvedModel
from recollect.profiles import Endpoint, Profile, WireName
from recollect.view.curation import CurationPolicy
from recollect.view.view import View

MAX_LOOK_BACK = 200  # entries before a request in which an earlier one is looked for


class RequestSetup(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Everything in a request but its messages and its generation settings."""

    wire: WireName
    model: str  # as the endpoint calls it
    profile: Profile
    tools: tuple[Declaration, ...] = ()
    tool_choice: str = "auto"
    stream: bool = True
    curation: CurationPolicy = CurationPolicy()

    def resolved(self, name: str) -> ResolvedModel:
        """The model as it was then, under its own name; to encode for, not to call."""
        endpoint = Endpoint(name=name, url="", wire=self.wire)
        return ResolvedModel(
            name=name, wire_name=self.model, profile=self.profile, endpoint=endpoint
        )

    def options(self, name: str) -> RequestOptions:
        """What the request had beside its messages, without its generation settings."""
        return RequestOptions(
            model=name, tools=self.tools, tool_choice=self.tool_choice, stream=self.stream
        )


def record_setup(
    request: Request, model: HttpModel, view: View, options: RequestOptions
) -> Request:
    """The request with everything that a replay needs."""
    filled = model.options(options)
    setup = RequestSetup(
        wire=model.chosen.endpoint.wire,
        model=filled.model,
        profile=model.chosen.profile,
        tools=filled.tools,
        tool_choice=filled.tool_choice,
        stream=filled.stream,
        curation=view.policy,
    )
    text = msgspec.json.encode(setup).decode()
    holder = _latest_holder(view)
    known = holder is not None and isinstance(holder.body, Request) and holder.body.setup == text
    return msgspec.structs.replace(
        request,
        text_tools=model.text_tools,
        generation=msgspec.json.encode(filled.generation).decode(),
        setup="" if known else text,
        settings=holder.id if known and holder is not None else None,
        digest=model.encode(view, options).digest,
    )


def _latest_holder(view: View) -> Entry | None:
    """The request that has the setup of the newest one."""
    log = view.log
    newest = islice(range(view.n - 1, -1, -1), MAX_LOOK_BACK)
    found = next((e for p in newest if isinstance((e := log.entries[p]).body, Request)), None)
    if found is None or not isinstance(found.body, Request) or found.body.setup:
        return found
    position = log.position(found.body.settings or "", view.n)
    return log.entries[position] if position is not None else None


def read_setup(text: str) -> RequestSetup | None:
    """None if it was not recorded, or not by us."""
    try:
        return msgspec.json.decode(text, type=RequestSetup) if text else None
    except (msgspec.MsgspecError, RecursionError):
        return None

"""`POST /v1/responses/compact`: a snapshot of a conversation, as an item that stands for it.

Nothing is stored: the client sends the items back as the input of its next request.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from recollect.entries import Entry, Usage
from recollect.models.resolve import look_up_model
from recollect.runtime.model_choice import writes_snapshots
from recollect.server.access import Identity
from recollect.server.responses.api_error import ApiError
from recollect.server.responses.conversation_items import read_conversation
from recollect.server.responses.create_body import convert_body, missing
from recollect.server.responses.input_items import read_input
from recollect.server.responses.item_ids import RESPONSE, item_id
from recollect.server.responses.output_items import Item
from recollect.server.responses.respond import OWN_AGENT, OWN_MODEL, Responder
from recollect.server.responses.response_object import describe_usage
from recollect.server.responses.response_record import find_response
from recollect.store.ids import new_id, now


class _CompactBody(msgspec.Struct, frozen=True):
    model: str | None = None
    input: str | list[Any] | None = None
    previous_response_id: str | None = None
    instructions: str | None = None


async def compact_input(responder: Responder, who: Identity, raw: Any) -> Item:
    """The conversation in fewer tokens; as it is, if there is nothing to save."""
    who.require("chat")
    body, hub = convert_body(raw, _CompactBody), responder.hub
    if body.model is None:
        raise missing("model")
    if body.input is None and body.previous_response_id is None:
        raise missing("input")
    previous = None
    if (given := body.previous_response_id) is not None:
        previous = await find_response(hub.store, who, given, "previous_response_id")
    messages = await read_input(hub.store, who, body.input)
    session = await responder.scratch(previous)
    if previous is not None:
        await session.continue_at(previous.end)
    await session.append(*messages)
    name = "" if body.model in (OWN_MODEL, OWN_AGENT) else body.model
    model = look_up_model(name or hub.model, hub.runtime.settings)
    proposal = await hub.runtime.compact(
        session,
        model,
        instructions=body.instructions or "",
        use_model=writes_snapshots(model),
        preview=True,
    )
    entries: Sequence[Entry] = session.view().entries
    id_, made = new_id(), proposal.compaction
    output: list[Item] = []
    if proposal.succeeded:
        output.append(
            {
                "id": item_id("compaction", id_, 0),
                "type": "compaction",
                "status": "completed",
                "encrypted_content": made.snapshot,
            }
        )
        entries = _after(entries, made.first_kept)
    output += [one.item for one in read_conversation(entries)]
    if not output:
        raise ApiError("there is nothing to compact: the conversation is empty", param="input")
    usage = Usage(input=made.tokens_before, output=made.tokens_after)
    return {
        "id": f"{RESPONSE}{id_}",
        "object": "response.compaction",
        "created_at": now() // 1000,
        "output": output,
        "usage": describe_usage(usage),
    }


def _after(entries: Sequence[Entry], first_kept: str | None) -> Sequence[Entry]:
    if first_kept is None:
        return ()
    start = next((n for n, entry in enumerate(entries) if entry.id == first_kept), len(entries))
    return entries[start:]

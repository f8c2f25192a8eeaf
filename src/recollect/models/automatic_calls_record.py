"""The calls that a server ran by itself, as messages that stand before its reply.

They are compared with the request as the server got it. Nothing in them is ever run here, and a
server cannot speak for the user: `unrecorded_calls` says what is accepted. A note in the log counts
the rest.
"""

from __future__ import annotations

import msgspec

from recollect.codecs.automatic_calls import take_history, unrecorded_calls
from recollect.codecs.gemini import GeminiWire
from recollect.codecs.gemini.automatic_history import decode_turn
from recollect.codecs.tool_names import sent_tool_name
from recollect.codecs.wire_protocol import RequestOptions
from recollect.entries import Body, Message, Note
from recollect.models.http_model import HttpModel
from recollect.models.model_protocol import Model
from recollect.view.view import View

_ACCEPTED = (
    "only a model's words, and calls of the server's own tools with their results, are accepted"
)


def separate_automatic_calls(
    reply: Message, view: View, model: Model, options: RequestOptions
) -> tuple[tuple[Body, ...], Message]:
    """What is to be stored before the reply to this view, and the reply itself."""
    history, reply = take_history(reply)
    if not history or not isinstance(model, HttpModel):
        return (), reply
    wire = GeminiWire(model=model.name)
    turn = decode_turn(wire, history)
    sent = wire.decode_request(model.encode(view, options).body).messages
    offered = {sent_tool_name(tool.name, "gemini") for tool in options.tools}
    new, refused = unrecorded_calls(sent, turn, offered)
    name = reply.model
    messages = (
        msgspec.structs.replace(each, model=name if each.role == "model" else "") for each in new
    )
    if not refused:
        return tuple(messages), reply
    count = f"{refused} parts" if refused != 1 else "1 part"
    problem = f"{count} of the server's history of automatic calls not recorded: {_ACCEPTED}"
    return (*messages, Note(text=problem, level="warning")), reply

"""A session in a provider's own format, for programs that call the provider themselves.

Requests are repaired, so that the provider accepts them: every call has its result, roles are in
order. Replies are taken as an SDK returns them, and nothing in them is lost that the provider wants
back; what a reply repeats of the session is not taken twice. With a budget, the request is made to
fit it; nothing is stored.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from recollect.codecs.automatic_calls import is_same_reply, take_history, unrecorded_calls
from recollect.codecs.encoder import encode
from recollect.codecs.tool_names import has_made_name, original_names, rename_tools
from recollect.codecs.wire_protocol import RequestOptions
from recollect.codecs.wires import WIRES
from recollect.compaction.view_reduction import fit_view, with_edits
from recollect.entries import Entry, Message, Request, ToolCall, ToolResult
from recollect.errors import BadInput, RecollectError
from recollect.profiles import WireName, find_endpoint, find_profile, is_known_model
from recollect.store.ids import now
from recollect.view.elision_rules import ElisionRules, plan_elisions
from recollect.view.view import View

_REPLY_KEY = {"openai": "choices", "anthropic": "stop_reason", "gemini": "candidates"}
_AUTOMATIC = ("automaticFunctionCallingHistory", "automatic_function_calling_history")
_MESSAGES = {"openai": "messages", "anthropic": "messages", "gemini": "contents"}


def latest_model(entries: Iterable[Entry]) -> str:
    """The newest known model of a request or reply; without one, the newest that is named."""
    bodies = [entry.body for entry in entries if isinstance(entry.body, Message | Request)]
    names = [body.model for body in reversed(bodies) if body.model]
    return next((name for name in names if is_known_model(name)), names[0] if names else "")


def fit_budget(view: View, budget: int, rules: ElisionRules | None = None) -> View:
    """The view with what the rules leave out, and at most `budget` tokens; nothing is stored."""
    if budget < 1:
        raise BadInput(f"a budget of {budget:,} tokens; it must be positive")
    time = now()
    edits = plan_elisions(view, time, rules).edits
    shorter = with_edits(view, edits, time) if edits else view
    return fit_view(shorter, budget, time, rules).view


def request_body(view: View, form: WireName, model: str = "") -> dict[str, Any]:
    """The body of a request for this view, without tools and options."""
    if form not in WIRES:
        raise BadInput(f"there is no format {form!r}; the formats are {', '.join(WIRES)}")
    name = model or _model_for(view, form)
    wire = WIRES[form].build(name, find_profile(name))
    body: dict[str, Any] = json.loads(
        encode(wire, view, RequestOptions(model=name, stream=False)).body
    )
    return body


def request_messages(view: View, form: WireName, model: str = "") -> list[Any]:
    """Only the messages of the request; those of `openai` begin with the system instructions."""
    found: list[Any] = request_body(view, form, model)[_MESSAGES[form]]
    return found


def _model_for(view: View, form: WireName) -> str:
    """The model that answered last, if it speaks this format, so that it gets its own thoughts
    back; else the usual one of the format."""
    usual = find_endpoint(form)
    assert usual is not None
    name = latest_model(view.entries)
    home = find_endpoint(find_profile(name).endpoint)
    if name and (home is None or home.wire == form):
        return name
    return usual.default


class NewMessages(NamedTuple):
    """What an SDK returned, without what the session holds already."""

    messages: tuple[Message, ...]
    repeated: int = 0  # replies that are the session's newest message


def new_messages(view: View, form: WireName, items: Iterable[object]) -> NewMessages:
    """What these items add to a session, each as a provider's SDK returned it, or as a message in
    the provider's format: an object of the SDK, or the JSON object it stands for."""
    added: list[Message] = []
    repeated = 0
    for item in items:
        history, decoded = _decode_sdk_item(form, item)
        newest = added[-1] if added else _newest_message(view)
        if decoded and newest is not None and is_same_reply(decoded[0], newest):
            repeated += 1
            continue
        more = decoded
        if history or _lack_names(decoded):  # else nothing is looked up in a long session
            recorded = [*_all_messages(view), *added]
            new = unrecorded_calls(recorded, history).messages if history else ()
            more = (*new, *decoded)
            more = _with_names(form, recorded, more)
        added += more
    return NewMessages(tuple(added), repeated)


def _all_messages(view: View) -> list[Message]:
    return [entry.body for entry in view.entries if isinstance(entry.body, Message)]


def _newest_message(view: View) -> Message | None:
    entries = view.log.entries
    newest = (entries[place].body for place in range(view.n - 1, -1, -1))
    return next((body for body in newest if isinstance(body, Message)), None)


def _lack_names(messages: Sequence[Message]) -> bool:
    parts = (part for message in messages for part in message.parts)
    unnamed = any(isinstance(part, ToolResult) and not part.name for part in parts)
    return unnamed or has_made_name(messages)


def _decode_sdk_item(
    form: WireName, item: object
) -> tuple[tuple[Message, ...], tuple[Message, ...]]:
    """The history of automatic calls that came with a reply, and the messages themselves."""
    raw = _to_json(item)
    try:
        found = json.loads(raw)
    except ValueError as error:
        raise BadInput(f"not the JSON of a reply or message ({error})") from None
    if not isinstance(found, dict):
        raise BadInput(f"a JSON {type(found).__name__}; a reply or message is an object")
    name = found.get("model") or found.get("modelVersion")
    model = name if isinstance(name, str) else ""
    wire = WIRES[form].build(model, find_profile(model))
    if _REPLY_KEY[form] in found:
        history = next((found[key] for key in _AUTOMATIC if found.get(key)), None)
        contents = json.dumps({_MESSAGES[form]: history}).encode()
        sent = wire.decode_request(contents).messages if history and form == "gemini" else ()
        return sent, (take_history(wire.decode_reply(raw))[1],)
    try:
        request = {"model": model, "max_tokens": 1, _MESSAGES[form]: [found]}
        return (), wire.decode_request(json.dumps(request).encode()).messages
    except RecollectError as error:
        raise BadInput(f"neither a reply nor a message of {form}: {error}") from error


def _to_json(item: object) -> bytes:
    dump = getattr(item, "model_dump_json", None)
    if callable(dump):
        # the names of the wire, and only what the provider sent
        item = dump(by_alias=True, exclude_unset=True)
    if isinstance(item, str):
        return item.encode("utf-8", "surrogatepass")
    if isinstance(item, bytes):
        return item
    if not isinstance(item, Mapping):
        raise BadInput(
            f"a reply of type {type(item).__name__}; "
            "give the SDK's response object, or the JSON object that the provider sent"
        )
    try:
        return json.dumps(item).encode()
    except (TypeError, ValueError) as error:
        raise BadInput(f"the reply is not plain JSON ({error})") from None


def _with_names(
    form: WireName, recorded: Sequence[Message], messages: Sequence[Message]
) -> tuple[Message, ...]:
    """Tools under the names that the session has for them: a result of OpenAI names none, and a
    name that the provider refuses was sent as another."""
    known = [part for message in (*recorded, *messages) for part in message.parts]
    calls = {part.id: part.name for part in known if isinstance(part, ToolCall)}
    names = (part.name for part in known if isinstance(part, ToolCall))
    originals = original_names(names, form)
    named = (_name_results(message, calls) for message in messages)
    return tuple(rename_tools(message, originals) for message in named)


def _name_results(message: Message, calls: Mapping[str, str]) -> Message:
    if all(not isinstance(part, ToolResult) or part.name for part in message.parts):
        return message
    parts = tuple(
        msgspec.structs.replace(part, name=calls.get(part.call_id, ""))
        if isinstance(part, ToolResult) and not part.name
        else part
        for part in message.parts
    )
    return msgspec.structs.replace(message, parts=parts)

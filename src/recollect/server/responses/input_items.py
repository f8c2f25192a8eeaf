"""A client's input as messages of the log: texts, images and files, calls and their outputs.

Every item is checked and bounded. A `call_id` of ours becomes the id that the model wrote; an
`item_reference` becomes the item it names, if its owner is the one who asks.
"""

from __future__ import annotations

import binascii
from collections.abc import Sequence
from typing import Any

from recollect.adapters.response_items import to_messages
from recollect.entries import Message, Text, ToolCall
from recollect.errors import AmbiguousId, BadInput, NotFound
from recollect.server.access import Identity
from recollect.server.responses.api_error import invalid, not_found
from recollect.server.responses.item_ids import read_call_id, read_item_id
from recollect.server.responses.output_items import TOOL_CALL, Item, entry_items
from recollect.store.contract import Store

MAX_ITEMS = 20_000
_CONTENT = frozenset(
    {"input_text", "output_text", "text", "input_image", "input_file", "refusal", "summary_text"}
)
_ROLES = frozenset({"user", "assistant", "system", "developer"})


async def read_input(
    store: Store, who: Identity, given: str | Sequence[Any] | None, param: str = "input"
) -> tuple[Message, ...]:
    """The messages to append for an input."""
    if given is None:
        return ()
    items: Sequence[Any] = [{"role": "user", "content": given}] if isinstance(given, str) else given
    if len(items) > MAX_ITEMS:
        raise invalid(f"{len(items):,} items; at most {MAX_ITEMS:,} fit", param)
    reader = _InputReader(store, who)
    found: list[Item] = []
    for position, item in enumerate(items):
        found += await reader.read(item, f"{param}[{position}]")
    try:
        return tuple(to_messages(found, reader.names))
    except BadInput as error:
        raise invalid(str(error), param) from None


class _InputReader:
    """Reads the items of one input, and looks up what they refer to."""

    def __init__(self, store: Store, who: Identity) -> None:
        self._store, self._who = store, who
        self.names: dict[str, str] = {}  # of the tools, by the id of a call
        self._messages: dict[str, Message | None] = {}  # that were looked up

    async def read(self, item: Any, where: str) -> list[Item]:
        if not isinstance(item, dict):
            raise invalid("an item is a JSON object", where, "invalid_type")
        type_ = item.get("type") or ("message" if "role" in item else "item_reference")
        match type_:
            case "message":
                return [_check_message(item, where)]
            case "function_call":
                return [_check_call(item, where)]
            case "function_call_output":
                return [await self._read_output(item, where)]
            case "reasoning":
                return [_check_reasoning(item, where)]
            case "item_reference":
                return [await self._read_reference(item, where)]
            case "compaction":
                return [_read_compaction(item, where)]
            case str() if type_ == TOOL_CALL:
                return _read_tool_call(item, where)
        raise invalid(f"items of type {str(type_)[:80]!r} are not supported", f"{where}.type")

    async def _read_output(self, item: Item, where: str) -> Item:
        given, output = item.get("call_id"), item.get("output")
        if not isinstance(given, str) or not given:
            raise invalid("an output names the call that it answers", f"{where}.call_id")
        if isinstance(output, list):
            _check_parts(output, f"{where}.output")
        elif not isinstance(output, str):
            raise invalid("an output is a text, or a list of parts", f"{where}.output")
        place = read_call_id(given)
        message = await self._message(place.entry) if place is not None else None
        if place is None or message is None:
            return item
        calls = [part for part in message.parts if isinstance(part, ToolCall)]
        if place.position >= len(calls):
            raise not_found("call", given, f"{where}.call_id")
        call = calls[place.position]
        self.names[call.id] = call.name
        return item | {"call_id": call.id}

    async def _read_reference(self, item: Item, where: str) -> Item:
        given = item.get("id")
        place = read_item_id(given) if isinstance(given, str) else None
        if place is not None and isinstance(given, str):
            found = await self._find_entry(place.entry)
            items = entry_items(found, {}) if found is not None else []
            if place.position < len(items):
                return items[place.position].item
        raise not_found("item", str(given), f"{where}.id")

    async def _message(self, entry: str) -> Message | None:
        if entry not in self._messages:
            found = await self._find_entry(entry)
            body = found.body if found is not None else None
            self._messages[entry] = body if isinstance(body, Message) else None
        return self._messages[entry]

    async def _find_entry(self, entry: str) -> Any:
        try:
            info, found = await self._store.entry(entry)
        except (NotFound, AmbiguousId):
            return None
        return found if self._who.sees(info) and info.trashed is None else None


def _check_message(item: Item, where: str) -> Item:
    role, content = item.get("role"), item.get("content")
    if role not in _ROLES:
        raise invalid(f"the role is one of {', '.join(sorted(_ROLES))}", f"{where}.role")
    if isinstance(content, list):
        _check_parts(content, f"{where}.content")
    elif not isinstance(content, str):
        raise invalid("content is a text, or a list of parts", f"{where}.content", "invalid_type")
    return item


def _check_parts(parts: Sequence[Any], where: str) -> None:
    for position, part in enumerate(parts):
        at = f"{where}[{position}]"
        type_ = part.get("type") if isinstance(part, dict) else None
        if type_ not in _CONTENT:
            raise invalid(f"content of type {str(type_)[:80]!r} is not supported", f"{at}.type")
        text = part.get("refusal" if type_ == "refusal" else "text")
        if type_ == "input_image":
            if not isinstance(part.get("image_url"), str) and not isinstance(
                part.get("file_id"), str
            ):
                raise invalid("an image has an 'image_url'", f"{at}.image_url")
            _check_data_url(part.get("image_url"), f"{at}.image_url")
        elif type_ == "input_file":
            if not any(isinstance(part.get(n), str) for n in ("file_data", "file_url", "file_id")):
                raise invalid("a file has 'file_data' or a 'file_url'", f"{at}.file_data")
            _check_data_url(part.get("file_data"), f"{at}.file_data")
        elif not isinstance(text, str):
            raise invalid("it has a text", f"{at}.text", "invalid_type")


def _check_data_url(given: object, where: str) -> None:
    """Raise if a URL that carries its bytes carries none, or damaged ones."""
    if not isinstance(given, str) or given[:5].lower() != "data:":
        return
    head, _, data = given.partition(",")
    try:
        if head.endswith(";base64") and binascii.a2b_base64(data, strict_mode=True):
            return
    except ValueError:  # `binascii.Error`, or characters beyond ASCII
        pass
    raise invalid("a data URL has its bytes in base64: data:TYPE;base64,BYTES", where)


def _check_call(item: Item, where: str) -> Item:
    for field in ("call_id", "name", "arguments"):
        if not isinstance(item.get(field), str):
            raise invalid(f"a call has {field!r}, a text", f"{where}.{field}", "invalid_type")
    return item


def _check_reasoning(item: Item, where: str) -> Item:
    if not isinstance(item.get("summary", []), list):
        raise invalid("a summary is a list of parts", f"{where}.summary", "invalid_type")
    return item


def _read_compaction(item: Item, where: str) -> Item:
    """What `POST /v1/responses/compact` returned: the summary as the words of the user."""
    text = item.get("encrypted_content")
    if not isinstance(text, str):
        raise invalid("it has an 'encrypted_content'", f"{where}.encrypted_content")
    return {"role": "user", "content": text}


def _read_tool_call(item: Item, where: str) -> list[Item]:
    """A call that a server ran, sent back by a client that keeps its history itself."""
    id_, name, arguments = item.get("id"), item.get("name"), item.get("arguments")
    if not (isinstance(id_, str) and isinstance(name, str) and isinstance(arguments, str)):
        raise invalid("it has an id, a name and arguments, all texts", where, "invalid_type")
    output = item.get("output")
    call: Item = {"type": "function_call", "call_id": id_, "name": name, "arguments": arguments}
    shown = output if isinstance(output, str) else "no output"
    return [call, {"type": "function_call_output", "call_id": id_, "output": shown}]


def first_words(messages: Sequence[Message]) -> str:
    """What the user said first, for the title of a session."""
    texts = (
        part.text
        for message in messages
        if message.role == "user"
        for part in message.parts
        if isinstance(part, Text)
    )
    return next(texts, "")

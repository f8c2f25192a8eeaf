"""The items of a conversation: what everybody said in a session, but for what was deleted.

Compactions and elisions change what a model sees, not this list. Deleting an item is an edit: the
model no longer sees it, and `recollect restore` brings it back.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Sequence
from typing import NamedTuple

from recollect.entries import (
    Body,
    Elide,
    Elided,
    Entry,
    Message,
    Restore,
    SettingsEdit,
    ToolResult,
    json_text,
)
from recollect.errors import AmbiguousId, HeadMoved, NotFound
from recollect.server.access import Identity
from recollect.server.responses.api_error import not_found
from recollect.server.responses.item_ids import CONVERSATION, read_id
from recollect.server.responses.output_items import Item, entry_items, results_in
from recollect.server.responses.response_record import DELETED_RULE
from recollect.server.session_hub import SessionHub
from recollect.store.contract import SessionInfo, Store

_KEY = "conversation"
_MAX_ATTEMPTS = 20
_KEPT_LISTS, _KEPT_ITEMS = 16, 50_000


class PlacedItem(NamedTuple):
    """An item of a session, and the parts of the entry that it shows."""

    entry: str
    parts: tuple[int, ...]  # empty: all of them
    item: Item


def read_conversation(entries: Sequence[Entry]) -> tuple[PlacedItem, ...]:
    """The items that these entries hold."""
    deleted = _deleted_parts(entries)
    found: list[PlacedItem] = []
    for position, entry in enumerate(entries):
        if not isinstance(entry.body, Message) or entry.body.context:
            continue
        shown = entry_items(entry, _results_after(entries, position))
        gone = deleted.get(entry.id)
        for item, parts in shown:
            is_whole = len(shown) == 1
            if gone is None or (gone and not gone.issuperset(parts)):
                found.append(PlacedItem(entry.id, () if is_whole else parts, item))
    return tuple(found)


def _results_after(entries: Sequence[Entry], position: int) -> dict[str, ToolResult]:
    """The results that the server stored for the calls of a reply."""
    message = entries[position].body
    if not isinstance(message, Message) or message.role != "model":
        return {}
    end = position + 1
    while end < len(entries) and not _is_reply(entries[end]):
        end += 1
    return results_in(entries[position + 1 : end])


def _is_reply(entry: Entry) -> bool:
    return isinstance(entry.body, Message) and entry.body.role == "model"


def _deleted_parts(entries: Sequence[Entry]) -> dict[str, set[int]]:
    """By entry, the parts that are deleted; an empty set means all of them."""
    edits: dict[str, Elide] = {}
    for entry in entries:
        if isinstance(entry.body, Elide) and entry.body.rule == DELETED_RULE:
            edits[entry.id] = entry.body
        elif isinstance(entry.body, Restore):
            _undo(edits, set(entry.body.entries))
    found: dict[str, set[int]] = {}
    for edit in edits.values():
        for one in edit.items:
            before = found.get(one.entry)
            is_all = not one.parts or before == set()
            found[one.entry] = set() if is_all else {*(before or ()), *one.parts}
    return found


def _undo(edits: dict[str, Elide], named: set[str]) -> None:
    for by, edit in list(edits.items()):
        if by in named or named & {one.entry for one in edit.items}:
            del edits[by]


def deletion(items: Sequence[PlacedItem], response: str = "") -> Elide:
    """The edit that deletes these items; `response`: all of what this response holds."""
    gone = tuple(Elided(entry=one.entry, placeholder="", parts=one.parts) for one in items)
    return Elide(rule=DELETED_RULE, items=gone, reason=response)


def metadata_edit(metadata: dict[str, str]) -> SettingsEdit:
    return SettingsEdit(values=json_text({_KEY: {"metadata": metadata}}))


def read_metadata(entries: Sequence[Entry]) -> dict[str, str]:
    """What a client attached to the conversation last."""
    for entry in reversed(entries):
        if isinstance(entry.body, SettingsEdit) and f'"{_KEY}"' in entry.body.values:
            found = json.loads(entry.body.values).get(_KEY)
            metadata = found.get("metadata") if isinstance(found, dict) else None
            if isinstance(metadata, dict):
                return metadata
    return {}


async def append_at_head(
    store: Store, info: SessionInfo, items: Sequence[Body | Entry]
) -> tuple[Entry, ...]:
    """Append after whatever is there, beside other writers."""
    for _ in range(_MAX_ATTEMPTS):
        try:
            return await store.append(info.id, items, parent=info.head)
        except HeadMoved:
            info = await store.session(info.id)
    return await store.append(info.id, items, parent=info.head)


async def find_conversation(
    hub: SessionHub, who: Identity, given: str, param: str | None = None
) -> SessionInfo:
    """Somebody else's and one in the trash do not exist."""
    try:
        info = await hub.find(who, read_id(given, CONVERSATION, "conversation", param))
    except (NotFound, AmbiguousId):
        raise not_found("conversation", given, param) from None
    if info.trashed is not None:
        raise not_found("conversation", given, param)
    return info


class ConversationLists:
    """The items of sessions that were listed lately, by their head: it stands for all before it, so
    a client that pages through a long conversation costs one reading of it."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._kept: OrderedDict[tuple[str, str | None], tuple[PlacedItem, ...]] = OrderedDict()

    async def items(self, info: SessionInfo) -> tuple[PlacedItem, ...]:
        key = (info.id, info.head)
        if key not in self._kept:
            at = info.head
            entries = await self._store.path(info.id, at=at) if at is not None else ()
            self._kept[key] = read_conversation(entries)
        self._kept.move_to_end(key)
        found = self._kept[key]
        while len(self._kept) > 1 and self._is_full():
            self._kept.popitem(last=False)
        return found

    def _is_full(self) -> bool:
        held = sum(len(items) for items in self._kept.values())
        return len(self._kept) > _KEPT_LISTS or held > _KEPT_ITEMS

"""A response in the log: an entry that holds what was asked, the input, and what came of it.

The entry gives the response its id and stands before its input; the response reaches to the next
such entry, or to where another door appended a prompt. Everything that the API tells of a response
is read from these entries, while it runs, when it has ended, and after a restart.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import msgspec

from recollect.entries import (
    Elide,
    Entry,
    Message,
    Note,
    Restore,
    SettingsEdit,
    ToolResult,
    json_text,
)
from recollect.errors import AmbiguousId, NotFound, UnknownEntry
from recollect.server.access import Identity
from recollect.server.responses.api_error import not_found
from recollect.server.responses.item_ids import RESPONSE, read_id
from recollect.server.responses.output_items import is_from_client
from recollect.store.contract import SessionInfo, Store

_KEY = "response"
DELETED_RULE = "deleted"  # of elisions by `DELETE`
# of a request's body, what is not worth keeping: the messages have it, or it has no meaning later
_NOT_KEPT = ("input", "stream", "stream_options", "store", "background")


class AskedResponse(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a client asked for, as the log keeps it."""

    body: dict[str, Any] = {}  # msgspec copies it
    inputs: int = 0  # messages of its input, right after this entry


class RecordedResponse(msgspec.Struct, frozen=True):
    """A response as the log has it."""

    id: str  # of its entry
    created: int
    asked: AskedResponse
    entries: tuple[Entry, ...]  # after that of the response, to its end
    session: str = ""

    @property
    def end(self) -> str:
        """The entry after which a client continues from this response."""
        return self.entries[-1].id if self.entries else self.id

    @property
    def input(self) -> tuple[Entry, ...]:
        return self.entries[: self.asked.inputs]

    @property
    def output(self) -> tuple[Entry, ...]:
        return self.entries[self.asked.inputs :]

    @property
    def replies(self) -> tuple[tuple[Entry, Message], ...]:
        found = ((entry, entry.body) for entry in self.output)
        return tuple((e, b) for e, b in found if isinstance(b, Message) and b.role == "model")

    @property
    def notes(self) -> tuple[Note, ...]:
        return tuple(entry.body for entry in self.output if isinstance(entry.body, Note))


def response_entry(
    id_: str, parent: str | None, time: int, body: dict[str, Any], inputs: int
) -> Entry:
    """The entry that begins a response."""
    kept = {name: value for name, value in body.items() if name not in _NOT_KEPT}
    if body.get("store") is False:
        kept["store"] = False
    asked = AskedResponse(kept, inputs)
    values = json_text({_KEY: msgspec.to_builtins(asked)})
    return Entry(id_, parent, time, SettingsEdit(values=values))


def read_asked(entry: Entry) -> AskedResponse | None:
    """What the entry says that a client asked for; None if it does not begin a response."""
    if not isinstance(entry.body, SettingsEdit) or f'"{_KEY}"' not in entry.body.values:
        return None
    try:
        return msgspec.convert(json.loads(entry.body.values)[_KEY], AskedResponse)
    except (ValueError, KeyError, TypeError):
        return None


def cut_response(entry: Entry, after: Sequence[Entry], session: str) -> RecordedResponse | None:
    """The response that this entry begins, of the entries after it."""
    asked = read_asked(entry)
    if asked is None:
        return None
    end = next((n for n in range(len(after)) if _ends(after[n], n, asked)), len(after))
    return RecordedResponse(entry.id, entry.time, asked, tuple(after[:end]), session)


def _ends(entry: Entry, number: int, asked: AskedResponse) -> bool:
    """Whether this entry is no longer one of the response."""
    if number < asked.inputs:
        return False
    if read_asked(entry) is not None:
        return True
    body = entry.body
    if not isinstance(body, Message) or body.role != "user" or body.context:
        return False
    return is_from_client(body) or not any(isinstance(part, ToolResult) for part in body.parts)


async def find_response(
    store: Store, who: Identity, given: str, param: str | None = None
) -> RecordedResponse:
    """The response with this id. Somebody else's, a deleted one, and one in the trash do not
    exist."""
    name = read_id(given, RESPONSE, "response", param)
    try:
        info, entry = await store.entry(name)
    except (NotFound, AmbiguousId):
        raise not_found("response", given, param) from None
    if not who.sees(info) or info.trashed is not None:
        raise not_found("response", given, param)
    after = await _entries_after(store, info, entry)
    found = cut_response(entry, after, info.id)
    if found is None or is_deleted(found, after):
        raise not_found("response", given, param)
    return found


async def _entries_after(store: Store, info: SessionInfo, entry: Entry) -> tuple[Entry, ...]:
    try:
        return await store.path(info.id, since=entry.id)
    except UnknownEntry:  # the session was rewound to before it
        return _newest_branch(await store.tree(info.id), entry.id)


def _newest_branch(tree: Sequence[Entry], start: str) -> tuple[Entry, ...]:
    newest = {entry.parent: entry for entry in tree}  # parents come first, so the last one wins
    found: list[Entry] = []
    while (child := newest.get(found[-1].id if found else start)) is not None:
        found.append(child)
    return tuple(found)


def is_deleted(response: RecordedResponse, after: Sequence[Entry]) -> bool:
    """Whether an edit after it hides the response, and no other undid that."""
    by = ""
    for entry in after:
        body = entry.body
        if isinstance(body, Elide) and body.rule == DELETED_RULE and body.reason == response.id:
            by = entry.id
        elif isinstance(body, Restore) and by in body.entries:
            by = ""
    return bool(by)

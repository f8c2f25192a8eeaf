"""`--drop`, `--pin`, `--restore`: edits of what the model sees, checked before they are appended.

All edits of a command are appended together or not at all. An edit without effect is refused with
the reason. If another writer appends in between, the edits are checked again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec

from recollect.cli.entry_display import role_of
from recollect.cli.session_choice import find_session
from recollect.cli.short_ids import shorten_entry_ids, shorten_session_id
from recollect.cli.store_access import retry_on_head_moved
from recollect.compaction.view_reduction import with_edits
from recollect.entries import (
    Body,
    Compaction,
    Elide,
    Entry,
    Message,
    Pin,
    Restore,
    ToolCall,
    entry_to_json,
)
from recollect.errors import RecollectError
from recollect.runtime.model_choice import latest_model
from recollect.store.contract import SessionInfo
from recollect.store.ids import now
from recollect.store.sqlite import SqliteStore
from recollect.tokens import counter_for
from recollect.view.elision_rules import drop_message
from recollect.view.view import View
from recollect.view_loader import fold_stored


class CannotEdit(RecollectError):
    def __init__(self, verb: str, entry: str, why: str) -> None:
        super().__init__(f"cannot {verb} {entry}: {why}")
        self.entry, self.why = entry, why


class RequestedEdits(NamedTuple):
    """Entries, as prefixes of their ids."""

    drop: tuple[str, ...]
    pin: tuple[str, ...]
    restore: tuple[str, ...]


class ContextEditResult(NamedTuple):
    session: SessionInfo
    session_id: str  # short
    edits: tuple[Entry, ...]
    before: int  # tokens
    after: int
    short: dict[str, str]


async def edit_context(
    store: SqliteStore, prefix: str, requested: RequestedEdits, named: str | None
) -> ContextEditResult:
    async def attempt() -> ContextEditResult:
        session = await find_session(store, prefix)
        path = await store.path(session.id) if session.head else ()
        model = latest_model(path) if named is None else named
        view = await fold_stored(store, path, counter_for(model))
        found = [await _find_entries(store, session, some) for some in requested]
        bodies, after = _check(view, *found)
        written = await store.append(session.id, bodies, parent=session.head)
        short = await shorten_session_id(store, session.id)
        ids = shorten_entry_ids((*path, *written), session.id)
        return ContextEditResult(session, short, written, view.tokens, after.tokens, ids)

    return await retry_on_head_moved(attempt)


async def _find_entries(
    store: SqliteStore, session: SessionInfo, prefixes: Sequence[str]
) -> tuple[Entry, ...]:
    found = [(await store.entry(prefix, session=session.id))[1] for prefix in prefixes]
    return tuple({entry.id: entry for entry in found}.values())


def _check(
    view: View, dropped: Sequence[Entry], pinned: Sequence[Entry], restored: Sequence[Entry]
) -> tuple[tuple[Body, ...], View]:
    """The edits and the view after them; each is checked against the view before it."""
    for entry in dropped:
        if entry in pinned or entry in restored:
            raise CannotEdit("drop", entry.id, "it is also to be pinned or restored; choose one")
    bodies: list[Body] = []
    for verb, entries in (("restore", restored), ("drop", dropped), ("pin", pinned)):
        for entry in entries:
            if why := _find_obstacle(view, verb, entry):
                raise CannotEdit(verb, entry.id, why)
        if entries:
            body = _body(view, verb, entries)
            after = with_edits(view, (body,), now())
            if len(after.problems) > len(view.problems):
                why = after.problems[-1].partition(": ")[2]
                raise CannotEdit(verb, entries[0].id, f"this edit {why}")
            view = after
            bodies.append(body)
    return tuple(bodies), view


def _body(view: View, verb: str, entries: Sequence[Entry]) -> Body:
    names = tuple(entry.id for entry in entries)
    if verb == "restore":
        return Restore(entries=names)
    if verb == "pin":
        return Pin(entries=names)
    items = (item for name in names for item in drop_message(view, name).items)
    return Elide(rule="drop", items=tuple(items))


def _find_obstacle(view: View, verb: str, entry: Entry) -> str:
    position = view.log.position(entry.id, view.n)
    if position is None:
        return "it is on another branch; `recollect rewind` or `recollect fork` go there"
    if isinstance(entry.body, Message):
        return _message_obstacle(view, verb, position, entry.id, entry.body)
    if verb != "restore":
        return f"it is a {role_of(entry.body)}; only messages are sent to a model"
    return _undo_obstacle(view, position, entry)


def _message_obstacle(view: View, verb: str, position: int, entry: str, message: Message) -> str:
    state, compaction = view.state, view.compaction
    if verb == "pin":
        return "it is already pinned" if entry in state.pins else ""
    if compaction is not None and position < state.base and position not in state.kept:
        back = "" if verb == "drop" else "; --pin brings it back word for word"
        return f"the snapshot of {compaction.id} replaces it{back}"
    if position in state.dropped:
        return "it belongs to an invalid reply, which is not sent; `recollect show` shows it"
    if verb == "restore":
        return _restore_obstacle(view, entry)
    if entry in state.pins:
        return f"it is pinned; `--restore {state.pins[entry]}` removes the pin first"
    if all(isinstance(part, ToolCall) for part in message.parts):
        return "it holds only tool calls, which stay with their results; drop the results instead"
    return ""


def _restore_obstacle(view: View, entry: str) -> str:
    shown, pin = view.state.changed.get(entry), view.state.pins.get(entry)
    if shown is not None and shown.cuts:
        return ""
    remedy = f"`--restore {pin}` removes its pin" if pin else "--pin keeps it that way"
    return f"nothing is left out of it; {remedy}"


def _undo_obstacle(view: View, position: int, entry: Entry) -> str:
    state = view.state
    match entry.body:
        case Elide():
            cuts = (cut for shown in state.changed.values() for cut in shown.cuts)
            in_force = any(cut.by == entry.id for cut in cuts)
        case Pin():
            in_force = entry.id in state.pins.values()
        case Compaction():
            in_force = position in state.compactions
        case _:
            return f"a {role_of(entry.body)} leaves nothing out"
    return "" if in_force else "it is not in force"


def edit_lines(edited: ContextEditResult) -> Iterator[str]:
    short = edited.short
    for entry in edited.edits:
        yield f"{_describe_edit(entry.body, short)}, as {short[entry.id]}"
    yield f"the model now sees {edited.after:,} tokens, previously {edited.before:,}"
    undo = [e for e in edited.edits if not isinstance(e.body, Restore)]
    if undo:
        options = " ".join(f"--restore {short[entry.id]}" for entry in undo)
        yield f"`recollect context {edited.session_id} {options}` undoes it"


def _describe_edit(body: Body, short: dict[str, str]) -> str:
    if isinstance(body, Elide):
        return f"left out {', '.join(short[what.entry] for what in body.items)}"
    assert isinstance(body, Pin | Restore)
    verb = "pinned" if isinstance(body, Pin) else "restored"
    return f"{verb} {', '.join(short[name] for name in body.entries)}"


def edit_document(edited: ContextEditResult) -> dict[str, object]:
    return {
        "session": msgspec.to_builtins(edited.session),
        "edits": [entry_to_json(entry) for entry in edited.edits],
        "tokens_before": edited.before,
        "tokens_after": edited.after,
    }

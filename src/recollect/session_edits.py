"""Edits of what a model sees: pin, drop, restore, each checked against the view before it.

Nothing is written here. An edit that would have no effect is refused with the reason.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

from recollect.entries import (
    Body,
    Compaction,
    Elide,
    Entry,
    Message,
    Pin,
    Restore,
    ToolCall,
    handle_of,
)
from recollect.errors import CannotEdit
from recollect.store.ids import now
from recollect.view.edit_reasons import with_handles
from recollect.view.elision_rules import drop_message
from recollect.view.view import View

EditVerb: TypeAlias = Literal["restore", "drop", "pin"]


def plan_edits(
    view: View,
    *,
    drop: Sequence[Entry] = (),
    pin: Sequence[Entry] = (),
    restore: Sequence[Entry] = (),
) -> tuple[tuple[Body, ...], View]:
    """The edits to append, restores first, and the view after them."""
    for entry in drop:
        if entry in pin or entry in restore:
            raise CannotEdit("drop", entry.id, "it is also to be pinned or restored; choose one")
    given: tuple[tuple[EditVerb, Sequence[Entry]], ...]
    given = (("restore", restore), ("drop", drop), ("pin", pin))
    bodies: list[Body] = []
    for verb, entries in given:
        if entries:
            body, view = _plan_edit(view, verb, entries)
            bodies.append(body)
    return tuple(bodies), view


def plan_undo(before: View, edits: Sequence[Entry]) -> tuple[Body, ...]:
    """What undoes edits that were made of this view: restores, and what a restore took away."""
    made = tuple(one.id for one in edits if isinstance(one.body, Elide | Pin | Compaction))
    found: list[Body] = [Restore(entries=made)] if made else []
    for edit in edits:
        if isinstance(edit.body, Restore):
            for name in edit.body.entries:
                found += _undo_restore(before, name)
    return tuple(found)


def _undo_restore(before: View, name: str) -> list[Body]:
    """The edits again that a restore of this entry undid."""
    position = before.log.position(name, before.n)
    body = before.log.entries[position].body if position is not None else None
    if isinstance(body, Pin | Compaction):
        return [body]
    changed = before.state.changed
    cuts = [cut for shown in changed.values() for cut in shown.cuts]
    undone = [cut for cut in cuts if name in (cut.what.entry, cut.by)]
    return [Elide(rule=cut.rule, items=(cut.what,)) for cut in undone]


def _plan_edit(view: View, verb: EditVerb, entries: Sequence[Entry]) -> tuple[Body, View]:
    for entry in entries:
        if why := _find_obstacle(view, verb, entry):
            raise CannotEdit(verb, entry.id, why)
    body = _build_edit(view, verb, entries)
    after = view.append(Entry(f"trial-{view.n}", view.head, now(), body))
    if len(after.problems) > len(view.problems):
        why = with_handles(after.problems[-1].partition(": ")[2])
        raise CannotEdit(verb, entries[0].id, f"this edit {why}")
    return body, after


def _build_edit(view: View, verb: EditVerb, entries: Sequence[Entry]) -> Body:
    names = tuple(entry.id for entry in entries)
    if verb == "restore":
        return Restore(entries=names)
    if verb == "pin":
        return Pin(entries=names)
    items = (item for name in names for item in drop_message(view, name).items)
    return Elide(rule="drop", items=tuple(items))


def _find_obstacle(view: View, verb: EditVerb, entry: Entry) -> str:
    position = view.log.position(entry.id, view.n)
    if position is None:
        return "it is on another branch; a rewind or a fork goes there"
    if isinstance(entry.body, Message):
        return _message_obstacle(view, verb, position, entry.id, entry.body)
    if verb != "restore":
        return f"it is a {_kind_of(entry.body)}; only messages are sent to a model"
    return _undo_obstacle(view, position, entry)


def _message_obstacle(
    view: View, verb: EditVerb, position: int, entry: str, message: Message
) -> str:
    state, compaction = view.state, view.compaction
    if verb == "pin":
        return "it is already pinned" if entry in state.pins else ""
    if compaction is not None and position < state.base and position not in state.kept:
        back = "" if verb == "drop" else "; a pin brings it back word for word"
        return f"the snapshot of {handle_of(compaction.id)} replaces it{back}"
    if position in state.dropped:
        return "it belongs to an invalid reply, which is not sent"
    if verb == "restore":
        return _restore_obstacle(view, entry)
    if entry in state.pins:
        return f"it is pinned; restoring {handle_of(state.pins[entry])} removes the pin first"
    if all(isinstance(part, ToolCall) for part in message.parts):
        return "it holds only tool calls, which stay with their results; drop the results instead"
    return ""


def _restore_obstacle(view: View, entry: str) -> str:
    shown, pin = view.state.changed.get(entry), view.state.pins.get(entry)
    if shown is not None and shown.cuts:
        return ""
    remedy = f"restoring {handle_of(pin)} removes its pin" if pin else "a pin keeps it that way"
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
            return f"a {_kind_of(entry.body)} leaves nothing out"
    return "" if in_force else "it is not in force"


def _kind_of(body: Body) -> str:
    return str(body.__struct_config__.tag)

"""The edit behind a difference: why a message that one view shows is shown differently by another.

The views are of one session at two times. The cause is read from the later view's state: the
elision in force, the compaction, the pin, the restore that undid one of them; a message can also be
gone because curation drops it or because the session went on from an earlier entry.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from recollect.entries import Body, Entry, Pin, Restore
from recollect.view.elision import ActiveElision
from recollect.view.omissions import (
    COMPACTION,
    ELSEWHERE,
    INVALID,
    UNDONE,
    explain_removal,
    item_key,
    reason_of,
)
from recollect.view.view import View, ViewItem

_ELSEWHERE = "the session went on from an earlier entry"


class EditCause(NamedTuple):
    entry: str  # the message that begins to differ; empty if it is none
    edit: str  # the edit behind it; empty if it was none
    text: str


def find_cause(old: View, new: View, was: ViewItem | None, now: ViewItem | None) -> EditCause:
    """Why the later view shows `now` at the place where the earlier one showed `was`."""
    if was is not None and now is not None and item_key(was) == item_key(now):
        return _changed(old, new, was, now)
    if was is not None and not _shows(new, was):
        return _removed(old, new, was)
    if now is not None and not _shows(old, now):
        return _inserted(old, new, now)
    return _moved(old, new, now or was)


def _shows(view: View, item: ViewItem) -> bool:
    key = item_key(item)
    return any(item_key(one) == key for one in view.items)


def _changed(old: View, new: View, was: ViewItem, now: ViewItem) -> EditCause:
    entry = now.entry.id
    added = [cut for cut in now.cuts if cut not in was.cuts]
    if added:
        return EditCause(entry, added[-1].by, _elision_text(new, added[-1]))
    gone = [cut for cut in was.cuts if cut not in now.cuts]
    if gone:
        return _restored(old, new, entry, {entry, *(cut.by for cut in gone)})
    if (held := new.compaction) is not None and held != old.compaction:
        return EditCause(entry, held.id, _compaction_text(held))
    return EditCause(entry, "", "it is encoded differently, because of what stands around it")


def _elision_text(view: View, cut: ActiveElision) -> str:
    edit = view.log.entries[view.log.at[cut.by]]
    why = reason_of(edit)
    return f"left out by {cut.rule}" + (f": {why}" if why else "")


def _compaction_text(edit: Entry) -> str:
    return f"a compaction, {reason_of(edit)}"


def _removed(old: View, new: View, was: ViewItem) -> EditCause:
    entry, why, held = was.entry.id, explain_removal(new, was), new.compaction
    if why == COMPACTION and held is not None:
        if old.compaction is not None and old.compaction.id == held.id:
            return EditCause(entry, "", _ELSEWHERE)  # it was in force before: not on this path
        return EditCause(entry, held.id, _compaction_text(held))
    if why == UNDONE:
        return _restored(old, new, entry, {entry})
    if why == INVALID:
        return EditCause(entry, "", "curation leaves it out: no provider accepts it")
    shown = new.state.changed.get(entry)
    if why == ELSEWHERE or shown is None:
        return EditCause(entry, "", _ELSEWHERE)
    return EditCause(entry, shown.cuts[-1].by, _elision_text(new, shown.cuts[-1]))


def _inserted(old: View, new: View, now: ViewItem) -> EditCause:
    entry = now.entry.id
    if now.place == "snapshot":
        return EditCause(entry, entry, _compaction_text(now.entry))
    pin = new.state.pins.get(entry)
    if pin is not None and now.place in ("first", "kept"):
        return EditCause(entry, pin, "a pin shows it here")
    return _restored(old, new, entry, {entry})


def _moved(old: View, new: View, item: ViewItem | None) -> EditCause:
    entry = item.entry.id if item is not None else ""
    pin = _newest_edit(old, new, lambda body: isinstance(body, Pin) and entry in body.entries)
    if pin:
        return EditCause(entry, pin, "a pin moved it")
    return EditCause(entry, "", "it is encoded differently, because of what stands around it")


def _restored(old: View, new: View, entry: str, undone: set[str]) -> EditCause:
    def undoes(body: Body) -> bool:
        return isinstance(body, Restore) and not undone.isdisjoint(body.entries)

    edit = _newest_edit(old, new, undoes)
    edit = edit or _newest_edit(old, new, lambda body: isinstance(body, Restore))
    return EditCause(entry, edit, "it was restored" if edit else "it came to stand here")


def _newest_edit(old: View, new: View, is_wanted: Callable[[Body], bool]) -> str:
    """The newest such edit after the earlier view."""
    for position in range(new.n - 1, -1, -1):
        entry = new.log.entries[position]
        if entry.id == old.head:
            return ""
        if is_wanted(entry.body):
            return entry.id
    return ""

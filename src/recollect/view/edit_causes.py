"""The edit behind a difference: why a message that one view shows is shown differently by another.

The views are of one session at two times. The cause is read from the later view's state: the
elision in force, the compaction, the pin, the restore that undid one of them. Where the state does
not tell, as for a placeholder that changed because an entry it names was left out in turn, the log
between the two is searched for the edit after which the message is shown differently. A message can
also be gone because curation drops it or because the session went on from an earlier entry.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from recollect.entries import (
    Body,
    Compaction,
    Elide,
    Entry,
    Pin,
    Restore,
    handle_of,
)
from recollect.view.edit_reasons import reason_of
from recollect.view.elision import ActiveElision
from recollect.view.omissions import (
    COMPACTION,
    ELSEWHERE,
    INVALID,
    UNDONE,
    explain_removal,
    item_key,
)
from recollect.view.view import View, ViewItem

_ELSEWHERE = "the session went on from an earlier entry"
_ENCODED = "it is encoded differently, because of what stands around it"
_INVALID = "curation leaves it out: no provider accepts it"
_EDITS = (Elide, Pin, Restore, Compaction)


class EditCause(NamedTuple):
    entry: str  # the message that begins to differ; empty if it is none
    edit: str  # the edit behind it; empty if it was none
    text: str


def find_cause(old: View, new: View, was: ViewItem | None, now: ViewItem | None) -> EditCause:
    """Why the later view shows `now` at the place where the earlier one showed `was`."""
    cause = _read_cause(old, new, was, now)
    if cause.edit or cause.text == _INVALID:
        return cause
    edit = _edit_that_changed(old, new, was, now)
    if edit is None:
        return cause
    cuts = now.cuts if now is not None else ()
    return EditCause(cause.entry, edit.id, _indirect_text(new, edit, cuts))


def _read_cause(old: View, new: View, was: ViewItem | None, now: ViewItem | None) -> EditCause:
    """The cause as the later view's state tells it, without an edit if it does not."""
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
        return EditCause(entry, held.id, _compaction_text(new, held))
    return EditCause(entry, "", _ENCODED)


def _elision_text(view: View, cut: ActiveElision) -> str:
    edit = view.log.entries[view.log.at[cut.by]]
    return _with_reason(view, edit, f"left out by {cut.rule}")


def _with_reason(view: View, edit: Entry, text: str) -> str:
    why = reason_of(view.log, edit)
    return f"{text}: {why}" if why else text


def _compaction_text(view: View, edit: Entry) -> str:
    return f"a compaction, {reason_of(view.log, edit)}"


def _removed(old: View, new: View, was: ViewItem) -> EditCause:
    entry, why, held = was.entry.id, explain_removal(new, was), new.compaction
    if why == COMPACTION and held is not None:
        if old.compaction is not None and old.compaction.id == held.id:
            return EditCause(entry, "", _ELSEWHERE)  # it was in force before: not on this path
        return EditCause(entry, held.id, _compaction_text(new, held))
    if why == UNDONE:
        return _restored(old, new, entry, {entry})
    if why == INVALID:
        return EditCause(entry, "", _INVALID)
    shown = new.state.changed.get(entry)
    if why == ELSEWHERE or shown is None:
        return EditCause(entry, "", _ELSEWHERE)
    return EditCause(entry, shown.cuts[-1].by, _elision_text(new, shown.cuts[-1]))


def _inserted(old: View, new: View, now: ViewItem) -> EditCause:
    entry = now.entry.id
    if now.place == "snapshot":
        return EditCause(entry, entry, _compaction_text(new, now.entry))
    pin = new.state.pins.get(entry)
    if pin is not None and now.place in ("first", "kept"):
        return EditCause(entry, pin, "a pin shows it here")
    return _restored(old, new, entry, {entry})


def _moved(old: View, new: View, item: ViewItem | None) -> EditCause:
    entry = item.entry.id if item is not None else ""
    pin = _newest_edit(old, new, lambda body: isinstance(body, Pin) and entry in body.entries)
    if pin:
        return EditCause(entry, pin, "a pin moved it")
    return EditCause(entry, "", _ENCODED)


def _restored(old: View, new: View, entry: str, undone: set[str]) -> EditCause:
    def undoes(body: Body) -> bool:
        return isinstance(body, Restore) and not undone.isdisjoint(body.entries)

    edit = _newest_edit(old, new, undoes)
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


# --- where the state does not tell ---------------------------------------------------------------


def _edit_that_changed(
    old: View, new: View, was: ViewItem | None, now: ViewItem | None
) -> Entry | None:
    """An edit between the two views after which what is shown up to this place differs from the
    earlier view. It is searched by halves, because each step folds the log; None if no edit did."""
    start = new.log.position(old.head, new.n) if old.head is not None else -1
    if start is None:  # another branch, or what is before a compaction was not loaded
        return None
    shown = old.messages[: _place_in(old, was) or _place_in(old, now)]

    def is_same(n: int) -> bool:
        return _first_entries(new, n).messages[: len(shown)] == shown

    log = new.log.entries
    edits = [p for p in range(start + 1, new.n) if isinstance(log[p].body, _EDITS)]
    low, high = 0, len(edits)  # the same after the first `low` edits, different after `high`
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if is_same(edits[middle - 1] + 1) else (low, middle)
    if not edits or not is_same(edits[high - 1]) or is_same(edits[high - 1] + 1):
        return None
    return log[edits[high - 1]]


def _place_in(view: View, item: ViewItem | None) -> int | None:
    """How many messages the view shows up to this one; None if it does not show it."""
    key = item_key(item) if item is not None else None
    return next((n for n, one in enumerate(view.items, 1) if item_key(one) == key), None)


def _first_entries(view: View, n: int) -> View:
    log = view.log
    return View.fold(log.entries[:n], counter=log.counter, policy=view.policy, known=log.known)


def _indirect_text(view: View, edit: Entry, cuts: tuple[ActiveElision, ...]) -> str:
    """What an edit did, of other entries than the message with these cuts."""
    match edit.body:
        case Elide(rule=rule, items=items):
            named = {name for cut in cuts for name in cut.what.shown_by}
            gone = dict.fromkeys(handle_of(what.entry) for what in items if what.entry in named)
            if gone:
                text = f"its placeholder named {', '.join(gone)}, which {rule} left out"
                return _with_reason(view, edit, text)
            return _with_reason(view, edit, f"something else was left out by {rule}")
        case Compaction():
            return _compaction_text(view, edit)
        case Restore():
            return "something was restored or undone"
    return "a pin moved it"

"""What a key on a row of the context does to it, and what that would cost, before it is done.

Pure: an edit is planned on a copy of the view; `Session.edit` makes it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from recollect.display.context_report import ContextReport
from recollect.display.context_rows import ContextRow
from recollect.display.display_text import pluralize
from recollect.entries import Entry
from recollect.errors import CannotEdit
from recollect.runtime.prepare_apart import own_copy
from recollect.session_edits import EditVerb, plan_edits
from recollect.view.cache_cost import EXPIRED, FREE, find_cached_end, has_cache_expired
from recollect.view.edit_forecast import EditForecast, forecast_edit
from recollect.view.view import View

_FIXED = {
    "tools": "the declarations of tools are part of every request; /tools lists them",
    "added": "this is not stored yet; it is added by the next request",
}


class RowEdit(NamedTuple):
    """An edit of one entry."""

    verb: EditVerb
    entry: Entry

    def as_arguments(self) -> dict[str, Iterable[Entry]]:
        """For `Session.edit`."""
        return {self.verb: (self.entry,)}


def toggle_row(row: ContextRow) -> RowEdit:
    """Drop what the model sees; restore what a rule, a drop or a compaction left out. A single
    message of many that a snapshot replaces comes back by a pin."""
    entry = _entry_of(row, "drop")
    if row.kind == "replaced":
        return RowEdit("pin", entry)
    if row.snapshot or row.rule:
        return RowEdit("restore", entry)
    if row.pinned and not row.first:
        raise CannotEdit("drop", entry.id, "it is pinned; p takes the pin away")
    return RowEdit("drop", entry)


def toggle_pin(row: ContextRow, view: View) -> RowEdit:
    entry = _entry_of(row, "pin")
    pin = view.state.pins.get(entry.id)
    at = view.log.at.get(pin, -1) if pin is not None else -1
    if row.pinned and at >= 0:
        return RowEdit("restore", view.log.entries[at])
    return RowEdit("pin", entry)


def _entry_of(row: ContextRow, verb: str) -> Entry:
    if row.entry is None:
        raise CannotEdit(verb, row.who, _FIXED.get(row.kind, "it is not stored"))
    return row.entry


def forecast_row(report: ContextReport, edit: RowEdit, now: int, lifetime: float) -> EditForecast:
    """What the edit would save or add, and cost; raises why it cannot be made."""
    view = report.view
    expired = has_cache_expired(view, now, lifetime)
    if edit.entry == view.compaction or view.log.position(edit.entry.id, view.n) is None:
        return _forecast_replaced(report, edit, expired=expired)
    view = own_copy(view)
    _, after = plan_edits(view, **edit.as_arguments())  # type: ignore[arg-type]
    return forecast_edit(view, after, expired=expired)


def _forecast_replaced(report: ContextReport, edit: RowEdit, *, expired: bool) -> EditForecast:
    """Of what is before a compaction, which a view does not hold."""
    view, gone = report.view, report.replaced
    if edit.entry == view.compaction:
        shown = sum(item.tokens for item in view.items if item.place == "snapshot")
        added = sum(item.tokens for item in gone) - shown
    else:
        added = sum(item.tokens for item in gone if item.entry.id == edit.entry.id)
    end = find_cached_end(view)
    sent = (i for i in view.items if i.place == "tail" and view.log.at[i.entry.id] < end)
    behind = 0 if expired or not end else sum(item.tokens for item in sent)
    free = EXPIRED if expired else "" if behind else FREE
    return EditForecast(-added, behind, 0, free)


_EXPIRED = f"{EXPIRED}, so that costs nothing"
_FREE = "it costs nothing, because nothing behind it is cached"
_VERBS = {"drop": "dropping", "restore": "restoring", "pin": "pinning"}


def describe_forecast(edit: RowEdit, found: EditForecast) -> str:
    """In a sentence, such as: dropping saves 1,234 tokens; breaks the cache 12,000 tokens before
    the end: pays off after 112 requests."""
    verb = _VERBS[edit.verb]
    if not found.saved and not found.behind:
        kept = ": it stays word for word, whatever is compacted" if edit.verb == "pin" else ""
        return f"{verb} changes nothing in the next request{kept}"
    gain = f"{'saves' if found.saved >= 0 else 'adds'} {pluralize(abs(found.saved), 'token')}"
    if found.free:
        return f"{verb} {gain}; {_FREE if found.free == FREE else _EXPIRED}"
    cost = f"breaks the cache {pluralize(found.behind, 'token')} before the end"
    pays = f": pays off after {pluralize(found.requests, 'request')}" if found.saved > 0 else ""
    return f"{verb} {gain}; {cost}{pays}"

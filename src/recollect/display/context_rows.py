"""The context of a session as rows for a screen: what the model sees, and in its place what not.

Pure. The text of a row is made when it is shown, so that a list of ten thousand costs little.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal, TypeAlias

import msgspec

from recollect.display.context_report import ContextReport
from recollect.display.dates import format_age
from recollect.display.display_text import one_line, pluralize
from recollect.display.entry_summary import summarize
from recollect.entries import Entry, Message
from recollect.explanation import item_label
from recollect.view.curation import is_initial
from recollect.view.omissions import Omission, share_initial
from recollect.view.view import ViewItem

# `left_out`: not shown at all; `replaced`: a snapshot stands for it; `added`: not stored yet
RowKind: TypeAlias = Literal["shown", "left_out", "replaced", "tools", "memory", "added"]


class ContextRow(msgspec.Struct, frozen=True, gc=False):
    key: str
    kind: RowKind
    who: str
    tokens: int  # that the model sees
    entry: Entry | None = None
    message: Message | None = None
    hidden: int = 0  # tokens that are left out of it
    rule: str = ""  # why something is left out
    since: int = 0
    why: str = ""
    pinned: bool = False
    first: bool = False
    kept: bool = False
    snapshot: bool = False

    @property
    def is_grey(self) -> bool:
        return self.kind in ("left_out", "replaced", "added") or bool(self.rule)

    @property
    def marks(self) -> str:
        pinned = "first" if self.first else "pinned"
        marks = [pinned if self.pinned else "kept" if self.kept else ""]
        if self.kind == "left_out":
            marks.append(self.rule)
        elif self.rule:
            marks.append(self.rule if self.kind == "replaced" else f"shortened: {self.rule}")
        if self.kind == "added":
            marks.append("next request")
        return ", ".join(map(one_line, filter(None, marks)))

    @property
    def text(self) -> str:
        """One line of what it says."""
        return summarize(self.message) if self.message is not None else _NO_MESSAGE[self.kind]

    @property
    def reason(self) -> str:
        """By which rule something was left out, how much, since when and why then."""
        if not self.rule:
            return ""
        why = f" ({one_line(self.why)})" if self.why else ""
        since = f", {format_age(self.since)}" if self.since else ""
        return f"{one_line(self.rule)} leaves out {pluralize(self.hidden, 'token')}{since}{why}"


_NO_MESSAGE: dict[str, str] = {"tools": "declarations of the tools that the model may call"}


def context_rows(report: ContextReport) -> tuple[ContextRow, ...]:
    """Everything in the order in which the model sees it."""
    found = _Omissions(report.omissions)
    rows: list[ContextRow] = []
    if report.tool_tokens:
        rows.append(ContextRow("tools", "tools", "tools", report.tool_tokens))
    tail: list[ContextRow] = []
    replaced = [_replaced_row(item, report) for item in report.replaced if item.place != "snapshot"]
    for item in report.view.items:
        if item.place == "snapshot" and replaced:
            rows += replaced
            replaced = []
        into = tail if item.place == "tail" else rows
        into += _item_rows(item, report, found)
    rows += _merge(report, tail, found.not_shown(report))
    for number, item in enumerate(report.added):
        label = item_label(item)
        rows.append(ContextRow(f"next-{number}", "added", label, item.tokens, None, item.message))
    return tuple(rows)


class _Omissions:
    """What is left out, by message."""

    def __init__(self, omissions: Iterable[Omission]) -> None:
        self.by_entry: dict[str, list[Omission]] = {}
        for one in omissions:
            self.by_entry.setdefault(one.entry, []).append(one)

    def of(self, entry: str) -> tuple[int, str, int, str]:
        """Tokens, rules, since when, why."""
        some = self.by_entry.get(entry, ())
        rules = ", ".join(dict.fromkeys(one.rule for one in some))
        why = next((one.why_now for one in some if one.why_now), "")
        return sum(one.tokens for one in some), rules, max((o.since for o in some), default=0), why

    def not_shown(self, report: ContextReport) -> Iterator[ContextRow]:
        shown = {item.entry.id for item in report.view.items}
        log = report.view.log
        for entry in self.by_entry:
            stored = log.entries[log.at[entry]]
            if entry in shown or not isinstance(stored.body, Message):
                continue
            message, item = stored.body, ViewItem(stored, stored.body, 0)
            hidden, rule, since, why = self.of(entry)
            label = item_label(item)
            yield ContextRow(entry, "left_out", label, 0, stored, message, hidden, rule, since, why)


def _item_rows(item: ViewItem, report: ContextReport, found: _Omissions) -> Iterator[ContextRow]:
    entry, snapshot = item.entry, item.place == "snapshot"
    if not snapshot and is_initial(item.message) and item.message.role != "system":
        shares = dict(share_initial(item, report.view.log.counter))
        memory = shares.get("memory", 0) if len(shares) > 1 else 0
    else:
        memory = 0
    hidden, rule, since, why = (0, "", 0, "") if snapshot else found.of(entry.id)
    yield ContextRow(
        f"{entry.id}{item.message.role if snapshot else ''}",
        "shown",
        item_label(item),
        item.tokens - memory,
        entry,
        item.message,
        hidden,
        rule,
        since,
        why,
        item.pinned,
        item.place == "first",
        item.place == "kept" and not item.pinned,
        snapshot,
    )
    if memory:
        key = f"{entry.id}-memory"
        yield ContextRow(key, "memory", "memory", memory, entry, item.message)


def _replaced_row(item: ViewItem, report: ContextReport) -> ContextRow:
    held = report.view.compaction
    since = held.time if held is not None else 0
    return ContextRow(
        item.entry.id,
        "replaced",
        item_label(item),
        0,
        item.entry,
        item.message,
        item.tokens,
        "compaction",
        since,
    )


def _merge(
    report: ContextReport, tail: list[ContextRow], hidden: Iterable[ContextRow]
) -> list[ContextRow]:
    """By their places in the log."""
    at = report.view.log.at
    rows = [*tail, *hidden]
    return sorted(rows, key=lambda row: at[row.entry.id] if row.entry is not None else -1)


def find_rows(rows: tuple[ContextRow, ...], words: str) -> tuple[ContextRow, ...]:
    """The rows that have all these words in who, marks or text."""
    wanted = words.lower().split()
    if not wanted:
        return rows
    return tuple(row for row in rows if _has_all(row, wanted))


def _has_all(row: ContextRow, wanted: list[str]) -> bool:
    said = f"{row.who} {row.marks} {row.text}".lower()
    return all(word in said for word in wanted)


# --- the header ----------------------------------------------------------------------------------


def describe_next(report: ContextReport) -> str:
    """What the next request would add and leave out, in a line."""
    request = report.next
    if request is None:
        return ""
    parts = []
    if request.added:
        added = sum(item.tokens for item in request.added)
        parts.append(f"adds {added:,}")
    for rule, total in request.planned.items():
        parts.append(f"leaves out {total.tokens:,} by {one_line(rule)}")
    if request.compacted:
        parts.append("compacts")
    does = ", ".join(parts) or "nothing more is left out"
    return f"the next request: {request.tokens:,} tokens; {does}"


def describe_basis(report: ContextReport) -> tuple[str, str]:
    """How exact the count of the window's fill is, and whose count it is."""
    counted = report.provider_count
    if counted.last is None:
        return "", "counted" if report.view.log.counter.exact else "estimated"
    if counted.basis == "ours":
        by = f", corrected by {counted.calibration.factor:.2f}"
        return "", f"as we count{by if counted.tokens != report.tokens else ''}"
    about = counted.bound or ("about" if counted.basis == "corrected" else "")
    return f"{about} " if about else "", "as the provider counts"

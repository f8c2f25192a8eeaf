"""Two requests side by side: what the model saw in one and not in the other, and why.

Pure but for `compare`, which reads both views. Both are counted for the same model.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from recollect.cli.accounting import Page, paint_table, who
from recollect.cli.opening import ENTRY_DIGITS, short_ids
from recollect.cli.seeing import Sight, look
from recollect.cli.text import many, one_line
from recollect.cli.transcript import summary
from recollect.cli.when import moment
from recollect.store.sqlite import SqliteStore
from recollect.view.omissions import (
    COMPACTION,
    ELSEWHERE,
    INVALID,
    UNDONE,
    ChangedItem,
    ViewDifference,
    compare_views,
)
from recollect.view.view import ViewItem

_REASONS = {
    COMPACTION: "in a snapshot",
    INVALID: "invalid",
    UNDONE: "undone",
    ELSEWHERE: "not on this path",
}


class Compared(NamedTuple):
    old: Sight
    new: Sight
    difference: ViewDifference


async def compare(
    store: SqliteStore, prefix: str, old: str, new: str | None, named: str | None
) -> Compared:
    session = await store.session(prefix)
    after = await look(store, session, new, named)
    before = await look(store, session, old, after.model)
    return Compared(before, after, compare_views(before.view, after.view))


def comparison_lines(compared: Compared, page: Page) -> Iterator[str]:
    old, new, found = compared
    paint = page.ink
    yield paint.bold(one_line(new.session.title) or "(no title)")
    yield paint.dim(f"session {new.session_id} · {one_line(new.model) or 'an unknown model'}")
    yield ""
    yield f"from  {_place(old)}  {old.view.tokens:>10,} tokens"
    yield f"to    {_place(new)}  {new.view.tokens:>10,} tokens  {paint.bold(signed(found.tokens))}"
    yield ""
    ids = [entry.id for sight in (old, new) for entry in sight.view.entries]
    short = short_ids([*ids, new.session.id], ENTRY_DIGITS)
    sections = _sections(found)
    for name, lines in sections.items():
        if lines:
            yield from _section(name, lines, short, page)
    if not any(sections.values()):
        yield "the model sees the same"


class _Line(NamedTuple):
    item: ViewItem
    tokens: int
    why: str = ""


def _sections(found: ViewDifference) -> dict[str, list[_Line]]:
    return {
        "appeared": [_Line(item, item.tokens) for item in found.appeared],
        "went": [
            _Line(one.item, -one.item.tokens, _REASONS.get(one.why, one.why)) for one in found.gone
        ],
        "changed": [_Line(one.after, one.tokens, _why_changed(one)) for one in found.changed],
    }


def _why_changed(change: ChangedItem) -> str:
    if len(change.after.cuts) > len(change.before.cuts):
        return change.after.cuts[-1].rule
    return "restored" if change.before.cuts else ""


def _section(name: str, lines: list[_Line], short: dict[str, str], page: Page) -> Iterator[str]:
    paint = page.ink
    total = signed(sum(line.tokens for line in lines))
    yield paint.bold(f"{many(len(lines), 'item')} {name}") + f", {total} tokens"
    shown = lines if page.last is None else lines[-page.last :]
    rows = [["ENTRY", "WHO", "TOKENS", "WHY", "WHAT"]]
    for item, tokens, why in shown:
        told = [short[item.entry.id], who(item), signed(tokens), one_line(why)]
        rows.append([*told, summary(item.message)])
    if not any(line.why for line in shown):
        rows = [[*row[:3], row[4]] for row in rows]
    head, *body = paint_table(rows, page, numbers=(2,))
    yield head
    if len(shown) < len(lines):
        yield paint.dim(f"… {len(lines) - len(shown):,} before these; --all shows them")
    yield from body
    yield ""


def _place(sight: Sight) -> str:
    if sight.asked is not None:
        return f"{sight.asked.id}  {moment(sight.asked.time)}"
    newest = sight.view.entries[-1] if sight.view.n else None
    return f"{newest.id}  {moment(newest.time)}" if newest is not None else "its beginning"


def signed(tokens: int) -> str:
    return f"+{tokens:,}" if tokens > 0 else f"−{-tokens:,}" if tokens < 0 else "0"

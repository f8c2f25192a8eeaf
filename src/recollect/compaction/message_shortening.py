"""Shortens messages that are too large for the window, whatever they hold.

The middle of the largest texts goes first, down to one size for all of them; images, documents and
the arguments of calls go whole, the oldest first. Every message stays where it is and shows at
least a placeholder with its handle, and a result stays the result of its call. A pin on a message
that has to be shortened is undone for that message alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec

from recollect.entries import (
    Body,
    Content,
    Elide,
    Elided,
    Message,
    Part,
    Pin,
    Restore,
    Text,
    Thought,
    ToolResult,
)
from recollect.tokens import Counter
from recollect.view.elision import DEFAULT_PLACEHOLDER, ActiveElision, is_claim_true
from recollect.view.placeholders import Language, write_placeholder
from recollect.view.view import View, ViewItem
from recollect.view.view_state import pinned_by

_MIN_TEXT = 12  # tokens: of a text that keeps fewer, nothing but the placeholder is shown


class _Piece(NamedTuple):
    """A part of a message, or a block of a result."""

    entry: str
    part: int
    block: int | None
    content: Part | Content
    tokens: int  # as it is shown now
    first: bool  # of its message

    @property
    def place(self) -> tuple[str, int, int | None]:
        return self.entry, self.part, self.block


class Shortening(NamedTuple):
    """Edits that shorten messages, and the pins to append after everything else: they hold what
    the pins held that had to be undone."""

    edits: tuple[Body, ...] = ()
    pins: tuple[Pin, ...] = ()


def plan_cuts(
    view: View, items: Sequence[ViewItem], room: int, language: Language = "en"
) -> tuple[Elided, ...]:
    """What to leave out of these messages so that together they have about `room` tokens."""
    count = view.log.counter
    pieces = [piece for item in items for piece in _pieces(item, count)]
    room -= sum(item.tokens for item in items) - sum(piece.tokens for piece in pieces)
    texts = [piece for piece in pieces if isinstance(piece.content, Text)]
    gone, kept = _choose_atoms([p for p in pieces if not isinstance(p.content, Text)], room)
    cuts = [_replace(piece, count, language, short=not piece.first) for piece in gone]
    room -= kept + sum(count.text(cut.placeholder) for cut in cuts)
    limit = _common_size([piece.tokens for piece in texts], room)
    large = (piece for piece in texts if piece.tokens > limit)
    return *cuts, *(_keep_ends(piece, limit, count, language) for piece in large)


def _pieces(item: ViewItem, count: Counter) -> Iterable[_Piece]:
    """What can be shortened: everything that no elision has replaced by a placeholder already."""
    body, first = item.entry.body, True
    for number, part in enumerate(body.parts if isinstance(body, Message) else ()):
        contents = enumerate(part.content) if isinstance(part, ToolResult) else [(None, part)]
        for block, content in contents:
            cut = _cut_of(item, number, block)
            if cut is None or cut.head or cut.tail:
                tokens = count.part(content)
                if cut is not None and isinstance(content, Text):
                    ends = content.text[: cut.head] + content.text[-cut.tail or len(content.text) :]
                    tokens = count.text(ends) + count.text(cut.placeholder)
                yield _Piece(item.entry.id, number, block, content, tokens, first)
                first = False


def _cut_of(item: ViewItem, part: int, block: int | None) -> Elided | None:
    """The elision in force of a piece."""
    found = [cut.what for cut in item.cuts if not cut.what.parts or part in cut.what.parts]
    return next((cut for cut in found if not cut.blocks or block in cut.blocks), None)


def _choose_atoms(atoms: Sequence[_Piece], room: int) -> tuple[list[_Piece], int]:
    """Of what can only go whole, what has to go, and the tokens of what stays: the newest ones, in
    at most half of the room."""
    gone, spent = list[_Piece](), 0
    for piece in reversed(atoms):
        if spent + piece.tokens <= room // 2:
            spent += piece.tokens
        else:
            gone.append(piece)
    return gone, spent


def _common_size(sizes: Sequence[int], room: int) -> int:
    """The largest size with which all of them fit when the larger ones are cut to it."""
    ordered = sorted(sizes)
    for number, size in enumerate(ordered):
        share = room // (len(ordered) - number)
        if size > share:
            return max(0, share)
        room -= size
    return max(ordered, default=0)


def _keep_ends(piece: _Piece, size: int, count: Counter, language: Language) -> Elided:
    """Half of what stays is the beginning of a text; of a result, a fifth."""
    whole = _replace(piece, count, language, short=False)
    room = size - count.text(whole.placeholder)
    if room < _MIN_TEXT or not isinstance(piece.content, Text):
        short = not piece.first and size < count.text(whole.placeholder)
        return _replace(piece, count, language, short=short)
    text, share = piece.content.text, 2 if piece.block is None else 5
    kept = len(text) * room // max(1, count.text(text))
    while kept and (n := count.text(text[: kept // share] + text[kept // share - kept :])) > room:
        kept = kept * room * 99 // (n * 100)
    return msgspec.structs.replace(whole, head=kept // share, tail=kept - kept // share)


def _replace(piece: _Piece, count: Counter, language: Language, *, short: bool) -> Elided:
    gone = count.part(piece.content)
    placeholder = write_placeholder("oversized", "", gone, piece.entry, language)
    if isinstance(piece.content, Thought):
        placeholder = ""
    elif short:
        placeholder = DEFAULT_PLACEHOLDER
    return Elided(
        entry=piece.entry,
        placeholder=placeholder,
        parts=(piece.part,),
        blocks=() if piece.block is None else (piece.block,),
        tokens=max(0, gone - count.text(placeholder)),
    )


def shorten(view: View, cuts: Sequence[Elided]) -> Shortening:
    """The edits that make these cuts, also in messages that are pinned or cut already."""
    if not cuts:
        return Shortening()
    entries, changed = dict.fromkeys(cut.entry for cut in cuts), view.state.changed
    undone, pins = _undo_pins(view, set(entries))
    again = [entry for entry in entries if entry in changed]
    earlier: dict[str, list[Elided]] = {}
    for entry in again:
        for cut in changed[entry].cuts:
            if not any(_same_place(cut.what, new) for new in cuts):
                earlier.setdefault(cut.rule, []).append(_true_now(view, cut))
    restored = (Restore(entries=tuple(again)),) if again else ()
    kept = (Elide(rule=rule, items=tuple(items)) for rule, items in earlier.items())
    new = Elide(rule="oversized", items=tuple(cuts), reason="larger than the window")
    return Shortening((*undone, *restored, *kept, new), pins)


def _true_now(view: View, cut: ActiveElision) -> Elided:
    """An elision to append once more; what its placeholder says must be true of today's view."""
    what = cut.what
    if not what.shown_by or is_claim_true(view.log, view.state, cut):
        return what
    return msgspec.structs.replace(what, placeholder=what.fallback, shown_by=(), fallback="")


def _same_place(one: Elided, other: Elided) -> bool:
    return one.entry == other.entry and (one.parts, one.blocks) == (other.parts, other.blocks)


def _undo_pins(view: View, entries: set[str]) -> tuple[tuple[Restore, ...], tuple[Pin, ...]]:
    pins = view.state.pins
    names = dict.fromkeys(pins[entry] for entry in entries if entry in pins)
    held: list[Pin] = []
    for name in names:
        position = view.log.at[name]
        body = view.log.entries[position].body
        others = tuple(e for e in pinned_by(view.log, position) if e not in entries)
        if others and isinstance(body, Pin):
            held.append(Pin(entries=others, first=body.first))
    return ((Restore(entries=tuple(names)),) if names else ()), tuple(held)

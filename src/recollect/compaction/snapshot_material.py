"""The requests for a snapshot: the conversation as text, cut into parts that fit the window.

Nothing of the conversation is replayed: each message becomes text with its handle, so no call can
lack its result and nothing in it is an instruction. Every request fits the window of the model that
writes, with room for its reply, counted by that model's counter. Results of tools are shortened
before a second round is made, what was said only as far as the rounds need it; when all rounds are
full, the oldest messages are left to the notes that code took of them. Each text is shortened once,
from the stored one, so that the number of characters left out is true.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from recollect.compaction.quoted_text import (
    MAX_CHARACTERS,
    clip_to_tokens,
    fits_in_tokens,
    frame_sections,
)
from recollect.compaction.snapshot_instruction import INSTRUCTION, closing_request
from recollect.entries import (
    Content,
    FileRef,
    InlineData,
    Message,
    Part,
    Text,
    Thought,
    ToolCall,
    ToolResult,
    handle_of,
)
from recollect.text import clean, clip_middle
from recollect.tokens import Counter
from recollect.view.curation import is_spoken
from recollect.view.elision import apply_elisions
from recollect.view.view import ViewItem

MAX_ROUNDS = 6
FILL_LIMIT = 0.95  # of the window; providers count somewhat differently
MIN_PART = 400  # tokens of the conversation in a request; with less it is not worth one
_RESULT_SIZES = (16_000, 8_000, 4_000, 2_000)  # characters of a result, to need but one round
_SHORT_RESULTS = (2_000, 1_000, 500, 200)  # the same, to need no more rounds than allowed
_TEXT_FACTOR = 4  # what was said is shortened later than what tools printed, and only if it must
_MIN_LENGTH = 40  # characters of one part; rather than shorten it further, others are left out
_WORDS_PER_TOKEN = 0.45  # about three quarters of the room: the rest is for what code adds
_HANDLE = re.compile(r" ?\[([0-9a-f]{8})\]")
_FRAME = 120  # tokens of the lines around the material


class WriterLimits(NamedTuple):
    """What a request to the model that writes may hold."""

    window: int
    reply: int  # tokens
    counter: Counter


class SnapshotRounds(NamedTuple):
    """One request for each part of the conversation, oldest first."""

    notes: str  # the snapshot that code built
    earlier: str  # the snapshot in force, of what came before the conversation
    parts: tuple[str, ...]
    closing: str
    limits: WriterLimits

    def without_invented_handles(self, reply: str) -> str:
        """A model's reply without the handles that are nowhere in the material."""
        known = {
            h for text in (self.notes, self.earlier, *self.parts) for h in _HANDLE.findall(text)
        }
        return _HANDLE.sub(lambda found: found[0] if found[1] in known else "", reply)

    def request(self, number: int, so_far: str) -> tuple[Message, ...]:
        """The system instruction and the material of a round; `closing` comes after them."""
        limits, count = self.limits, self.limits.counter
        so_far = clip_to_tokens(so_far, _snapshot_room(limits), count, head=0.6, counted=False)
        sections = {
            "notes that a program took of the whole conversation": self.notes,
            "the snapshot so far, of everything before these messages": so_far,
            f"messages, part {number + 1} of {len(self.parts)}": self.parts[number],
        }
        text = frame_sections({title: text for title, text in sections.items() if text})
        return (
            Message(role="system", parts=(Text(text=INSTRUCTION),)),
            Message(role="user", parts=(Text(text=text),)),
        )


def plan_rounds(
    items: Sequence[ViewItem],
    notes: str,
    earlier: str,
    limits: WriterLimits,
    *,
    words: int,
    keep: str = "",
) -> SnapshotRounds | None:
    """The requests for these messages; none if the window is too small for one. `words` is how many
    tokens the snapshot may have."""
    count = limits.counter
    notes = clip_to_tokens(notes, notes_room(limits), count, head=0.7, counted=False)
    keep = clip_to_tokens(keep, limits.window // 10, count, head=0.7)
    size = min(words, limits.reply * 2 // 3) * _WORDS_PER_TOKEN
    closing = closing_request(max(50, int(size)), keep)
    room = int(limits.window * FILL_LIMIT) - limits.reply - _FRAME
    room -= sum(map(count.text, (INSTRUCTION, closing, notes)))
    alone = room - min(count.text(earlier), _snapshot_room(limits))
    if min(alone, room - _snapshot_room(limits)) < MIN_PART:
        return None
    parts = _cut_into_parts(items, alone, room - _snapshot_room(limits), count)
    return SnapshotRounds(notes, earlier, parts, closing, limits) if parts else None


def notes_room(limits: WriterLimits) -> int:
    """Tokens of the code-built snapshot in a request."""
    return limits.window // 10


def _snapshot_room(limits: WriterLimits) -> int:
    """Tokens of the snapshot so far in a request: what a model's reply can hold of it."""
    return min(limits.reply * 2 // 3, limits.window // 6)


class _Lengths(NamedTuple):
    """Characters, at most: of a result or of arguments, and of what was said."""

    results: int
    said: int

    @staticmethod
    def of(results: int) -> _Lengths:
        return _Lengths(results, results * _TEXT_FACTOR)

    def scale(self, share: float) -> _Lengths:
        return _Lengths(int(self.results * share), int(self.said * share))

    def within(self, most: int) -> _Lengths:
        return _Lengths(min(self.results, most), min(self.said, most))


def _cut_into_parts(
    items: Sequence[ViewItem], alone: int, room: int, counter: Counter
) -> tuple[str, ...]:
    """One part of at most `alone` tokens, or at most `MAX_ROUNDS` of `room` tokens."""
    for size in _RESULT_SIZES:
        parts = _pack(items, _Lengths.of(size), alone, counter)
        if len(parts) <= 1:
            return _lengthen(parts, items, size, alone, counter)
    for size in _SHORT_RESULTS:
        parts = _pack(items, _Lengths.of(size), room, counter)
        if len(parts) <= MAX_ROUNDS:
            return _lengthen(parts, items, size, room, counter)
    return parts[-MAX_ROUNDS:]


def _lengthen(
    parts: tuple[str, ...], items: Sequence[ViewItem], size: int, room: int, counter: Counter
) -> tuple[str, ...]:
    """As many parts, with as much as they can hold of what was said."""
    texts = (part for item in items for part in stored_message(item).parts)
    longest = max((len(part.text) for part in texts if isinstance(part, Text)), default=0)
    fits = _Lengths.of(size).said
    said = exceeds = longest
    while said > fits + fits // 10:
        found = _pack(items, _Lengths(size, said), room, counter)
        if len(found) <= len(parts):
            parts, fits = found, said
        else:
            exceeds = said
        said = (fits + exceeds) // 2
    return parts


def _pack(
    items: Sequence[ViewItem], lengths: _Lengths, room: int, counter: Counter
) -> tuple[str, ...]:
    """Whole messages, as many to a part as fit."""
    parts: list[list[str]] = []
    left = 0
    for item in items:
        if not (text := _fit(item, lengths, room, counter)):
            continue
        cost = counter.text(text) + 2  # the lines between
        if not parts or cost > left:
            parts.append([])
            left = room
        parts[-1].append(text)
        left -= cost
    return tuple("\n\n".join(texts) for texts in parts)


def _fit(item: ViewItem, lengths: _Lengths, room: int, counter: Counter) -> str:
    """A message within the room: shortened further if it does not fit alone."""
    text = flatten(item, *lengths.within(room * MAX_CHARACTERS))
    while not fits_in_tokens(text, room, counter):
        if max(lengths) < _MIN_LENGTH:  # it has hundreds of parts
            return text[: room // 4]  # no character has more than four tokens
        found = counter.text(text)
        lengths = lengths.within(len(text)).scale(min(0.9, room / found))
        text = flatten(item, *lengths)
    return text


def stored_message(item: ViewItem) -> Message:
    """The message, with what is shown without its middle as it was stored."""
    body, whole = item.entry.body, [c for c in item.cuts if not (c.what.head or c.what.tail)]
    if not isinstance(body, Message) or len(whole) == len(item.cuts):
        return item.message
    # what another entry shows need not be in the material
    plain = (replace(c.what, placeholder=c.what.fallback or c.what.placeholder) for c in whole)
    cuts = [replace(cut, what=what) for cut, what in zip(whole, plain, strict=True)]
    return apply_elisions(body, cuts)


def flatten(item: ViewItem, results: int, said: int) -> str:
    """A message as text, each part of it with the handle and who it is from; results and arguments
    have at most `results` characters, and what was said at most `said`."""
    message = stored_message(item)
    if message.role == "system":
        return ""  # it stays in the context
    handle = handle_of(item.entry.id)
    lines = _flatten_parts(message, results, said)
    return "\n".join(f"[{handle}] {line}" for line in lines)


def _flatten_parts(message: Message, results: int, said: int) -> Iterator[str]:
    if message.role == "model":
        speaker = "agent"
    else:
        speaker = "user" if is_spoken(message) else "the program, not the user"
    for part in message.parts:
        if isinstance(part, Thought):
            continue
        if isinstance(part, Text):
            if text := clip_middle(clean(part.text).strip(), said):
                yield f"{speaker}: {text}"
        else:
            yield _flatten_part(part, results)


def _flatten_part(part: Part | Content, size: int) -> str:
    if isinstance(part, ToolCall):
        return f"agent calls {part.name}: {clip_middle(clean(part.arguments), size)}"
    if isinstance(part, ToolResult):
        text = "\n".join(_flatten_part(item, size) for item in part.content)
        failed = ", which failed" if part.is_error else ""
        return f"result of {part.name}{failed}: {clip_middle(text, size)}"
    if isinstance(part, Text | Thought):
        return clean(part.text).strip()
    if isinstance(part, InlineData | FileRef):
        return f"(a file of type {part.mime})"
    return "(a part that this version cannot read)"

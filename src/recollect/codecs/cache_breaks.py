"""What broke a provider's prompt cache between two requests: the first byte, the entry, the edit.

A provider reads from its cache what two prompts have in common at their beginning. Both requests
are encoded in pieces (the fields of the frame, then message by message), so that the piece that
differs, and with it the entry that it shows, is known and not guessed. Fields that are no part of
the prompt (sampling, limits, streaming) are passed over. The cost is that of encoding both once.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import msgspec

from recollect.codecs.encoder import RequestSegments, encode_segments
from recollect.codecs.wire_protocol import Declaration, RequestOptions, Wire
from recollect.entries import Message, Part
from recollect.text import common_length
from recollect.view.edit_causes import EditCause, find_cause
from recollect.view.view import View, ViewItem

EXCERPT = 60  # bytes of each body around the first that differs
_LEAD = 20  # of these, before it
# what no provider counts to the prompt: changing it leaves the cache as it is
_NOT_PROMPT = frozenset(
    (
        *("max_tokens", "max_completion_tokens", "stream", "stream_options", "temperature"),
        *("top_p", "seed", "stop", "stop_sequences", "generationConfig", "cache_control"),
    )
)


class SentRequest(NamedTuple):
    """A request as it was sent: what it showed, and in which form."""

    view: View
    wire: Wire
    options: RequestOptions


class CacheComparison(msgspec.Struct, frozen=True):
    """How far two requests begin with the same prompt, and why not further."""

    held: bool  # the later one only adds to the earlier
    at: int  # the byte of the later body up to which they are the same
    size: int  # bytes of the later body
    field: str = ""  # of the body, where they begin to differ: `messages`, `tools`, `model` …
    entry: str = ""  # the message that begins to differ; empty if it is none
    edit: str = ""  # the edit behind it; empty if it was none
    cause: str = ""
    tokens_behind: int = 0  # of the messages from there on, in the later request
    was: str = ""  # the earlier body around the first byte that differs
    now: str = ""  # the later one

    def describe(self, edit: str = "") -> str:
        """Where, in a few words; `edit` is how to name the edit, by default with its id."""
        if self.held:
            return f"held: the first {self.at:,} of {self.size:,} bytes are the same"
        by = f" by edit {edit or self.edit}" if self.edit else ""
        return f"broken at byte {self.at:,} of {self.size:,}{by}"


class _Encoded(NamedTuple):
    request: SentRequest
    segments: RequestSegments
    body: bytes

    @staticmethod
    def of(request: SentRequest) -> _Encoded:
        shown = [item.message for item in request.view.items]
        segments = encode_segments(request.wire, shown, request.options)
        return _Encoded(request, segments, segments.body)

    def starts(self) -> list[int]:
        """Where each message begins in the body, and where the list ends."""
        found = [len(self.segments.beginning)]
        for _, data in self.segments.messages:
            found.append(found[-1] + len(data) + 1)
        return found

    def tokens_from(self, item: ViewItem | None) -> int:
        items = self.request.view.items
        start = items.index(item) if item is not None else len(items)
        return sum(one.tokens for one in items[start:])


def compare_requests(old: SentRequest, new: SentRequest) -> CacheComparison:
    """What the later request has in common with the earlier one, as a prompt cache sees it."""
    before, after = _Encoded.of(old), _Encoded.of(new)
    whole = _explain_other_prompt(old, new)
    if whole is not None:
        return _broken(before, after, (0, 0), whole[0], EditCause("", "", whole[1]))
    spans = _frame_fields(before.segments), _frame_fields(after.segments)
    for name in dict.fromkeys((*spans[0], *spans[1])):
        was, now = spans[0].get(name), spans[1].get(name)
        same = was and now and before.body[slice(*was)] == after.body[slice(*now)]
        if name not in _NOT_PROMPT and not same:
            there = was or now or (0, 0)  # a field that one of them lacks is where the other has it
            starts = (was or there)[0], (now or there)[0]
            return _broken(before, after, starts, name, _explain_frame(name, before, after))
    return _compare_messages(before, after)


def _explain_other_prompt(old: SentRequest, new: SentRequest) -> tuple[str, str] | None:
    """The field and the reason if no byte of the prompt can come from the cache."""
    if old.wire.name != new.wire.name:
        return "format", f"another format: {old.wire.name}, then {new.wire.name}"
    if old.options.model != new.options.model:  # also where the address names it, not the body
        return "model", f"another model: {old.options.model}, then {new.options.model}"
    return None


def _frame_fields(segments: RequestSegments) -> dict[str, tuple[int, int]]:
    """Where each field of the frame begins and ends, in bytes; the list of messages is open."""
    text, decoder = segments.frame.before.decode(), json.JSONDecoder()
    found: dict[str, tuple[int, int]] = {}
    place, done, size = 1, 0, 0

    def size_of(end: int) -> int:
        nonlocal done, size
        size, done = size + len(text[done:end].encode()), end
        return size

    while place < len(text) and text[place] == '"':
        start = size_of(place)
        name, end = decoder.raw_decode(text, place)
        try:
            _, end = decoder.raw_decode(text, end + 1)
        except json.JSONDecodeError:
            end = len(text)
        found[name] = start, size_of(end)
        place = end + 1
    return found


def _explain_frame(field: str, before: _Encoded, after: _Encoded) -> EditCause:
    """Why the frames of two requests to one model differ."""
    old, new = before.request, after.request
    for was, now in _pairs(before.segments.system, after.segments.system):
        if was != now:
            sides = (
                _last_item(side, [message.parts] if message is not None else [])
                for side, message in ((before, was), (after, now))
            )
            return find_cause(old.view, new.view, *sides)
    if changed := list(_tool_changes(old.options.tools, new.options.tools)):
        return EditCause("", "", f"other tools: {', '.join(changed)}")
    if old.wire != new.wire:
        return EditCause("", "", "other rules of the format: the tools in text, or the thinking")
    return EditCause("", "", f"another option: {field}")


def _tool_changes(old: Sequence[Declaration], new: Sequence[Declaration]) -> Iterator[str]:
    was, now = ({tool.name: tool for tool in tools} for tools in (old, new))
    yield from (f"{name} is gone" for name in was if name not in now)
    yield from (f"{name} is new" for name in now if name not in was)
    both = (name for name in now if name in was)
    yield from (f"{name} is declared differently" for name in both if was[name] != now[name])
    if set(was) == set(now) and list(was) != list(now):
        yield "in another order"


def _compare_messages(before: _Encoded, after: _Encoded) -> CacheComparison:
    sent = before.segments.messages, after.segments.messages
    shorter = min(map(len, sent))
    pairs = enumerate(zip(*sent, strict=False))
    number = next((n for n, ((_, was), (_, now)) in pairs if was != now), shorter)
    if number == shorter:
        return _held(after, after.starts()[number] - 1)
    was, now = (messages[number][0] for messages in sent)
    part = _first_other_part(was, now)
    starts = before.starts()[number], after.starts()[number]
    ends = [
        part == len(message.parts) and number + 1 == len(messages)
        for message, messages in zip((was, now), sent, strict=True)
    ]
    same = starts[1] + common_length(before.body[starts[0] :], after.body[starts[1] :])
    if was.role == now.role and any(ends):  # the one goes on where the other ends
        return _held(after, same)
    sides = _item_at(before, number, part), _item_at(after, number, part)
    cause = find_cause(before.request.view, after.request.view, *sides)
    field = next(reversed(_frame_fields(after.segments)), "")
    found = _broken(before, after, starts, field, cause)
    behind = after.tokens_from(sides[1])
    return msgspec.structs.replace(found, tokens_behind=behind)


def _held(after: _Encoded, same: int) -> CacheComparison:
    return CacheComparison(held=True, at=same, size=len(after.body))


def _broken(
    before: _Encoded, after: _Encoded, starts: tuple[int, int], field: str, cause: EditCause
) -> CacheComparison:
    """`starts` is where the pieces that differ begin in the two bodies."""
    bodies = before.body, after.body
    common = common_length(*(body[start:] for body, start in zip(bodies, starts, strict=True)))
    was, now = (_excerpt(b, s + common) for b, s in zip(bodies, starts, strict=True))
    tokens = after.request.view.tokens
    at, size = starts[1] + common, len(after.body)
    entry, edit, text = cause
    return CacheComparison(
        held=False,
        at=at,
        size=size,
        field=field,
        entry=entry,
        edit=edit,
        cause=text,
        tokens_behind=tokens,
        was=was,
        now=now,
    )


def _first_other_part(was: Message, now: Message) -> int:
    pairs = enumerate(zip(was.parts, now.parts, strict=False))
    shorter = min(len(was.parts), len(now.parts))
    return next((n for n, (a, b) in pairs if a != b), shorter)


def _item_at(side: _Encoded, number: int, part: int) -> ViewItem | None:
    """The item that this part of this message shows. Repair may have made the part: then the one
    before it. None if the message ends before it."""
    *earlier, (last, _) = side.segments.messages[: number + 1]
    if part >= len(last.parts):
        return None
    return _last_item(side, [*(m.parts for m, _ in earlier), last.parts[: part + 1]])


def _last_item(side: _Encoded, parts: Sequence[Sequence[Part]]) -> ViewItem | None:
    """The item of the last of these parts that any item shows as it is."""
    items = side.request.view.items
    owners = {id(part): item for item in items for part in item.message.parts}
    found = (owners.get(id(part)) for each in reversed(parts) for part in reversed(each))
    return next(filter(None, found), None)


def _pairs(
    old: Sequence[Message], new: Sequence[Message]
) -> Iterable[tuple[Message | None, Message | None]]:
    for number in range(max(len(old), len(new))):
        yield (
            old[number] if number < len(old) else None,
            new[number] if number < len(new) else None,
        )


def _excerpt(body: bytes, at: int) -> str:
    start = max(0, at - _LEAD)
    text = body[start : start + EXCERPT].decode(errors="replace")
    return ("…" if start else "") + text + ("…" if start + EXCERPT < len(body) else "")

"""From what a view shows to the bytes of a request, at the cost of what is new.

An `Encoder` belongs to one session and one wire and remembers what it encoded. The next request of
a session that has grown encodes only the new messages, whatever the session's length, and repeats
the bytes before them (a provider's prompt cache depends on that). When an earlier message is shown
differently, it starts over. The result always equals encoding everything at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, takewhile
from typing import NamedTuple

import msgspec

from recollect.codecs.body_hash import BodyHash
from recollect.codecs.fixes import Fix
from recollect.codecs.repair import IncrementalRepair, repair
from recollect.codecs.wire_protocol import EncodedMessage, RequestFrame, RequestOptions, Wire
from recollect.entries import Message
from recollect.view.view import View

_BLOCK = 65_536  # bytes of settled messages that are joined to a block
# A request is sent as its frame and a few pages of this size: each piece costs the sender a turn of
# its event loop, which is more than copying a small one.
_PAGE = 1_048_576


class EncodedRequest(msgspec.Struct, frozen=True):
    """A request: its body in chunks, and what repair and the wire changed."""

    chunks: tuple[bytes, ...]
    _fixes: list[Fix]  # of the encoder, which adds to them
    _count: int  # how many of those there were
    _more: tuple[Fix, ...]
    digest: str = ""  # the beginning of the body's SHA-256, in hexadecimal digits

    @property
    def body(self) -> bytes:
        return b"".join(self.chunks)

    @property
    def size(self) -> int:
        return sum(map(len, self.chunks))

    def pages(self) -> Iterator[bytes]:
        """The body in few pieces: large chunks as they are, small ones joined."""
        small: list[bytes] = []
        size = 0
        for chunk in self.chunks:
            if size and size + len(chunk) > _PAGE:
                yield b"".join(small)
                small, size = [], 0
            small.append(chunk)
            size += len(chunk)
        if size:
            yield b"".join(small)

    @property
    def fixes(self) -> tuple[Fix, ...]:
        """Everything that is sent differently from what the view shows. `message` counts the
        messages shown for what repair did, and those sent for what the wire cannot carry; -1 is the
        frame."""
        return (*islice(self._fixes, self._count), *self._more)


def encode(wire: Wire, shown: View | Sequence[Message], options: RequestOptions) -> EncodedRequest:
    """One request, without a memory of earlier ones."""
    return Encoder(wire).encode(shown, options)


class RequestSegments(NamedTuple):
    """A request in pieces: its frame, and each message as it is sent."""

    frame: RequestFrame
    system: tuple[Message, ...]  # in the frame
    messages: tuple[tuple[Message, bytes], ...]  # after repair; joined by commas

    @property
    def body(self) -> bytes:
        return b"".join((self.beginning, b",".join(d for _, d in self.messages), self.frame.after))

    @property
    def beginning(self) -> bytes:
        """Everything before the first message."""
        return self.frame.before + (b"," if self.frame.opened and self.messages else b"")


def encode_segments(
    wire: Wire, shown: Sequence[Message], options: RequestOptions
) -> RequestSegments:
    """The same bytes as `encode`, message by message."""
    repaired = repair(shown, wire.rules).messages
    system = tuple(_leading_system(repaired))
    sent = ((m, wire.encode_message(m).data) for m in repaired[len(system) :])
    frame = wire.encode_options(options, system)
    return RequestSegments(frame, system, tuple((m, data) for m, data in sent if data))


class Encoder:
    def __init__(self, wire: Wire) -> None:
        self.wire = wire
        self._view: View | None = None
        self._framed: tuple[RequestOptions, tuple[Message, ...], RequestFrame] | None = None
        self._start_over()

    def _start_over(self) -> None:
        self._repair = IncrementalRepair(self.wire.rules)
        self._shown: list[Message] = []  # before repair
        self._system: list[Message] = []
        self._pages: list[bytes] = []
        self._blocks: list[bytes] = []  # too few to make a page
        self._newest: list[bytes] = []  # elements, too few to make a block
        self._newest_size = 0
        self._sent = 0  # settled messages
        self._fixes: list[Fix] = []
        self._open: list[tuple[Message, EncodedMessage]] = []
        self._hash = BodyHash()

    def encode(self, shown: View | Sequence[Message], options: RequestOptions) -> EncodedRequest:
        self._update_shown(shown)
        step = self._repair.step(self._shown)
        self._fixes += step.fixes
        settled = [self._encode_message(message) for message in step.settled]
        for message, encoded in zip(step.settled, settled, strict=True):
            self._settle(message, encoded)
        self._open = [(m, self._encode_message(m)) for m in step.open]
        system = [] if self._sent else _leading_system(m for m, _ in self._open)
        frame = self._frame(options, (*self._system, *system))
        tail = [encoded for _, encoded in self._open[len(system) :]]
        more = (*step.open_fixes, *frame.fixes)
        for number, encoded in enumerate(tail, self._sent):
            more += tuple(_at(number, fix) for fix in encoded.fixes)
        elements = [encoded.data for encoded in tail if encoded.data]
        chunks = self._chunks(frame, elements)
        digest = self._hash.digest(frame, self._settled_chunks, elements)
        return EncodedRequest(chunks, self._fixes, len(self._fixes), more, digest)

    def _settled_chunks(self) -> tuple[bytes, ...]:
        """All settled elements, joined."""
        return (*self._pages, *self._blocks, self._join_to_blocks(self._newest))

    def _update_shown(self, shown: View | Sequence[Message]) -> None:
        """Bring `_shown` up to date; start over if a settled message is shown differently now."""
        earlier = self._view
        if isinstance(shown, View):
            self._view = shown
            new = shown.messages_after(earlier) if earlier is not None else None
            if new is not None:
                self._shown += new
                return
            shown = shown.messages
        else:
            self._view = None
        same = _shared_length(self._shown, shown)
        if same < self._repair.settled_count:
            self._start_over()
            same = 0
        self._shown[same:] = shown[same:]

    def _encode_message(self, message: Message) -> EncodedMessage:
        for known, encoded in self._open:
            if known is message:
                return encoded
        return self.wire.encode_message(message)

    def _settle(self, message: Message, encoded: EncodedMessage) -> None:
        if message.role == "system" and not self._sent:
            self._system.append(message)
            return
        self._fixes += [_at(self._sent, fix) for fix in encoded.fixes]
        self._sent += 1
        if not encoded.data:
            return
        self._hash.settle(encoded.data)
        self._newest.append(encoded.data)
        self._newest_size += len(encoded.data)
        if self._newest_size > _BLOCK:
            self._blocks.append(self._join_to_blocks(self._newest))
            self._newest, self._newest_size = [], 0
            if sum(map(len, self._blocks)) > _PAGE:
                self._pages.append(b"".join(self._blocks))
                self._blocks = []

    def _join_to_blocks(self, elements: Sequence[bytes]) -> bytes:
        joined = b",".join(elements)
        return b"," + joined if (self._blocks or self._pages) and joined else joined

    def _frame(self, options: RequestOptions, system: tuple[Message, ...]) -> RequestFrame:
        if self._framed is None or self._framed[:2] != (options, system):
            self._framed = (options, system, self.wire.encode_options(options, system))
        return self._framed[2]

    def _chunks(self, frame: RequestFrame, tail: list[bytes]) -> tuple[bytes, ...]:
        newest = self._join_to_blocks([*self._newest, *tail])
        comma = b"," if frame.opened and (self._pages or self._blocks or newest) else b""
        return (frame.before + comma, *self._pages, *self._blocks, newest, frame.after)


def _leading_system(messages: Iterable[Message]) -> list[Message]:
    return list(takewhile(lambda message: message.role == "system", messages))


def _shared_length(one: Sequence[Message], other: Sequence[Message]) -> int:
    """How many messages they have in common at their beginning, by identity."""
    pairs = zip(one, other, strict=False)
    shorter = min(len(one), len(other))
    return next((i for i, (a, b) in enumerate(pairs) if a is not b), shorter)


def _at(message: int, fix: Fix) -> Fix:
    return msgspec.structs.replace(fix, message=message)

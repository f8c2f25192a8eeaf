"""Frames of NPLT: a header of 5 bytes (type, sequence number, length; big-endian) and a payload.

Pure. However a stream of bytes is cut, `FrameParser` gives the same frames, and it never holds more
than one incomplete frame: any length that the header can name is allowed, so bytes that are no
frames cannot make it wait for more than 65,535 of them.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

HEADER = struct.Struct(">BHH")
HEADER_SIZE = HEADER.size
MAX_PAYLOAD = 65_535
SEQUENCES = 65_536  # each side counts its own frames modulo this


class Frame(NamedTuple):
    type: int
    sequence: int
    payload: bytes


def encode_frame(type_: int, sequence: int, payload: bytes) -> bytes:
    if len(payload) > MAX_PAYLOAD:
        raise ValueError(
            f"a payload of {len(payload):,} bytes; a frame has at most {MAX_PAYLOAD:,}"
        )
    return HEADER.pack(type_, sequence % SEQUENCES, len(payload)) + payload


class FrameParser:
    """Takes bytes as they arrive, and gives the frames that they complete."""

    def __init__(self) -> None:
        self._held = bytearray()

    @property
    def pending(self) -> int:
        """Bytes of a frame that is not complete."""
        return len(self._held)

    @property
    def in_payload(self) -> bool:
        """Whether the incomplete frame has its whole header."""
        return len(self._held) >= HEADER_SIZE

    def feed(self, data: bytes) -> list[Frame]:
        """The frames that are complete with these bytes."""
        held, frames, at = self._held, list[Frame](), 0
        held += data
        while len(held) - at >= HEADER_SIZE:
            type_, sequence, length = HEADER.unpack_from(held, at)
            end = at + HEADER_SIZE + length
            if len(held) < end:
                break
            frames.append(Frame(type_, sequence, bytes(held[at + HEADER_SIZE : end])))
            at = end
        del held[:at]
        return frames


def split_text(text: str) -> Iterator[bytes]:
    """A text as payloads that fit a frame, each of them valid UTF-8, none of them empty."""
    data = text.encode("utf-8", "replace")
    at = 0
    while at < len(data):
        end = min(at + MAX_PAYLOAD, len(data))
        while end < len(data) and data[end] & 0xC0 == 0x80:  # not in the middle of a character
            end -= 1
        yield data[at:end]
        at = end

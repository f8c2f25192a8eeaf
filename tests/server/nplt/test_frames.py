"""Frames survive any chunking, and nothing that is no frame can make the parser hold much."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.server.nplt.frames import (
    HEADER_SIZE,
    MAX_PAYLOAD,
    Frame,
    FrameParser,
    encode_frame,
    split_text,
)

FRAMES = st.lists(
    st.builds(Frame, st.integers(0, 255), st.integers(0, 65_535), st.binary(max_size=300)),
    max_size=8,
)


def encode_all(frames: list[Frame]) -> bytes:
    return b"".join(encode_frame(*frame) for frame in frames)


@given(FRAMES, st.lists(st.integers(1, 40), min_size=1, max_size=30))
def test_any_chunking_gives_the_same_frames(frames: list[Frame], cuts: list[int]) -> None:
    data, parser, found, at = encode_all(frames), FrameParser(), list[Frame](), 0
    while at < len(data):
        size = cuts[at % len(cuts)]
        found += parser.feed(data[at : at + size])
        at += size
    assert found == frames
    assert parser.pending == 0


@given(st.binary(max_size=4_000))
def test_bytes_that_are_no_frames_are_bounded(data: bytes) -> None:
    parser = FrameParser()
    for at in range(0, len(data), 7):
        parser.feed(data[at : at + 7])
        assert parser.pending < HEADER_SIZE + MAX_PAYLOAD


def test_the_largest_payload_is_one_frame_and_more_is_refused() -> None:
    largest = Frame(1, 7, b"x" * MAX_PAYLOAD)
    assert FrameParser().feed(encode_frame(*largest)) == [largest]
    with pytest.raises(ValueError, match="65,536"):
        encode_frame(1, 0, b"x" * (MAX_PAYLOAD + 1))


def test_sequence_numbers_wrap() -> None:
    (frame,) = FrameParser().feed(encode_frame(1, 65_536 + 3, b""))
    assert frame.sequence == 3


@given(st.text(max_size=50), st.integers(1, 2_000))
def test_a_split_text_is_the_text_in_valid_pieces(text: str, times: int) -> None:
    whole = text * times
    pieces = list(split_text(whole))
    assert all(0 < len(piece) <= MAX_PAYLOAD for piece in pieces)
    assert "".join(piece.decode() for piece in pieces) == whole.encode("utf-8", "replace").decode()

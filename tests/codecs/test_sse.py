"""Server-sent events, however they are cut and whatever ends their lines."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import pairwise, repeat

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.codecs.reply_limits import MAX_REPLY
from recollect.codecs.sse import SseParser
from recollect.errors import BadReply

_lines = st.sampled_from(
    [
        b"data: one",
        b"data:two",
        b"data:  three",
        b"data:",
        b"data",
        b"",
        b"",
        b": a comment",
        b"event: message",
        b"id: 7",
        b"retry: 10",
        b"stray",
        "data: 気".encode(),
        b"dat",
    ]
)
_ends = st.sampled_from([b"\n", b"\r\n", b"\r"])
streams = st.tuples(
    st.sampled_from([b"", b"\xef\xbb\xbf"]),
    st.lists(st.tuples(_lines, _ends).map(b"".join), max_size=12).map(b"".join),
    _lines,
).map(b"".join)


def simply(data: bytes) -> tuple[list[bytes], list[bytes]]:
    """The protocol as it is specified, for a stream that is there from end to end."""
    data = data.removeprefix(b"\xef\xbb\xbf")
    found, stray, event = [], [], list[bytes]()
    for line in [*re.split(rb"\r\n|\r|\n", data), b""]:
        if line.startswith(b"data:"):
            event.append(line[5:].removeprefix(b" "))
        elif line and not re.match(rb":|(event|id|retry):|(data|event|id|retry)$", line):
            stray.append(line)
        elif not line and event:
            found.append(b"\n".join(event))
            event = []
    return found, stray


def read(pieces: list[bytes]) -> tuple[list[bytes], list[bytes]]:
    reader = SseParser()
    found = [event for piece in pieces for event in reader.feed(piece)]
    found += reader.close()
    return found, reader.stray.split(b"\n") if reader.stray else []


def feed_all(reader: SseParser, pieces: Iterable[bytes]) -> None:
    for piece in pieces:
        reader.feed(piece)


@given(streams, st.lists(st.integers(0, 300), max_size=20))
def test_any_cutting_gives_the_events_of_the_whole(data: bytes, places: list[int]) -> None:
    edges = sorted({0, len(data), *(place % (len(data) + 1) for place in places)})
    pieces = [data[a:b] for a, b in pairwise(edges)]
    assert read(pieces) == simply(data)


@given(streams)
def test_one_byte_at_a_time_gives_the_events_of_the_whole(data: bytes) -> None:
    assert read([data[i : i + 1] for i in range(len(data))]) == simply(data)


def test_an_event_is_given_out_as_soon_as_its_empty_line_is_there() -> None:
    reader = SseParser()
    assert list(reader.feed(b"data: a\n")) == []
    assert list(reader.feed(b"\n")) == [b"a"]
    assert list(reader.feed(b"data: b\r\n\r")) == [b"b"]
    assert list(reader.feed(b"\ndata: c\n\n")) == [b"c"]


def test_lines_that_came_instead_of_events_can_be_read() -> None:
    reader = SseParser()
    reader.feed(b"<html>\n<bo")
    reader.close()
    assert reader.stray == b"<html>\n<bo"


@pytest.mark.parametrize(
    ("line", "size"),
    [(b"data: ", 1_000_000), (b"", 1_000_000), (b"stray", 1_000_000), (b"data: ", 40_000_000)],
)
def test_a_line_without_end_is_refused(line: bytes, size: int) -> None:
    reader = SseParser()
    with pytest.raises(BadReply, match="more than 16,000,000 bytes in one event"):
        feed_all(reader, repeat(line + b"x" * size, 40_000_000 // size))


def test_an_event_of_many_lines_is_refused_when_it_is_too_large() -> None:
    reader = SseParser()
    with pytest.raises(BadReply, match="more than 16,000,000 bytes in one event"):
        feed_all(reader, repeat(b"data: " + b"x" * 1_000_000 + b"\n", 40))


def test_a_stream_without_end_is_refused() -> None:
    reader = SseParser()
    piece = b"data: " + b"x" * 8_000_000 + b"\n\n"
    with pytest.raises(BadReply, match="more than 64,000,000 bytes"):
        feed_all(reader, repeat(piece, MAX_REPLY // len(piece) + 2))


def test_lines_outside_of_events_are_refused_when_they_are_too_many() -> None:
    reader = SseParser()
    with pytest.raises(BadReply, match="more than 4,000,000 bytes outside of events"):
        feed_all(reader, repeat(b"x" * 100_000 + b"\n", 50))


def test_an_event_of_very_many_lines_is_refused() -> None:
    with pytest.raises(BadReply, match="more than 100,000 lines in one event"):
        feed_all(SseParser(), repeat(b"data:\n" * 1_000, 101))


def test_json_of_very_many_values_is_refused_before_it_is_decoded() -> None:
    many = b"data: [" + b"[]," * 400_000 + b"[]]\n\n"
    with pytest.raises(BadReply, match="more than 500,000 values in one event"):
        feed_all(SseParser(), [many])
    text = b"data: " + b"x" * 5_000_000 + b"\n\n"
    assert len(SseParser().feed(text)) == 1

"""A request is sent in few pages, which together are its body."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.codecs.anthropic import AnthropicWire
from recollect.codecs.encoder import EncodedRequest, Encoder, encode
from recollect.codecs.gemini import GeminiWire
from recollect.codecs.openai import OpenAIWire
from recollect.codecs.wire_protocol import RequestOptions, Wire
from recollect.entries import Message
from recollect.testing import model, user

PAGE = 1_048_576
WIRES = (OpenAIWire(model="m"), AnthropicWire(model="m"), GeminiWire(model="m"))


def conversation(sizes: Sequence[int]) -> tuple[Message, ...]:
    made = (f"{number} " + "x" * size for number, size in enumerate(sizes))
    return tuple(model(text) if number % 2 else user(text) for number, text in enumerate(made))


@pytest.mark.parametrize("wire", WIRES, ids=lambda wire: type(wire).__name__)
def test_a_request_of_megabytes_is_the_same_however_it_grew(wire: Wire) -> None:
    said = conversation([40_000] * 60 + [900_000, 10, 2_000_000] + [70_000] * 20)
    grown, options = Encoder(wire), RequestOptions(model="m")
    for end in (1, 2, 25, 26, 59, 61, 62, 63, len(said)):
        request = grown.encode(said[:end], options)
        assert b"".join(request.pages()) == request.body == encode(wire, said[:end], options).body


@pytest.mark.parametrize("wire", WIRES, ids=lambda wire: type(wire).__name__)
def test_a_long_request_has_few_pages_and_none_is_written_again(wire: Wire) -> None:
    said, options = conversation([4_000] * 1_500), RequestOptions(model="m")
    grown = Encoder(wire)
    before = list(grown.encode(said[:-2], options).pages())
    after = list(grown.encode(said, options).pages())
    assert len(after) <= 2 * (6_000_000 // PAGE) + 2
    assert sum(one is other for one, other in zip(before, after, strict=False)) >= 4


@given(st.lists(st.sampled_from([0, 1, 60_000, PAGE - 1, PAGE, PAGE + 1, 3 * PAGE]), max_size=8))
def test_pages_are_the_chunks_in_their_order(sizes: list[int]) -> None:
    chunks = tuple(bytes([65 + number]) * size for number, size in enumerate(sizes))
    request = EncodedRequest(chunks, [], 0, ())
    pages = list(request.pages())
    assert b"".join(pages) == request.body
    assert all(pages)
    assert request.size == sum(map(len, pages))
    joined = [size for size in map(len, pages) if size not in sizes]
    assert all(size <= PAGE for size in joined)

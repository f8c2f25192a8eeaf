"""Servers may compress a response although the request asks them not to."""

from __future__ import annotations

import asyncio
import zlib

import pytest

from recollect.errors import Unreachable
from recollect.models.decompression import MAX_PIECE
from tests.models.posting import opened, post, run, why_it_fails
from tests.models.server import Play, fails, http, serving


def packed(body: bytes, bits: int) -> bytes:
    pack = zlib.compressobj(wbits=bits)
    return pack.compress(body) + pack.flush()


def encoded(body: bytes, encoding: str) -> bytes:
    return http(body, headers=[f"Content-Encoding: {encoding}"])


@pytest.mark.parametrize(
    ("encoding", "bits"), [("gzip", 31), ("x-gzip", 31), ("deflate", 15), ("Deflate", -15)]
)
def test_a_compressed_body_is_unpacked_though_none_was_requested(encoding: str, bits: int) -> None:
    async def main() -> None:
        text = b"hello " * 10_000
        pieces = packed(text, bits)
        head = encoded(pieces, encoding).removesuffix(pieces)
        whole, split = encoded(pieces, encoding), plays_split(head, pieces)
        async with serving(whole, split) as server, opened() as client:
            for _ in range(2):
                assert (await post(client, server.url)).body == text

    run(main())


def plays_split(head: bytes, body: bytes) -> Play:
    async def play(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for piece in (head, *(body[i : i + 1] for i in range(len(body)))):
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(0)

    return play


@pytest.mark.parametrize(
    "body", [b"not gzip", packed(b"hello", 31)[:-3], packed(b"hello", 31) + b"more"]
)
def test_a_damaged_compressed_body_is_said_to_be_damaged(body: bytes) -> None:
    assert _why(encoded(body, "gzip")) == "the response is compressed and damaged"


@pytest.mark.parametrize("encoding", ["br", "gzip, gzip", "zstd"])
def test_a_compression_that_is_not_supported_is_named(encoding: str) -> None:
    why = f"the response is compressed in an unsupported way ({encoding})"
    assert _why(encoded(b"abc", encoding)) == why


def test_a_body_that_swells_comes_in_bounded_pieces_and_can_be_abandoned() -> None:
    async def main() -> None:
        bomb = packed(b"\0" * 20_000_000, 31)
        async with serving(encoded(bomb, "gzip")) as server, opened() as client:
            response = await client.post(server.url, {}, lambda: (b"{}",), 2)
            for _ in range(3):
                assert 0 < len(await response.read()) <= MAX_PIECE
            await response.aclose()

    run(main())


def _why(answer: bytes) -> str:
    async def main() -> str:
        async with serving(answer) as server:
            return await why_it_fails(server.url)

    return run(main())


@pytest.mark.parametrize("status", ["200 OK", "400 No"])
def test_a_model_reports_a_response_that_claims_to_be_compressed_and_is_not(status: str) -> None:
    error = fails(http(b"not gzip", status, headers=["Content-Encoding: gzip"]))
    assert isinstance(error, Unreachable)
    assert error.why == "the response is compressed and damaged"

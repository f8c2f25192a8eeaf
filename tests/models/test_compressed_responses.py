"""Servers may compress a response although the request asks them not to: it is not read."""

from __future__ import annotations

import gzip
import zlib

import pytest

from recollect.errors import Unreachable
from tests.models.posting import opened, post, run, why_it_fails
from tests.models.server import HELLO, QUICK, call_model, fails, http, serving, text_of


def encoded(body: bytes, encoding: str, status: str = "200 OK") -> bytes:
    return http(body, status, headers=[f"Content-Encoding: {encoding}"])


@pytest.mark.parametrize(
    ("encoding", "body"),
    [
        ("gzip", gzip.compress(HELLO)),
        ("GZIP", gzip.compress(HELLO)),
        ("x-gzip", gzip.compress(HELLO)),
        ("deflate", zlib.compress(HELLO)),
        ("br", b"abc"),
        ("zstd", b"abc"),
        ("gzip, gzip", b"abc"),
        ("identity, gzip", gzip.compress(HELLO)),
        ("gzip", HELLO),  # a lie
    ],
)
def test_a_compressed_response_is_refused_and_named(encoding: str, body: bytes) -> None:
    async def main() -> str:
        async with serving(encoded(body, encoding)) as server:
            return await why_it_fails(server.url)

    why = f"the response is compressed ({encoding.lower()}), which was not asked for"
    assert run(main()) == why


@pytest.mark.parametrize("encoding", ["identity", " Identity ", ""])
def test_a_response_that_says_that_it_is_not_compressed_is_read(encoding: str) -> None:
    async def main() -> None:
        async with serving(encoded(b"hello", encoding)) as server, opened() as client:
            assert (await post(client, server.url)).body == b"hello"

    run(main())


@pytest.mark.parametrize("status", ["200 OK", "400 No", "503 Busy"])
def test_a_model_reports_a_compressed_response_once(status: str) -> None:
    error = fails(encoded(gzip.compress(b"{}"), "gzip", status), http(HELLO))
    assert isinstance(error, Unreachable)
    assert error.why == "the response is compressed (gzip), which was not asked for"


def test_none_is_asked_for() -> None:
    events, server = call_model(http(HELLO), transport=QUICK)
    assert text_of(events) == "hello"
    assert server.asked[0].headers["accept-encoding"] == "identity"

"""The HTTP transport against real servers: bodies, connections, HTTP/2, limits, failures."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.models.http_errors import BROKEN, MALFORMED, TransportFailed
from recollect.settings import TransportSettings
from tests.models.h2_server import refuse_over_http2, serving_http2
from tests.models.posting import LONG, opened, post, run, why_it_fails
from tests.models.proxy import port_of
from tests.models.server import (
    END,
    HELLO,
    KEY,
    QUICK,
    STREAM_HEAD,
    Answer,
    Play,
    chunk,
    http,
    plays,
    serving,
)
from tests.models.tls import Certificate


def fails(*answers: Answer, settings: TransportSettings = QUICK) -> str:
    async def main() -> str:
        async with serving(*answers) as server:
            return await why_it_fails(server.url, settings)

    return run(main())


# --- connections ---------------------------------------------------------------------------------


def test_a_connection_serves_the_next_request_and_no_cookie_follows() -> None:
    async def main() -> None:
        async with serving(http(b"one", headers=["Set-Cookie: a=b"])) as server, opened() as client:
            for _ in range(3):
                assert (await post(client, server.url)).body == b"one"
        assert server.connections == 1
        assert all("cookie" not in request.headers for request in server.asked)

    run(main())


def test_requests_at_the_same_time_have_a_connection_each() -> None:
    async def main() -> None:
        async with serving(http(b"one")) as server, opened() as client:
            got = await asyncio.gather(*(post(client, server.url) for _ in range(6)))
            assert {one.body for one in got} == {b"one"}
            assert server.connections == 6
            await asyncio.gather(*(post(client, server.url) for _ in range(4)))
            assert server.connections == 6  # four were kept

    run(main())


def test_a_connection_that_the_server_closed_meanwhile_is_not_used() -> None:
    async def main() -> None:
        async def once(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(http(b"one"))

        async with serving(once) as server, opened() as client:
            for _ in range(3):
                assert (await post(client, server.url)).body == b"one"
                await asyncio.sleep(0.01)  # the server hangs up
            assert server.connections == 3

    run(main())


def test_a_closed_client_sends_nothing() -> None:
    async def main() -> None:
        async with serving(http(b"one")) as server:
            async with opened() as client:
                pass
            with pytest.raises(TransportFailed):
                await post(client, server.url)
        assert server.connections == 0

    run(main())


def test_closing_the_client_breaks_off_a_response() -> None:
    async def main() -> None:
        gone = asyncio.Event()

        async def wait(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
            await reader.read()
            gone.set()

        async with serving(plays(b"one", then=wait)) as server, opened() as client:
            response = await client.post(server.url, {}, lambda: (b"{}",), 2)
            assert await response.read() == b"one"
            await client.aclose()
            async with asyncio.timeout(60):
                await gone.wait()
            with pytest.raises(TransportFailed):
                await response.read()
            await response.aclose()

    run(main())


# --- HTTP/2 --------------------------------------------------------------------------------------


def test_http2_is_used_where_the_server_offers_it(trusted: Certificate) -> None:
    async def main() -> None:
        async with serving_http2(trusted) as server, opened() as client:
            headers = {"authorization": f"Bearer {KEY}"}
            for body in ((b"{}",), (b"x" * 100_000,) * 10):
                got = await post(client, server.url, body, headers)
                assert got == (200, HELLO, "HTTP/2")
        assert [len(body) for body in server.bodies] == [2, 1_000_000]
        assert server.headers[0]["authorization"] == f"Bearer {KEY}"
        assert server.connections == 1

    run(main())


def test_http_1_1_is_used_where_it_does_not(trusted: Certificate) -> None:
    async def main() -> None:
        async with serving(http(b"one"), over=trusted.http1) as server, opened() as client:
            got = await post(client, f"https://localhost:{server.port}")
            assert got == (200, b"one", "HTTP/1.1")

    run(main())


def test_an_http2_connection_that_the_server_closed_meanwhile_is_not_used(
    trusted: Certificate,
) -> None:
    async def main() -> None:
        async with opened() as client:
            async with serving_http2(trusted) as server:
                assert (await post(client, server.url)).body == HELLO
            async with serving_http2(trusted, port=server.port) as server:
                assert (await post(client, server.url)).body == HELLO

    run(main())


def test_requests_over_http2_at_the_same_time_do_not_share_a_connection(
    trusted: Certificate,
) -> None:
    """Abandoning one of them closes its connection, and no other."""

    async def main() -> None:
        async with serving_http2(trusted) as server, opened() as client:
            await asyncio.gather(*(post(client, server.url) for _ in range(3)))
        assert server.connections == 3

    run(main())


def test_abandoning_an_http2_response_closes_its_connection(trusted: Certificate) -> None:
    async def main() -> None:
        async with serving_http2(trusted, ends=False) as server, opened() as client:
            response = await client.post(server.url, {}, lambda: (b"{}",), 2)
            assert await response.read() == HELLO
            await response.aclose()
            async with asyncio.timeout(60):
                await server.gone.wait()

    run(main())


# --- a response before the request is through ----------------------------------------------------


async def _refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readuntil(b"\r\n\r\n")
    writer.write(http(b"too large", "413 Too Large"))
    await writer.drain()


async def refuse_and_hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await _refuse(reader, writer)
    writer.close()


async def refuse_and_read_no_more(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    await _refuse(reader, writer)
    while not writer.is_closing():
        await asyncio.sleep(0.01)
        writer.write(b"")


async def refuse_and_read_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await _refuse(reader, writer)
    while await reader.read(65_536):
        pass
    writer.close()


@pytest.mark.parametrize("offered", ["plain", "http1", "either"])
@pytest.mark.parametrize("play", [refuse_and_hang_up, refuse_and_read_no_more, refuse_and_read_on])
def test_a_refusal_that_arrives_before_the_request_is_through_is_read(
    play: Play, offered: str, trusted: Certificate
) -> None:
    """A refusal over HTTP/2 is read over HTTP/1.1, for which the request is sent anew."""

    async def main() -> None:
        tasks = set[asyncio.Task[None]]()

        async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            assert task is not None
            tasks.add(task)
            over = writer.get_extra_info("ssl_object")
            is_http2 = over is not None and over.selected_alpn_protocol() == "h2"
            try:
                await (refuse_over_http2 if is_http2 else play)(reader, writer)
            except (ConnectionError, asyncio.CancelledError):
                writer.transport.abort()

        over = {"http1": trusted.http1, "either": trusted.either}.get(offered)
        server = await asyncio.start_server(connected, "127.0.0.1", 0, ssl=over)
        async with server, opened() as client:
            url = f"http{'s' if over else ''}://localhost:{port_of(server)}"
            for _ in range(3):
                got = await post(client, url, LONG)
                assert got == (413, b"too large", "HTTP/1.1")
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    run(main())


# --- limits and failures -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "whole", [http(b"0123456789"), STREAM_HEAD + chunk(b"01234") + chunk(b"56789") + END]
)
def test_a_response_that_is_cut_anywhere_is_a_failure_and_never_short(whole: bytes) -> None:
    async def main() -> None:
        cuts = [
            plays_raw(whole[:length])
            for length in (*range(0, 40, 8), *range(len(whole) - 12, len(whole)))
        ]
        async with serving(*cuts) as server:
            for _ in cuts:
                assert await why_it_fails(server.url) == BROKEN

    run(main())


def plays_raw(data: bytes) -> Play:
    async def play(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(data)

    return play


@given(st.binary(max_size=100))
def test_whatever_bytes_come_end_in_a_response_or_a_described_failure(data: bytes) -> None:
    async def main() -> None:
        async with serving(plays_raw(data)) as server, opened() as client:
            with suppress(TransportFailed):
                assert 100 <= (await post(client, server.url)).status < 1_000

    run(main())


def test_headers_without_an_end_are_not_read_forever() -> None:
    async def play(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n")
        while True:
            writer.write(b"X: " + b"y" * 1_000 + b"\r\n")
            await writer.drain()

    assert fails(play) == BROKEN


def test_a_server_that_never_reads_has_the_time_for_a_piece() -> None:
    async def main() -> None:
        async def connected(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            while not over.is_set():
                await asyncio.sleep(0.01)
            writer.transport.abort()

        over = asyncio.Event()
        async with await asyncio.start_server(connected, "127.0.0.1", 0, limit=1) as server:
            settings = TransportSettings(read_timeout=0.2)
            why = await why_it_fails(f"http://127.0.0.1:{port_of(server)}", settings, LONG)
            assert why == "nothing arrived for 0.2 seconds"
            over.set()

    run(main())


def test_a_server_that_accepts_and_then_says_nothing_has_the_time_to_connect(
    trusted: Certificate,
) -> None:
    async def main() -> None:
        async with serving(b"") as server:
            url = f"https://localhost:{server.port}"
            why = await why_it_fails(url, TransportSettings(connect_timeout=0.2))
            assert why == "no connection within 0.2 seconds"

    run(main())


@pytest.mark.parametrize(
    ("url", "headers"),
    [
        ("http://127.0.0.1:{}/a\r\nX: y", {}),
        ("http://127.0.0.1:{}\x00", {}),
        ("ftp://127.0.0.1:{}", {}),
        ("http://[::1:{}", {}),
        ("{}", {}),
        ("http://127.0.0.1:{}", {"x": "a\r\nY: b"}),
        ("http://127.0.0.1:{}", {"x\n": "a"}),
        ("http://127.0.0.1:{}", {"a b": "a"}),
        ("http://127.0.0.1:{}", {"x": "\u4f60"}),
        ("http://127.0.0.1:{}", {"\u4f60": "x"}),
    ],
)
def test_a_malformed_address_or_header_is_refused_and_nothing_is_sent(
    url: str, headers: dict[str, str]
) -> None:
    async def main() -> None:
        async with serving(http(b"one")) as server, opened() as client:
            with pytest.raises(TransportFailed, match=MALFORMED):
                await post(client, url.format(server.port), headers=headers)
            assert server.asked == []

    run(main())


def test_headers_arrive_as_latin_1() -> None:
    async def main() -> None:
        got = bytearray()

        async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            got.extend(await reader.readuntil(b"\r\n\r\n"))
            writer.write(http(b"one"))
            writer.close()

        server = await asyncio.start_server(connected, "127.0.0.1", 0)
        async with server, opened() as client:
            url = f"http://127.0.0.1:{port_of(server)}"
            await post(client, url, headers={"x-name": "\xe9t\xe9"})
        assert b"x-name: \xe9t\xe9\r\n" in got

    run(main())


def test_a_login_in_the_address_becomes_a_header() -> None:
    async def main() -> None:
        async with serving(http(b"one")) as server, opened() as client:
            await post(client, f"http://me:pass%2Fword@127.0.0.1:{server.port}/a")
            assert server.asked[0].headers["authorization"] == "Basic bWU6cGFzcy93b3Jk"
            assert server.asked[0].line == "POST /a HTTP/1.1"

    run(main())


def test_nothing_is_logged_of_our_requests(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        async with serving(http(b"one", headers=[f"X: {KEY}"])) as server, opened() as client:
            await post(client, f"http://me:{KEY[:8]}@127.0.0.1:{server.port}")

    caplog.set_level(logging.DEBUG)
    run(main())
    assert [record.name for record in caplog.records if "http" in record.name] == []

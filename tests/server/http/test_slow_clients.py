"""Clients that send a byte a second, nothing, or never read: cut off, and nobody else notices."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
from starlette.applications import Starlette

from recollect.server.http.http_protocol import ConnectionLimits
from recollect.server.http.http_server import HttpServer
from recollect.testing import user
from tests.models.tls import make_certificate
from tests.server.http.face import Folder, Served, new_session, run, token_of

SHORT = ConnectionLimits(head_seconds=0.6, body_seconds=0.6, check_seconds=0.1, reader_seconds=0.6)


def head(served: Served, method: str = "GET", more: str = "", path: str = "/api/sessions") -> bytes:
    return (
        f"{method} {path} HTTP/1.1\r\nhost: 127.0.0.1:{served.server.port}\r\n"
        f"authorization: Bearer {token_of('ann-chat')}\r\n{more}\r\n"
    ).encode()


async def drip(served: Served, data: Iterator[bytes], pause: float) -> bytes:
    """Send pieces until the server closes; everything that it answered."""
    reader, writer = await asyncio.open_connection("127.0.0.1", served.server.port)
    answer = asyncio.create_task(reader.read())
    try:
        for piece in data:
            if answer.done():
                break
            writer.write(piece)
            await asyncio.wait([answer], timeout=pause)
        return await answer
    except ConnectionError:
        return b""
    finally:
        writer.close()


def letters(*pieces: bytes) -> Iterator[bytes]:
    for piece in pieces:
        yield from (piece[n : n + 1] for n in range(len(piece)))


def test_a_head_that_comes_byte_by_byte_is_answered_with_408(folder: Folder) -> None:
    async def work() -> None:
        async with folder.serve(connection=SHORT) as served:
            whole = head(served, more="x: y\r\n" * 100)
            answer = await drip(served, letters(whole), 0.02)
            assert answer.startswith(b"HTTP/1.1 408")

    run(work)


def test_a_body_that_comes_byte_by_byte_is_answered_with_408(folder: Folder) -> None:
    async def work() -> None:
        async with folder.serve(connection=SHORT) as served:
            more = "content-type: application/json\r\ncontent-length: 100000\r\n"
            body = letters(b'{"title":"' + b"x" * 100_000)
            pieces = (piece for part in ([head(served, "POST", more)], body) for piece in part)
            answer = await drip(served, pieces, 0.02)
            assert answer.startswith(b"HTTP/1.1 408")

    run(work)


def test_half_open_connections_are_closed_and_others_are_answered_meanwhile(
    folder: Folder,
) -> None:
    async def work() -> None:
        async with folder.serve(connection=SHORT) as served, served.client() as client:
            session = await new_session(client)
            half_open = [
                await asyncio.open_connection("127.0.0.1", served.server.port) for _ in range(200)
            ]
            for number, (_, writer) in enumerate(half_open):
                writer.write([b"", b"GET /api", head(served)[:-2]][number % 3])
            assert (await client.get(f"/api/sessions/{session}")).status_code == 200
            ends = await asyncio.gather(*(reader.read() for reader, _ in half_open))
            assert all(end == b"" or end.startswith(b"HTTP/1.1 408") for end in ends)
            for _, writer in half_open:
                writer.close()
            assert (await client.get(f"/api/sessions/{session}")).status_code == 200

    run(work)


def test_an_idle_connection_is_closed_and_one_in_use_is_not(folder: Folder) -> None:
    async def work() -> None:
        async with folder.serve(connection=SHORT) as served:
            reader, writer = await asyncio.open_connection("127.0.0.1", served.server.port)
            for _ in range(4):
                writer.write(head(served))
                await reader.readuntil(b'"next":null}')
                await asyncio.sleep(0.25)
            assert await reader.read() == b""
            writer.close()

    run(work)


def test_a_client_that_stops_reading_is_cut_off_and_its_stream_ends(folder: Folder) -> None:
    async def work() -> None:
        async with folder.serve(connection=SHORT) as served, served.client("ann-chat") as client:
            session = await new_session(client)
            opened = await served.hub.runtime.session(session)
            for _ in range(30):
                await opened.append(*(user("long " * 40_000) for _ in range(2)))
            reader, writer = await asyncio.open_connection(
                "127.0.0.1", served.server.port, limit=1_000
            )
            path = f"/api/sessions/{session}/entries/stream?after=start"
            writer.write(head(served, path=path))
            await reader.readuntil(b"\r\n\r\n")
            while "recollect_event_streams 0.0" not in (await client.get("/metrics")).text:
                await asyncio.sleep(0.05)
            writer.close()

    run(work)


def test_a_stream_that_is_read_lives_longer_than_any_limit(folder: Folder) -> None:
    async def work() -> None:
        async with folder.serve(connection=SHORT) as served, served.client() as client:
            session = await new_session(client)
            path = f"/api/sessions/{session}/entries/stream"
            async with client.stream("GET", path) as response:
                lines = response.aiter_lines()
                async for line in lines:
                    if line.startswith("event: head"):
                        break
                await asyncio.sleep(1.5)
                opened = await served.hub.runtime.session(session)
                await opened.append(user("still there"))
                async for line in lines:
                    if line.startswith("data: ") and "still there" in line:
                        break

    run(work)


def test_stopping_the_server_ends_streams_and_leaves_no_task(folder: Folder) -> None:
    async def work() -> None:
        async with folder.serve() as served, served.client() as client:
            session = await new_session(client)
            _, silent = await asyncio.open_connection("127.0.0.1", served.server.port)
            path = f"/api/sessions/{session}/entries/stream"
            async with client.stream("GET", path) as response:
                lines = response.aiter_lines()
                assert await anext(lines)
                await served.server.stop()
                assert [line async for line in lines][-1] == ""
            silent.close()
        names = [task.get_name() for task in asyncio.all_tasks()]
        assert not [name for name in names if "http" in name or "session" in name]

    run(work)


def test_a_body_does_not_wait_for_the_acknowledgement_of_its_head(folder: Folder) -> None:
    async def work() -> None:
        async with folder.serve() as served, served.client() as client:
            await client.get("/api/sessions")
            (connection,) = served.server._server.server_state.connections
            accepted = connection.transport.get_extra_info("socket")
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)

    run(work)


def test_a_port_that_is_taken_is_an_error_at_the_start(folder: Folder) -> None:
    async def work() -> None:
        async with folder.serve() as served:
            other = HttpServer(Starlette(), port=served.server.port)
            with pytest.raises(OSError, match="in use"):
                await other.start()

    run(work)


def test_tls_serves_the_same_and_a_handshake_that_does_not_end_is_cut_off(
    folder: Folder, tmp_path: Path
) -> None:
    async def work() -> None:
        certificate = make_certificate(tmp_path)
        async with folder.serve(connection=SHORT, tls=certificate.http1) as served:
            port, trusted = served.server.port, ssl.create_default_context(cafile=certificate.file)
            headers = {"authorization": f"Bearer {token_of('ann-chat')}"}
            url = f"https://localhost:{port}"
            async with httpx2.AsyncClient(
                verify=trusted, headers=headers, trust_env=False
            ) as client:
                assert (await client.get(f"{url}/api/sessions")).status_code == 200
                same = {"origin": url}
                assert (await client.get(f"{url}/api/sessions", headers=same)).status_code == 200
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            assert await reader.read() == b""  # it said nothing
            writer.close()

    run(work)

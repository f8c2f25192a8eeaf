"""Connections of the HTTP client that are used again, or must not be, and stopping at any point."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass

import pytest

from recollect.models.connecting import Broken
from tests.models.asking import client, in_a_thread, post, run
from tests.models.proxy import port_of
from tests.models.server import END, STREAM_HEAD, chunk, http, plays, serving


@dataclass
class Counted:
    url: str = ""
    opened: int = 0
    open: int = 0

    async def until_open(self, count: int) -> None:
        async with asyncio.timeout(2):
            while self.open != count:
                await asyncio.sleep(0.005)


@asynccontextmanager
async def counting(answer: bytes, delay: float = 0.0) -> AsyncIterator[Counted]:
    """Answers on each connection as long as it is asked, and knows how many are open."""
    found = Counted()

    async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        found.opened, found.open = found.opened + 1, found.open + 1
        try:
            while True:
                await reader.readuntil(b"\r\n\r\n{}")
                await asyncio.sleep(delay)
                writer.write(answer)
        except (asyncio.IncompleteReadError, ConnectionError):
            found.open -= 1
            writer.transport.abort()

    async with await asyncio.start_server(greet, "127.0.0.1", 0) as server:
        found.url = f"http://127.0.0.1:{port_of(server)}"
        yield found


def _ask_twice(*answers: bytes) -> tuple[list[bytes], int]:
    async def main() -> tuple[list[bytes], int]:
        async with serving(*answers) as server:
            asked = client()
            bodies = [(await post(asked, server.url)).body for _ in range(2)]
            await asked.aclose()
            return bodies, server.connections

    return run(main())


CHUNKED = STREAM_HEAD + chunk(b"one") + END


@pytest.mark.parametrize("answer", [http(b"one"), CHUNKED, http(b"", "204 None")])
def test_a_connection_whose_answer_was_read_to_its_end_is_used_again(answer: bytes) -> None:
    bodies, connections = _ask_twice(answer)
    assert bodies[0] == bodies[1]
    assert connections == 1


@pytest.mark.parametrize(
    "answer",
    [
        http(b"one", headers=["Connection: close"]),
        http(b"one").replace(b"HTTP/1.1", b"HTTP/1.0"),
        http(b"one") + b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged",
        http(b"one") + b"garbage",
        CHUNKED + b"\r\n",
        CHUNKED.replace(b"Transfer-Enc", b"Content-Length: 3\r\nTransfer-Enc"),
    ],
)
def test_a_connection_on_which_more_may_come_is_not_used_again(answer: bytes) -> None:
    bodies, connections = _ask_twice(answer)
    assert bodies == [b"one", b"one"]
    assert connections == 2


@pytest.mark.parametrize(("said", "connections"), [("close", 2), ("Keep-Alive", 1), ("\xe9", 1)])
def test_what_we_said_about_a_connection_holds(said: str, connections: int) -> None:
    async def main() -> None:
        async with counting(http(b"one")) as server:
            asked = client()
            for _ in range(2):
                await post(asked, server.url, headers=[("connection", said)])
            assert server.opened == connections
            await asked.aclose()
            await server.until_open(0)

    run(main())


def test_two_lengths_that_differ_are_refused() -> None:
    twice = http(b"one", headers=["Content-Length: 99"])
    with pytest.raises(Broken):
        _ask_twice(twice)


@pytest.mark.parametrize("late", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged"])
def test_who_hangs_up_or_speaks_while_nobody_asks_is_not_asked_there_again(late: bytes) -> None:
    async def main() -> None:
        served = 0

        async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            nonlocal served
            served += 1
            await reader.readuntil(b"\r\n\r\n{}")
            writer.write(http(b"real"))
            await writer.drain()
            await asyncio.sleep(0.02)
            writer.write(late)
            await writer.drain()
            writer.close()

        async with await asyncio.start_server(greet, "127.0.0.1", 0) as server:
            asked, url = client(), f"http://127.0.0.1:{port_of(server)}"
            for count in (1, 2, 3):
                assert (await post(asked, url)).body == b"real"
                await asyncio.sleep(0.06)
                assert served == count
            await asked.aclose()

    run(main())


def test_who_hung_up_while_our_loop_was_busy_is_noticed_before_the_next_question() -> None:
    read, hung_up = threading.Event(), threading.Event()

    def serve(one: socket.socket) -> None:
        one.recv(1_000)
        one.sendall(http(b"real"))
        read.wait(10)
        one.close()
        hung_up.set()

    port, thread = in_a_thread(serve, 2)

    async def main() -> None:
        asked, url = client(), f"http://127.0.0.1:{port}"
        assert (await post(asked, url)).body == b"real"
        read.set()
        hung_up.wait(10)  # it happened, and the event loop had no time to see it
        assert (await post(asked, url)).body == b"real"
        await asked.aclose()

    run(main())
    thread.join()


def test_many_questions_at_once_have_a_connection_each_and_four_of_them_are_kept() -> None:
    async def main() -> None:
        async with counting(http(b"one"), delay=0.1) as server:
            asked = client()
            got = await asyncio.gather(*(post(asked, server.url) for _ in range(7)))
            assert [one.body for one in got] == [b"one"] * 7
            assert server.opened == 7
            await server.until_open(4)
            await asyncio.gather(*(post(asked, server.url) for _ in range(4)))
            assert server.opened == 7
            await asked.aclose()
            await server.until_open(0)

    run(main())


def test_closing_an_answer_that_was_read_leaves_its_connection_to_the_next_question() -> None:
    async def main() -> None:
        async with counting(http(b"one"), delay=0.05) as server:
            asked = client()
            first = await asked.post(server.url, (), (b"{}",), 2)
            async with aclosing(first.pieces()) as pieces:
                assert [piece async for piece in pieces] == [b"one"]
            second = asyncio.create_task(post(asked, server.url))
            await asyncio.sleep(0.02)
            first.close()
            assert (await second).body == b"one"
            assert server.opened == 1
            await asked.aclose()
            await server.until_open(0)

    run(main())


def test_places_do_not_share_connections() -> None:
    async def main() -> None:
        async with serving(http(b"one")) as one, serving(http(b"two")) as two:
            asked = client()
            for _ in range(2):
                assert (await post(asked, one.url)).body == b"one"
                assert (await post(asked, two.url)).body == b"two"
            await asked.aclose()
        assert (one.connections, two.connections) == (1, 1)

    run(main())


# --- stopping ------------------------------------------------------------------------------------


@pytest.mark.parametrize("rounds", [*range(12), 100, 1_000])
@pytest.mark.parametrize("place", ["http://127.0.0.1", "http://localhost", "https://localhost"])
def test_cancelling_at_any_point_closes_the_connection(rounds: int, place: str) -> None:
    """While it connects, agrees on TLS (which never comes), writes, and waits for an answer."""

    async def main() -> None:
        connected = 0

        async def swallow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            nonlocal connected
            connected += 1
            with suppress(ConnectionError):
                while await reader.read(1_000):
                    await asyncio.sleep(0)
            connected -= 1
            writer.transport.abort()

        async with await asyncio.start_server(swallow, "127.0.0.1", 0) as server:
            url = f"{place}:{port_of(server)}"
            task = asyncio.create_task(post(client(), url, [b"x" * 100_000] * 20))
            for _ in range(rounds):
                await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            async with asyncio.timeout(2):
                await asyncio.sleep(0.02)
                while connected:
                    await asyncio.sleep(0.005)

    run(main())


@pytest.mark.parametrize("how", ["answer", "pieces", "client"])
def test_closing_in_the_middle_of_an_answer_closes_the_connection(how: str) -> None:
    async def main() -> None:
        gone = asyncio.Event()

        async def wait(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
            await reader.read()
            gone.set()

        async with serving(plays(b"one", then=wait), http(b"again")) as server:
            asked = client()
            answer = await asked.post(server.url, (), (b"{}",), 2)
            async with aclosing(answer.pieces()) as pieces:
                assert await anext(pieces) == b"one"
                if how == "client":
                    await asked.aclose()
                elif how == "answer":
                    answer.close()
                if how == "client":
                    with pytest.raises(Broken):
                        await anext(pieces)
            await asyncio.wait_for(gone.wait(), 2)
            if how != "client":
                assert (await post(asked, server.url)).body == b"again"
                await asked.aclose()
            with pytest.raises(Broken):  # it is closed now
                await post(asked, server.url)

    run(main())

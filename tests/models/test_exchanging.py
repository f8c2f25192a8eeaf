"""One request and its answer with the HTTP client, on real sockets: whole, cut, damaged, forged."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
import zlib
from contextlib import aclosing, suppress

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from recollect.models.connecting import BadAddress, Broken, Damaged, HttpFailed, TooSlow
from recollect.models.exchanging import MAX_UNPACKED
from tests.models.asking import Got, client, in_a_thread, post, run
from tests.models.server import STREAM_HEAD, Answer, Play, chunk, http, plays, serving

CHUNKED = STREAM_HEAD + chunk(b"one ") + chunk(b"two") + b"0\r\nX-Trailer: y\r\n\r\n"
TO_CLOSE = b"HTTP/1.0 200 OK\r\n\r\none two"


def sending(*pieces: bytes, then: Play | None = None) -> Play:
    async def play(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(0)
        if then is not None:
            await then(reader, writer)

    return play


def ask(answer: Answer, *, wait: float = 5.0) -> Got:
    async def main() -> Got:
        async with serving(answer) as server:
            asked = client(wait=wait)
            try:
                return await post(asked, server.url)
            finally:
                await asked.aclose()

    return run(main())


# --- whole and cut -------------------------------------------------------------------------------


@pytest.mark.parametrize("answer", [http(b"one two"), CHUNKED, sending(TO_CLOSE)])
def test_a_body_arrives_whole_however_its_end_is_told(answer: Answer) -> None:
    assert ask(answer) == (200, b"one two")


@pytest.mark.parametrize("whole", [http(b"one two"), CHUNKED])
def test_an_answer_that_is_cut_anywhere_is_broken_and_never_short(whole: bytes) -> None:
    async def main() -> None:
        for end in range(len(whole)):
            async with serving(sending(whole[:end])) as server:
                with pytest.raises(Broken):
                    await post(client(), server.url)

    run(main())


def test_a_body_to_the_end_of_a_connection_that_is_torn_off_is_broken() -> None:
    async def play(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(TO_CLOSE)
        await writer.drain()
        await asyncio.sleep(0.05)
        linger = b"\x01\x00\x00\x00\x00\x00\x00\x00"  # closing resets
        sock = writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        writer.transport.abort()

    with pytest.raises(Broken):
        ask(play)


_WORDS = st.sampled_from(
    [
        b"HTTP/1.1 200 OK\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
        b"HTTP/1.1 204 No\r\n",
        b"HTTP/1.1 999 \xff\r\n",
        b"Content-Length: 3\r\n",
        b"Content-Length: 99999999999999999999999\r\n",
        b"Transfer-Encoding: chunked\r\n",
        b"Content-Encoding: gzip\r\n",
        b" folded: \t\r\n",
        b": none\r\n",
        b"\r\n",
        b"3\r\nabc\r\n",
        b"fffffffffffffffffffff\r\n",
        b"0\r\n",
        b"\x1f\x8b",
        b"\x00",
        CHUNKED,
    ]
)


@given(
    st.lists(st.one_of(_WORDS, st.binary(max_size=30)), max_size=12).map(b"".join),
    st.integers(1, 100),
)
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_whatever_bytes_come_end_in_an_answer_or_in_one_of_our_exceptions(
    data: bytes, size: int
) -> None:
    async def main() -> None:
        pieces = [data[i : i + size] for i in range(0, len(data), size)]
        async with serving(sending(*pieces)) as server:
            asked = client()
            with suppress(HttpFailed):
                assert isinstance(await post(asked, server.url), Got)
            await asked.aclose()

    started = time.monotonic()
    asyncio.run(main())
    assert time.monotonic() - started < 4


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1_000])
def test_an_answer_in_pieces_of_any_size_is_the_same(size: int) -> None:
    pieces = [CHUNKED[i : i + size] for i in range(0, len(CHUNKED), size)]
    assert ask(sending(*pieces)).body == b"one two"


def test_pieces_are_handed_on_as_they_arrive() -> None:
    async def main() -> None:
        go = asyncio.Event()

        async def wait(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await go.wait()
            writer.write(chunk(b"two") + b"0\r\n\r\n")
            await writer.drain()

        async with serving(plays(b"one", then=wait)) as server:
            answer = await client().post(server.url, (), (b"{}",), 2)
            async with aclosing(answer.pieces()) as pieces:
                assert await anext(pieces) == b"one"
                go.set()
                assert [piece async for piece in pieces] == [b"two"]

    run(main())


def test_answers_that_announce_another_are_skipped_but_not_for_ever() -> None:
    interim = b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"
    assert ask(interim * 20 + http(b"real")).body == b"real"
    with pytest.raises(Broken):
        ask(interim * 21 + http(b"real"))


def test_headers_without_an_end_are_not_read_for_ever() -> None:
    async def endless(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            writer.write(b"X-More: " + b"x" * 1_000 + b"\r\n")
            await writer.drain()

    with pytest.raises(Broken):
        ask(sending(b"HTTP/1.1 200 OK\r\n", then=endless))


def test_silence_is_waited_for_so_long_and_no_longer() -> None:
    async def stall(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        await reader.read()

    for answer in (stall, plays(b"one", then=stall)):
        with pytest.raises(TooSlow) as caught:
            ask(answer, wait=0.1)
        assert not caught.value.connecting


# --- the request ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("X-A", "b\r\nX-Forged: c"),
        ("X-A", "b\n"),
        ("X-A", "b\x00c"),
        ("X-A", "b\x01c"),
        ("X-A", "€"),
        ("X-A", " b"),
        ("X-A", "b\t"),
        ("X A", "b"),
        ("X-Ä", "b"),
        ("X-A\r\nX-Forged", "b"),
        ("", "b"),
    ],
)
def test_a_header_that_could_forge_another_is_refused_and_nothing_is_sent(
    name: str, value: str
) -> None:
    async def main() -> None:
        async with serving(http(b"")) as server:
            with pytest.raises(BadAddress):
                await post(client(), server.url, headers=[(name, value)])
            assert server.connections == 0

    run(main())


def test_headers_arrive_as_latin_1_and_the_length_is_ours() -> None:
    async def main() -> None:
        async with serving(http(b"")) as server:
            asked = client()
            headers = [("X-A", "b c"), ("host", "other.example"), ("content-length", "999")]
            headers.append(("Transfer-Encoding", "chunked"))
            await post(asked, server.url, (b"ab", b"c" * 70_000), headers)
            await asked.aclose()
        found = server.asked[0].headers
        assert (found["x-a"], found["host"]) == ("b c", "other.example")
        assert found["content-length"] == "70002"
        assert "transfer-encoding" not in found
        assert server.asked[0].body == b"ab" + b"c" * 70_000

    run(main())


@pytest.mark.parametrize("size", [1, 3])
def test_a_body_that_is_not_of_its_size_is_refused_and_never_waited_for(size: int) -> None:
    async def main() -> None:
        async with serving(http(b"")) as server:
            with pytest.raises(BadAddress):
                await client().post(server.url, (), (b"{}",), size)

    run(main())


def test_an_answer_that_comes_before_the_request_is_through_is_read() -> None:
    def refuse(one: socket.socket) -> None:
        one.recv(1_000)
        one.sendall(http(b"too large", "413 Too Large"))

    port, thread = in_a_thread(refuse, 30)

    async def main() -> None:
        for _ in range(30):
            got = await post(client(), f"http://127.0.0.1:{port}", [b"x" * 100_000] * 60)
            assert got == (413, b"too large")

    run(main())
    thread.join()


def test_who_refuses_and_reads_no_further_is_heard_at_once() -> None:
    over = threading.Event()

    def refuse(one: socket.socket) -> None:
        one.recv(1_000)
        time.sleep(0.1)  # until then our writes have filled all there is
        one.sendall(http(b"too large", "413 Too Large"))
        over.wait(10)

    port, thread = in_a_thread(refuse, 1)

    async def main() -> None:
        started = time.monotonic()
        got = await post(client(wait=8), f"http://127.0.0.1:{port}", [b"x" * 100_000] * 200)
        assert got == (413, b"too large")
        assert time.monotonic() - started < 4

    try:
        run(main())
    finally:
        over.set()
        thread.join()


def test_who_never_reads_has_the_time_for_a_piece() -> None:
    over = threading.Event()

    def idle(_: socket.socket) -> None:
        over.wait(10)

    port, thread = in_a_thread(idle, 1)

    async def main() -> None:
        with pytest.raises(TooSlow) as caught:
            await post(client(wait=0.2), f"http://127.0.0.1:{port}", [b"x" * 100_000] * 200)
        assert not caught.value.connecting

    try:
        run(main())
    finally:
        over.set()
        thread.join()


# --- compressed bodies ---------------------------------------------------------------------------


def packed(data: bytes, bits: int) -> bytes:
    stream = zlib.compressobj(wbits=bits)
    return stream.compress(data) + stream.flush()


@pytest.mark.parametrize(
    ("encoding", "bits"), [("gzip", 31), ("X-GZIP", 31), ("deflate", 15), ("deflate", -15)]
)
def test_a_compressed_body_is_unpacked_though_none_was_asked_for(encoding: str, bits: int) -> None:
    data = bytes(range(256)) * 9_000
    assert ask(http(packed(data, bits), headers=[f"Content-Encoding: {encoding}"])).body == data


def test_a_compressed_body_without_a_byte_is_empty() -> None:
    assert ask(http(b"", "400 No", headers=["Content-Encoding: gzip"])) == (400, b"")


@pytest.mark.parametrize("body", [b"no", packed(b"x" * 9, 31)[:-3], packed(b"x", 31) + b"more"])
def test_a_damaged_compressed_body_is_damaged(body: bytes) -> None:
    with pytest.raises(Damaged) as caught:
        ask(http(body, headers=["Content-Encoding: gzip"]))
    assert caught.value.known


@pytest.mark.parametrize("encoding", ["br", "zstd", "gzip, gzip", "\xe9"])
def test_a_compression_that_nobody_asked_for_and_we_cannot_read_is_told(encoding: str) -> None:
    with pytest.raises(Damaged) as caught:
        ask(http(b"x", headers=[f"Content-Encoding: {encoding}"]))
    assert not caught.value.known


def test_a_body_that_swells_comes_in_bounded_pieces_and_can_be_stopped() -> None:
    bomb = http(packed(bytes(100_000_000), 31), headers=["Content-Encoding: gzip"])
    seen: list[int] = []

    async def read(url: str) -> None:
        answer = await client().post(url, (), (b"{}",), 2)
        async with aclosing(answer.pieces()) as pieces:
            async for piece in pieces:
                seen.append(len(piece))  # noqa: PERF401 - what was seen when time was over

    async def main() -> None:
        async with serving(bomb) as server:
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(read(server.url), 0.03)

    run(main())
    assert max(seen, default=0) <= MAX_UNPACKED
    assert sum(seen) < 100_000_000

"""Random and mutated frames, half-open connections and slow readers: others notice nothing."""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import random
import resource
import socket
import struct
import time
from pathlib import Path

import psutil
import pytest

from recollect.server.nplt.nplt_limits import NpltLimits
from recollect.server.session_hub import HubLimits
from recollect.testing import ProviderLine, faulty
from tests.server.hubs import scripted_provider
from tests.server.nplt.nplt_servers import RunningServer, running_server
from tests.server.nplt.seed_client import CHAT_TEXT, PATIENCE, SeedClient

# no cause to slow a fuzzer down, and short times
FAST = NpltLimits(frames_per_second=1e6, frame_burst=10**6, bytes_per_second=1e9, byte_burst=10**9)
FEW_RUNS = HubLimits(kept_events=100, idle_seconds=0.5)  # so that memory is what connections take
CLOSED_SECONDS = 15  # in which the server has to answer or close
FRAMES, MANY_FRAMES = 5_000, 200_000


def some_payload(random_: random.Random) -> bytes:
    kind = random_.randrange(6)
    if kind == 0:
        return random_.randbytes(random_.randrange(200))
    if kind == 1:
        return json.dumps({"session_id": random_.choice(["", "f", "0" * 40, None, 7])}).encode()
    if kind == 2:
        keys = ("offset", "limit", "format", "name", "model", "filename", "size", "features")
        values: tuple[object, ...] = (0, -1, 10**30, "", "x" * 50, None, [], {}, [["a"]], True, 1.5)
        count = random_.randrange(4)
        return json.dumps(
            {random_.choice(keys): random_.choice(values) for _ in range(count)}
        ).encode()
    if kind == 3:
        return b'{"a":' * random_.randrange(300)
    if kind == 4:
        return random_.choice([b"", b"HEARTBEAT", b"{}", b"null", b"\xff", b"[]", b"{"])
    return random_.randbytes(random_.randrange(3_000))


def some_frame(random_: random.Random, number: int) -> bytes:
    known = (
        0x01,
        0x0D,
        0x0E,
        0x0F,
        0x10,
        0x11,
        0x14,
        0x15,
        0x16,
        0x17,
        0x18,
        0x19,
        0x1A,
        0x1B,
        0x1C,
        0x1D,
    )
    type_ = random_.choice(known) if random_.random() < 0.9 else random_.randrange(256)
    payload = some_payload(random_)
    if type_ == CHAT_TEXT and random_.random() < 0.98:
        payload = b"HEARTBEAT"  # few prompts: a prompt is a request to a model
    frame = bytearray(struct.pack(">BHH", type_, number % 65_536, len(payload)) + payload)
    if random_.random() < 0.02:
        frame[random_.randrange(len(frame))] ^= 1 << random_.randrange(8)
    return bytes(frame)


async def fuzz(port: int, random_: random.Random, frames: int) -> None:
    """One connection after the other, each with frames until the server has had enough."""
    while frames > 0:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        drained = asyncio.create_task(read_all(reader))
        batch = min(frames, random_.randrange(1, 200))
        try:
            for number in range(batch):
                writer.write(some_frame(random_, number))
                await writer.drain()
            writer.write_eof() if random_.random() < 0.5 else writer.close()
            await asyncio.wait_for(drained, CLOSED_SECONDS)
        except ConnectionError:
            pass
        finally:
            drained.cancel()
            await asyncio.gather(drained, return_exceptions=True)
            writer.close()
            await asyncio.gather(writer.wait_closed(), return_exceptions=True)
        frames -= batch


async def read_all(reader: asyncio.StreamReader) -> None:
    while await reader.read(65_536):
        pass


def check_healthy(server: RunningServer, client: SeedClient) -> None:
    assert client.chat("Still there?") == "Hello."
    deadline = time.monotonic() + PATIENCE
    while server.nplt.open_connections > 1:
        assert time.monotonic() < deadline, "connections are left over"
        time.sleep(0.02)


def fuzz_server(folder: Path, patch: pytest.MonkeyPatch, frames: int) -> None:
    with (
        scripted_provider(folder / "home", patch, ["Hello."], repeat=True),
        running_server(folder, FAST, hub_limits=FEW_RUNS) as server,
        SeedClient(server.port) as client,
    ):

        async def story() -> None:
            each = frames // 8
            await asyncio.gather(
                *(fuzz(server.port, random.Random(seed), each) for seed in range(8))
            )

        asyncio.run(fuzz(server.port, random.Random(99), 500))
        check_healthy(server, client)
        before = memory()
        asyncio.run(story())
        check_healthy(server, client)
        # the scripted provider, in this process too, remembers every request
        assert memory() - before < 40_000_000 + 60_000 * server.hub.counts.prompts


def check_no_fault(log: pytest.LogCaptureFixture) -> None:
    """A frame may be refused or its sender hung up on; it may not find a fault of ours."""
    faults = [one for one in log.records if one.levelno >= logging.ERROR]
    assert [one.getMessage() for one in faults if one.name.startswith("recollect")] == []


def memory() -> int:
    gc.collect()
    return int(psutil.Process().memory_info().rss)


def test_random_and_mutated_frames_are_answered_or_hung_up_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    fuzz_server(tmp_path, monkeypatch, FRAMES)
    check_no_fault(caplog)


@pytest.mark.long
@pytest.mark.timeout(3_600)
def test_very_many_random_and_mutated_frames(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    fuzz_server(tmp_path, monkeypatch, MANY_FRAMES)
    check_no_fault(caplog)


def open_partly(port: int, number: int) -> socket.socket:
    """A connection that begins a frame and does not end it, or does not even begin."""
    opened = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)
    begun = (b"\x01", b"\x10\x00\x00\x00", b"\x01\x00\x00\x10\x00Hi", b"\x0e\x00\x00\xff\xff{")
    opened.sendall(begun[number % 4])
    return opened


def is_closed(opened: socket.socket, deadline: float) -> bool:
    opened.settimeout(max(0.01, deadline - time.monotonic()))
    try:
        while opened.recv(65_536):
            pass
    except TimeoutError:
        return False
    except OSError:
        return True
    return True


def crowd(
    folder: Path, patch: pytest.MonkeyPatch, half_open: int, slow: int, limits: NpltLimits
) -> list[float]:
    """How long a client waited for its heartbeats meanwhile, in seconds, in ascending order."""
    # more than the buffers on the way to a client that does not read
    numbers = " ".join(map(str, range(max(60_000, limits.write_buffer))))
    long = faulty(numbers, piece=60_000)
    script: list[ProviderLine] = [*[long] * slow, "Hello."]
    with (
        scripted_provider(folder / "home", patch, script, repeat=True),
        running_server(folder, limits, hub_limits=FEW_RUNS) as server,
        SeedClient(server.port) as client,
    ):
        before = server.tasks()
        readers = [slow_reader(server.port) for _ in range(slow)]
        while server.hub.counts.prompts < slow or server.hub.counts.running:
            time.sleep(0.02)
        check_latency(client)
        start = time.monotonic()
        half = [open_partly(server.port, number) for number in range(half_open)]
        waits = [check_latency(client) for _ in range(100)]
        deadline = start + CLOSED_SECONDS + half_open / 100  # connecting takes its time too
        assert all(is_closed(each, deadline) for each in half)
        assert client.chat("Hi.") == "Hello."
        check_healthy(server, client)  # also those that only read slowly are closed, by the server
        for each in (*readers, *half):
            each.close()
        while server.tasks() > before + 2:  # the client's own; the sessions are closed first
            time.sleep(0.05)
    return sorted(waits)


def slow_reader(port: int) -> socket.socket:
    opened = socket.socket()
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
    opened.connect(("127.0.0.1", port))
    opened.sendall(struct.pack(">BHH", CHAT_TEXT, 0, 6) + b"Count.")
    return opened


def check_latency(client: SeedClient) -> float:
    start = time.monotonic()
    client.send(CHAT_TEXT, "HEARTBEAT")
    assert client.receive().payload == b"HEARTBEAT"
    return time.monotonic() - start


def test_half_open_connections_and_slow_readers_are_closed_and_others_notice_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits = NpltLimits(
        write_seconds=1.0, write_buffer=32_768, header_seconds=1.0, payload_seconds=1.0
    )
    assert len(crowd(tmp_path, monkeypatch, half_open=100, slow=10, limits=limits)) == 100


@pytest.mark.long
@pytest.mark.timeout(600)
def test_a_thousand_half_open_connections_and_a_hundred_slow_readers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(max(soft, 8_192), hard), hard))
    waits = crowd(tmp_path, monkeypatch, half_open=1_000, slow=100, limits=NpltLimits())
    assert waits[98] < 1.0, "a heartbeat waited"  # on a quiet machine

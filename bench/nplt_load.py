"""`python -m bench.nplt_load`: an NPLT server under load, beside a bare echo server with an fsync.

Four processes: a model that answers after 20 ms from canned bytes, the server (one process, SQLite
on disk), a bare asyncio echo server that writes and syncs each turn, and the clients. Measured is
what a client sees: from its message to the end of the answer, without the model's 20 ms.

  paced   500 clients are connected and silent; 100 chat, each a turn about every second
  bursts  the 100 chat as fast as they are answered; recorded turns per second

The processes share the machine's cores, so the CPU time of a turn is given for each of them, and
what one core would do for the server alone. The first turn of a session, which reads its folder and
builds its agent, is counted apart. `--profile FILE` writes what the other turns cost the server, by
room and by function (cProfile); it slows the server down.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import cProfile
import json
import os
import pstats
import random
import signal
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import psutil

from bench.rooms import render_rooms

IDLE, CHATTING = 500, 100
LATENCY = 0.020  # seconds of the model
ANSWER = "This is an answer of some twenty words, as a model gives them, in a few pieces of text."
_HEADER = struct.Struct(">BHH")


# --- the model -----------------------------------------------------------------------------------


def _canned_reply() -> bytes:
    words = ANSWER.split(" ")
    pieces = [" ".join(words[at : at + 4]) + " " for at in range(0, len(words), 4)]
    deltas = [{"choices": [{"index": 0, "delta": {"content": piece}}]} for piece in pieces]
    end = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
    usage = {"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 20}}
    events = b"".join(b"data: " + json.dumps(e).encode() + b"\n\n" for e in (*deltas, end, usage))
    body = events + b"data: [DONE]\n\n"
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
    return head + f"content-length: {len(body)}\r\n\r\n".encode() + body


async def serve_model() -> None:
    reply = _canned_reply()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while head := await reader.readuntil(b"\r\n\r\n"):
                lines = head.lower().split(b"\r\n")
                size = next(int(line[15:]) for line in lines if line.startswith(b"content-length:"))
                await reader.readexactly(size)
                await asyncio.sleep(LATENCY)
                writer.write(reply)
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0, backlog=1_000)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


# --- the servers ---------------------------------------------------------------------------------


async def serve_echo(folder: Path) -> None:
    """A frame comes back after it was written and synced."""
    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, lambda: None)
    file = os.open(folder / "echo.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                type_, _, length = _HEADER.unpack(await reader.readexactly(5))
                payload = await reader.readexactly(length)
                os.write(file, payload + b"\n")
                os.fsync(file)
                writer.write(_HEADER.pack(type_, 0, length) + payload + _HEADER.pack(1, 1, 0))
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0, backlog=1_000)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


async def serve_nplt(folder: Path, profiler: cProfile.Profile | None = None) -> int:
    """Until SIGTERM. SIGUSR1 starts the profiler; how many prompts there were since then."""
    from recollect.runtime.garbage_collection import collect_less_often
    from recollect.runtime.runtime import open_runtime
    from recollect.server.access import AccessTokens
    from recollect.server.nplt.nplt_limits import NpltLimits
    from recollect.server.nplt.nplt_server import NpltServer
    from recollect.server.session_hub import SessionHub

    stop, loop, before = asyncio.Event(), asyncio.get_running_loop(), 0
    loop.add_signal_handler(signal.SIGTERM, stop.set)
    async with open_runtime(folder) as runtime:
        hub = SessionHub(runtime)

        def start_profiler() -> None:
            nonlocal before
            if profiler is not None:
                before = hub.counts.prompts
                profiler.enable()

        loop.add_signal_handler(signal.SIGUSR1, start_profiler)
        server = NpltServer(hub, AccessTokens(()), NpltLimits())
        await server.start("127.0.0.1", 0)
        collect_less_often()
        print(server.port, flush=True)
        await stop.wait()
        if profiler is not None:
            profiler.disable()
        await hub.close()
        await server.close()
        return hub.counts.prompts - before


# --- the clients ---------------------------------------------------------------------------------


class _BenchClient:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self.turns: list[float] = []

    async def turn(self) -> None:
        """Until the empty CHAT_TEXT."""
        payload = b"How are you today?"
        start = time.perf_counter()
        self._writer.write(_HEADER.pack(1, 0, len(payload)) + payload)
        pieces = b""
        while True:
            type_, _, length = _HEADER.unpack(await self._reader.readexactly(5))
            piece = await self._reader.readexactly(length)
            if type_ == 1:
                pieces += piece
            if type_ == 1 and not length:
                break
        assert pieces, "no answer"
        self.turns.append(time.perf_counter() - start)

    def close(self) -> None:
        self._writer.close()


async def _connect(port: int, *, welcome: bool) -> _BenchClient:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    if welcome:
        _, _, length = _HEADER.unpack(await reader.readexactly(5))
        await reader.readexactly(length)
    return _BenchClient(reader, writer)


async def measure_paced(port: int, seconds: float, idle: int) -> list[float]:
    silent = [await _connect(port, welcome=True) for _ in range(idle)]
    clients = [await _connect(port, welcome=True) for _ in range(CHATTING)]

    async def chat(client: _BenchClient) -> None:
        await asyncio.sleep(random.random())
        await client.turn()  # the first makes the session
        client.turns.clear()
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            await asyncio.sleep(random.uniform(0.5, 1.5))
            await client.turn()

    await asyncio.gather(*(chat(client) for client in clients))
    for client in (*silent, *clients):
        client.close()
    return [turn - LATENCY for client in clients for turn in client.turns]


class Burst(NamedTuple):
    """What clients that chat as fast as they are answered get, and what it costs."""

    rate: float  # turns per second
    turns: int  # without the first of each client
    cpu_ms: tuple[float, ...]  # of a turn, for each of the processes given, then of the clients
    first_cpu_ms: float  # of the first turn of a session, for the first of the processes


def _cpu(processes: Sequence[psutil.Process]) -> list[float]:
    return [*(sum(process.cpu_times()[:2]) for process in processes), time.process_time()]


async def measure_bursts(
    port: int,
    seconds: float,
    *,
    welcome: bool,
    clients: int = CHATTING,
    processes: Sequence[psutil.Process] = (),
) -> Burst:
    chatting = [await _connect(port, welcome=welcome) for _ in range(clients)]
    begun = _cpu(processes)
    await asyncio.gather(*(client.turn() for client in chatting))
    for client in chatting:
        client.turns.clear()
    for process in processes[:1]:
        process.send_signal(signal.SIGUSR1)  # the sessions are there
        await asyncio.sleep(0.5)  # a busy machine takes its time
    start, before = time.monotonic(), _cpu(processes)

    async def chat(client: _BenchClient) -> None:
        while time.monotonic() < start + seconds:
            await client.turn()

    await asyncio.gather(*(chat(client) for client in chatting))
    taken, after = time.monotonic() - start, _cpu(processes)
    for client in chatting:
        client.close()
    turns = sum(len(client.turns) for client in chatting)
    spent = tuple(1_000 * (b - a) / turns for a, b in zip(before, after, strict=True))
    return Burst(turns / taken, turns, spent, 1_000 * (before[0] - begun[0]) / clients)


# --- running it ----------------------------------------------------------------------------------


@contextlib.contextmanager
def _process(role: str, folder: Path, *more: str) -> Iterator[tuple[int, psutil.Process]]:
    """A role in a process of its own, with its port."""
    environment = os.environ | {"RECOLLECT_HOME": str(folder / "home"), "BENCH_KEY": "sk-none"}
    command = [sys.executable, "-m", "bench.nplt_load", "--role", role, "--folder", str(folder)]
    process = subprocess.Popen([*command, *more], stdout=subprocess.PIPE, env=environment)
    assert process.stdout is not None
    try:
        yield int(process.stdout.readline()), psutil.Process(process.pid)
    finally:
        process.terminate()
        process.wait(60)


def _percentile(values: list[float], share: float) -> float:
    return 1_000 * sorted(values)[min(len(values) - 1, int(len(values) * share))]


def measure(seconds: float, idle: int, profile: str) -> dict[str, float]:
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as place:
        folder = Path(place)
        (folder / "home").mkdir()
        with _process("model", folder) as (model, answering):
            (folder / "home" / "settings.toml").write_text(
                'model = "scripted"\n[models.scripted]\nwire = "openai"\nkey = "BENCH_KEY"\n'
                f'url = "http://127.0.0.1:{model}"\nwindow = 200000\n'
            )
            with _process("nplt", folder) as (port, _):
                paced = asyncio.run(measure_paced(port, seconds, idle))
            more = ("--profile", profile) if profile else ()
            with _process("nplt", folder, *more) as (port, server):
                ours = asyncio.run(
                    measure_bursts(port, seconds, welcome=True, processes=(server, answering))
                )
        with _process("echo", folder) as (port, server):
            echo = asyncio.run(
                measure_bursts(port, seconds / 2, welcome=False, processes=(server,))
            )
    server_ms, model_ms, clients_ms = ours.cpu_ms
    return {
        "paced_turns": len(paced),
        "added_p50_ms": _percentile(paced, 0.5),
        "added_p99_ms": _percentile(paced, 0.99),
        "turns_per_second": ours.rate,
        "server_cpu_ms_per_turn": server_ms,
        "server_turns_per_second_of_one_core": 1_000 / server_ms,
        "server_cpu_ms_first_turn_of_a_session": ours.first_cpu_ms,
        "model_cpu_ms_per_turn": model_ms,
        "clients_cpu_ms_per_turn": clients_ms,
        "echo_with_fsync_per_second": echo.rate,
        "echo_cpu_ms_per_turn": echo.cpu_ms[0],
        "ratio": ours.rate / echo.rate,
    }


def _run_role(role: str, folder: Path, profile: str) -> None:
    roles = {"model": serve_model, "echo": lambda: serve_echo(folder)}
    work = roles.get(role, lambda: serve_nplt(folder))
    if not profile:
        with contextlib.suppress(KeyboardInterrupt):
            asyncio.run(work())
        return
    profiler = cProfile.Profile()
    turns = asyncio.run(serve_nplt(folder, profiler))
    with Path(profile).open("w", encoding="utf-8") as out:
        stats = pstats.Stats(profiler, stream=out)
        print(render_rooms(stats, turns), file=out)
        stats.sort_stats("tottime").print_stats(60)
        stats.sort_stats("cumulative").print_stats(90)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--idle", type=int, default=IDLE)
    parser.add_argument("--profile", default="")
    parser.add_argument("--role", default="")
    parser.add_argument("--folder", type=Path, default=Path())
    given = parser.parse_args()
    if given.role:
        _run_role(given.role, given.folder, given.profile)
    else:
        found = measure(given.seconds, given.idle, given.profile)
        print(json.dumps({name: round(value, 2) for name, value in found.items()}, indent=2))


if __name__ == "__main__":
    main()

"""`python -m bench.responses_load`: the Responses face, a bare Starlette app, and LiteLLM's proxy.

Processes: a model that answers after 20 ms from canned bytes, our server (one process, SQLite on
disk, everything recorded durably), a Starlette app under the same uvicorn that streams the very
bytes of one of our answers, LiteLLM's proxy over the same model, and the client.

  first byte  one client, one request after the other: until the first byte of the stream
  turns       many clients, streamed answers, as fast as they come; answers per second

LiteLLM's proxy has an environment of its own: `uv venv /tmp/litellm && uv pip install --python
/tmp/litellm/bin/python 'litellm[proxy]'`, then `--litellm /tmp/litellm/bin/litellm`. It records
nothing. `--profile FILE` writes what a turn costs our server (cProfile, by own time).
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import cProfile
import json
import os
import pstats
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

CLIENTS, FIRST_BYTES = 50, 200
TOKEN = "bench-token"
LATENCY = 0.020  # seconds of the model
ANSWER = "This is an answer of some twenty words, as a model gives them, in a few pieces of text."
PROMPT = "How are you today?"
_END = b"data: [DONE]"


# --- the model -----------------------------------------------------------------------------------


def _canned_reply() -> bytes:
    words = ANSWER.split(" ")
    pieces = [" ".join(words[at : at + 4]) + " " for at in range(0, len(words), 4)]
    common = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "scripted"}
    choices: list[dict[str, object]] = [
        {"index": 0, "delta": {"role": "assistant", "content": piece}, "finish_reason": None}
        for piece in pieces
    ]
    choices.append({"index": 0, "delta": {}, "finish_reason": "stop"})
    events: list[dict[str, object]] = [{**common, "choices": [one]} for one in choices]
    usage = {"prompt_tokens": 9, "completion_tokens": 20, "total_tokens": 29}
    events.append({**common, "choices": [], "usage": usage})
    body = b"".join(b"data: " + json.dumps(e).encode() + b"\n\n" for e in events)
    body += b"data: [DONE]\n\n"
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


async def serve_ours(folder: Path) -> None:
    from recollect.runtime.runtime import open_runtime
    from recollect.server.access import AccessToken, AccessTokens, Identity, hash_token
    from recollect.server.http.http_app import build_app
    from recollect.server.http.http_server import HttpServer
    from recollect.server.responses.responses_routes import responses_routes
    from recollect.server.session_hub import SessionHub

    tokens = AccessTokens([AccessToken(Identity("bench", "chat"), hash_token(TOKEN))])
    async with open_runtime(folder) as runtime:
        hub = SessionHub(runtime)
        server = HttpServer(build_app(hub, tokens, responses=responses_routes(hub)))
        await _serve(server)
        await hub.close()
        await server.stop()


async def serve_bare(folder: Path) -> None:
    """The events of one of our answers, one chunk each, and nothing else."""
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import StreamingResponse
    from starlette.routing import Route

    from recollect.server.http.http_server import HttpServer

    chunks = [part + b"\n\n" for part in (folder / "answer").read_bytes().split(b"\n\n") if part]

    async def answer(request: Request) -> StreamingResponse:
        await request.json()

        async def events():  # type: ignore[no-untyped-def]
            for chunk in chunks:
                yield chunk

        return StreamingResponse(events(), media_type="text/event-stream")

    app = Starlette(routes=[Route("/v1/responses", answer, methods=["POST"])])
    app.state.stopping = asyncio.Event()
    server = HttpServer(app)
    await _serve(server)
    await server.stop()


async def _serve(server) -> None:  # type: ignore[no-untyped-def]
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    await server.start()
    print(server.port, flush=True)
    await stop.wait()


# --- the client ----------------------------------------------------------------------------------


class _Connection:
    """One kept-alive connection; `ask` gives the time to the first byte and the whole body."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    @classmethod
    async def open(cls, port: int) -> _Connection:
        return cls(*await asyncio.open_connection("127.0.0.1", port))

    async def ask(self, port: int, **more: object) -> tuple[float, bytes]:
        body = json.dumps({"model": "scripted", "input": PROMPT, "stream": True} | more).encode()
        head = (
            f"POST /v1/responses HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n"
            f"Authorization: Bearer {TOKEN}\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        start = time.perf_counter()
        self._writer.write(head.encode() + body)
        answer = await self._reader.readuntil(b"\r\n\r\n")
        assert b" 200 " in answer[:20], answer + await self._reader.read(2_000)
        data, first = b"", 0.0
        while True:
            size = int(await self._reader.readuntil(b"\r\n"), 16)
            data += (await self._reader.readexactly(size + 2))[:-2]
            first = first or time.perf_counter() - start
            if not size:
                return first, data

    def close(self) -> None:
        self._writer.close()


async def first_bytes(port: int) -> list[float]:
    connection = await _Connection.open(port)
    times = [(await connection.ask(port))[0] for _ in range(FIRST_BYTES + 20)][20:]
    connection.close()
    return times


async def turns(port: int, seconds: float, *, continues: bool = False) -> float:
    """Answers per second; `continues`: each client goes on from its last response."""
    connections = [await _Connection.open(port) for _ in range(CLIENTS)]
    done = 0
    start = time.monotonic()

    async def chat(connection: _Connection) -> None:
        nonlocal done
        more: dict[str, object] = {}
        while time.monotonic() < start + seconds:
            _, data = await connection.ask(port, **more)
            assert b"response.completed" in data, data[-500:]
            assert _END in data, data[-500:]
            done += 1
            if continues:
                at = data.index(b'"id":"resp_') + 6
                more = {"previous_response_id": data[at : data.index(b'"', at)].decode()}

    await asyncio.gather(*map(chat, connections))
    for connection in connections:
        connection.close()
    return done / (time.monotonic() - start)


# --- running it ----------------------------------------------------------------------------------


@contextlib.contextmanager
def _process(role: str, folder: Path, *more: str) -> Iterator[int]:
    environment = os.environ | {"RECOLLECT_HOME": str(folder / "home"), "BENCH_KEY": "sk-none"}
    command = [sys.executable, "-m", "bench.responses_load", "--role", role]
    process = subprocess.Popen(
        [*command, "--folder", str(folder), *more], stdout=subprocess.PIPE, env=environment
    )
    assert process.stdout is not None
    try:
        yield int(process.stdout.readline())
    finally:
        process.terminate()
        process.wait(60)


@contextlib.contextmanager
def _litellm(program: str, folder: Path, model: int) -> Iterator[int]:
    (folder / "litellm.yaml").write_text(
        "model_list:\n  - model_name: scripted\n    litellm_params:\n"
        "      model: lm_studio/scripted\n      api_key: sk-none\n"
        f"      api_base: http://127.0.0.1:{model}\n"
        f"general_settings:\n  master_key: {TOKEN}\n"
    )
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [program, "--config", str(folder / "litellm.yaml"), "--host", "127.0.0.1"]
    environment = os.environ | {"LITELLM_LOG": "ERROR", "LITELLM_TELEMETRY": "False"}
    with (folder / "litellm.log").open("wb") as log:
        process = subprocess.Popen(
            [*command, "--port", str(port), "--telemetry", "False"],
            stdout=log, stderr=log, env=environment,
        )  # fmt: skip
        try:
            for _ in range(600):
                with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                    break
                time.sleep(0.2)
            yield port
        finally:
            process.terminate()
            process.wait(60)


async def _one_answer(port: int) -> bytes:
    connection = await _Connection.open(port)
    _, data = await connection.ask(port)
    connection.close()
    return data


def measure(seconds: float, litellm: str, profile: str) -> dict[str, float]:
    found: dict[str, float] = {}
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as place:
        folder = Path(place)
        (folder / "home").mkdir()
        with _process("model", folder) as model:
            (folder / "home" / "settings.toml").write_text(
                'model = "scripted"\n[models.scripted]\nwire = "openai"\nkey = "BENCH_KEY"\n'
                f'url = "http://127.0.0.1:{model}"\nwindow = 200000\n'
            )
            with _process("ours", folder) as port:
                (folder / "answer").write_bytes(asyncio.run(_one_answer(port)))
                with _process("bare", folder) as bare:
                    for name, at in (("bare", bare), ("ours", port), ("bare_again", bare)):
                        times = asyncio.run(first_bytes(at))
                        found[f"first_byte_ms_{name}"] = 1_000 * statistics.median(times)
            more = ("--profile", profile) if profile else ()
            with _process("ours", folder, *more) as port:
                found["turns_ours"] = asyncio.run(turns(port, seconds))
                found["turns_ours_continued"] = asyncio.run(turns(port, seconds, continues=True))
            if litellm:
                with _litellm(litellm, folder, model) as port:
                    asyncio.run(turns(port, 5))
                    found["turns_litellm"] = asyncio.run(turns(port, seconds))
                    found["turns_ratio"] = found["turns_ours"] / found["turns_litellm"]
    bare_ms = (found["first_byte_ms_bare"] + found["first_byte_ms_bare_again"]) / 2
    return found | {"first_byte_ratio": found["first_byte_ms_ours"] / bare_ms}


def _run_role(role: str, folder: Path, profile: str) -> None:
    roles: dict[str, Callable[[], Awaitable[None]]] = {
        "model": serve_model,
        "ours": lambda: serve_ours(folder),
        "bare": lambda: serve_bare(folder),
    }
    work = roles[role]()
    if not profile:
        with contextlib.suppress(KeyboardInterrupt):
            asyncio.run(work)  # type: ignore[arg-type]
        return
    profiler = cProfile.Profile()
    profiler.runcall(asyncio.run, work)
    with Path(profile).open("w", encoding="utf-8") as out:
        stats = pstats.Stats(profiler, stream=out)
        stats.sort_stats("tottime").print_stats(60)
        stats.sort_stats("cumulative").print_stats(120)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--litellm", default="", help="LiteLLM's program, to measure beside us")
    parser.add_argument("--profile", default="")
    parser.add_argument("--role", default="")
    parser.add_argument("--folder", type=Path, default=Path())
    given = parser.parse_args()
    if given.role:
        _run_role(given.role, given.folder, given.profile)
    else:
        found = measure(given.seconds, given.litellm, given.profile)
        print(json.dumps({name: round(value, 2) for name, value in found.items()}, indent=2))


if __name__ == "__main__":
    main()

"""`python -m recollect.testing`, for clients in other languages."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager

import psutil
import pytest

from recollect.testing import FAULTS
from tests.testing.raw_client import PATIENCE, ask, request_bytes

COMMAND = [sys.executable, "-m", "recollect.testing"]


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, timeout=PATIENCE)


@contextmanager
def running(*arguments: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    process = subprocess.Popen([*COMMAND, *arguments], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    with process:
        try:
            yield process, process.stdout.readline()
        finally:
            process.kill()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_serves_a_fault_until_it_is_interrupted(number: signal.Signals) -> None:
    with running("openai", "--fault", "no-done") as (process, line):
        url = line.split()[0]
        assert line == f"{url} plays openai: no `[DONE]` (Ctrl-C ends it)\n"
        for _ in range(2):
            seen = ask(url, "openai")
            assert seen.words == ["stop"]
            assert not seen.has_marker
        process.send_signal(number)
        assert process.wait(PATIENCE) == 0


def test_the_help_has_an_example_and_the_list_has_every_fault() -> None:
    assert "--fault cut-arguments --port 8080" in run("--help").stdout
    listed = run("--list").stdout
    assert all(f"  {name} " in listed for name in FAULTS)
    assert "google-per-day" not in run("openai", "--list").stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "name a format: gemini, openai, anthropic; or use --list"),
        (("openai", "--fault", "google-per-day"), "no fault 'google-per-day' of openai"),
        (("cohere",), "'cohere' is not one of 'gemini', 'openai', 'anthropic'"),
    ],
)
def test_what_it_cannot_serve_is_refused_with_what_it_can(
    arguments: tuple[str, ...], message: str
) -> None:
    done = run(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr


def test_a_port_that_is_taken_is_one_sentence() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = run("openai", "--port", str(port))
    assert done.returncode == 1
    assert done.stderr == f"Error: cannot listen on port {port}: Address already in use\n"


def test_a_bomb_is_a_gigabyte_for_the_client_and_nothing_for_the_server() -> None:
    with running("openai", "--fault", "gzip-bomb") as (process, line):
        url = line.split()[0]
        ask(url, "openai")
        before = psutil.Process(process.pid).memory_info().rss
        seen = ask(url, "openai")
        grown = psutil.Process(process.pid).memory_info().rss - before
    assert len(seen.body) < 2_000_000
    assert grown < 20_000_000
    unpacker = zlib.decompressobj(31)
    size, data = 0, seen.body
    while data and not unpacker.eof:
        size += len(unpacker.decompress(data, 1 << 24))
        data = unpacker.unconsumed_tail
    assert unpacker.eof  # the checksum at its end was right
    assert size > 1_000_000_000


@pytest.mark.parametrize("name", ["endless-text", "endless-comments", "endless-line"])
def test_an_endless_reply_needs_no_memory_and_stops_when_the_client_does(name: str) -> None:
    with running("anthropic", "--fault", name) as (process, line):
        host, port = line.split()[0].removeprefix("http://").split(":")
        before = psutil.Process(process.pid)
        start = before.memory_info().rss
        with socket.create_connection((host, int(port)), PATIENCE) as connection:
            connection.sendall(request_bytes("anthropic"))
            read = 0
            while read < 200_000_000:
                read += len(connection.recv(1 << 20))
            grown = before.memory_info().rss - start
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE) == 0
    assert grown < 20_000_000

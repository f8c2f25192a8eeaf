"""How the child of the embedded model begins and ends, seen from outside."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/stat").exists(), reason="processes are watched in Linux's /proc"
)

# A program that starts the model, says which process it is, and goes on in some way.
PROGRAM = """
import asyncio, os, sys, time
from recollect.models import embedded
from recollect.models.embedded import Embedded, endpoint

asyncio.run(endpoint())
print(embedded._shared._running[None].process.pid, flush=True)
"""


@contextmanager
def begun(rest: str, folder: Path) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """The program, and the process that it has started."""
    with subprocess.Popen(
        [sys.executable, "-W", "error", "-c", PROGRAM + rest],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=folder,
        start_new_session=True,
    ) as program:
        try:
            yield program, int(line_of(program))
        finally:
            program.kill()


def line_of(program: subprocess.Popen[str]) -> str:
    assert program.stdout is not None
    return program.stdout.readline()


def is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return False
    return state != "Z"


def ends_soon(pid: int, seconds: float = 15.0) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if not is_running(pid):
            return True
        time.sleep(0.05)
    return False


def finish(program: subprocess.Popen[str]) -> tuple[str, str]:
    return program.communicate(timeout=60)


def test_a_child_does_not_outlive_a_parent_that_was_killed(tmp_path: Path) -> None:
    with begun("time.sleep(600)", tmp_path) as (program, child):
        assert is_running(child)
        program.kill()
        assert ends_soon(child)


FORKED = """
fork = os.fork()
if fork == 0:
    os.closerange(0, 3)
    time.sleep(600)
    os._exit(0)
print(fork, flush=True)
time.sleep(600)
"""


def test_nor_does_it_when_a_fork_of_the_parent_still_holds_its_input(tmp_path: Path) -> None:
    with begun(FORKED, tmp_path) as (program, child):
        fork = int(line_of(program))
        try:
            program.kill()
            assert ends_soon(child)
            assert is_running(fork)
        finally:
            os.kill(fork, signal.SIGKILL)


def test_a_program_that_closes_nothing_ends_cleanly_and_so_does_the_child(tmp_path: Path) -> None:
    with begun("", tmp_path) as (program, child):
        assert finish(program) == ("", "")
        assert program.returncode == 0
        assert ends_soon(child)


LATER = """
time.sleep(2)
running = embedded._shared._running[None].process
print(running.poll(), asyncio.run(endpoint()) == asyncio.run(endpoint()))
"""


def test_the_child_outlives_the_event_loop_and_the_threads_that_started_it(tmp_path: Path) -> None:
    with begun(LATER, tmp_path) as (program, _):
        assert finish(program) == ("None True\n", "")


CLOSING = """
async def close_both():
    one, two = Embedded(), Embedded()
    await one.endpoint(), await two.endpoint()
    await embedded._everybody.aclose()
    await one.aclose()
    print(len(embedded._shared._running))
    await two.aclose()
    print(len(embedded._shared._running), flush=True)
asyncio.run(close_both())
time.sleep(600)
"""


def test_the_last_to_close_ends_the_child(tmp_path: Path) -> None:
    with begun(CLOSING, tmp_path) as (program, child):
        assert (line_of(program), line_of(program)) == ("1\n", "0\n")
        assert not is_running(child)


INTERRUPTED = """
try:
    print("waiting", flush=True)
    time.sleep(600)
except KeyboardInterrupt:
    print("interrupted", flush=True)
time.sleep(600)
"""


def test_ctrl_c_in_the_terminal_does_not_reach_the_child(tmp_path: Path) -> None:
    with begun(INTERRUPTED, tmp_path) as (program, child):
        assert line_of(program) == "waiting\n"
        os.killpg(program.pid, signal.SIGINT)
        assert line_of(program) == "interrupted\n"
        time.sleep(0.3)
        assert is_running(child)


def test_a_module_in_the_current_folder_does_not_pass_for_the_engine(tmp_path: Path) -> None:
    (tmp_path / "xllamacpp.py").write_text("raise SystemExit('a trap')")
    (tmp_path / "msgspec.py").write_text("raise SystemExit('a trap')")
    program = subprocess.run(
        [sys.executable, "-P", "-c", PROGRAM],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (program.returncode, program.stderr) == (0, "")
    assert program.stdout.strip().isdigit()

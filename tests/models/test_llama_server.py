"""How the child process of the embedded model starts and exits, seen from outside."""

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

# A program that starts the model, prints the process id of its server, and goes on in some way.
PROGRAM = """
import asyncio, os, sys, time
from recollect.models import embedded_model
from recollect.models.embedded_model import EmbeddedServer, server_address

asyncio.run(server_address())
print(embedded_model._shared["small"].child.process.pid, flush=True)
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


def ends_soon(pid: int, seconds: float = 60.0) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if not is_running(pid):
            return True
        time.sleep(0.05)
    return False


INTERRUPTED = """
before = asyncio.run(server_address())
try:
    print("waiting", flush=True)
    time.sleep(600)
except KeyboardInterrupt:
    print("the same" if asyncio.run(server_address()) == before else "another", flush=True)
time.sleep(600)
"""


def test_the_child_survives_ctrl_c_and_exits_when_its_parent_is_killed(tmp_path: Path) -> None:
    with begun(INTERRUPTED, tmp_path) as (program, child):
        assert line_of(program) == "waiting\n"
        os.killpg(program.pid, signal.SIGINT)
        assert line_of(program) == "the same\n"
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


def test_it_exits_with_its_parent_also_while_a_fork_holds_its_input(tmp_path: Path) -> None:
    with begun(FORKED, tmp_path) as (program, child):
        fork = int(line_of(program))
        try:
            program.kill()
            assert ends_soon(child)
            assert is_running(fork)
        finally:
            os.kill(fork, signal.SIGKILL)


LATER = """
time.sleep(1.2)  # until it has looked for its parent
running = embedded_model._shared["small"].child.process
print(running.poll(), asyncio.run(server_address()) == asyncio.run(server_address()))
"""


def test_the_child_outlives_event_loops_and_threads_and_exits_with_the_program(
    tmp_path: Path,
) -> None:
    """Though the program closes nothing, it leaves no warning."""
    with begun(LATER, tmp_path) as (program, child):
        assert program.communicate(timeout=60) == ("None True\n", "")
        assert program.returncode == 0
        assert ends_soon(child)


CLOSING = """
async def close_both():
    one, two = EmbeddedServer(), EmbeddedServer()
    await one.address(), await two.address()
    await embedded_model._process_wide["small"].aclose()
    await one.aclose()
    print(embedded_model._shared["small"].child is not None)
    await two.aclose()
    print(embedded_model._shared["small"].child is not None, flush=True)
asyncio.run(close_both())
time.sleep(600)
"""


def test_the_last_user_to_close_stops_the_child(tmp_path: Path) -> None:
    with begun(CLOSING, tmp_path) as (program, child):
        assert (line_of(program), line_of(program)) == ("True\n", "False\n")
        assert not is_running(child)


def test_a_module_in_the_current_directory_is_not_taken_for_the_engine(tmp_path: Path) -> None:
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

"""The process from which supervisors are forked: one for all commands, and it ends with us."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from recollect.execution.sandbox import Isolation
from tests.execution.workbench import Bench, on_bench, wait_until, words

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="Linux only")
PROGRAM = "supervisor import serve"


def servers() -> list[psutil.Process]:
    found = psutil.Process().children()
    return [one for one in found if any(PROGRAM in word for word in one.cmdline())]


def test_all_commands_share_one_and_it_has_nothing_of_ours(
    tmp_path: Path, isolation: Isolation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_SECRET", "canary")

    async def steps(bench: Bench) -> None:
        for _ in range(3):
            assert "[exit code 0" in words(await bench.run("echo hello"))
        (one,) = servers()
        assert one.environ().keys() <= {"LC_ALL", "LC_CTYPE"}

    on_bench(tmp_path, isolation, steps)


def test_a_command_runs_after_it_was_killed(tmp_path: Path, isolation: Isolation) -> None:
    async def steps(bench: Bench) -> None:
        await bench.run("true")
        (one,) = servers()
        one.kill()
        assert "hello\n[exit code 0" in words(await bench.run("echo hello"))

    on_bench(tmp_path, isolation, steps)


SCRIPT = """
import sys
from recollect.execution.fork_server import FORK_SERVER
FORK_SERVER.start()
print(FORK_SERVER._process.pid, flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("how", [signal.SIGKILL, None], ids=["killed", "at an ordinary end"])
def test_it_ends_with_us(how: signal.Signals | None) -> None:
    line = [sys.executable, "-c", SCRIPT]
    with subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        server = psutil.Process(int(process.stdout.readline()))
        if how is not None:
            os.kill(process.pid, how)
        process.communicate()
    assert wait_until(lambda: not server.is_running() or server.status() == "zombie")

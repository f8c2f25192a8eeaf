"""No process of a command outlives it, wherever it has gone."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from pathlib import Path

import pytest

from recollect.execution.process import COMMAND_MARK
from recollect.execution.sandbox import Isolation
from tests.execution.workbench import (
    BARE,
    PATIENCE,
    Bench,
    alive,
    gone,
    on_bench,
    run_to_the_limit,
    wait_until,
    words,
)

SETSID = "setsid sleep {0} & (setsid sh -c 'setsid sleep {0} & sleep {0}' &) ; sleep 0.1; {1}"


def test_grandchildren_in_sessions_of_their_own_end_with_the_limit(
    tmp_path: Path, isolation: Isolation, nap: str
) -> None:
    async def steps(bench: Bench) -> None:
        line = SETSID.format(nap, f"echo all begun; sleep {nap}")
        ended = await run_to_the_limit(bench, line, shows="all begun")
        assert ended.status == "timed out"
        assert "could not be ended" not in words(ended)
        assert gone(nap)

    on_bench(tmp_path, isolation, steps)


def test_a_grandchild_in_its_own_session_outlives_a_plain_kill(nap: str) -> None:
    """What the test above would miss if nothing were searched for: the danger is real."""
    line = ["bash", "-c", SETSID.format(nap, f"sleep {nap}")]
    process = subprocess.Popen(line, start_new_session=True)
    assert wait_until(lambda: len(alive(nap)) >= 4)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    left = alive(nap)
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    assert len(left) >= 2


def test_processes_that_a_finished_command_left_running_end_too(
    tmp_path: Path, isolation: Isolation, nap: str
) -> None:
    async def steps(bench: Bench) -> None:
        ended = await bench.run(SETSID.format(nap, "echo done"))
        assert words(ended).startswith("done\n[exit code 0")
        assert gone(nap)

    on_bench(tmp_path, isolation, steps)


def test_a_cancellation_ends_everything_at_once(
    tmp_path: Path, isolation: Isolation, nap: str
) -> None:
    async def steps(bench: Bench) -> None:
        line = SETSID.format(nap, f"yes {nap}")
        running = asyncio.create_task(bench.run(line, timeout=3600))
        async with asyncio.timeout(PATIENCE):
            while not bench.heard:
                await asyncio.sleep(0.05)
        assert alive(nap)
        running.cancel()
        async with asyncio.timeout(PATIENCE):
            with pytest.raises(asyncio.CancelledError):
                await running
        assert gone(nap)

    on_bench(tmp_path, isolation, steps)


def test_a_tree_that_grows_while_it_is_ended_ends(
    tmp_path: Path, isolation: Isolation, nap: str
) -> None:
    # a fork bomb with a fuse: it goes on forking, but never has more than some hundred processes
    script = tmp_path / "work" / "sub" / "grow.sh"
    script.parent.mkdir(parents=True)
    script.write_text(f"[ $1 -gt 60 ] && exit\nsetsid sh grow.sh $(($1+1)) {nap} &\nsleep 2\n")

    async def steps(bench: Bench) -> None:
        line = f"for i in 1 2 3; do setsid sh grow.sh 0 {nap} & done; sleep {nap}"
        ended = await bench.run(line, directory="sub", timeout=0.5)
        assert ended.status == "timed out"
        assert gone(nap)

    on_bench(tmp_path, isolation, steps)


def test_a_process_that_ignores_signals_and_closes_its_output_ends(
    tmp_path: Path, isolation: Isolation, nap: str
) -> None:
    async def steps(bench: Bench) -> None:
        line = f"trap '' TERM INT HUP; exec >&- 2>&-; while :; do sleep {nap}; done"
        ended = await bench.run(line, timeout=0.5)
        assert ended.status == "timed out"
        assert gone(nap)

    on_bench(tmp_path, isolation, steps)


def test_every_process_of_a_command_carries_its_mark(tmp_path: Path) -> None:
    async def steps(bench: Bench) -> None:
        said = words(
            await bench.run(f"echo ${COMMAND_MARK}; setsid -w sh -c 'echo ${COMMAND_MARK}'")
        )
        first, second, *_ = said.splitlines()
        assert first == second
        assert len(first) == 16

    on_bench(tmp_path, BARE, steps)

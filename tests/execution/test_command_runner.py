"""Commands as the model runs them: real processes, in flat memory, with clear results."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from recollect.entries import json_text
from recollect.execution.command_runner import CommandLimits
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


def test_the_result_has_output_exit_code_and_time(tmp_path: Path, isolation: Isolation) -> None:
    async def steps(bench: Bench) -> None:
        good = await bench.run("echo out; echo err >&2")
        assert re.match(r"out\nerr\n\[exit code 0 after \d+\.\d s; ", words(good))
        assert not good.is_error
        assert isolation.description in words(good)  # once
        bad = await bench.run("exit 7")
        assert bad.is_error
        assert bad.status == "exit 7"
        assert "exit code 7" in words(bad)
        assert isolation.description not in words(bad)
        assert isolation.kind == "none" or f"{isolation.kind} sandbox, no network" in words(bad)
        assert "".join(bench.heard) == "out\nerr\n"

    on_bench(tmp_path, isolation, steps)


def test_the_command_is_run_byte_for_byte(tmp_path: Path, isolation: Isolation) -> None:
    async def steps(bench: Bench) -> None:
        odd = "printf '%s|' 'a  b' \"q'q\" \\\n tab\there é日 '--' '-c'"
        assert words(await bench.run(odd)).startswith("a  b|q'q|tab|here|é日|--|-c|")
        # with a hyphen first it is still a command and no option of the shell
        assert "-x: command not found" in words(await bench.run("-x"))

    on_bench(tmp_path, isolation, steps)


def test_standard_input_is_empty_and_the_environment_clean(
    tmp_path: Path, isolation: Isolation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_API_KEY", "s3cr3t-value")
    monkeypatch.setenv("BASH_ENV", str(tmp_path / "evil.sh"))
    (tmp_path / "evil.sh").write_text("echo sourced")
    shown = subprocess.run(["bash", "-c", "env"], capture_output=True, text=True)
    assert "s3cr3t-value" in shown.stdout
    assert "sourced" in shown.stdout

    async def steps(bench: Bench) -> None:
        said = words(await bench.run("cat; env"))
        assert "s3cr3t-value" not in said
        assert "sourced" not in said
        assert "PATH=/" in said

    on_bench(tmp_path, isolation, steps)


def test_a_time_limit_fires_while_output_is_endless(
    tmp_path: Path, isolation: Isolation, nap: str
) -> None:
    async def steps(bench: Bench) -> None:
        before = psutil.Process().memory_info().rss
        ended = await run_to_the_limit(bench, f"yes {nap}", shows="bytes left out here")
        assert ended.is_error
        assert ended.status == "timed out"
        assert re.search(r"ended by the time limit of \d+(\.5)? s", words(ended))
        assert "bytes left out here" in words(ended)
        assert len(words(ended)) < 40_000
        assert psutil.Process().memory_info().rss - before < 32 << 20
        assert gone(nap)

    on_bench(tmp_path, isolation, steps)


def test_one_line_of_80_megabytes_takes_flat_memory(tmp_path: Path) -> None:
    async def steps(bench: Bench) -> None:
        await bench.run("head -c 3000000 /dev/zero")  # what is needed once is loaded
        before, peak = psutil.Process().memory_info().rss, 0

        async def watch() -> None:
            nonlocal peak
            while True:
                peak = max(peak, psutil.Process().memory_info().rss)
                await asyncio.sleep(0.005)

        watching = asyncio.create_task(watch())
        ended = await bench.run("head -c 80000000 /dev/zero | tr '\\0' x; echo; echo the end")
        watching.cancel()
        assert words(ended).startswith("xxx")
        assert "of 80,000,009 bytes left out here; recall " in words(ended)
        assert " gives all but 72,000,009 of them ...]" in words(ended)
        assert "the end\n[exit code 0" in words(ended)
        assert len(bench.printed()) == 3_000_000 + 8_000_000
        # the notes are 8 MB, and this log is in memory
        assert peak - before < 48 << 20, f"{(peak - before) >> 20} MB more at the peak"

    on_bench(tmp_path, BARE, steps)


def test_bytes_that_are_not_text_are_shown_as_text(tmp_path: Path, isolation: Isolation) -> None:
    async def steps(bench: Bench) -> None:
        said = words(await bench.run(r"printf 'a\0b\377\033[31mred\033[0m\342\200\256'"))
        assert said.startswith("a\\x00b�red\\u{202e}\n[exit")

    on_bench(tmp_path, isolation, steps)


def test_jobs_run_in_the_background_and_can_be_read_and_ended(
    tmp_path: Path, isolation: Isolation, nap: str
) -> None:
    async def steps(bench: Bench) -> None:
        assert await bench.read() == "no job was started in the background"
        begun = await bench.run(f"echo hello; sleep {nap}; echo never", background=True)
        assert begun.status == "running"
        assert "hello" in await bench.read_until("job-1", "hello")
        assert "job-1  running" in await bench.read()
        assert "job-1 was ended" in await bench.end("job-1")
        assert gone(nap)
        assert "never" not in await bench.read("job-1")
        assert "no job 'job-9'; known: job-1" in await bench.read("job-9")

    on_bench(tmp_path, isolation, steps)


def test_a_job_that_fails_at_once_is_reported_by_its_start(tmp_path: Path) -> None:
    async def steps(bench: Bench) -> None:
        failed = await bench.run("echo no; exit 3", background=True)
        assert failed.status == "exit 3"
        assert words(failed).startswith("no\n[exit code 3")

    on_bench(tmp_path, BARE, steps, limits=CommandLimits(first_look=PATIENCE))


def test_the_number_of_jobs_is_bounded_and_all_end_with_the_session(
    tmp_path: Path, isolation: Isolation, nap: str
) -> None:
    async def steps(bench: Bench) -> None:
        for _ in range(2):
            assert not (await bench.run(f"sleep {nap}", background=True)).is_error
        refused = await bench.run(f"sleep {nap}", background=True)
        assert refused.is_error
        assert "2 jobs run already (job-1, job-2); end one with end_job" in words(refused)
        await bench.commands.close()
        assert gone(nap)

    on_bench(tmp_path, isolation, steps, limits=CommandLimits(jobs=2, first_look=0.01))


# In the foreground, in sessions of their own, with two parents gone and the environment wiped.
STAYERS = (
    "setsid sleep {0} & "
    "(setsid sh -c 'env -i setsid -f sleep {0}; trap \"\" HUP TERM; sleep {0}' &); "
    "nohup sleep {0} & echo begun; sleep {0}"
)


@pytest.mark.parametrize("background", [False, True])
def test_every_process_ends_when_our_process_is_killed(
    tmp_path: Path, isolation: Isolation, nap: str, background: bool
) -> None:
    script = f"""
import asyncio, pathlib, sys
sys.path.insert(0, {str(Path(__file__).parents[2])!r})
from tests.execution.workbench import Bench, isolation_of
async def main():
    bench = Bench(pathlib.Path({str(tmp_path / "work")!r}), isolation_of({isolation.kind!r}))
    await bench.run({STAYERS.format(nap)!r}, background={background}, timeout=3600)
    await asyncio.sleep(3600)
asyncio.run(main())
"""
    with subprocess.Popen(
        [sys.executable, "-c", script], env={**os.environ, "TMPDIR": str(tmp_path)}
    ) as process:
        assert wait_until(lambda: len(alive(nap)) >= 5)
        process.kill()
    assert gone(nap)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"command": ""}, "the command is empty"),
        ({"command": " \n"}, "the command is empty"),
        ({"command": "a\0b"}, "cannot have a NUL"),
        ({"command": "\ud800"}, "not valid Unicode"),
        ({"command": "x" * 100_001}, "the limit is 100,000"),
        ({"command": "ls", "directory": ".."}, "outside the workspace"),
        ({"command": "ls", "directory": "/etc"}, "outside the workspace"),
        ({"command": "ls", "directory": "link"}, "outside the workspace"),
        ({"command": "ls", "directory": "missing"}, "there is no folder 'missing'"),
        ({"command": "ls", "directory": "a\0"}, "not a path"),
        ({"command": "ls", "directory": "d/" * 3000}, "not a path"),
        ({"command": "ls", "timeout": -1}, "timeout must be"),
        ({"command": "ls", "timeout": 1e300}, "timeout must be"),
        ({"command": 7}, "is a number"),
    ],
)
def test_a_command_that_cannot_be_run_is_refused_with_the_reason(
    tmp_path: Path, arguments: dict[str, object], reason: str
) -> None:
    async def steps(bench: Bench) -> None:
        (bench.root / "link").symlink_to("/etc")
        refused = await bench.run_tool(json_text(arguments), bench.context)
        assert refused.is_error
        assert reason in words(refused)

    on_bench(tmp_path, BARE, steps)


def test_the_directory_is_where_it_runs(tmp_path: Path, isolation: Isolation) -> None:
    async def steps(bench: Bench) -> None:
        here = words(await bench.run("pwd -P"))
        there = words(await bench.run("pwd -P", directory="sub"))
        assert here.startswith(f"{bench.root.resolve()}\n")
        assert there.startswith(f"{bench.root.resolve() / 'sub'}\n")

    on_bench(tmp_path, isolation, steps)


def test_nothing_is_left_in_the_workspace_or_among_temporary_files(
    tmp_path: Path, isolation: Isolation
) -> None:
    folders = set[Path]()

    async def steps(bench: Bench) -> None:
        for ended in await asyncio.gather(
            *(bench.run('seq 1 30000; echo "in $TMPDIR"') for _ in range(3))
        ):
            (name,) = re.findall(r"^in (\S+)$", words(ended), re.MULTILINE)
            folders.add(Path(name).parent)
        await bench.run("sleep 9", timeout=0.2)
        assert [item.name for item in bench.root.iterdir()] == ["sub"]

    on_bench(tmp_path, isolation, steps)
    assert len(folders) == 1
    assert folders == {Path("/")} or not any(folder.exists() for folder in folders)


def test_a_command_that_removes_its_own_folders_breaks_nothing(tmp_path: Path) -> None:
    async def steps(bench: Bench) -> None:
        await bench.run('rm -rf "$TMPDIR/.."')
        said = words(await bench.run("seq 1 30000; touch $TMPDIR/x && echo there"))
        assert "bytes left out here; recall" in said
        assert "there\n[exit code 0" in said
        await bench.run('rm -rf "$PWD"')
        refused = await bench.run("echo x")
        assert refused.is_error
        assert "cannot be a workspace for commands" in words(refused)

    on_bench(tmp_path, BARE, steps)


def test_a_flood_of_output_does_not_block_the_event_loop(tmp_path: Path) -> None:
    async def steps(bench: Bench) -> None:
        running = asyncio.create_task(bench.run("head -c 200000000 /dev/zero"))
        turns = 0
        while not running.done():
            await asyncio.sleep(0.001)
            turns += 1
        assert turns > 20
        assert sum(map(len, bench.heard)) < 20_000_000

    on_bench(tmp_path, BARE, steps)

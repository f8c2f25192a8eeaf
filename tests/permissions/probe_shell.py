"""Runs command lines in real shells and says which programs ran with which words.

`python probe_shell.py` runs inside bubblewrap, where only an empty folder can be written. It reads
lines as JSON and prints what each did. Every program on the path is the same harmless probe, which
writes its words into a log.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, TypedDict

_PROBE = """#!/bin/sh
printf '%s\\0' "${0##*/}" "$@" '<end of words>' >> "$PROBE_LOG"
case $0 in */no) exit 1;; esac
"""
# bash calls it for a name that is not on the path
_NOT_FOUND = """() { printf '%s\\0' "$@" '<end of words>' >> "$PROBE_LOG"; }"""


class ShellRun(TypedDict):
    programs: list[list[str]]
    files: list[str]


class Shell(NamedTuple):
    name: str
    path: str


def find_shells() -> list[Shell]:
    found = [Shell(name, shutil.which(name) or "") for name in ("bash", "dash")]
    return [shell for shell in found if shell.path]


def run_lines(lines: list[str], shell: Shell, names: tuple[str, ...]) -> list[ShellRun]:
    """Run lines in bubblewrap; bytes that are not UTF-8 are kept as surrogates."""
    command = (
        *("bwrap", "--ro-bind", "/", "/", "--tmpfs", "/tmp", "--dev", "/dev", "--proc", "/proc"),
        *(
            "--unshare-all",
            "--die-with-parent",
            "--new-session",
            "--ro-bind",
            __file__,
            "/tmp/run.py",
        ),
        *(sys.executable, "-I", "/tmp/run.py", shell.path),
    )
    given = json.dumps({"lines": lines, "names": names})
    done = subprocess.run(command, input=given, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    runs: list[ShellRun] = json.loads(done.stdout)
    return runs


def _await_all(process: subprocess.Popen[bytes]) -> None:
    """Wait for a shell and for what it left in the background; end loops without end."""
    deadline = time.monotonic() + 5
    try:
        process.wait(5)
        while time.monotonic() < deadline:
            os.killpg(process.pid, 0)
            time.sleep(0.001)
    except subprocess.TimeoutExpired:
        pass
    except ProcessLookupError:
        return
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _run_line(line: str, shell: str, programs: Path) -> ShellRun:
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        log, work = Path(folder, "log"), Path(folder, "work")
        work.mkdir()
        environment = {
            "PATH": str(programs),
            "HOME": "/tmp/home",
            "LC_ALL": "C.UTF-8",
            "PROBE_LOG": str(log),
            "BASH_FUNC_command_not_found_handle%%": _NOT_FOUND,
        }
        with subprocess.Popen(
            [shell, "-c", os.fsencode(line)],
            cwd=work,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        ) as process:
            _await_all(process)
        words = log.read_bytes().split(b"\0")[:-1] if log.exists() else []
        ran: list[list[str]] = [[]]
        for word in words:
            if word == b"<end of words>":
                ran.append([])
            else:
                ran[-1].append(os.fsdecode(word))
        return {"programs": ran[:-1], "files": sorted(file.name for file in work.iterdir())}


def _main() -> None:
    given = json.load(sys.stdin)
    programs = Path("/tmp/programs")
    programs.mkdir()
    Path("/tmp/home").mkdir()
    for name in given["names"]:
        (programs / name).write_text(_PROBE)
        (programs / name).chmod(0o755)
    json.dump([_run_line(line, sys.argv[1], programs) for line in given["lines"]], sys.stdout)


if __name__ == "__main__":
    _main()

"""Runs a worker under strace, to read its system calls in order and to make some of them fail."""

from __future__ import annotations

import functools
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.reliability.children import WORKER, Fact

_LINE = re.compile(r"^(?P<tid>\d+)\s+(?P<call>\w+)\((?P<rest>.*)$")
_RESUMED = re.compile(r"^(?P<tid>\d+)\s+<\.\.\. (?P<call>\w+) resumed>(?P<rest>.*)$")
_FILE = re.compile(r"^\d+<(?P<file>[^>]*)>")


class Call(NamedTuple):
    """One finished system call: which, on which file, its other arguments and result as text."""

    name: str
    file: str
    rest: str


@functools.cache
def why_not() -> str:
    """Empty where strace works; else the reason to skip."""
    if shutil.which("strace") is None:
        return "strace is not installed"
    tried = subprocess.run(["strace", "-qq", "-o", "/dev/null", "true"], capture_output=True)
    return "" if tried.returncode == 0 else f"ptrace is forbidden here: {tried.stderr[:80]!r}"


needs_strace = pytest.mark.skipif(bool(why_not()), reason=why_not() or "strace works")


def traced(
    path: Path,
    mode: str,
    *arguments: str,
    inject: str = "",
    on: str | None = "",
    options: str = "",
) -> tuple[list[Fact], list[Call]]:
    """What the worker said, and its writes and syncs to store and acknowledgements, in order.

    With `inject` (strace's own notation) calls on the file with the suffix `on` fail, with None on
    any file; the acknowledgements go to a file of their own, by `write`, which never fails.
    """
    acks, trace = path.with_suffix(".acks"), path.with_suffix(".trace")
    for old in (acks, trace):
        old.unlink(missing_ok=True)
    watch = [f"{path}{suffix}" for suffix in ([on] if inject else ["", "-wal"])]
    files = [word for file in (*watch, str(acks)) for word in ("-P", file)]
    if on is None:
        files = []
    calls = "trace=write,pwrite64,pwritev,fdatasync,fsync,ftruncate"
    command = ["strace", "-f", "-y", "-qq", *options.split(), "-o", str(trace), "-e", calls, *files]
    if inject:
        command += ["-e", f"inject={inject}"]
    done = subprocess.run(
        [*command, sys.executable, str(WORKER), mode, str(path), *arguments],
        env={**os.environ, "RELIABILITY_ACKS": str(acks)},
        capture_output=True,
        text=True,
        timeout=280,
    )
    assert done.returncode in (0, 3), done.stderr
    said = acks.read_text().splitlines() if acks.exists() else []
    facts: list[Fact] = [json.loads(line) for line in said]
    return facts, parse(trace.read_text(errors="replace"))


def parse(trace: str) -> list[Call]:
    """Calls in the order in which they returned; those of several threads are put together."""
    begun: dict[str, tuple[str, str]] = {}
    calls = []
    for line in trace.splitlines():
        if found := _LINE.match(line):
            tid, name, rest = found["tid"], found["call"], found["rest"]
            if rest.endswith("<unfinished ...>"):
                begun[tid] = (name, rest.removesuffix("<unfinished ...>"))
                continue
        elif (found := _RESUMED.match(line)) and found["tid"] in begun:
            name, start = begun.pop(found["tid"])
            rest = start + found["rest"]
        else:
            continue
        where = _FILE.match(rest)
        calls.append(Call(name, where["file"] if where else "", rest))
    return calls

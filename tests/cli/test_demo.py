"""`recollect demo` and the two scripts of the README."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from .running import Cli

ROOT = Path(__file__).parents[2]


def test_the_demo_runs_every_step_and_shows_what_really_came_back(cli: Cli) -> None:
    out = cli.ok("demo").out
    steps = re.findall(r"^(\d+)\. ", out, re.M)
    assert steps == [str(n + 1) for n in range(len(steps))]
    for word in ("store.append", "store.fork", "store.rewind", "store.search", "export_session"):
        assert word in out
    assert "somebody else wrote first" in out
    assert "→ 0 entries added" in out
    assert "→ healthy" in out
    first, second = re.findall(r"→ ([0-9a-f]{32})", out)[:2]
    assert first != second
    assert not cli.home.exists()
    assert len(out.splitlines()) < 100


def test_two_demos_have_different_ids_because_nothing_is_made_up(cli: Cli) -> None:
    one, two = (re.search(r"[0-9a-f]{32}", cli.ok("demo").out) for _ in range(2))
    assert one
    assert two
    assert one[0] != two[0]


def test_a_kept_demo_can_be_looked_around_in(cli: Cli) -> None:
    out = cli.ok("demo", "--keep", "tour").out
    command = out.splitlines()[-1].split(": recollect ")[1]
    assert "Second opinion" in cli.ok(*command.split()).out
    again = cli("demo", "--keep", "tour")
    assert again.code == 1
    assert "there is already a store" in again.err


@pytest.mark.parametrize("script", ["start", "test"])
def test_the_scripts_are_executable_and_plain_shell(script: str) -> None:
    path = ROOT / script
    assert os.access(path, os.X_OK)
    for part in (path, ROOT / "scripts" / "uv.sh"):
        assert subprocess.run(["sh", "-n", str(part)], timeout=30).returncode == 0

"""`recollect demo` and the two scripts of the README."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from recollect.entries import Text, Usage
from tests.cli.model_server import ENV, reply, server
from tests.cli.runner import Cli

USAGE = Usage(input=40, output=7)
ROOT = Path(__file__).parents[2]


def test_the_tour_runs_every_step_and_shows_what_really_came_back(cli: Cli) -> None:
    out = cli.ok("demo", "--tour").out
    steps = re.findall(r"^(\d+)\. ", out, re.M)
    assert steps == [str(n + 1) for n in range(len(steps))]
    for word in ("store.append", "store.fork", "store.rewind", "store.search", "export_session"):
        assert word in out
    assert "another writer appended first" in out
    assert "→ 0 entries added" in out
    assert "→ healthy" in out
    first, second = re.findall(r"→ ([0-9a-f]{32})", out)[:2]
    assert first != second
    assert not cli.home.exists()
    assert len(out.splitlines()) < 100


def test_two_tours_have_different_ids_because_nothing_is_faked(cli: Cli) -> None:
    one, two = (re.search(r"[0-9a-f]{32}", cli.ok("demo", "--tour").out) for _ in range(2))
    assert one
    assert two
    assert one[0] != two[0]


def test_a_kept_tour_can_be_explored(cli: Cli) -> None:
    out = cli.ok("demo", "--tour", "--keep", "tour").out
    command = out.splitlines()[-1].split(": recollect ")[1]
    assert "Second opinion" in cli.ok(*command.split()).out
    again = cli("demo", "--tour", "--keep", "tour")
    assert again.code == 1
    assert "there is already a store" in again.err


def test_the_demo_is_one_real_exchange_and_what_the_model_saw(cli: Cli) -> None:
    with server(cli, reply(Text(text="A log that is written first."), usage=USAGE)) as on:
        done = cli.ok("demo", env=ENV)
    (asked,) = on.asked
    assert b"write-ahead log" in asked.body
    assert b"limiter.py" in asked.body  # what is in the folder
    assert "A log that is written first." in done.out
    assert "What the model saw" in done.out
    assert re.search(r"initial +\d+  You are recollect", done.out)
    assert not list(cli.home.glob("*.db"))
    assert "recollect -r" not in done.err  # it is gone already


def test_a_demo_that_cannot_ask_says_why(cli: Cli) -> None:
    failed = cli("demo", "-m", "gpt-5")
    assert failed.code == 41
    assert "OPENAI_API_KEY" in failed.err
    assert "Next:" not in failed.out


def test_on_a_terminal_the_user_can_continue_the_demo(cli: Cli) -> None:
    answers = [reply(Text(text="One.")), reply(Text(text="Two."))]
    with server(cli, *answers) as on:
        shown = cli.terminal("demo", keys=[(": ", "And then?\r"), ("to end: ", "\r")], env=ENV)
    assert len(on.asked) == 2
    assert b"And then?" in on.asked[1].body
    assert b"One." in on.asked[1].body
    assert "Two." in shown.out


@pytest.mark.parametrize("script", ["start", "test"])
def test_the_scripts_are_executable_and_plain_shell(script: str) -> None:
    path = ROOT / script
    assert os.access(path, os.X_OK)
    for part in (path, ROOT / "scripts" / "uv.sh"):
        assert subprocess.run(["sh", "-n", str(part)], timeout=30).returncode == 0

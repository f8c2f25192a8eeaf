"""Output on a real terminal: colours, a pager, nothing hostile; and how a command ends."""

from __future__ import annotations

import contextlib
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import apsw
import pytest

from recollect.testing import call, model, result, user
from tests.cli.runner import COMMAND, PATIENCE, Cli

STYLE = re.compile("\x1b\\[[0-9;]*m")
HOSTILE = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202egnp.exe\U000e0041\x08\x08\r\ud800"

INTERRUPTED_AT = """
import os, signal, sys
from recollect.cli.main import run

class Impatient:
    def find_spec(self, name, path=None, target=None):
        if name == {moment!r}:
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Impatient())
run(["sessions"])
"""


def long_session(cli: Cli) -> str:
    return cli.session([user(f"message {n}") for n in range(200)])[0].id


def test_a_terminal_gets_colours_and_a_pipe_does_not(cli: Cli) -> None:
    session, _ = cli.session([user("hello")])
    for arguments in (("sessions",), ("show", session.id), ("search", "hello")):
        assert "\x1b" in cli.screen(*arguments).out
        assert "\x1b" not in cli.ok(*arguments).out


def test_the_match_is_highlighted(cli: Cli) -> None:
    cli.session([user("a needle here")])
    out = cli.screen("search", "needle").out
    assert re.search("a \x1b\\[31m\x1b\\[1mneedle\x1b\\[0m here", out)


@pytest.mark.parametrize("env", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_no_color_and_dumb_terminals_get_no_colours(cli: Cli, env: dict[str, str]) -> None:
    session, _ = cli.session([user("hello")])
    out = cli.screen("show", session.id, env=env).out
    assert "hello" in out
    assert "\x1b" not in out


def test_force_color_colours_a_pipe_unless_no_color_is_set(cli: Cli) -> None:
    cli.session([user("hello")])
    assert STYLE.search(cli.ok("sessions", env={"FORCE_COLOR": "1"}).out)
    assert not STYLE.search(cli.ok("sessions", env={"FORCE_COLOR": "1", "NO_COLOR": "1"}).out)
    assert not STYLE.search(cli.ok("sessions", env={"FORCE_COLOR": "0"}).out)


@pytest.mark.skipif(not shutil.which("less"), reason="needs less")
def test_long_output_waits_in_the_pager_and_short_output_does_not(cli: Cli) -> None:
    session = long_session(cli)
    out = cli.terminal("show", session, keys=[("message 0", "q")]).out
    assert "  message 0" in out
    assert "message 199" not in out
    assert cli.terminal("sessions").code == 0  # would hang if less waited for a key


def test_an_interrupt_in_the_pager_belongs_to_the_pager(cli: Cli) -> None:
    keys = [("message 0", "\x03"), ("", "q")]
    result = cli.terminal("show", long_session(cli), keys=keys)
    assert result.code == 0
    assert "Traceback" not in result.out


def test_the_users_own_pager_is_used(cli: Cli) -> None:
    pager = {"PAGER": "grep -n message"}
    assert "12:" in cli.terminal("show", long_session(cli), env=pager).out


@pytest.mark.parametrize("pager", ["", "no-such-pager -x"])
def test_without_a_usable_pager_output_goes_straight_to_the_terminal(cli: Cli, pager: str) -> None:
    session, _ = cli.session([user("hello")])
    assert "hello" in cli.screen("show", session.id, env={"PAGER": pager}).out


def test_a_pipe_gets_no_pager(cli: Cli) -> None:
    assert "message 199" in cli.ok("show", long_session(cli), env={"PAGER": "false"}).out


def test_tables_are_truncated_to_the_terminals_width(cli: Cli) -> None:
    cli.session([user("a very long first prompt that becomes the title " * 3)])
    out = STYLE.sub("", cli.screen("sessions", columns=60).out)
    assert all(len(line) <= 60 for line in out.splitlines())
    assert "…" in out


def test_hostile_text_cannot_reach_the_terminal_as_commands(cli: Cli) -> None:
    broken = call("tool\x1b[2J", path=HOSTILE)
    reply = model(HOSTILE, broken)
    session, entries = cli.session([user(f"needle {HOSTILE}"), reply, result(broken, HOSTILE)])
    for arguments in (
        ("sessions", "--all"),
        ("show", session.id),
        ("show", session.id, "--tree"),
        ("show", entries[1].id, "--full"),
        ("search", "needle"),
        ("rename", session.id, f"title {HOSTILE[:-1]}"),
        ("show", f"nothing{HOSTILE[:-1]}"),
    ):
        seen = cli.screen(*arguments).out
        left = STYLE.sub("", seen).replace("\r\n", "\n").replace("\r\x1b[K", "")
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e\U000e0041\ud800]", left), arguments


def test_a_terminal_that_cannot_show_a_character_gets_its_number(cli: Cli) -> None:
    session, _ = cli.session([user("限流")])
    shown = cli.process("show", session.id, env={"PYTHONIOENCODING": "ascii"})
    assert "\\u9650\\u6d41" in shown.out


def test_a_reader_that_stops_early_ends_it_quietly(cli: Cli) -> None:
    session, _ = cli.session([user("x" * 5_000) for _ in range(200)])
    shell = f"{' '.join(COMMAND)} show {session.id} | head -1"
    done = subprocess.run(
        ["sh", "-c", shell], env=cli.env(), capture_output=True, text=True, timeout=PATIENCE
    )
    assert done.stderr == ""
    assert len(done.stdout.splitlines()) == 1


def test_an_interrupt_while_starting_is_quiet(cli: Cli) -> None:
    for moment in ("click", "recollect.cli.sessions", "apsw"):
        script = INTERRUPTED_AT.format(moment=moment)
        done = subprocess.run(
            [sys.executable, "-c", script],
            env=cli.env(),
            cwd=cli.project,
            capture_output=True,
            timeout=PATIENCE,
        )
        assert (done.returncode, done.stderr.strip()) == (130, b""), moment


def test_an_interrupt_does_not_wait_for_a_process_that_holds_the_file(cli: Cli) -> None:
    session, _ = cli.session([user("safe")])
    other = apsw.Connection(str(cli.store))
    other.execute("BEGIN IMMEDIATE")
    process = cli.start("rename", session.id, "too late")
    wait_until_open(process.pid, cli.store)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=PATIENCE)
    other.close()
    assert process.returncode == 130
    assert err.strip() == b""
    assert cli.ok("sessions", "--json").json[0]["title"] == "safe"


def wait_until_open(pid: int, file: Path) -> None:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError):  # a descriptor that was closed meanwhile
            if any(fd.readlink() == file for fd in Path(f"/proc/{pid}/fd").iterdir()):
                return
        time.sleep(0.05)
    raise AssertionError(f"process {pid} did not open {file}")

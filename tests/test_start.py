"""From the command to the first byte of its first request: how much is loaded on the way.

Most of that time is loading modules, so their number is what a careless import changes first. How
long it takes beside other programs is measured in `bench/startup.py`.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

# the audit hook is Python's own way to hear that a connection is about to be made
UNTIL_IT_CONNECTS = """
import os, sys

def hear(event, arguments):
    if event == "socket.connect":
        os.write(1, "\\n".join(sys.modules).encode())
        os._exit(0)

sys.addaudithook(hear)
sys.argv = ["recollect", "-p", "hi"]
from recollect.__main__ import main
main()
"""
SETTINGS = """model = "nobody"

[models.nobody]
url = "http://127.0.0.1:9/v1"
window = 100_000
"""
LOADED = "import sys; before = set(sys.modules); {}; print(*(set(sys.modules) - before))"


def _modules(code: str) -> set[str]:
    command = [sys.executable, "-c", LOADED.format(code)]
    return set(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split())


def test_the_first_request_loads_little_of_ours_beyond_what_it_needs(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "settings.toml").write_text(SETTINGS)
    done = subprocess.run(
        [sys.executable, "-c", UNTIL_IT_CONNECTS],
        cwd=tmp_path,
        env={**os.environ, "RECOLLECT_HOME": str(home)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    ours = {name for name in done.stdout.split("\n") if name.startswith("recollect.")}
    assert "recollect.agent.loop" in ours
    every = len(list((Path(__file__).parent.parent / "src").rglob("*.py")))
    assert len(ours) <= 0.6 * every
    assert not {"textual", "starlette", "xllamacpp"} & set(done.stdout.split("\n"))


def test_the_version_and_the_help_load_no_command(tmp_path: Path) -> None:
    bare = len(_modules("import click"))
    for arguments, most in ((["--version"], 10), (["--help"], bare + 18)):
        code = (
            f"sys.argv = ['recollect', *{arguments}]; import contextlib, io\n"
            "with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()):\n"
            "    from recollect.__main__ import main; main()\n"
        )
        command = [sys.executable, "-c", f"import sys; {code}print(len(sys.modules), end='')"]
        loads = int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
        nothing = [sys.executable, "-c", "import sys, contextlib, io; print(len(sys.modules))"]
        least = int(subprocess.run(nothing, capture_output=True, text=True, check=True).stdout)
        assert loads - least <= most, arguments


@pytest.mark.parametrize("door", ["recollect.cli.sessions", "recollect.terminal.terminal_app"])
def test_what_sends_no_request_loads_no_http_library(door: str) -> None:
    loaded = _modules(f"import {door}")
    assert "recollect.models.http_model" in loaded
    assert not {"httpx2", "httpcore2", "h2"} & loaded


def test_the_version_is_shown_about_as_soon_as_python_starts() -> None:
    """A ratio with room for noise: the shortest of several runs, in turn."""
    took: dict[str, list[float]] = {"-c": [], "-m": []}
    for _ in range(7):
        for flag, rest in (("-c", ["pass"]), ("-m", ["recollect", "--version"])):
            began = time.perf_counter()
            subprocess.run([sys.executable, flag, *rest], capture_output=True, check=True)
            took[flag].append(time.perf_counter() - began)
    assert min(took["-m"]) < 8 * min(took["-c"])

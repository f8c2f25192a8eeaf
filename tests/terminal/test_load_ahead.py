"""What the first prompt and its calls need is loaded while nobody waits for it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

# in a process of its own: other tests have loaded everything
FIRST_PROMPT = """
import asyncio, sys
from pathlib import Path
from recollect.testing import call, says
from tests.terminal.pilot import TerminalPlace

CALLS = [
    says("", call("grep_search", pattern="x")),
    says("", call("read_file", absolute_path="a.py")),
    says("", call("run_shell_command", command="ls")),
]

async def use():
    place = TerminalPlace(home=Path("home").absolute(), project=Path.cwd())
    free = '[permissions]\\nmode = "free"\\n'
    async with place.open([*CALLS, "done"], settings=free) as driven:
        ahead = [one for one in driven.app.workers if one.name == "load ahead"]
        await driven.wait(lambda: all(one.is_finished for one in ahead), "loading")
        before = set(sys.modules)
        await driven.say("go")
        await driven.wait_shown("done")
    print(*sorted(name for name in set(sys.modules) - before if "." in name))

asyncio.run(use())
"""


def test_a_first_prompt_and_its_calls_load_nothing_of_ours(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "a.py").write_text("x = 1\n")
    done = subprocess.run(
        [sys.executable, "-c", FIRST_PROMPT],
        cwd=tmp_path,
        env={
            **os.environ,
            "RECOLLECT_HOME": str(tmp_path / "home"),
            "MY_KEY": "sk-fake-0123456789abcdef",
            "PYTHONPATH": str(Path(__file__).parents[2]),
        },
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    loaded = done.stdout.split()
    assert [name for name in loaded if name.startswith("recollect.")] == []
    assert len(loaded) <= 40, loaded

"""The README's agent, as a program of its own, asked over a real connection."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from recollect.entries import Text
from recollect.testing import call
from tests.cli.model_server import ENV, log, reply, server
from tests.cli.runner import Cli

README = Path(__file__).parents[2] / "README.md"


def test_the_readmes_agent_calls_its_tool_and_keeps_everything(cli: Cli) -> None:
    page = README.read_text(encoding="utf-8")
    program, printed = re.findall(r"```python\n(.*?)```\n\n```\n(.*?)```", page, re.S)[0]
    asks = reply(Text(text="I look it up. "), call("weather", id="a", city="Bergen"))
    with server(cli, asks, reply(Text(text="Yes: it rains in Bergen."))) as on:
        done = subprocess.run(
            [sys.executable, "-c", program],
            env=cli.env(ENV),
            capture_output=True,
            encoding="utf-8",
            timeout=60,
        )
    assert (done.stdout, done.stderr) == (printed.rstrip("\n"), "")
    assert b"It rains in Bergen." in on.asked[1].body
    kept = [text for _, text, _ in log(cli)]
    assert any("umbrella" in text for text in kept)
    assert any("Yes: it rains" in text for text in kept)

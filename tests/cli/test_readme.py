"""The programs of the README and of docs/library.md, run as printed against a real local server."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from recollect.entries import Message, Text
from recollect.testing import call
from tests.cli.model_server import ENV, NAME, WIRE, reply, server
from tests.cli.runner import Cli
from tests.models.server import http

ROOT = Path(__file__).parents[2]
MODEL = "gpt-5"  # the name in the programs
_WHOLE = Message(role="model", parts=(Text(text="Two timers start it."),), model=MODEL)


class Reader(NamedTuple):
    """What answers a program, and what its user types."""

    answers: tuple[bytes, ...]
    types: str = ""


READERS = (  # for the programs of a page, in this order
    Reader((http(WIRE.encode_reply(_WHOLE), kind="application/json"),)),
    Reader(
        (
            reply(Text(text="I look it up."), call("weather", id="a", city="Bergen")),
            reply(Text(text="Yes: it rains in Bergen.")),
            reply(Text(text="Ask me tomorrow.")),
        )
    ),
    Reader(
        (
            reply(call("write_file", id="w", file_path="hello.txt", content="hello")),
            reply(Text(text="hello.txt is written.")),
        ),
        types="y\n",
    ),
    Reader((reply(Text(text="not called")),)),
)


@pytest.mark.parametrize(
    ("page", "number"),
    [
        (page, n)
        for page, programs in (("README.md", 3), ("docs/library.md", 4))
        for n in range(programs)
    ],
)
def test_a_program_prints_what_its_page_says(cli: Cli, page: str, number: int) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    program, printed = re.findall(r"```python\n(.*?)```\n\n```\n(.*?)```", text, re.S)[number]
    reader = READERS[number]
    with server(cli, *reader.answers) as on:
        settings = cli.home / "settings.toml"
        settings.write_text(settings.read_text().replace(NAME, MODEL))
        sdk = {"OPENAI_BASE_URL": on.url, "OPENAI_API_KEY": "sk-none"}
        done = subprocess.run(
            [sys.executable, "-c", program],
            cwd=cli.project,
            env=cli.env({**ENV, **sdk}),
            input=reader.types,
            capture_output=True,
            encoding="utf-8",
            timeout=60,
        )
    assert (_without_ids(done.stdout), done.stderr) == (_without_ids(printed), "")
    if number == 2:
        assert (cli.project / "hello.txt").read_text() == "hello"


def test_the_readme_has_no_other_programs() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert text.count("```python") == 3


def _without_ids(text: str) -> str:
    return re.sub(r"\b[0-9a-f]{32}\b", "ID", text)

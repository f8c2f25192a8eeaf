"""Every command of docs/serving.md is run, with addresses and files of the test."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.cli.provider import ENV, provider
from tests.cli.runner import Cli
from tests.cli.served import served
from tests.cli.test_serve import make_certificate
from tests.postgres_server import PostgresServer

PAGE = Path(__file__).parents[2] / "docs" / "serving.md"


def _commands() -> list[tuple[dict[str, str], list[str]]]:
    """The environment and the arguments of each `recollect …` line of the page's shell blocks."""
    blocks = re.findall(r"```sh\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.S)
    found = []
    for line in "".join(blocks).splitlines():
        words = shlex.split(line, comments=True)
        if "recollect" not in words:
            continue
        at = words.index("recollect")
        found.append((dict(word.split("=", 1) for word in words[:at]), words[at + 1 :]))
    return found


def _translate(words: list[str], here: Mapping[str, str]) -> list[str]:
    return [here.get(word, word) for word in words]


def test_the_pages_commands_do_what_they_say(
    cli: Cli, tmp_path: Path, postgres: PostgresServer
) -> None:
    certificate, key = make_certificate(tmp_path)
    here = {
        "postgresql://recollect@db/recollect": postgres.new_url(),
        "~/.local/share/recollect/recollect.db": str(cli.store),
        "cert.pem": certificate,
        "key.pem": key,
        "0.0.0.0:8443": "0.0.0.0:0",
        "0.0.0.0:9999": "0.0.0.0:0",
        "10.0.0.5:8080": "127.0.0.1:0",
    }
    started = 0
    with provider(cli, "openai", ["hello"]):
        assert cli("-p", "hi", env=ENV).code == 0
        for env, words in _commands():
            arguments = _translate(words, here)
            around = {name: here.get(value, value) for name, value in env.items()}
            if arguments[0] == "connect":
                continue  # a conversation on a terminal; tests/cli/test_connect.py has it
            if arguments[0] != "serve":
                done = cli.process(*arguments, env={**ENV, **around})
                assert done.code == 0, (arguments, done.err)
                continue
            with served(cli, *arguments[1:], env=around) as server:
                assert "token" in server.greeting
                assert server.stop() == 0, server.log
                started += 1
    assert started >= 3


@pytest.mark.parametrize("word", ["serve", "token", "store", "connect"])
def test_the_page_shows_each_command_of_a_server(word: str) -> None:
    assert any(words[0] == word for _, words in _commands())

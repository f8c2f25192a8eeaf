"""Every command of docs/serving.md is run, with addresses and files of the test."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.cli.provider import ENV, provider
from tests.cli.runner import PATIENCE, Cli
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


def _unit() -> str:
    (found,) = re.findall(r"```ini\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.S)
    return str(found)


def test_the_service_starts_what_it_names(cli: Cli) -> None:
    (line,) = re.findall(r"^ExecStart=(.*)$", _unit(), re.M)
    program, command, *arguments = shlex.split(line)
    assert (Path(program).name, command) == ("recollect", "serve")
    with provider(cli, "openai", ["hello"]):
        given = _translate(arguments, {"127.0.0.1:8080": "127.0.0.1:0"})
        with served(cli, *given) as server:
            assert server.stop() == 0, server.log
            assert all(line.startswith("{") for line in server.log)


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd-analyze")
def test_systemd_accepts_the_service(tmp_path: Path) -> None:
    unit = tmp_path / "recollect.service"
    names = {"User=recollect": "User=root", "/opt/recollect/bin/recollect": sys.executable}
    text = _unit()
    for here, there in names.items():
        assert here in text
        text = text.replace(here, there)
    unit.write_text(text)
    done = subprocess.run(
        ["systemd-analyze", "verify", str(unit)], capture_output=True, text=True, timeout=PATIENCE
    )
    complaints = [line for line in done.stderr.splitlines() if "recollect.service" in line]
    assert complaints == []

"""No tool reaches recollect's data, wherever the data directory lies and however it is spelled."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from recollect.testing import call
from tests.cli.model_server import ENV, outputs, reply, server
from tests.cli.runner import Cli
from tests.models.server import HELLO, http

TRUST = '{"folders": {"/": true}}'
FREE = '[permissions]\nmode = "free"\n'


def move_data(cli: Cli, place: str) -> None:
    cli.home = Path(os.path.realpath(cli.project / place))
    cli.home.mkdir(parents=True, exist_ok=True)
    cli.store = cli.home / "recollect.db"
    (cli.home / "server-token").write_text("the-token-of-the-server\n")


def spellings(cli: Cli, place: str) -> list[str]:
    (cli.project / "leads").symlink_to(cli.home)
    return [
        place,
        f"./{place}",
        f"src/..//{place}/.",
        str(cli.home),
        place.upper(),
        "leads",
    ]


@pytest.mark.parametrize("place", ["data", ".recollect", "deep/er/data"])
def test_file_tools_neither_read_nor_write_the_data_directory(cli: Cli, place: str) -> None:
    move_data(cli, place)
    (cli.project / "src").mkdir()
    folders = spellings(cli, place)
    reads = [
        call("read_file", id=f"r{at}", file_path=f"{folder}/server-token")
        for at, folder in enumerate(folders)
    ]
    lists = [call("list_directory", id=f"l{at}", path=folder) for at, folder in enumerate(folders)]
    writes = [
        call("write_file", id=f"w{at}{name}", file_path=f"{folder}/{name}", content=TRUST)
        for at, folder in enumerate(folders)
        for name in ("trusted_folders.json", "new.txt")
    ]
    found = call("search_file_content", id="s", pattern="the-token")
    calls = (*reads, *lists, found, *writes)
    with server(cli, reply(*calls), http(HELLO), more=FREE) as on:
        before = set(cli.home.iterdir())
        done = cli.ok("-p", f"Look at @{place}/server-token.", env=ENV)
        told = outputs(on)
        assert len(told) == len(calls)
        assert all(text.startswith("Error: ") for text in told if text is not told[12]), told
        assert told[12].startswith("No match")
        assert b"the-token-of" not in b"".join(request.body for request in on.asked)
    assert "is private" in done.err
    made = set(cli.home.iterdir()) - before
    assert {path.name.partition("-")[0] for path in made} <= {"recollect.db", "tmp"}
    assert not (cli.project / place.upper() / "trusted_folders.json").exists()


@pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed")
def test_commands_do_not_see_the_data_directory_below_the_workspace(cli: Cli) -> None:
    move_data(cli, "data")
    run = call("run_shell_command", id="c", command="cat data/server-token")
    with server(cli, reply(run), http(HELLO), more=f'{FREE}allow = ["cat *"]\n') as on:
        cli.ok("-p", "Look.", env=ENV)
        assert "the-token-of" not in outputs(on)[0]


def test_in_the_data_directory_itself_the_agent_has_no_tools(cli: Cli) -> None:
    move_data(cli, ".")
    write = call("write_file", id="w", file_path="trusted_folders.json", content=TRUST)
    with server(cli, reply(write), http(HELLO), more=FREE) as on:
        done = cli.ok("-p", "Trust it. @server-token", env=ENV)
        assert "there is no tool 'write_file'" in outputs(on)[0]
        assert b"the-token-of" not in b"".join(request.body for request in on.asked)
    assert "is recollect's data directory: no tool works here" in done.err
    assert not (cli.home / "trusted_folders.json").exists()

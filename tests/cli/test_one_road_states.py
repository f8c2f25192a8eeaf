"""The agreement of `context`, `encode` and the server in states that add to a request."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from recollect.entries import Body, Entry, InlineData, Message, Text, Thought
from recollect.profiles import WireName
from recollect.store.ids import new_id, now
from recollect.testing import call, model, result, user
from recollect.workspace.trusted_folders import trust_folder
from tests.cli.model_server import ENV, server, texts
from tests.cli.road_sessions import FORMATS, check_agreement, only_session, says, sent_text
from tests.cli.runner import Cli

DAY = 86_400_000  # milliseconds
GREP = call("grep", pattern="x")
PIXEL = b"\x89PNG\r\n\x1a\n" + bytes(50)
MIXED: list[Body] = [
    Message(role="system", parts=(Text(text="be brief"),)),
    user("find x"),
    Message(role="model", parts=(Thought(text="hm"), GREP), model="claude-opus-4"),
    result(GREP, "found it"),
    Message(role="user", parts=(Text(text="and here?"), InlineData(mime="image/png", data=PIXEL))),
    Message(role="model", parts=(Text(text=""),)),
    user("one"),
    user("two\ud800"),
    Message(role="model", parts=(call("read_file", id="open", absolute_path="b.py"),)),
]


@pytest.mark.parametrize("wire", FORMATS)
def test_parts_of_every_kind(cli: Cli, wire: WireName) -> None:
    session, _ = cli.session(MIXED)
    with server(cli, says("Hello.", wire), more=f'wire = "{wire}"\n') as on:
        check_agreement(cli, on, session.id)
        check_agreement(cli, on, session.id)


@pytest.mark.parametrize("tools", ["text", "native"])
def test_tools_in_text(cli: Cli, tools: str) -> None:
    session, _ = cli.session(MIXED)
    with server(cli, says("Hello."), more=f'tools = "{tools}"\n') as on:
        check_agreement(cli, on, session.id)


def test_another_day(cli: Cli) -> None:
    block = Message(role="user", parts=(Text(text="The setup."),), context="initial")
    old = [Entry(new_id(), None, now() - 3 * DAY, body) for body in (block, user("Hi?"))]
    session, _ = cli.session([*old, model("Hello.")])
    with server(cli, says("Hello.")) as on:
        check_agreement(cli, on, session.id)
        assert "Today's date is" in sent_text(on)
        check_agreement(cli, on, session.id)


def test_another_folder_and_other_memory(cli: Cli) -> None:
    trust_folder(cli.project, cli.home)
    memory = cli.project / "AGENTS.md"
    memory.write_text("Use tabs.")
    below = cli.project / "below"
    below.mkdir()
    subprocess.run(["git", "init", "-q"], cwd=cli.project, check=True)
    with server(cli, says("Hello.")) as on:
        cli.ok("-p", "Hi?", env=ENV)
        session = only_session(cli)
        memory.write_text("Use spaces.")
        check_agreement(cli, on, session, cwd=below)
        assert any(f"working directory is now {below}" in text for text in texts(on))
        assert any("Use spaces." in text for text in texts(on))
        check_agreement(cli, on, session)


def test_pins_drops_and_a_rewind(cli: Cli) -> None:
    session, entries = cli.session(
        [user("one"), model("two"), user("three"), model("four"), user("five")]
    )
    with server(cli, says("Hello.")) as on:
        cli.ok("context", session.id, "--pin", entries[0].id, "--drop", entries[2].id)
        check_agreement(cli, on, session.id)
        assert "three" not in texts(on)
        cli.ok("rewind", session.id, entries[3].id)
        check_agreement(cli, on, session.id)
        assert "three" in texts(on)


def test_a_store_beside_the_users_own(cli: Cli, tmp_path: Path) -> None:
    with server(cli, says("Hello.")) as on:
        other = tmp_path / "other.db"
        cli.ok("-p", "Hi?", "--store", str(other), env=ENV)
        shown = cli.ok("encode", "--store", str(other), "--prompt", "And?", env=ENV).out
        cli.ok("-c", "-p", "And?", "--store", str(other), env=ENV)
        assert shown == sent_text(on)
        assert not cli.store.exists()

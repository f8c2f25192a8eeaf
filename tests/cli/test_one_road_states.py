"""The agreement of `context`, `encode` and the server in states that add to a request."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from recollect.codecs.text_tools import TextToolsWire
from recollect.entries import Body, Entry, InlineData, Message, Text, Thought
from recollect.profiles import WireName
from recollect.store.ids import new_id, now
from recollect.testing import call, model, result, user
from recollect.workspace.trusted_folders import trust_folder
from tests.cli.model_server import ENV, hook, script, server, texts
from tests.cli.road_sessions import (
    FORMATS,
    check_agreement,
    only_session,
    requests,
    says,
    sent_text,
    wire_of,
)
from tests.cli.runner import Cli
from tests.models.server import Server, http

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
    with server(cli, says("Hello.", wire=wire), more=f'wire = "{wire}"\n') as on:
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


# --- requests of the past ------------------------------------------------------------------------


def check_all_requests(cli: Cli, on: Server) -> None:
    """Every request of every session, in the order of time, as the server received it."""
    found = []
    for session in cli.ok("sessions", "--all", "--json").json:
        found += [(entry.id, session["id"]) for entry in requests(cli, session["id"])]
    assert len(found) == len(on.asked)
    for (request, session), asked in zip(sorted(found), on.asked, strict=True):
        again = cli.ok("encode", session, "--at", request, env=ENV).out.encode()
        assert again == asked.body


@pytest.mark.parametrize("wire", FORMATS)
def test_the_requests_of_a_run_with_tools(cli: Cli, wire: WireName) -> None:
    (cli.project / "a.py").write_text("x = 1\n")
    read = call("read_file", id="a", absolute_path="a.py")
    listed = call("list_directory", id="b")
    answers = [says(read, wire=wire), says("I see.", listed, wire=wire), says("Done.", wire=wire)]
    with server(cli, *answers, more=f'wire = "{wire}"\n') as on:
        cli.ok("-p", "Look.", env=ENV)
        cli.ok("-c", "-p", "Again.", env=ENV)
        check_all_requests(cli, on)


def test_the_requests_after_an_endpoint_refused_tools(cli: Cli) -> None:
    no = http(b'{"error":"this model does not support tools"}', "400 Bad", "application/json")
    wire = TextToolsWire(wire=wire_of("openai"), tools=())
    listing = Message(role="model", parts=(call("list_directory", id="a"),), finish="stop")
    lists = http(b"".join(wire.encode_stream(listing)))
    with server(cli, no, lists, says("Done.")) as on:
        cli.ok("-p", "Look.", env=ENV)
        assert len(on.asked) == 3
        check_all_requests(cli, on)


def test_the_requests_of_a_sub_agent(cli: Cli) -> None:
    task = call("task", id="t", description="Look around", prompt="What is here?")
    with server(cli, says(task), says("Two files."), says("Done.")) as on:
        settings = cli.home / "settings.toml"
        settings.write_text(settings.read_text().replace("window = 9000", "window = 100000"))
        cli.ok("-p", "Look.", env=ENV)
        assert len(on.asked) == 3
        check_all_requests(cli, on)


def test_what_a_hook_added_is_in_the_request_that_is_shown(cli: Cli, tmp_path: Path) -> None:
    answer = """echo '{"additionalContext": "The build is red."}'\n"""
    more = hook("BeforeAgent", script(tmp_path, "add.sh", answer))
    with server(cli, says("Hello."), more=more) as on:
        cli.ok("-p", "Look.", env=ENV)
        assert "The build is red." in sent_text(on)
        check_all_requests(cli, on)

"""However a session came to be, its requests begin with instructions, environment and memory."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from recollect.entries import Message, Request, Text
from recollect.profiles import WireName
from recollect.runtime.coding_agent import ASK_INSTRUCTIONS, INSTRUCTIONS
from recollect.testing import model, user
from recollect.workspace.trusted_folders import trust_folder
from tests.cli.model_server import ENV, server, texts
from tests.cli.road_sessions import (
    FORMATS,
    GEMINI,
    HISTORY_SERVER,
    all_messages,
    import_value,
    only_session,
    reads,
    requests,
    says,
)
from tests.cli.runner import Cli
from tests.models.server import Server

FOLDER = "I'm currently working in the directory: "
MEMORY = "Use tabs, not spaces."


@pytest.fixture
def project(cli: Cli) -> Cli:
    """A trusted project with memory."""
    trust_folder(cli.project, cli.home)
    (cli.project / "AGENTS.md").write_text(MEMORY)
    return cli


def check_beginning(cli: Cli, on: Server, number: int = -1) -> None:
    """Instructions first, then folder, date and memory, each once."""
    sent = texts(on, number)
    assert sent[0] == INSTRUCTIONS
    block = sent[1]
    assert f"{FOLDER}{cli.project}" in block
    assert str(datetime.now().astimezone().year) in block
    for part in (INSTRUCTIONS, FOLDER, "Today's date", MEMORY):
        assert sum(text.count(part) for text in sent) == 1, part


def check_goes_on(cli: Cli, on: Server, *which: str) -> None:
    """Two prompts; the second request begins with the first, unchanged."""
    cli.ok(*which, "-p", "First?", env=ENV)
    check_beginning(cli, on)
    cli.ok("-c", "-p", "Second?", env=ENV)
    check_beginning(cli, on)
    check_prefix(on)


def check_prefix(on: Server, wire: WireName = "openai") -> None:
    """The newest request begins with the one before, to the byte."""
    before, after = (
        [json.dumps(one) for one in all_messages(on, number, wire)] for number in (-2, -1)
    )
    assert len(after) > len(before)
    assert after[: len(before)] == before


@pytest.mark.parametrize("value", [GEMINI, HISTORY_SERVER], ids=["gemini", "history-server"])
def test_an_imported_session_begins_like_every_other_and_exports_as_it_was(
    project: Cli, tmp_path: Path, value: Any
) -> None:
    with server(project, says("Hello.")) as on:
        session = import_value(project, tmp_path, value)
        form = "history-server" if value is HISTORY_SERVER else "gemini"
        before = exported(project, tmp_path, session, form)
        assert before == value
        check_goes_on(project, on, "-r", session)
        after = exported(project, tmp_path, session, form)
    # entries that the format has no place for are kept beside its own
    for was, now in zip(value["messages"], after["messages"], strict=False):
        now.pop("recollect", None)
        now.get("metadata", {}).pop("recollect", None)
        assert now == was
    assert len(after["messages"]) > len(value["messages"])


def exported(cli: Cli, folder: Path, session: str, form: str) -> Any:
    file = folder / "out.json"
    cli.ok("export", session, "--to", form, "--output", str(file), "--force")
    return json.loads(file.read_text())


@pytest.mark.parametrize("wire", FORMATS)
def test_the_prefix_of_an_imported_session_is_stable_in_every_format(
    project: Cli, tmp_path: Path, wire: WireName
) -> None:
    with server(project, says("Hello.", wire=wire), more=f'wire = "{wire}"\n') as on:
        session = import_value(project, tmp_path, GEMINI)
        project.ok("-r", session, "-p", "First?", env=ENV)
        project.ok("-c", "-p", "Second?", env=ENV)
    assert INSTRUCTIONS in json.dumps(all_messages(on, 0, wire)[0])
    assert FOLDER in json.dumps(all_messages(on, 0, wire)[1])
    before, after = all_messages(on, 0, wire), all_messages(on, 1, wire)
    # providers want turns to alternate: the last one may have grown
    assert json.dumps(after[: len(before) - 1]) == json.dumps(before[:-1])


def test_after_ask_the_agent_has_its_own_instructions(project: Cli) -> None:
    with server(project, says("Hello.")) as on:
        project.ok("ask", "What is a WAL?", env=ENV)
        assert texts(on)[0] == ASK_INSTRUCTIONS
        check_goes_on(project, on, "-c")
        assert not any(ASK_INSTRUCTIONS in text for text in texts(on))
        project.ok("ask", "-c", "And a checkpoint?", env=ENV)
        check_beginning(project, on)
        check_prefix(on)


@pytest.mark.parametrize("compacts", [False, True])
def test_after_ask_in_an_imported_session_too(
    project: Cli, tmp_path: Path, *, compacts: bool
) -> None:
    with server(project, says("Hello.")) as on:
        session = import_value(project, tmp_path, GEMINI)
        project.ok("ask", "--session", session, "Is it slow?", env=ENV)
        assert texts(on)[0] == ASK_INSTRUCTIONS
        if compacts:
            project.ok("ask", "-c", "How slow? " * 900, env=ENV)
            project.ok("compact", session, "--no-model", "--budget", "1200", env=ENV)
        check_goes_on(project, on, "-c")
        assert not any(ASK_INSTRUCTIONS in text for text in texts(on))


def test_the_agents_instructions_replace_those_that_a_user_gave_ask(project: Cli) -> None:
    with server(project, says("Hello.")) as on:
        project.ok("ask", "Hi?", "--system", "Be formal.", env=ENV)
        assert texts(on)[0] == "Be formal."
        check_goes_on(project, on, "-c")
        assert "Be formal." not in texts(on)


def test_a_fork_begins_as_its_session_does(project: Cli, tmp_path: Path) -> None:
    with server(project, says("Hello.")) as on:
        session = import_value(project, tmp_path, GEMINI)
        project.ok("-r", session, "-p", "First?", env=ENV)
        forked = project.ok("fork", session, "--json").json["id"]
        check_goes_on(project, on, "-r", forked)
        early = project.ok("show", session, "--json").json["entries"][1]["id"]
        bare = project.ok("fork", session, "--at", early, "--json").json["id"]
        check_goes_on(project, on, "-r", bare)


def test_after_a_compaction_the_beginning_is_the_same(project: Cli) -> None:
    session, _ = project.session(reads(6))
    with server(project, says("Hello.")) as on:
        project.ok("-r", session.id, "-p", "First?", env=ENV)
        begin = texts(on)[:2]
        project.ok("compact", session.id, "--no-model", "--budget", "3000", env=ENV)
        check_goes_on(project, on, "-r", session.id)
        assert texts(on)[:2] == begin
        assert "<state_snapshot>" in texts(on)[2]


def test_a_compaction_before_the_first_prompt_takes_nothing_from_the_beginning(
    project: Cli,
) -> None:
    session, _ = project.session(reads(6))
    with server(project, says("Hello.")) as on:
        project.ok("compact", session.id, "--no-model", "--budget", "2000", env=ENV)
        check_goes_on(project, on, "-r", session.id)


def test_a_session_whose_first_message_names_a_directory_gets_the_block(project: Cli) -> None:
    text = f"The working directories are now: {project.project}"
    directory = Message(role="user", parts=(Text(text=text),), context="initial")
    session, _ = project.session([directory, user("Hi?"), model("Hello.")])
    with server(project, says("Hello.")) as on:
        check_goes_on(project, on, "-r", session.id)


def test_a_session_of_another_project_is_told_where_it_is_now(project: Cli, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    with server(project, says("Hello.")) as on:
        project.ok("-p", "Hi?", env=ENV, cwd=other)
        session = only_session(project)
        project.ok("-r", session, "-p", "And here?", env=ENV)
        sent = texts(on)
        told = f"The working directory is now {project.project}"
        assert sum(told in text for text in sent) == 1
        assert sum(MEMORY in text for text in sent) == 1
        project.ok("-r", session, "-p", "Still?", env=ENV)
        check_prefix(on)


def test_a_huge_first_message_leaves_room_for_the_beginning(project: Cli) -> None:
    session, _ = project.session([user("word " * 60_000), model("Long.")])
    with server(project, says("Hello.")) as on:
        project.ok("-r", session.id, "-p", "What was it?", env=ENV)
        assert texts(on)[0] == INSTRUCTIONS
        assert FOLDER in texts(on)[1]
        assert texts(on)[-1] == "What was it?"
        sent = requests(project, session.id)[-1].body
    assert isinstance(sent, Request)
    assert sent.tokens <= 9_000
    assert all(len(asked.body) < 9_000 * 5 for asked in on.asked)

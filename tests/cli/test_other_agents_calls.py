"""Native calls as other agents' tools want them: names of tools and of arguments."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

import recollect
from recollect.codecs.tool_names import sent_tool_name
from recollect.entries import Body, Message, ToolCall
from recollect.models.http_model import HttpModel
from recollect.profiles import WireName
from recollect.testing import call, result, user
from tests.cli.model_server import ENV, outputs, parts_of, server
from tests.cli.road_sessions import FORMATS, says
from tests.cli.runner import Cli
from tests.models.server import ReceivedRequest, chosen, serving


def run_calls(cli: Cli, *calls_and_options: ToolCall | str) -> list[str]:
    """What the tools gave for these calls of one reply."""
    calls = [each for each in calls_and_options if isinstance(each, ToolCall)]
    options = [each for each in calls_and_options if isinstance(each, str)]
    with server(cli, says(*calls), says("Done."), window=30_000) as on:
        cli.ok("-p", "Go.", *options, env=ENV)
        return outputs(on)


def test_files_are_read_and_changed_under_the_names_that_other_agents_use(cli: Cli) -> None:
    file = cli.project / "a.txt"
    file.write_text("one\ntwo\n")
    seen = run_calls(
        cli,
        call("read_file", id="a", filePath="a.txt"),
        call("read_file", id="b", file_path="a.txt", description="to see"),
        call("list_directory", id="c", dir_path="."),
        call("search_file_content", id="d", query="two", includePattern="*.txt"),
        "--mode=edit",
    )
    assert "one" in seen[0]
    assert "one" in seen[1]
    assert "a.txt" in seen[2]
    assert "two" in seen[3]
    seen = run_calls(
        cli,
        call(
            "replace",
            id="e",
            filePath="a.txt",
            oldString="two",
            newString="three",
            instruction="Count on.",
            replace_all=False,
        ),
        call("write_file", id="f", path="b.txt", content="new\n", modified_by_user=False),
        "--mode=edit",
    )
    assert file.read_text() == "one\nthree\n"
    assert (cli.project / "b.txt").read_text() == "new\n"
    assert not any("Error" in text for text in seen)


def test_an_argument_that_changes_what_happens_is_never_dropped(cli: Cli) -> None:
    file = cli.project / "a.txt"
    file.write_text("x x\n")
    every = call(
        "replace", id="a", file_path="a.txt", old_string="x", new_string="y", replace_all=True
    )
    (seen,) = run_calls(cli, every, "--mode=edit")
    assert "`replace_all`" in seen
    assert "expected_replacements" in seen
    assert file.read_text() == "x x\n"


@pytest.mark.parametrize("name", ["command", "shell_command", "cmd", "shellCommand"])
def test_a_command_is_judged_whatever_its_argument_is_called(cli: Cli, name: str) -> None:
    (cli.project / "a.txt").write_text("precious")
    (seen,) = run_calls(cli, call("run_shell_command", id="a", **{name: "rm a.txt"}))
    assert "not allowed" in seen
    assert (cli.project / "a.txt").exists()
    (seen,) = run_calls(
        cli, call("run_shell_command", id="b", **{name: "cat a.txt"}), "--allow", "cat *"
    )
    assert "precious" in seen


def test_a_hook_sees_the_arguments_with_which_the_tool_runs(cli: Cli, tmp_path: Path) -> None:
    (cli.project / "a.txt").write_text("one")
    record = tmp_path / "record"
    (tmp_path / "hook.sh").write_text(f'cat >> "{record}"\n')
    hook = f'[[hooks]]\nevent = "BeforeTool"\ncommand = "sh {tmp_path}/hook.sh"\n'
    read = call("read_file", id="a", filePath="a.txt")
    with server(cli, says(read), says("Done."), more=hook, window=30_000):
        cli.ok("-p", "Go.", env=ENV)
    assert "absolute_path" in record.read_text()
    assert "filePath" not in record.read_text()
    assert json.loads(parts_of(cli, ToolCall)[0].arguments) == {"filePath": "a.txt"}  # as it came


ODD = call("server.tool/x", id="odd", n=1)
BROKEN = ToolCall(id="broken", name="read_file", arguments='{"absolute_path": ')


def names_in(value: Any) -> set[str]:
    """Every name of a call or tool in a request."""
    if isinstance(value, list):
        return set().union(*(names_in(item) for item in value))
    if not isinstance(value, dict):
        return set()
    own = {str(value["name"])} if isinstance(value.get("name"), str) else set()
    return own.union(*(names_in(item) for item in value.values()))


@pytest.mark.parametrize("wire", FORMATS)
def test_a_history_with_names_and_arguments_that_no_provider_takes_can_go_on(
    cli: Cli, wire: WireName
) -> None:
    history: list[Body] = [
        user("one"),
        Message(role="model", parts=(ODD, BROKEN)),
        result(ODD, "fine"),
        result(BROKEN, "no", is_error=True),
    ]
    session, _ = cli.session(history)
    more = f'wire = "{wire}"\n'
    with server(cli, says("Done.", wire=wire), more=more, window=30_000) as on:
        cli.ok("-r", session.id, "-p", "Go on.", env=ENV)
        body = json.loads(on.asked[0].body)
    made = sent_tool_name(ODD.name, wire)
    assert made in names_in(body)
    assert ODD.name not in names_in(body)
    text = on.asked[0].body.decode()
    assert "malformed_arguments" in text
    trace = cli.ok("encode", session.id, "--to", wire, "--trace", env=ENV)
    assert f"'server.tool/x' is sent as {made!r}" in trace.out + trace.err


@pytest.mark.parametrize("wire", FORMATS)
def test_a_tool_with_such_a_name_is_declared_called_and_run(tmp_path: Path, wire: WireName) -> None:
    ran: list[int] = []

    @recollect.tool(name="server.tool/x")
    def odd(n: int) -> str:
        """Counts."""
        ran.append(n)
        return "counted"

    sent = sent_tool_name("server.tool/x", wire)
    answers = (says(call(sent, id="a", n=3), wire=wire), says("Done.", wire=wire))

    async def main() -> list[ReceivedRequest]:
        async with serving(*answers) as on, recollect.open(tmp_path / "s.db") as store:
            async with HttpModel(chosen(on.url, wire)) as model:
                session = await store.create()
                await recollect.Agent(model, tools=[odd]).run("Go.", session)
            return on.asked

    asked = [json.loads(one.body) for one in asyncio.run(main())]
    assert ran == [3]
    assert len(asked) == 2
    for body in asked:
        assert sent in names_in(body)
        assert "server.tool/x" not in names_in(body)

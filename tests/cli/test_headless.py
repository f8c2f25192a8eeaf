"""`recollect -p`: the agent without a screen, asked over a real connection."""

from __future__ import annotations

import json

import pytest

from recollect.entries import Text, Usage
from recollect.testing import call
from tests.cli.model_server import ENV, reply, server
from tests.cli.runner import Cli
from tests.models.server import HELLO, KEY, http


def test_the_agent_reads_a_file_and_answers(cli: Cli) -> None:
    (cli.project / "limiter.py").write_text("def refill():\n    return 7\n")
    asks = reply(Text(text="I look."), call("read_file", id="a", absolute_path="limiter.py"))
    with server(cli, asks, reply(Text(text="It returns 7."), usage=Usage(input=9, output=4))) as on:
        done = cli.ok("-p", "What does refill return?", env=ENV)
    assert done.out == "It returns 7.\n"
    assert "→ read_file" in done.err
    assert "2 turns" in done.err
    second = json.loads(on.asked[1].body)["messages"]
    assert "return 7" in second[-1]["content"]
    assert on.asked[1].body.startswith(on.asked[0].body.removesuffix(b"]}"))


def test_files_are_changed_only_if_the_mode_allows_it(cli: Cli) -> None:
    write = reply(call("write_file", id="a", file_path="new.txt", content="hello"))
    with server(cli, write, reply(Text(text="I may not."))):
        cli.ok("-p", "Write it.", env=ENV)
    assert not (cli.project / "new.txt").exists()
    with server(cli, write, reply(Text(text="Written.")), more='[permissions]\nmode = "edit"\n'):
        cli.ok("-p", "Write it.", env=ENV)
    assert (cli.project / "new.txt").read_text() == "hello"


def test_a_command_needs_a_rule_for_its_words(cli: Cli) -> None:
    run = reply(
        call("run_shell_command", id="a", command="echo hidden > out.txt"),
        call("run_shell_command", id="b", command="ls -a"),
    )
    rules = '[permissions]\nallow = ["ls *"]\n'
    with server(cli, run, reply(Text(text="Done.")), more=rules) as on:
        cli.ok("-p", "Run it.", env=ENV)
    assert not (cli.project / "out.txt").exists()
    results = [
        m["content"] for m in json.loads(on.asked[1].body)["messages"] if m["role"] == "tool"
    ]
    assert "not allowed" in results[0]
    assert "not allowed" not in results[1]


def test_the_json_document_has_what_programs_need(cli: Cli) -> None:
    with server(cli, http(HELLO)):
        first = cli.ok("-p", "Hi.", "--output-format", "json", env=ENV).json
        again = cli.ok("-c", "-p", "And?", "--output-format", "json", env=ENV).json
        forked = cli.ok("-c", "--fork", "-p", "Or?", "--output-format", "json", env=ENV).json
    assert first["type"] == "result"
    assert (first["subtype"], first["is_error"], first["result"]) == ("success", False, "hello")
    assert {"num_turns", "usage", "total_cost_usd", "duration_ms"} <= first.keys()
    assert again["session_id"] == first["session_id"]
    assert forked["session_id"] != first["session_id"]


def test_every_line_of_a_stream_is_an_event_and_the_result_is_last(cli: Cli) -> None:
    with server(cli, http(HELLO)):
        lines = cli.ok("-p", "Hi.", "--output-format", "stream-json", env=ENV).out.splitlines()
    kinds = [json.loads(line)["type"] for line in lines]
    assert kinds[0] == "init"
    assert kinds[-1] == "result"
    assert {"delta", "message"} <= set(kinds)


def test_the_limit_of_turns_has_an_exit_code_of_its_own(cli: Cli) -> None:
    asks = reply(call("list_directory", id="a"))
    with server(cli, asks):
        stopped = cli("-p", "Look.", "--max-turns", "2", env=ENV)
    assert stopped.code == 53
    assert "max turns" in stopped.err


def test_each_kind_of_failure_has_its_exit_code(cli: Cli) -> None:
    assert cli("-p", "Hi.", "-m", "gpt-5").code == 41
    assert cli("-p", "Hi.", "-m", "no-such-model").code == 42
    assert cli("-r", "feed", "-p", "Hi.").code in (1, 42)
    assert cli("-c", "-r", "x", "-p", "Hi.").code == 2
    assert cli("--fork", "-p", "Hi.").code == 2
    assert cli("-p", "Hi.", "sessions").code == 2
    cli.home.mkdir(exist_ok=True)
    (cli.home / "settings.toml").write_text("nonsense = 1\n")
    assert cli("-p", "Hi.").code == 52


def test_a_refused_key_is_reported_in_json_without_the_key(cli: Cli) -> None:
    refused = http(
        json.dumps({"error": {"message": f"Incorrect API key provided: {KEY}"}}).encode(),
        status="401 Unauthorized",
        kind="application/json",
    )
    with server(cli, refused):
        failed = cli("-p", "Hi.", "--output-format", "json", env=ENV)
    assert failed.code == 41
    assert failed.json["is_error"] is True
    assert KEY not in failed.out + failed.err


@pytest.mark.parametrize("arguments", [("-p", ""), ("-c",)])
def test_a_prompt_is_needed(cli: Cli, arguments: tuple[str, ...]) -> None:
    assert cli(*arguments).code == 2


@pytest.mark.parametrize(
    "line",
    [
        ("-p", "--help"),
        ("-p", "-h"),
        ("--prompt", "--version"),
        ("-p", "--mode", "edit"),
        ("-p", "--json"),
        ("-c", "-p", "--output-format", "json"),
    ],
)
def test_an_option_is_no_prompt(cli: Cli, line: tuple[str, ...]) -> None:
    with server(cli, http(HELLO)) as on:
        wrong = cli(*line, env=ENV)
    assert (wrong.code, wrong.out, on.asked) == (2, "", [])
    assert "-p needs a prompt" in wrong.err
    assert "`recollect -" in wrong.err


@pytest.mark.parametrize("prompt", ["-1", "--", "--no-such-option", "--help me", "-p is an option"])
def test_other_prompts_may_begin_with_a_dash(cli: Cli, prompt: str) -> None:
    with server(cli, http(HELLO)) as on:
        assert cli.ok("-p", prompt, env=ENV).out == "hello\n"
    assert len(on.asked) == 1

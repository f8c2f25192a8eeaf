"""`recollect -p`: which model answers, what it learns, mirrors, sub-agents, a full disk."""

from __future__ import annotations

import json
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from recollect.entries import Note, Text, ToolCall, ToolResult
from recollect.store.sqlite import SqliteStore
from recollect.testing import call
from tests.cli.model_server import (
    ENV,
    log,
    messages,
    outputs,
    parts_of,
    readable,
    reply,
    server,
    texts,
)
from tests.cli.runner import Cli
from tests.models.server import HELLO, Answer, Server, http, refused

BUSY = refused("503 Service Unavailable", "overloaded")
SPARES = '[routing]\nfallback = ["spare"]\n'


def own_model(name: str, url: str, window: int = 9_000) -> str:
    return f'[models.{name}]\nurl = "{url}"\nkey = "MY_KEY"\nwindow = {window}\n'


def nowhere() -> str:
    """An address where nobody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{taken.getsockname()[1]}"


@contextmanager
def three(cli: Cli, *answers: Answer, classifier: str = "judge") -> Iterator[Server]:
    """One server for a classifier, two models it may choose, and the default."""
    choices = '[routing.choices]\nsmall = "short questions"\nbig = "everything else"\n'
    with server(cli, *answers) as on:
        file = cli.home / "settings.toml"
        models = "".join(own_model(name, on.url) for name in ("judge", "small", "big"))
        routing = f'[routing]\nclassifier = "{classifier}"\n'
        file.write_text(file.read_text() + models + routing + choices)
        yield on


def asked(on: Server) -> list[str]:
    return [json.loads(each.body)["model"] for each in on.asked]


# --- which model answers -----------------------------------------------------------------------


@pytest.mark.parametrize("down", ["refuses connections", "is overrun"])
def test_a_fallback_answers_when_the_model_is_down(cli: Cli, down: str) -> None:
    with server(cli, http(HELLO)) as spare:
        more = own_model("spare", spare.url) + SPARES
        url = nowhere() if down == "refuses connections" else ""
        with server(cli, BUSY, url=url, more=more):
            done = cli.ok("-p", "Hi.", env=ENV)
    assert done.out == "hello\n"
    assert "warning: mine is not available (" in done.err
    assert "; trying spare" in done.err
    assert "spare · 1 turn" in done.err
    readable(done)
    assert [said for role, said, _ in log(cli) if role == "user"].count("Hi.") == 1
    assert texts(spare).count("Hi.") == 1


def test_a_model_that_goes_down_between_two_turns_is_replaced_where_it_was(cli: Cli) -> None:
    (cli.project / "a.txt").write_text("seven\n")
    look = reply(call("read_file", id="a", absolute_path="a.txt"))
    with server(cli, http(HELLO)) as spare:
        more = own_model("spare", spare.url) + SPARES
        with server(cli, look, BUSY, more=more):
            cli.ok("-p", "Look.", env=ENV)
    assert len(spare.asked) == 1
    assert "seven" in outputs(spare)[0]
    assert len(parts_of(cli, ToolCall)) == len(parts_of(cli, ToolResult)) == 1


def test_when_all_models_are_down_the_last_error_is_printed_and_the_prompt_kept(cli: Cli) -> None:
    with server(cli, BUSY, more=own_model("spare", nowhere()) + SPARES):
        failed = cli("-p", "Hi.", env=ENV)
    assert (failed.code, failed.out) == (1, "")
    assert "recollect: cannot reach 127.0.0.1" in failed.err
    assert "everything so far is stored · `recollect -r " in failed.err
    readable(failed)
    assert ("user", "Hi.", "") in log(cli)


def test_a_fallback_without_a_key_or_unknown_is_skipped(cli: Cli) -> None:
    with server(cli, http(HELLO)) as spare:
        spares = '[routing]\nfallback = ["gpt-5-mini", "no-such-model", "spare"]\n'
        with server(cli, BUSY, more=own_model("spare", spare.url) + spares):
            done = cli.ok("-p", "Hi.", env=ENV)
    assert done.out == "hello\n"
    assert "gpt-5-mini is not available (no API key for gpt-5-mini" in done.err
    assert "no-such-model is not available (unknown model 'no-such-model'" in done.err
    readable(done)


def test_the_default_answers_when_the_chosen_model_is_down(cli: Cli) -> None:
    judged = reply(Text(text='{"reason": "it is hard", "choice": "big"}'))
    with three(cli, judged, BUSY, BUSY, http(HELLO)) as on:
        done = cli.ok("-p", "Prove it.", env=ENV)
    assert asked(on) == ["judge", "big", "big", "mine"]
    assert "big is not available (" in done.err
    assert texts(on).count("Prove it.") == 1


def test_a_refused_key_does_not_lead_to_another_model(cli: Cli) -> None:
    with server(cli, http(HELLO)) as spare:
        more = own_model("spare", spare.url) + SPARES
        with server(cli, refused("401 Unauthorized", "bad key"), more=more):
            failed = cli("-p", "Hi.", env=ENV)
    assert (failed.code, spare.asked) == (41, [])


def test_a_classifier_chooses_and_a_named_model_overrides_it(cli: Cli) -> None:
    judged = reply(Text(text='{"reason": "it is hard", "choice": "big"}'))
    with three(cli, judged, http(HELLO)) as on:
        done = cli.ok("-p", "Prove it.", env=ENV)
        assert asked(on) == ["judge", "big"]
        assert "big · 1 turn" in done.err
        assert "Prove it." in json.dumps(messages(on, 0))
        cli.ok("-m", "small", "-p", "Prove it.", env=ENV)
        assert asked(on)[2:] == ["small"]


@pytest.mark.parametrize(
    ("answer", "classifier", "why"),
    [
        (http(HELLO), "judge", "a text that chooses none of the models"),
        (refused("400 Bad Request", "no"), "judge", "the provider refused (400): no"),
        (http(HELLO), "gpt-5-mini", "set OPENAI_API_KEY"),
        (http(HELLO), "no-such-model", "unknown model 'no-such-model'"),
    ],
)
def test_a_failing_classifier_is_reported_and_the_default_answers(
    cli: Cli, answer: Answer, classifier: str, why: str
) -> None:
    with three(cli, answer, http(HELLO), classifier=classifier) as on:
        done = cli.ok("-p", "Hi.", env=ENV)
    assert done.out == "hello\n"
    assert asked(on)[-1] == "mine"
    assert why in done.err
    assert "using mine" in done.err
    readable(done)


# --- windows -----------------------------------------------------------------------------------

LONG = "many words " * 800  # some 2,200 tokens


def test_a_window_named_in_an_error_is_learned_for_this_run_and_the_next(cli: Cli) -> None:
    said = "This model's maximum context length is 4096 tokens. You asked for 5321 tokens."
    too_long, hello = refused("400 Bad Request", said), http(HELLO)
    windows = cli.home / "windows.json"
    with server(cli, hello, too_long, hello) as on:
        assert "reduced the context" not in cli.ok("-p", LONG, env=ENV).err
        learns = cli.ok("-c", "-p", LONG, env=ENV)
        assert "the window of mine is only 4,096 tokens" in learns.err
        assert "reduced the context" in learns.err
        assert len(on.asked[-1].body) < len(on.asked[1].body)
        assert json.loads(windows.read_text()) == {"mine": 4_096}
        cli.ok("-p", LONG, env=ENV)
        assert "reduced the context" in cli.ok("-c", "-p", LONG, env=ENV).err
        windows.write_text("{ damaged")
        cli.ok("-p", LONG, env=ENV)
        assert "reduced the context" not in cli.ok("-c", "-p", LONG, env=ENV).err


def test_the_window_set_for_ones_own_model_is_used(cli: Cli) -> None:
    with server(cli, http(HELLO)) as on:
        file = cli.home / "settings.toml"
        file.write_text(file.read_text() + own_model("small", on.url, 4_096))
        cli.ok("-p", LONG, env=ENV)
        assert "reduced the context" in cli.ok("-m", "small", "-c", "-p", LONG, env=ENV).err


# --- mirrors -----------------------------------------------------------------------------------


@pytest.mark.parametrize("format_", ["gemini", "history-server"])
def test_a_mirror_is_there_after_the_run_and_imports_back(
    cli: Cli, tmp_path: Path, format_: str
) -> None:
    with server(cli, http(HELLO)) as on:
        file = cli.home / "settings.toml"
        file.write_text(f'mirror = "{format_}"\n' + file.read_text())
        done = cli.ok("-p", "Is it mirrored?", env=ENV)
        cli.ok("-c", "-p", "Still?", env=ENV)
    assert "warning" not in done.err
    assert len(on.asked) == 2
    (mirror,) = (cli.home / "mirrors").glob("session*.json")
    (tmp_path / "elsewhere").mkdir()
    elsewhere = Cli(tmp_path / "elsewhere")
    elsewhere.ok("import", str(mirror))
    prompts = ("Is it mirrored?", "hello", "Still?", "hello")
    kept = [said for role, said, _ in log(elsewhere) if role in ("user", "model")]
    assert tuple(kept[-4:]) == prompts


def test_a_mirror_that_cannot_be_written_is_one_warning(cli: Cli) -> None:
    with server(cli, http(HELLO)):
        file = cli.home / "settings.toml"
        file.write_text('mirror = "gemini"\n' + file.read_text())
        (cli.home / "mirrors").write_text("a file is in the way")
        done = cli.ok("-p", "Hi.", env=ENV)
    assert done.out == "hello\n"
    assert done.err.count("was not written") == 1, done.err
    readable(done)


# --- the machine -------------------------------------------------------------------------------


# no file of the process that follows may have more than 4 MB: what a full disk is to a write
SMALL_FILES = (
    "import os, resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (4_000_000, 4_000_000));"
    "os.execvp(sys.argv[1], sys.argv[1:])"
)
AS_JSON = ("--output-format", "json")


def test_a_disk_that_is_full_has_its_exit_code_and_every_call_a_result(cli: Cli) -> None:
    (cli.project / "a.txt").write_text("a" * 100_000)
    grows = call(
        "replace",
        id="a",
        file_path="a.txt",
        old_string="a",
        new_string="b" * 100,
        expected_replacements=100_000,
    )
    after = call("write_file", id="b", file_path="later.txt", content="x")
    with server(cli, reply(grows, after), http(HELLO), more='[permissions]\nmode = "edit"\n') as on:
        limit = (sys.executable, "-c", SMALL_FILES)
        failed = cli.process("-p", "Grow it.", *AS_JSON, env=ENV, before=limit)
        assert failed.code == 54, failed
        told = failed.json
        assert told["is_error"] is True
        assert "File too large; fix that" in told["result"]
        assert len(on.asked) == 1
        assert (cli.project / "a.txt").read_text() == "a" * 100_000
        assert not (cli.project / "later.txt").exists()
        assert [each.call_id for each in parts_of(cli, ToolResult)] == ["a", "b"]
        cli.ok("-r", told["session_id"], "-p", "Go on.", env=ENV)
    assert len(outputs(on)) == 2
    assert list(cli.project.iterdir()) == [cli.project / "a.txt"]


# --- sub-agents, summaries, turns --------------------------------------------------------------


async def used_last(store: SqliteStore) -> None:
    """The sub-agent's session becomes the newest, as a crash in it would leave it."""
    (helper,) = [each for each in await store.sessions() if each.title == "find the limit"]
    await store.append(helper.id, [Note(text="late")], parent=helper.head)


def test_a_sub_agent_answers_its_caller_and_has_a_session_of_its_own(cli: Cli) -> None:
    task = call("task", id="t", description="find the limit", prompt="What is LIMIT?")
    found = reply(Text(text="LIMIT is 42."))
    with server(cli, reply(task), found, reply(Text(text="It is 42."))) as on:
        file = cli.home / "settings.toml"
        file.write_text(file.read_text() + own_model("large", on.url, 65_536))
        done = cli.ok("-m", "large", "-p", "Find out.", env=ENV)
        cli.write(used_last)
        again = cli.ok("-m", "large", "-c", "-p", "Sure?", *AS_JSON, env=ENV).json
    assert done.out == "It is 42.\n"
    assert texts(on, 1)[-1] == "What is LIMIT?"
    assert "LIMIT is 42." in outputs(on, 2)[0]
    listed = {each["title"]: each["id"] for each in cli.ok("sessions", "--json").json}
    assert set(listed) == {"Find out.", "find the limit"}
    assert again["session_id"] == listed["Find out."]
    assert "find the limit" in cli.ok("sessions").out


def test_long_command_output_is_summarized_if_the_settings_say_so(cli: Cli) -> None:
    run = reply(call("run_shell_command", id="a", command="seq 1 2000"))
    summary = reply(Text(text="Numbers that count up, nothing unusual."))
    more = (
        '[permissions]\nallow = ["seq *"]\n'
        '[context]\nsummarize_tools = ["run_shell_command"]\nsummary_tokens = 500\n'
    )
    with server(cli, run, summary, http(HELLO), more=more) as on:
        cli.ok("-p", "Count.", env=ENV)
    assert len(on.asked) == 3
    assert "1234" in json.dumps(messages(on, 1))
    assert "Numbers that count up, nothing unusual." in outputs(on)[0]
    assert "1234" not in json.dumps(messages(on))
    (kept,) = parts_of(cli, ToolResult)
    assert "\n1234\n" in kept.content[0].text


def test_the_limit_of_turns_comes_from_the_settings_unless_it_is_given(cli: Cli) -> None:
    look = reply(call("list_directory", id="a"))
    with server(cli, look, more="[agent]\nmax_turns = 2\n") as on:
        stopped = cli("-p", "Look.", env=ENV)
        assert (stopped.code, len(on.asked)) == (53, 2)
        assert "2 turns" in stopped.err
        assert "stopped: max turns" in stopped.err
        stopped = cli("-p", "Look.", "--max-turns", "3", env=ENV)
        assert (stopped.code, len(on.asked)) == (53, 5)


def test_a_run_stopped_by_its_turn_limit_can_be_continued(cli: Cli) -> None:
    look = reply(call("list_directory", id="a"))
    with server(cli, look, http(HELLO)) as on:
        assert cli("-p", "Look.", "--max-turns", "1", env=ENV).code == 53
        assert cli.ok("-c", "-p", "Go on.", env=ENV).out == "hello\n"
    assert len(outputs(on)) == 1

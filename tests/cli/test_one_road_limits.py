"""`ask`, `context` and `compact` keep to the rules, window and settings that `-p` keeps to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from recollect.compaction.snapshot_material import MAX_ROUNDS
from recollect.entries import Body, Request
from recollect.testing import model, user
from recollect.tokens import counter_for
from tests.cli.model_server import (
    ENV,
    NAME,
    hook,
    log,
    recorded,
    recording_hook,
    script,
    server,
    texts,
)
from tests.cli.road_sessions import reads, requests, says
from tests.cli.runner import Cli
from tests.models.server import Server, http

SMALL, LARGE = 8_192, 200_000
SNAPSHOT = (
    "<state_snapshot><overall_goal>Watch a.py for the limiter.</overall_goal>"
    "<key_knowledge>The value is one.</key_knowledge></state_snapshot>"
)


def set_window(cli: Cli, tokens: int) -> None:
    file = cli.home / "settings.toml"
    file.write_text(file.read_text().replace("window = 9000", f"window = {tokens}"))


def full_reads(text: str) -> int:
    return sum(f"# version {number}" in text for number in range(7))


def size(on: Server, number: int = -1) -> int:
    """The tokens of a whole request body: more than the messages alone have."""
    return counter_for(NAME).text(on.asked[number].body.decode())


# --- ask -----------------------------------------------------------------------------------------


def test_what_ask_sends_of_a_long_session_fits_the_window(cli: Cli) -> None:
    many: list[Body] = []
    for number in range(10_000):
        many += [user(f"Question {number}?"), model(f"Answer {number}.")]
    session, _ = cli.session([*many, user("The last one?")])
    with server(cli, says("Hello.")) as on:
        set_window(cli, SMALL)
        cli.ok("ask", "And now?", "--session", session.id, env=ENV)
        sent = requests(cli, session.id)[-1].body
        assert isinstance(sent, Request)
        assert sent.tokens <= SMALL
        assert texts(on)[-1] == "And now?"
        for number in range(len(on.asked)):
            assert sum(map(counter_for(NAME).text, texts(on, number))) < SMALL


def test_ask_leaves_out_what_the_rules_leave_out(cli: Cli) -> None:
    session, _ = cli.session(reads(7, lines=600))
    with server(cli, says("Hello.")) as on:
        set_window(cli, LARGE)
        prompt = cli.ok("encode", session.id, "--prompt", "And now?", env=ENV).out
        cli.ok("ask", "And now?", "--session", session.id, env=ENV)
        asked = on.asked[-1].body.decode()
        cli.ok("-r", session.id, "-p", "And now?", env=ENV)
    assert full_reads(prompt) == full_reads(asked) == 5
    assert full_reads(on.asked[-1].body.decode()) == 5


def test_a_hook_that_refuses_ask_ends_it_before_anything_is_sent(cli: Cli, tmp_path: Path) -> None:
    no = script(tmp_path, "no.sh", "echo 'not with this model' >&2; exit 2\n")
    for event, what in (("BeforeAgent", "the prompt"), ("BeforeModel", f"the request to {NAME}")):
        with server(cli, says("Hello."), more=hook(event, no)) as on:
            refused = cli("ask", "Hi?", env=ENV)
        assert (refused.code, on.asked) == (1, [])
        assert f"a hook refused {what}: not with this model" in refused.err
        assert refused.out == ""


# --- compact -------------------------------------------------------------------------------------


def test_compact_lets_the_model_write_and_fires_the_hooks(cli: Cli, tmp_path: Path) -> None:
    told, heard = recording_hook(tmp_path)
    session, _ = cli.session(reads(6))
    hooks = hook("PreCompress", told) + hook("ChatCompressed", told)
    with server(cli, says(SNAPSHOT), more=hooks) as on:
        out = cli.ok("compact", session.id, "--budget", "2500", env=ENV).out
        assert len(on.asked) == 1
        assert "# version 0" in on.asked[0].body.decode()
        cli.ok("-r", session.id, "-p", "Go on.", env=ENV)
        assert any("Watch a.py for the limiter." in text for text in texts(on))
    assert f"by {NAME}" in out
    (before, data), (after, done) = recorded(heard)
    assert (before, data["trigger"]) == ("PreCompress", "manual")
    assert (after, done["status"]) == ("ChatCompressed", "COMPRESSED")
    assert done["tokens_before"] == data["tokens"] > done["tokens_after"]


def test_a_hook_may_name_what_a_compaction_keeps(cli: Cli, tmp_path: Path) -> None:
    keep = script(tmp_path, "keep.sh", """echo '{"keep": "the port is 4711"}'\n""")
    session, _ = cli.session(reads(6))
    with server(cli, says(SNAPSHOT), more=hook("PreCompress", keep)) as on:
        cli.ok("compact", session.id, "--budget", "2500", env=ENV)
        assert "the port is 4711" in on.asked[0].body.decode()
        shown = cli.ok("show", session.id, "--curated", "--json").out
    assert "the port is 4711" in shown


def test_without_the_model_compact_calls_nothing(cli: Cli) -> None:
    session, _ = cli.session(reads(6))
    with server(cli, says(SNAPSHOT)) as on:
        out = cli.ok("compact", session.id, "--no-model", "--budget", "2500", env=ENV).out
    assert on.asked == []
    assert "built without a model" in out


def test_a_preview_stores_nothing_and_runs_no_hook(cli: Cli, tmp_path: Path) -> None:
    told, heard = recording_hook(tmp_path)
    session, entries = cli.session(reads(6))
    with server(cli, says(SNAPSHOT), more=hook("PreCompress", told)) as on:
        out = cli.ok("compact", session.id, "--preview", "--budget", "2500", env=ENV).out
        assert len(on.asked) == 1
    assert "Watch a.py for the limiter." in out
    assert "nothing was written" in out
    assert not heard.exists()
    assert len(log(cli)) == len(entries)


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (http(b'{"error": {"message": "no"}}', "400 Bad", "application/json"), "the model failed"),
        (says("I would rather not."), "the model wrote no snapshot"),
    ],
)
def test_a_model_that_writes_no_snapshot_leaves_it_to_code_and_that_is_said(
    cli: Cli, answer: bytes, why: str
) -> None:
    session, _ = cli.session(reads(6))
    with server(cli, answer) as on:
        out = cli.ok("compact", session.id, "--budget", "2500", env=ENV).out
    assert len(on.asked) == 1
    assert "built without a model" in out
    assert f"built by code: {why}" in out


def test_what_a_model_summarizes_fits_its_window(cli: Cli) -> None:
    session, _ = cli.session(reads(40, lines=200))
    with server(cli, says(SNAPSHOT)) as on:
        cli.ok("compact", session.id, "--budget", "6000", env=ENV)
    assert 1 < len(on.asked) <= MAX_ROUNDS
    assert all(size(on, number) < 9_000 for number in range(len(on.asked)))


def test_compact_goes_by_the_settings(cli: Cli) -> None:
    session, _ = cli.session(reads(12, lines=100))
    with server(cli, says(SNAPSHOT), more="[context]\ntarget = 2800\n"):
        made = cli.ok("compact", session.id, "--json", env=ENV).json
    assert made["target"] == 2_800
    assert made["tokens_after"] <= 2_800


# --- context -------------------------------------------------------------------------------------


def context(cli: Cli, session: str, *more: str) -> Any:
    return cli.ok("context", session, *more, "--json", env=ENV).json


def test_context_counts_tools_and_instructions_as_the_request_does(cli: Cli) -> None:
    session, _ = cli.session([user("Hi?"), model("Hello.")])
    with server(cli, says("Hello.")):
        shown = context(cli, session.id, "--prompt", "And?")
        cli.ok("-r", session.id, "-p", "And?", env=ENV)
        (sent,) = requests(cli, session.id)
        then = context(cli, session.id, "--at", sent.id)
    assert isinstance(sent.body, Request)
    assert shown["tokens"] == shown["next_request"]["tokens"] == then["tokens"] == sent.body.tokens
    assert sum(shown["categories"].values()) == shown["tokens"]
    assert sum(then["categories"].values()) == then["tokens"]
    assert shown["categories"]["tools"] > 500
    assert shown["categories"]["instructions"] > 50
    assert shown["categories"]["environment"] > 50


def test_context_knows_the_window_of_a_model_in_the_settings(cli: Cli) -> None:
    session, _ = cli.session([user("Hi?"), model("Hello.")])
    with server(cli, says("Hello.")):
        shown = context(cli, session.id)
        out = cli.ok("context", session.id, env=ENV).out
    assert shown["window"] == 9_000
    assert shown["threshold"] <= 9_000
    assert shown["model_is_known"] is True
    assert f"of the 9,000 of {NAME}\n" in out
    assert "a guess" not in out


def test_a_window_that_nobody_named_is_called_a_guess(cli: Cli) -> None:
    session, _ = cli.session([user("Hi?"), model("Hello.")])
    with server(cli, says("Hello.")):
        file = cli.home / "settings.toml"
        file.write_text(file.read_text().replace("window = 9000", ""))
        assert "a guess" in cli.ok("context", session.id, env=ENV).out


def test_the_forecast_of_context_is_for_the_rules_in_the_settings(cli: Cli) -> None:
    session, _ = cli.session(reads(7, lines=600))
    with server(cli, says("Hello."), more="[context]\nkeep_reads = 2\n") as on:
        set_window(cli, LARGE)
        shown = context(cli, session.id, "--prompt", "And?")
        cli.ok("-r", session.id, "-p", "And?", env=ENV)
    (planned,) = shown["would_be_left_out"].values()
    assert planned["things"] == 5
    assert full_reads(on.asked[-1].body.decode()) == 2


def test_the_threshold_of_context_is_where_a_run_compacts(cli: Cli) -> None:
    session, _ = cli.session(reads(5, lines=100))
    with server(cli, says("Hello."), more="[context]\nthreshold = 1000\n"):
        file = cli.home / "settings.toml"
        tokens = context(cli, session.id, "--prompt", "And?")["tokens"]
        tools = context(cli, session.id)["categories"]["tools"]
        for threshold, compacted in ((tokens - tools, False), (tokens - tools - 1, True)):
            text = file.read_text().split("threshold")[0]
            file.write_text(f"{text}threshold = {threshold}\n")
            shown = context(cli, session.id, "--prompt", "And?")
            assert shown["threshold"] == threshold + tools
            assert shown["next_request"]["compacted"] is compacted

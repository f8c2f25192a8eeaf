"""An agent looks back: what was compacted is found by a question and recalled by its handles, and
the commands take the same handles."""

from __future__ import annotations

import json
import re

from recollect.entries import Compaction, Entry, Text
from recollect.store.contract import SessionInfo
from recollect.testing import call, model, result, user
from tests.cli.model_server import ENV, outputs, reply, server
from tests.cli.runner import Cli

COMMIT = "[main 4f2a91c] Refill the bucket once\n 2 files changed, 11 insertions(+)"
REASON = "refill_tokens became idempotent, because two timers called it within one millisecond"


def compacted(cli: Cli) -> tuple[SessionInfo, tuple[Entry, ...]]:
    """A session whose beginning the model no longer sees."""
    shell = call("run_shell_command", command="git commit -am 'Refill the bucket once'")
    said = [user("Fix the limiter"), model("", shell), result(shell, COMMIT), model(REASON)]
    noise = [model(f"Step {n} of the plan is done.") for n in range(40)]
    held = Compaction(status="COMPRESSED", snapshot="The limiter was repaired.")
    return cli.session([*said, *noise, held])


def test_a_model_finds_by_a_question_and_recalls_several_at_once(cli: Cli) -> None:
    session, entries = compacted(cli)
    commit, reason = (entry.id[-8:] for entry in entries[2:4])
    question = "Why was RateLimiter.refill_tokens made idempotent, and in which commit?"
    ask = call("search_history", id="a", words=question)
    both = call("recall", id="b", handle=[commit, reason], around="bucket")
    answers = (reply(ask), reply(both), reply(Text(text="Because of two timers.")))
    with server(cli, *answers) as on:
        settings = cli.home / "settings.toml"
        settings.write_text(settings.read_text().replace("window = 9000", "window = 90000"))
        cli.ok("-r", session.id, "-p", "Why?", env=ENV)
        found, recalled = outputs(on)
    assert "Nowhere in this session: RateLimiter.refill_tokens" in found
    assert f"> {REASON}" in found
    assert f"- {reason} said by you" in found
    assert "> run_shell_command command: git commit -am 'Refill the bucket once'" in found
    assert f"  gave ({commit}): [main 4f2a91c] Refill the bucket once" in found
    assert f"[history {commit}: " in recalled
    assert COMMIT in recalled
    assert f"{REASON}\n[end of history {reason}]" in recalled


def test_every_handle_that_a_model_is_given_can_be_shown_and_searched_by_commands(cli: Cli) -> None:
    session, entries = compacted(cli)
    ask = call("search_history", id="a", words="refill")
    with server(cli, reply(ask), reply(Text(text="I see."))) as on:
        settings = cli.home / "settings.toml"
        settings.write_text(settings.read_text().replace("window = 9000", "window = 90000"))
        cli.ok("-r", session.id, "-p", "Why?", env=ENV)
        handles = re.findall(r"^- ([0-9a-f]{8}) ", outputs(on)[0], re.MULTILINE)
    assert handles
    shown = cli.ok("show", *handles, "--json").out
    documents = json.loads(shown)
    marked = [one["marked"] for one in (documents if len(handles) > 1 else [documents])]
    assert [key[-8:] for key in marked] == handles
    assert {entry.id for entry in entries}.issuperset(marked)


def test_handles_survive_a_rewind_and_a_fork(cli: Cli) -> None:
    session, entries = cli.session([user("one"), model("two needles"), model("three")])
    handle = entries[1].id[-8:]
    cli.ok("rewind", session.id, entries[0].id)
    forked = cli.ok("fork", session.id, "--at", entries[2].id, "--json").json["id"]
    assert "two needles" in cli.ok("show", handle).out
    for where in (session.id, forked):
        (hit,) = cli.ok("search", "needles", "--session", where, "--json").json
        assert hit["handle"] == handle


def test_no_hostile_character_of_a_passage_reaches_the_terminal(cli: Cli) -> None:
    bad = "needle \x1b[2J\x1b]0;title\x07 \u202egnp\u2066 \x9b31m\rover\x08\x7f needle"
    shell = call("shell", command=bad)
    cli.session([user(bad), model("", shell), result(shell, bad)], title=bad)
    out = cli.ok("search", "needle").out
    assert "needle" in out
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", out)

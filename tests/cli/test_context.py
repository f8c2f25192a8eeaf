"""`recollect context`: what the model sees, what it does not, and how that has changed."""

from __future__ import annotations

import re
import time

import pytest

from recollect.entries import (
    Compaction,
    Elide,
    Elided,
    Entry,
    Message,
    Request,
)
from recollect.testing import call, model, result, user
from tests.cli.context_session import (
    GREP,
    HOSTILE,
    STYLE,
    append,
    elide,
    kinds,
    session_with_calls,
    spoken,
    tokens_shown,
)
from tests.cli.runner import Cli


def test_every_item_is_listed_with_its_tokens_and_every_category_has_a_bar(cli: Cli) -> None:
    session, entries = session_with_calls(cli)
    out = cli.ok("context", session.id).out
    assert out.startswith("Finding x\n")
    assert re.search(r"tokens estimated, 1\.\d % of the 200,000 of claude-opus-4\n", out)
    for name in ("instructions", "environment", "messages", "calls", "results", "thoughts"):
        assert re.search(rf"^{name} +[\d,]+ +\d+\.\d % +[█▏▎▍▌▋▊▉]", out, re.M), name
    for name in ("memory", "snapshot"):
        assert re.search(rf"^{name} +0$", out, re.M)
    assert re.search(rf"^{entries[3].id[-8:]} +result +226  → grep: found it", out, re.M)
    assert "nothing was left out" in out


def test_the_last_requests_cost_is_shown_beside_our_count(cli: Cli) -> None:
    session, entries = session_with_calls(cli)
    out = cli.ok("context", session.id).out
    assert "last request: 5,000 tokens (4,000 cached, 1,000 fresh), reply 7\n" in out
    before = tokens_shown(cli, session.id, "--at", entries[3].id)
    assert f"we count {before:,} for what the log has of it" in out


def test_the_json_document_adds_up_and_names_every_handle(cli: Cli) -> None:
    session, entries = session_with_calls(cli)
    (edit,) = append(cli, session, elide(entries[3]))
    document = cli.ok("context", session.id, "--json").json
    assert sum(document["categories"].values()) == document["tokens"]
    shown = sum(item["tokens"] for item in document["items"])
    added = sum(item["tokens"] for item in document["next_request"]["added"])
    assert shown + added + document["categories"]["tools"] == document["tokens"]
    assert document["next_request"]["tokens"] == document["tokens"]
    assert [item["entry"] for item in document["items"]] == [entry.id for entry in entries]
    assert (document["window"], document["model"], document["exact"]) == (
        200_000,
        "claude-opus-4",
        False,
    )
    (out,) = document["left_out"]
    assert out["rule"] == "stale-search"
    assert (out["entry"], out["by"], out["handle"]) == (entries[3].id, edit.id, entries[3].id)
    assert out["since"] == edit.time
    assert out["tokens"] > 200


def test_omissions_are_listed_with_rule_tokens_age_and_the_way_back(cli: Cli) -> None:
    session, entries = session_with_calls(cli)
    append(cli, session, elide(entries[3]), Message(role="model"))
    out = cli.ok("context", session.id).out
    told = out.split("left out: ")[1]
    short = rf"{entries[3].id[-8:]}"
    assert re.search(rf"^{short} +stale-search +222  just now  → grep: found it", told, re.M)
    assert "no provider accepts it: (empty)" in told
    assert re.search(rf"`recollect context {session.id[-8:]} --restore {short}` brings", told)
    assert re.search(rf"^{short} +result +\d+  shortened  → grep: \[left out\]", out, re.M)


def test_a_compaction_is_listed_with_its_messages_and_our_token_count(cli: Cli) -> None:
    session, entries = session_with_calls(cli)
    held = Compaction(status="COMPRESSED", snapshot="the state", first_kept=entries[4].id)
    (edit,) = append(cli, session, held)
    gone = sum(
        item["tokens"]
        for item in cli.ok("context", session.id, "--at", entries[4].id, "--json").json["items"][:4]
    )
    out = cli.ok("context", session.id).out
    row = rf"^{edit.id[-8:]} +compaction +{gone}  just now  4 messages before it$"
    assert re.search(row, out, re.M)
    assert "the state" in out
    document = cli.ok("context", session.id, "--json").json
    assert document["compaction"]["messages"] == 4
    assert document["left_out"][0]["tokens"] == gone


def test_at_shows_what_an_earlier_request_saw(cli: Cli) -> None:
    session, entries = session_with_calls(cli)
    (request,) = append(cli, session, Request(head=entries[1].id, as_of=1_000, tokens=3))
    append(cli, session, elide(entries[3], text=""))
    then = cli.ok("context", session.id, "--at", entries[4].id, "--json").json
    assert len(then["items"]) == 5
    assert then["left_out"] == []
    asked = cli.ok("context", session.id, "--at", request.id, "--json").json
    assert [item["entry"] for item in asked["items"]] == [entries[0].id, entries[1].id]
    assert "as it was for request" in cli.ok("context", session.id, "--at", request.id).out


def test_planned_elisions_are_shown_as_sums_and_not_applied(cli: Cli) -> None:
    uses = [call("run_shell_command", id=str(n), command="make") for n in range(9)]
    bodies = [
        body
        for use in uses
        for body in (Message(role="model", parts=(use,)), result(use, "compiled " * 500))
    ]
    long_ago = 1_000_000
    items = [Entry(f"{n:032x}", None, long_ago + n, body) for n, body in enumerate(bodies)]
    session, _ = cli.session(items)
    out = cli.ok("context", session.id).out
    assert re.search(r"the next request would leave out: stale-shell 4,\d+ tokens in 4\n", out)
    assert "nothing was left out" in out
    assert kinds(cli, session) == ["message"] * 18


def test_a_session_without_messages_is_empty_and_no_error(cli: Cli) -> None:
    session, _ = cli.session([])
    out = cli.ok("context", session.id).out
    also = "the next request also has what is not stored yet: the instructions ("
    assert also in out
    assert re.search(r"tokens\), the environment \(\d+ tokens\)", " ".join(out.split()))
    assert "nothing: the session has no messages" in out
    assert cli.ok("context", session.id, "--json").json["items"] == []


def test_an_unknown_model_is_called_unknown_and_another_can_be_named(cli: Cli) -> None:
    session, _ = cli.session([user("hello"), spoken("hi", "mystery-9")])
    assert "of mystery-9, an unknown model: a guess" in cli.ok("context", session.id).out
    named = cli.ok("context", session.id, "--model", "gpt-4o", "--json").json
    assert (named["window"], named["exact"]) == (128_000, True)


def test_edits_without_effect_are_listed(cli: Cli) -> None:
    session, _ = cli.session([user("hello"), Elide(rule="x", items=())])
    ghost = Elided(entry="0" * 32, placeholder="")
    append(cli, session, Elide(rule="x", items=(ghost,)))
    assert "1 edit without effect:\n" in cli.ok("context", session.id).out


def test_long_lists_show_their_newest_and_say_how_many_there_are(cli: Cli) -> None:
    session, _ = cli.session([user(f"message {n}") for n in range(100)])
    out = cli.ok("context", session.id, "--last", "3").out
    assert "message 96" not in out
    assert "message 97" in out
    assert "… 97 items, " in out
    everything = cli.ok("context", session.id, "--all").out
    assert "message 0\n" in everything
    assert "--all shows them" not in everything
    assert "… 70 items, " in cli.ok("context", session.id).out


def test_nothing_hostile_reaches_the_terminal(cli: Cli) -> None:
    session, entries = cli.session(
        [user(HOSTILE), result(GREP, HOSTILE * 3), spoken(HOSTILE, HOSTILE)], title=HOSTILE
    )
    append(
        cli,
        session,
        elide(entries[1], rule=HOSTILE, text=HOSTILE),
        Compaction(status="COMPRESSED", snapshot=HOSTILE, first_kept=entries[1].id),
    )
    for more in ((), ("--diff", entries[0].id), ("--at", entries[2].id), ("--all",)):
        out = STYLE.sub("", cli.screen("context", session.id, *more).out)
        assert not re.search("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\u202e]", out), more
    out = cli.screen("compact", session.id, "--preview", "--budget", "1000").out
    assert not re.search("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\u202e]", STYLE.sub("", out))


def test_a_ten_megabyte_result_is_listed_in_one_line_and_quickly(cli: Cli) -> None:
    session, _ = cli.session([user("x"), model("", GREP), result(GREP, "line of text\n" * 800_000)])
    started = time.monotonic()
    out = cli.ok("context", session.id).out
    assert time.monotonic() - started < 60  # a second on a quiet machine
    assert len(out) < 5_000
    assert "2,600,001" in out


def test_looking_writes_nothing(cli: Cli) -> None:
    session, entries = session_with_calls(cli)
    for more in ((), ("--at", entries[2].id), ("--diff", entries[1].id), ("--json",), ("--all",)):
        cli.ok("context", session.id, *more)
    cli.ok("show", session.id, "--curated")
    assert kinds(cli, session) == ["message"] * 5
    assert cli.ok("show", session.id, "--json").json["session"]["used"] == session.used


# --- comparing -----------------------------------------------------------------------------------


def test_a_difference_says_what_appeared_what_went_and_what_changed(cli: Cli) -> None:
    session, entries = session_with_calls(cli)
    append(cli, session, elide(entries[3]), elide(entries[1], "drop", ""), user("thanks"))
    out = cli.ok("context", session.id, "--diff", entries[4].id).out
    assert "1 item appeared, +2 tokens\n" in out
    assert "1 item went, −2 tokens\n" in out
    assert re.search(rf"^{entries[1].id[-8:]} +user +−2  drop  find x$", out, re.M)
    assert re.search(rf"^{entries[3].id[-8:]} +result +−222  stale-search  → grep", out, re.M)
    document = cli.ok("context", session.id, "--diff", entries[4].id, "--json").json
    assert document["to"]["tokens"] - document["from"]["tokens"] == document["tokens"] == -222


def test_two_entries_are_compared_in_the_order_given(cli: Cli) -> None:
    session, entries = session_with_calls(cli)
    forth = ("context", session.id, "--diff", entries[1].id)
    there = cli.ok(*forth, entries[3].id, "--json").json
    assert there == cli.ok(*forth, "--at", entries[3].id, "--json").json
    back = cli.ok("context", session.id, "--diff", entries[3].id, entries[1].id, "--json").json
    assert back["tokens"] == -there["tokens"]
    assert {one["why"] for one in back["gone"]} == {"elsewhere"}
    same = cli.ok(*forth, entries[1].id).out
    assert "the model sees the same" in same


@pytest.mark.parametrize(
    "arguments",
    [
        ("x", "y"),
        ("x", "--drop", "a", "--at", "b"),
        ("x", "--pin", "a", "--diff", "b"),
        ("x", "y", "--diff", "a", "--at", "b"),
        ("x", "--last", "0"),
    ],
)
def test_conflicting_options_are_wrong_usage(cli: Cli, arguments: tuple[str, ...]) -> None:
    wrong = cli("context", *arguments)
    assert (wrong.code, wrong.out) == (2, "")


@pytest.mark.parametrize("name", ["embedded/coder", "mystery-9"])
def test_the_configured_model_is_the_next_requests_whoever_replied_before(
    cli: Cli, name: str
) -> None:
    session, _ = cli.session([user("hi"), spoken("hello")])
    assert cli.ok("context", session.id, "--json").json["model"] == "claude-opus-4"
    cli.ok("config", "model", name)
    model = cli.ok("context", session.id, "--json").json["model"]
    assert model.startswith("qwen2.5-coder" if name == "embedded/coder" else name)

"""`recollect context`: what the model sees, what it does not, and edits of both."""

from __future__ import annotations

import re
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from recollect.entries import (
    Body,
    Compaction,
    Elide,
    Elided,
    Entry,
    Message,
    Note,
    Request,
    Text,
    Thought,
    Usage,
)
from recollect.store.contract import SessionInfo
from recollect.store.sqlite import SqliteStore
from recollect.testing import call, model, result, user
from tests.cli.runner import Cli

GREP = call("grep", pattern="x")
HOSTILE = "\x1b]0;owned\x07\x1b[2J\u202egnp.exe\x08\r\ud800"
STYLE = re.compile("\x1b\\[[0-9;]*m")


def spoken(text: str, name: str = "claude-opus-4", usage: Usage | None = None) -> Message:
    return Message(role="model", parts=(Text(text=text),), model=name, usage=usage)


def elide(entry: Entry, rule: str = "stale-search", text: str = "[left out]") -> Elide:
    return Elide(rule=rule, items=(Elided(entry=entry.id, placeholder=text),))


def talk(cli: Cli) -> tuple[SessionInfo, tuple[Entry, ...]]:
    return cli.session(
        [
            Message(role="user", parts=(Text(text="setup " * 10),), context="initial"),
            user("find x"),
            Message(role="model", parts=(Thought(text="hm"), GREP), model="claude-opus-4"),
            result(GREP, "found it " * 100),
            spoken("done", usage=Usage(input=5_000, cached=4_000, output=7)),
        ],
        title="Finding x",
    )


def append(cli: Cli, session: SessionInfo, *bodies: Body) -> tuple[Entry, ...]:
    async def work(store: SqliteStore) -> tuple[Entry, ...]:
        head = (await store.session(session.id)).head
        return await store.append(session.id, bodies, parent=head)

    return cli.write(work)


def kinds(cli: Cli, session: SessionInfo) -> list[str]:
    entries = cli.ok("show", session.id, "--json").json["entries"]
    return [entry["body"]["kind"] for entry in entries]


# --- looking -------------------------------------------------------------------------------------


def test_every_item_is_listed_with_its_tokens_and_every_category_has_a_bar(cli: Cli) -> None:
    session, entries = talk(cli)
    out = cli.ok("context", session.id).out
    assert out.startswith("Finding x\n")
    assert "tokens estimated, 0.1 % of the 200,000 of claude-opus-4\n" in out
    for name in ("initial context", "messages", "calls", "results", "thoughts"):
        assert re.search(rf"^{name} +[\d,]+ +\d+\.\d % +[█▏▎▍▌▋▊▉]", out, re.M), name
    for name in ("memory", "snapshot"):
        assert re.search(rf"^{name} +0$", out, re.M)
    assert re.search(rf"^{entries[3].id[:12]}\w* +result +226  → grep: found it", out, re.M)
    assert "nothing was left out" in out


def test_what_the_last_request_cost_stands_beside_our_count_of_it(cli: Cli) -> None:
    session, entries = talk(cli)
    out = cli.ok("context", session.id).out
    assert "the last request: 5,000 tokens (4,000 of them cached), the reply 7\n" in out
    before = cli.ok("context", session.id, "--at", entries[3].id, "--json").json["tokens"]
    assert f"we count {before:,} for its messages" in out


def test_the_json_document_adds_up_and_names_every_handle(cli: Cli) -> None:
    session, entries = talk(cli)
    (edit,) = append(cli, session, elide(entries[3]))
    document = cli.ok("context", session.id, "--json").json
    assert sum(document["categories"].values()) == document["tokens"]
    assert sum(item["tokens"] for item in document["items"]) == document["tokens"]
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


def test_what_was_left_out_is_told_with_rule_tokens_age_and_the_way_back(cli: Cli) -> None:
    session, entries = talk(cli)
    append(cli, session, elide(entries[3]), Message(role="model"))
    out = cli.ok("context", session.id).out
    told = out.split("left out: ")[1]
    short = rf"{entries[3].id[:12]}\w*"
    assert re.search(rf"^{short} +stale-search +222  just now  → grep: found it", told, re.M)
    assert "no provider takes it: (empty)" in told
    assert re.search(rf"`recollect context {session.id[:8]}\w* --restore {short}` brings", told)
    assert re.search(rf"^{short} +result +\d+  shortened  → grep: \[left out\]", out, re.M)


def test_a_compaction_tells_how_many_messages_it_stands_for_in_our_tokens(cli: Cli) -> None:
    session, entries = talk(cli)
    held = Compaction(status="COMPRESSED", snapshot="the state", first_kept=entries[4].id)
    (edit,) = append(cli, session, held)
    gone = sum(
        item["tokens"]
        for item in cli.ok("context", session.id, "--at", entries[4].id, "--json").json["items"][:4]
    )
    out = cli.ok("context", session.id).out
    row = rf"^{edit.id[:12]}\w* +compaction +{gone}  just now  4 messages before it$"
    assert re.search(row, out, re.M)
    assert "the state" in out
    document = cli.ok("context", session.id, "--json").json
    assert document["compaction"]["messages"] == 4
    assert document["left_out"][0]["tokens"] == gone


def test_at_shows_what_an_earlier_request_saw(cli: Cli) -> None:
    session, entries = talk(cli)
    (request,) = append(cli, session, Request(head=entries[1].id, as_of=1_000, tokens=3))
    append(cli, session, elide(entries[3], text=""))
    then = cli.ok("context", session.id, "--at", entries[4].id, "--json").json
    assert len(then["items"]) == 5
    assert then["left_out"] == []
    asked = cli.ok("context", session.id, "--at", request.id, "--json").json
    assert [item["entry"] for item in asked["items"]] == [entries[0].id, entries[1].id]
    assert "as it was for request" in cli.ok("context", session.id, "--at", request.id).out


def test_rules_that_would_apply_are_told_as_sums_and_not_applied(cli: Cli) -> None:
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
    assert re.search(r"would be left out at the next request: stale-shell 4,\d+ tokens in 4\n", out)
    assert "nothing was left out" in out
    assert kinds(cli, session) == ["message"] * 18


def test_a_session_without_messages_is_empty_and_no_error(cli: Cli) -> None:
    session, _ = cli.session([])
    out = cli.ok("context", session.id).out
    assert "0 tokens estimated" in out
    assert "nothing: this session has no messages" in out
    assert cli.ok("context", session.id, "--json").json["items"] == []


def test_an_unknown_model_is_said_to_be_one_and_another_can_be_named(cli: Cli) -> None:
    session, _ = cli.session([user("hello"), spoken("hi", "mystery-9")])
    assert "of mystery-9, which is not known: a guess" in cli.ok("context", session.id).out
    named = cli.ok("context", session.id, "--model", "gpt-4o", "--json").json
    assert (named["window"], named["exact"]) == (128_000, True)


def test_edits_without_effect_are_told(cli: Cli) -> None:
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
    plain = {"PAGER": "cat"}
    for more in ((), ("--diff", entries[0].id), ("--at", entries[2].id), ("--all",)):
        out = STYLE.sub("", cli.terminal("context", session.id, *more, env=plain).out)
        assert not re.search("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\u202e]", out), more
    out = cli.terminal("compact", session.id, "--preview", "--budget", "1000", env=plain).out
    assert not re.search("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\u202e]", STYLE.sub("", out))


def test_a_ten_megabyte_result_is_listed_in_one_line_and_quickly(cli: Cli) -> None:
    session, _ = cli.session([user("x"), model("", GREP), result(GREP, "line of text\n" * 800_000)])
    started = time.monotonic()
    out = cli.ok("context", session.id).out
    assert time.monotonic() - started < 10  # a second here; machines differ
    assert len(out) < 5_000
    assert "2,600,001" in out


def test_looking_writes_nothing(cli: Cli) -> None:
    session, entries = talk(cli)
    for more in ((), ("--at", entries[2].id), ("--diff", entries[1].id), ("--json",), ("--all",)):
        cli.ok("context", session.id, *more)
    cli.ok("show", session.id, "--curated")
    assert kinds(cli, session) == ["message"] * 5
    assert cli.ok("show", session.id, "--json").json["session"]["used"] == session.used


# --- comparing -----------------------------------------------------------------------------------


def test_a_difference_says_what_appeared_what_went_and_what_changed(cli: Cli) -> None:
    session, entries = talk(cli)
    append(cli, session, elide(entries[3]), elide(entries[1], "drop", ""), user("thanks"))
    out = cli.ok("context", session.id, "--diff", entries[4].id).out
    assert "1 item appeared, +2 tokens\n" in out
    assert "1 item went, −2 tokens\n" in out
    assert re.search(rf"^{entries[1].id[:12]}\w* +user +−2  drop  find x$", out, re.M)
    assert re.search(rf"^{entries[3].id[:12]}\w* +result +−222  stale-search  → grep", out, re.M)
    document = cli.ok("context", session.id, "--diff", entries[4].id, "--json").json
    assert document["to"]["tokens"] - document["from"]["tokens"] == document["tokens"] == -222


def test_two_entries_are_compared_in_the_order_given(cli: Cli) -> None:
    session, entries = talk(cli)
    forth = ("context", session.id, "--diff", entries[1].id)
    there = cli.ok(*forth, entries[3].id, "--json").json
    assert there == cli.ok(*forth, "--at", entries[3].id, "--json").json
    back = cli.ok("context", session.id, "--diff", entries[3].id, entries[1].id, "--json").json
    assert back["tokens"] == -there["tokens"]
    assert {one["why"] for one in back["gone"]} == {"elsewhere"}
    same = cli.ok(*forth, entries[1].id).out
    assert "the model sees the same" in same


# --- editing -------------------------------------------------------------------------------------


def test_a_dropped_message_is_out_of_sight_and_comes_back_by_its_own_id(cli: Cli) -> None:
    session, entries = talk(cli)
    whole = cli.ok("context", session.id, "--json").json["tokens"]
    out = cli.ok("context", session.id, "--drop", entries[3].id[:20], "--drop", entries[1].id).out
    assert re.search(rf"the model now sees \d+ tokens, was {whole}\n", out)
    after = cli.ok("context", session.id, "--json").json
    assert entries[1].id not in [item["entry"] for item in after["items"]]
    assert {one["rule"] for one in after["left_out"]} == {"drop"}
    cli.ok("context", session.id, "--restore", entries[3].id)
    cli.ok("context", session.id, "--restore", entries[1].id)
    assert cli.ok("context", session.id, "--json").json["tokens"] == whole
    assert kinds(cli, session)[5:] == ["elide", "restore", "restore"]


def test_an_edit_tells_the_command_that_undoes_it(cli: Cli) -> None:
    session, entries = talk(cli)
    out = cli.ok("context", session.id, "--drop", entries[3].id, "--pin", entries[1].id).out
    undo = re.search(r"`recollect (.*)` undoes it", out)
    assert undo is not None
    cli.ok(*undo[1].split())
    after = cli.ok("context", session.id, "--json").json
    assert after["left_out"] == []
    assert not any(item["pinned"] for item in after["items"])


def test_a_pin_brings_back_what_a_compaction_took_word_for_word(cli: Cli) -> None:
    session, entries = talk(cli)
    held = Compaction(status="COMPRESSED", snapshot="the state", first_kept=entries[4].id)
    append(cli, session, held)
    refused = cli("context", session.id, "--restore", entries[1].id)
    assert refused.code == 1
    assert "stands for it; --pin brings it back word for word" in refused.err
    cli.ok("context", session.id, "--pin", entries[1].id)
    out = cli.ok("context", session.id).out
    assert re.search(r"^\w+ +user +2  pinned  find x$", out, re.M)


def test_restoring_a_compaction_undoes_it(cli: Cli) -> None:
    session, entries = talk(cli)
    before = cli.ok("context", session.id, "--json").json["tokens"]
    (held,) = append(
        cli, session, Compaction(status="COMPRESSED", snapshot="s", first_kept=entries[4].id)
    )
    cli.ok("context", session.id, "--restore", held.id)
    assert cli.ok("context", session.id, "--json").json["tokens"] == before


def test_edits_that_would_do_nothing_are_refused_with_the_reason_and_nothing_is_written(
    cli: Cli,
) -> None:
    session, entries = talk(cli)
    pin, note, empty = append(
        cli, session, elide(entries[0]), Note(text="for people"), Message(role="model")
    )
    cli.ok("context", session.id, "--pin", entries[1].id)
    before = kinds(cli, session)
    for option, entry, reason in (
        ("--drop", entries[1].id, "it is pinned; `--restore "),
        ("--pin", entries[1].id, "it is pinned already"),
        ("--drop", note.id, "it is no message but a note"),
        ("--restore", note.id, "a note leaves nothing out"),
        ("--restore", entries[3].id, "nothing is left out of it; --pin keeps it that way"),
        ("--drop", empty.id, "it belongs to an invalid reply"),
        ("--drop", entries[0].id, "which is left out already"),
    ):
        refused = cli("context", session.id, "--pin", entries[3].id, option, entry)
        assert (refused.code, refused.out) == (1, ""), option
        assert reason in refused.err
    assert kinds(cli, session) == before
    cli.ok("context", session.id, "--restore", pin.id)
    again = cli("context", session.id, "--restore", pin.id)
    assert "it is not in force" in again.err


def test_several_who_edit_at_once_all_succeed(cli: Cli) -> None:
    session, entries = talk(cli)
    with ThreadPoolExecutor() as pool:
        pins = [pool.submit(cli.ok, "context", session.id, "--pin", e.id) for e in entries[:3]]
        assert all(pin.result().code == 0 for pin in pins)
    items = cli.ok("context", session.id, "--json").json["items"]
    assert [item["pinned"] for item in items] == [True, True, True, False, False]


def test_calls_stay_with_their_results(cli: Cli) -> None:
    session, entries = cli.session([Message(role="model", parts=(GREP,)), result(GREP, "x")])
    refused = cli("context", session.id, "--drop", entries[0].id)
    assert refused.code == 1
    assert "it holds only calls, which stay with their results" in refused.err


def test_an_entry_on_another_branch_cannot_be_edited(cli: Cli) -> None:
    session, entries = cli.session([user("one"), model("left behind")])
    cli.ok("rewind", session.id, entries[0].id)
    refused = cli("context", session.id, "--drop", entries[1].id)
    assert refused.code == 1
    assert "it is on another branch than the head" in refused.err


def test_wrong_entries_are_errors_that_say_so(cli: Cli) -> None:
    session, entries = talk(cli)
    _, others = cli.session([user("elsewhere")])
    for option in ("--drop", "--pin", "--restore", "--at", "--diff"):
        foreign = cli("context", session.id, option, others[0].id)
        assert (foreign.code, foreign.out) == (1, "")
        assert f"is not in session {session.id!r}" in foreign.err
        vague = cli("context", session.id, option, entries[0].id[:6])
        assert vague.code == 1
        assert "give more characters of the id" in vague.err
        assert cli("context", session.id, option, "no such entry").code == 1
    assert cli("context", "feed").code == 1


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("x", "y"),
        ("x", "--drop", "a", "--at", "b"),
        ("x", "--pin", "a", "--diff", "b"),
        ("x", "y", "--diff", "a", "--at", "b"),
        ("x", "--last", "0"),
    ],
)
def test_options_that_do_not_go_together_are_wrong_usage(
    cli: Cli, arguments: tuple[str, ...]
) -> None:
    wrong = cli("context", *arguments)
    assert (wrong.code, wrong.out) == (2, "")


def test_dropping_and_pinning_the_same_is_refused(cli: Cli) -> None:
    session, entries = talk(cli)
    refused = cli("context", session.id, "--drop", entries[1].id, "--pin", entries[1].id)
    assert refused.code == 1
    assert "you also want to keep it" in refused.err

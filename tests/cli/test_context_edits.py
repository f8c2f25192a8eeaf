"""`recollect context --drop`, `--pin` and `--restore`: edits of what the model sees."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor

from recollect.entries import (
    Compaction,
    Message,
    Note,
)
from recollect.testing import model, result, user
from tests.cli.context_session import (
    GREP,
    append,
    elide,
    kinds,
    session_with_calls,
    tokens_shown,
)
from tests.cli.runner import Cli


def test_a_dropped_message_is_out_of_sight_and_comes_back_by_its_own_id(cli: Cli) -> None:
    session, entries = session_with_calls(cli)
    whole = tokens_shown(cli, session.id)
    out = cli.ok("context", session.id, "--drop", entries[3].id[:20], "--drop", entries[1].id).out
    assert re.search(rf"the model now sees \d+ tokens in messages, previously {whole}\n", out)
    after = cli.ok("context", session.id, "--json").json
    assert entries[1].id not in [item["entry"] for item in after["items"]]
    assert {one["rule"] for one in after["left_out"]} == {"drop"}
    cli.ok("context", session.id, "--restore", entries[3].id)
    cli.ok("context", session.id, "--restore", entries[1].id)
    assert tokens_shown(cli, session.id) == whole
    assert kinds(cli, session)[5:] == ["elide", "restore", "restore"]


def test_an_edit_prints_the_command_that_undoes_it(cli: Cli) -> None:
    session, entries = session_with_calls(cli)
    out = cli.ok("context", session.id, "--drop", entries[3].id, "--pin", entries[1].id).out
    undo = re.search(r"`recollect (.*)` undoes it", out)
    assert undo is not None
    cli.ok(*undo[1].split())
    after = cli.ok("context", session.id, "--json").json
    assert after["left_out"] == []
    assert not any(item["pinned"] for item in after["items"])


def test_a_pin_brings_back_what_a_compaction_took_word_for_word(cli: Cli) -> None:
    session, entries = session_with_calls(cli)
    held = Compaction(status="COMPRESSED", snapshot="the state", first_kept=entries[4].id)
    append(cli, session, held)
    refused = cli("context", session.id, "--restore", entries[1].id)
    assert refused.code == 1
    assert "replaces it; a pin brings it back word for word" in refused.err
    cli.ok("context", session.id, "--pin", entries[1].id)
    out = cli.ok("context", session.id).out
    assert re.search(r"^\w+ +user +2  pinned  find x$", out, re.M)


def test_restoring_a_compaction_undoes_it(cli: Cli) -> None:
    session, entries = session_with_calls(cli)
    before = tokens_shown(cli, session.id)
    (held,) = append(
        cli, session, Compaction(status="COMPRESSED", snapshot="s", first_kept=entries[4].id)
    )
    cli.ok("context", session.id, "--restore", held.id)
    assert tokens_shown(cli, session.id) == before


def test_edits_that_would_do_nothing_are_refused_with_the_reason_and_nothing_is_written(
    cli: Cli,
) -> None:
    session, entries = session_with_calls(cli)
    pin, note, empty = append(
        cli, session, elide(entries[0]), Note(text="for people"), Message(role="model")
    )
    cli.ok("context", session.id, "--pin", entries[1].id)
    before = kinds(cli, session)
    for option, entry, reason in (
        ("--drop", entries[1].id, "it is pinned; restoring "),
        ("--pin", entries[1].id, "it is already pinned"),
        ("--drop", note.id, "it is a note; only messages are sent"),
        ("--restore", note.id, "a note leaves nothing out"),
        ("--restore", entries[3].id, "nothing is left out of it; a pin keeps it that way"),
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


def test_concurrent_edits_all_succeed(cli: Cli) -> None:
    session, entries = session_with_calls(cli)
    with ThreadPoolExecutor() as pool:
        pins = [pool.submit(cli.process, "context", session.id, "--pin", e.id) for e in entries[:3]]
        assert all(pin.result().code == 0 for pin in pins)
    items = cli.ok("context", session.id, "--json").json["items"]
    assert [item["pinned"] for item in items] == [True, True, True, False, False]


def test_calls_stay_with_their_results(cli: Cli) -> None:
    session, entries = cli.session([Message(role="model", parts=(GREP,)), result(GREP, "x")])
    refused = cli("context", session.id, "--drop", entries[0].id)
    assert refused.code == 1
    assert "it holds only tool calls, which stay with their results" in refused.err


def test_an_entry_on_another_branch_cannot_be_edited(cli: Cli) -> None:
    session, entries = cli.session([user("one"), model("left behind")])
    cli.ok("rewind", session.id, entries[0].id)
    refused = cli("context", session.id, "--drop", entries[1].id)
    assert refused.code == 1
    assert "it is on another branch; " in refused.err


def test_wrong_entries_are_errors_that_say_so(cli: Cli) -> None:
    session, entries = session_with_calls(cli)
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


def test_dropping_and_pinning_the_same_is_refused(cli: Cli) -> None:
    session, entries = session_with_calls(cli)
    refused = cli("context", session.id, "--drop", entries[1].id, "--pin", entries[1].id)
    assert refused.code == 1
    assert "it is also to be pinned or restored" in refused.err

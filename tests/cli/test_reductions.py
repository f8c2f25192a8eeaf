"""When `recollect -p` makes the context smaller, it says by how much, because of whom, and what the
user would not expect: on stderr, in JSON, and in `recollect context` afterwards."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from recollect.entries import Compaction, Pin, Restore, Text, handle_of
from recollect.testing import user
from tests.cli.model_server import ENV, path, reply, server
from tests.cli.road_sessions import requests, says
from tests.cli.runner import Cli, Result
from tests.cli.test_context_fitting import REFUSED, WINDOW, long_history, with_writer
from tests.cli.test_one_road_limits import SNAPSHOT, set_window
from tests.cli.test_reported_usage import run
from tests.models.server import http, refused

TOO_LONG = refused("400 Bad Request", "the prompt is too long for this model")
REDUCED = re.compile(r"^reduced the context: ([\d,]+) → ([\d,]+) tokens(.*)$", re.M)
FAILED = "the model failed (ProviderFailed: the provider refused (400): no)"


def squeeze(text: str) -> str:
    return " ".join(text.split())


def compact_in_a_run(cli: Cli, writer: bytes, *options: str) -> Result:
    """One prompt in a session that is over its threshold; this answers as the snapshot's writer."""
    session, _ = cli.session(long_history(100))
    at, play = with_writer([says("Done.")], writer)
    with server(cli, play) as on:
        at.append(on)
        set_window(cli, WINDOW)
        return cli.ok("-r", session.id, "-p", "Go on.", *options, env=ENV)


# --- the snapshot's writer -----------------------------------------------------------------------


def test_a_writer_that_fails_is_told_on_stderr_and_in_context(cli: Cli) -> None:
    done = compact_in_a_run(cli, REFUSED)
    lines = done.err.splitlines()
    at = next(n for n, line in enumerate(lines) if line.startswith("reduced the context: "))
    assert lines[at + 1] == f"code built the snapshot, because {FAILED}"
    told = squeeze(cli.ok("context", env=ENV).out)
    assert f"tokens: over the threshold; built by code: {FAILED}" in told


def test_a_writer_that_fails_is_told_in_json(cli: Cli) -> None:
    lines = compact_in_a_run(cli, REFUSED, "--output-format", "stream-json").out.splitlines()
    *events, result = map(json.loads, lines)
    reduced = [line for line in events if line["type"] == "context_reduced"]
    assert [line["built_by_code"] for line in reduced] == [FAILED]
    assert [{"type": "context_reduced", **one} for one in result["context_reduced"]] == reduced


def test_a_writer_that_succeeds_is_not_mentioned(cli: Cli) -> None:
    done = compact_in_a_run(cli, reply(Text(text=SNAPSHOT)))
    assert REDUCED.search(done.err)
    assert "code built" not in done.err
    assert "built by code" not in cli.ok("context", env=ENV).out


def test_what_a_provider_says_of_a_failure_is_one_line_without_its_control_codes(cli: Cli) -> None:
    rude = refused("400 Bad", "no\x1b[2J\n" + "very " * 400)
    done = compact_in_a_run(cli, rude)
    (line,) = [each for each in done.err.splitlines() if each.startswith("code built")]
    assert len(line) < 400
    assert "\x1b" not in line


# --- by how much, and because of whom ------------------------------------------------------------


def reductions(text: str) -> list[tuple[int, int, str]]:
    found = REDUCED.findall(text)
    return [(int(a.replace(",", "")), int(b.replace(",", "")), c) for a, b, c in found]


def test_the_tokens_are_those_of_the_whole_request(cli: Cli) -> None:
    done = compact_in_a_run(cli, REFUSED)
    ((before, after, because),) = reductions(done.err)
    (session,) = cli.ok("sessions", "--json", env=ENV).json
    (sent,) = requests(cli, session["id"])
    assert sent.body.tokens == after  # type: ignore[union-attr]
    assert because == ""
    shown = cli.ok("context", session["id"], "--at", sent.id, "--json", env=ENV).json
    assert shown["tokens"] == after < before
    tree = cli.ok("show", session["id"], "--tree", env=ENV).out
    assert re.search(r"compressed, [\d,]+ to [\d,]+ tokens in messages", tree)


def test_a_report_that_made_it_necessary_is_named(cli: Cli) -> None:
    full = run(cli, 12_000, 40_000, 80_000, 120_000, 195_000, 90_000)
    told = f", because the provider reported 195,000 tokens for what we count as {full.counts[4]:,}"
    assert [because for _, _, because in reductions(full.err)] == [told]


def test_honest_reports_are_not_named(cli: Cli) -> None:
    sizes = (3_000 + 6_000 * n for n in range(6))
    full = run(cli, *sizes, window=30_000)
    assert [because for _, _, because in reductions(full.err)] == [""]


def test_a_refusal_that_made_it_necessary_is_named(cli: Cli) -> None:
    session, _ = cli.session(long_history(20))
    with server(cli, TOO_LONG, says("Done."), window=100_000):
        done = cli.ok("-r", session.id, "-p", "Go on.", env=ENV)
        told = squeeze(cli.ok("context", session.id, env=ENV).out)
        cache = cli.ok("context", session.id, "--cache", env=ENV).out
    assert ", because the provider refused a longer request" in {r[2] for r in reductions(done.err)}
    assert "tokens: the provider refused the request as too long" in told
    assert "a compaction, the provider refused the request as too long" in cache


def test_our_own_count_is_not_called_a_refusal(cli: Cli) -> None:
    made = run(cli, *[0] * 12, window=30_000)
    triggers = [edit.trigger for edit in made.edits if isinstance(edit, Compaction)]
    assert triggers[0] == "auto"
    assert set(triggers[1:]) == {"overflow"}
    told = squeeze(cli.ok("context", env=ENV).out)
    assert "tokens: the context did not fit the window" in told
    assert "refused" not in told


# --- what the user would not expect --------------------------------------------------------------


def test_a_prompt_larger_than_the_window_is_said_to_be_cut(cli: Cli) -> None:
    with server(cli, says("Hello.")):
        set_window(cli, 20_000)
        done = cli.ok("-p", "First. " + "padding " * 90_000 + "Last.", env=ENV)
        again = cli.ok("-c", "-p", "And?", env=ENV)
    cut = re.search(
        r"^your message has ([\d,]+) tokens and was cut to ([\d,]+) to fit", done.err, re.M
    )
    assert cut is not None
    assert int(cut[1].replace(",", "")) > 150_000
    assert int(cut[2].replace(",", "")) < 20_000
    command = re.search(r"`recollect (show \w+ --full)` shows all of it", done.err)
    assert command is not None
    assert len(cli.ok(*command[1].split()).out) > 8 * 90_000
    assert "your message" not in again.err


def test_a_cut_prompt_is_told_in_json(cli: Cli) -> None:
    with server(cli, says("Hello.")):
        set_window(cli, 20_000)
        line = ("-p", "padding " * 90_000, "--output-format", "json")
        document: dict[str, Any] = cli.ok(*line, env=ENV).json
    cuts = [one["cut_prompt"] for one in document["context_reduced"] if one["cut_prompt"]]
    assert [list(cut) for cut in cuts] == [["entry", "tokens", "shown"]]
    assert cuts[0]["shown"] < 20_000 < cuts[0]["tokens"]


@pytest.mark.parametrize("undo", ["compact", "context"])
def test_a_compaction_that_overrides_an_undone_one_says_so(cli: Cli, undo: str) -> None:
    compact_in_a_run(cli, REFUSED)
    held = next(e.id for e in reversed(path(cli)) if isinstance(e.body, Compaction))
    line = ("compact", "--undo") if undo == "compact" else ("context", "--restore", held)
    cli.ok(*line, env=ENV)
    at, play = with_writer([says("Done.")], REFUSED)
    with server(cli, play) as on:
        at.append(on)
        set_window(cli, WINDOW)
        done = cli.ok("-c", "-p", "And now?", env=ENV)
        again = cli.ok("-c", "-p", "And now?", "--output-format", "json", env=ENV)
    said = (
        f"compacted again, although you undid {handle_of(held)}: the context is over its threshold"
    )
    assert said in done.err
    assert again.json["context_reduced"] == []


def test_the_first_compaction_overrides_nothing(cli: Cli) -> None:
    assert "undid" not in compact_in_a_run(cli, REFUSED).err


# --- ids -----------------------------------------------------------------------------------------


def test_pins_that_did_not_fit_are_named_by_short_ids(cli: Cli) -> None:
    session, entries = cli.session([user("keep this " * 20_000), *long_history(4)])
    cli.write(
        lambda store: store.append(
            session.id, [Pin(entries=(entries[0].id,))], parent=entries[-1].id
        )
    )
    with server(cli, says("Done."), window=16_000):
        done = cli.ok("-r", session.id, "-p", "Go on.", env=ENV)
        told = cli.ok("context", session.id, env=ENV).out
    left = f"was left out although it should stay: {handle_of(entries[0].id)}"
    for text in (done.err, squeeze(told)):
        assert left in text
        assert entries[0].id not in text


def test_an_unreachable_provider_leaves_a_short_id_to_continue_with(cli: Cli) -> None:
    with server(cli, says("Hello."), url="http://127.0.0.1:9/v1"):
        failed = cli("-p", "Hi.", env=ENV)
    assert failed.code == 1
    resume = re.search(r"`recollect -r (\w+) -p \"…\"` continues", failed.err)
    assert resume is not None
    assert len(resume[1]) == 8
    with server(cli, http(b"{}", "500 Oops"), says("Hello.")):
        assert cli.ok("-r", resume[1], "-p", "Again.", env=ENV).out == "Hello.\n"


def test_what_cannot_be_edited_is_named_by_short_ids(cli: Cli) -> None:
    session, entries = cli.session(long_history(4))
    cut = Compaction(status="COMPRESSED", snapshot="so far", first_kept=entries[4].id)
    (held,) = cli.write(lambda store: store.append(session.id, [cut], parent=entries[-1].id))
    for entry, told in (
        (held.id, f"cannot drop {handle_of(held.id)}: it is a compaction"),
        (entries[0].id, f"the snapshot of {handle_of(held.id)} replaces it"),
    ):
        failed = cli("context", session.id, "--drop", entry)
        assert failed.code == 1
        assert told in failed.err
        assert not re.search(r"[0-9a-f]{32}", failed.err)
    cli.write(lambda store: store.append(session.id, [Restore(entries=(held.id,))], parent=held.id))
    tree = cli.ok("show", session.id, "--tree").out
    assert f"undid {handle_of(held.id)}\n" in tree.replace(" ← head", "")

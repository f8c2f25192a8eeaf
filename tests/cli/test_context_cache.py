"""`recollect context`: what a request cost, and what broke the prompt cache, as a user sees it."""

from __future__ import annotations

import re
from typing import Any

import pytest

from recollect.entries import Compaction, Elide, Elided, Message, Text, Usage
from recollect.testing import call, model, result, user
from tests.cli.context_session import append, elide
from tests.cli.model_server import ENV, path, reply, server
from tests.cli.road_sessions import only_session, requests, says
from tests.cli.runner import Cli
from tests.cli.test_context_fitting import WINDOW, read_again, write_file
from tests.cli.test_one_road_limits import LARGE, set_window
from tests.models.server import Server

STYLE = re.compile("\x1b\\[[0-9;]*m")
USAGE = Usage(input=5_000, cached=3_000, written=500, output=7, total=5_007)


def answer(usage: Usage = USAGE) -> bytes:
    return reply(Text(text="Hello."), usage=usage)


def prompts(cli: Cli, on: Server, *texts: str) -> str:
    """Run prompts in one session; its id."""
    set_window(cli, LARGE)
    before = len(on.asked)
    cli.ok("-p", texts[0], env=ENV)
    session = only_session(cli)
    for text in texts[1:]:
        cli.ok("-r", session, "-p", text, env=ENV)
    assert len(on.asked) == before + len(texts)
    return session


def compare(cli: Cli, session: str, *options: str) -> dict[str, Any]:
    document = cli.ok("context", session, *options, "--json", env=ENV).json
    found = document["requests"][-1] if "requests" in document else document["prompt_cache"]
    assert isinstance(found, dict)
    return found


def entry_with(cli: Cli, text: str) -> str:
    bodies = ((e.id, e.body) for e in path(cli))
    return next(key for key, b in bodies if isinstance(b, Message) and text in repr(b.parts))


def test_what_the_last_request_cost_is_told_in_full(cli: Cli) -> None:
    with server(cli, answer()) as on:
        session = prompts(cli, on, "One?", "Two?")
        shown = cli.ok("context", session, env=ENV)
        document = cli.ok("context", session, "--json", env=ENV).json
    assert "last request: 5,000 tokens (3,000 cached, 1,500 fresh, 500 written), reply 7\n" in (
        shown.out
    )
    last = document["last_request"]
    assert (last["input"], last["cached"], last["fresh"], last["written"]) == (
        5000,
        3000,
        1500,
        500,
    )
    less = 100 * (1 - last["our_count"] / 5_000)
    assert f"we count {last['our_count']:,} for it, {less:.1f} % less (factor 1." in shown.out
    assert document["calibration"]["samples"] == 2
    assert document["provider_tokens"] >= 5_000
    assert "tokens as the provider counts" in shown.out


def test_a_cache_that_held_is_told_with_its_bytes(cli: Cli) -> None:
    with server(cli, answer()) as on:
        session = prompts(cli, on, "One?", "Two?")
        first, second = (asked.body for asked in on.asked)
        out = cli.ok("context", session, env=ENV).out
        found = compare(cli, session)["comparison"]
    assert found["held"] is True
    assert first[: found["at"]] == second[: found["at"]]
    assert found["at"] == len(first) - len("]}")
    assert f"prompt cache: held: the first {found['at']:,} of {len(second):,} bytes" in out


@pytest.mark.parametrize("kind", ["--drop", "--restore"])
def test_an_edit_by_hand_is_named_with_its_message(cli: Cli, kind: str) -> None:
    with server(cli, answer()) as on:
        session = prompts(cli, on, "One?", "Two?")
        target = entry_with(cli, "One?")
        if kind == "--restore":
            cli.ok("context", session, "--drop", target, env=ENV)
            cli.ok("-r", session, "-p", "Three?", env=ENV)
        cli.ok("context", session, kind, target, env=ENV)
        edit = path(cli)[-1].id
        cli.ok("-r", session, "-p", "Four?", env=ENV)
        found = compare(cli, session)["comparison"]
        out = cli.ok("context", session, "--cache", env=ENV).out
    before, after = on.asked[-2].body, on.asked[-1].body
    assert (found["held"], found["entry"], found["edit"]) == (False, target, edit)
    assert before[: found["at"]] == after[: found["at"]]
    assert before[found["at"]] != after[found["at"]]
    assert (
        f"  byte  {found['at']:,} of {len(after):,} is the first that differs, in `messages`" in out
    )
    assert f"entry {target[-8:]}" in out
    assert f"edit  {edit[-8:]}" in out


def test_every_break_in_one_long_prompt_is_explained_by_an_edit(cli: Cli) -> None:
    write_file(cli)
    with server(cli, *read_again(43), says("Done.")):
        set_window(cli, WINDOW)
        cli.ok("-p", "Watch a.py.", env=ENV)
        document = cli.ok("context", "--cache", "--all", "--json", env=ENV).json
        listed = cli.ok("context", "--cache", env=ENV).out
    found = [one["comparison"] for one in document["requests"] if one["comparison"] is not None]
    broken = [one for one in found if not one["held"]]
    assert len(found) == 43
    assert broken
    edits = {entry.id for entry in path(cli) if isinstance(entry.body, Elide)}
    assert {one["edit"] for one in broken} <= edits
    assert all("superseded-read" in one["cause"] for one in broken)
    assert f"edit  {broken[-1]['edit'][-8:]}  elide by superseded-read, just now\n" in listed


def test_a_compaction_is_named_with_its_trigger(cli: Cli) -> None:
    with server(cli, answer()) as on:
        session = prompts(cli, on, *(f"Prompt {number}: " + "word " * 300 for number in range(6)))
        cli.ok("compact", session, "--no-model", "--budget", "3500", env=ENV)
        cli.ok("-r", session, "-p", "Go on.", env=ENV)
        found = compare(cli, session)["comparison"]
        screen = cli.ok("context", session, env=ENV).out
    (cut,) = [entry.id for entry in path(cli) if isinstance(entry.body, Compaction)]
    assert (found["edit"], found["cause"]) == (cut, "a compaction, by hand")
    assert f"by edit {cut[-8:]}\n  a compaction, by hand\n" in screen
    assert re.search(r"why at that time:\n  compaction, just now, [\d,]+ tokens: by hand\n", screen)


def test_any_two_requests_can_be_compared(cli: Cli) -> None:
    with server(cli, answer()) as on:
        session = prompts(cli, on, "One?", "Two?", "Three?")
        cli.ok("context", session, "--drop", entry_with(cli, "One?"), env=ENV)
        cli.ok("-r", session, "-p", "Four?", env=ENV)
        one, _, three, _ = (entry.id for entry in requests(cli, session))
        assert compare(cli, session, "--against", one)["comparison"]["held"] is False
        earlier = compare(cli, session, "--at", three, "--against", one)
        out = cli.ok("context", session, "--at", three, "--against", one, env=ENV).out
    assert (earlier["request"], earlier["compared_with"]) == (three, one)
    assert earlier["comparison"]["held"] is True
    assert earlier["usage"]["cached"] == 3_000
    assert f"from request {one[-8:]} to request {three[-8:]}: held: the first" in out


def test_requests_on_two_branches_can_be_compared(cli: Cli) -> None:
    with server(cli, answer()) as on:
        session = prompts(cli, on, "One?", "Two?", "Three?")
        gone, two = requests(cli, session)[-1].id, entry_with(cli, "Two?")
        cli.ok("rewind", session, two, env=ENV)
        cli.ok("-r", session, "-p", "Another?", env=ENV)
        found = compare(cli, session, "--against", gone)["comparison"]
    assert found["cause"] == "the session went on from an earlier entry"
    assert on.asked[-2].body[: found["at"]] == on.asked[-1].body[: found["at"]]
    assert found["at"] > len(on.asked[1].body) - 10


def test_other_tools_and_another_model_are_named(cli: Cli) -> None:
    with server(cli, answer()) as on:
        session = prompts(cli, on, "One?")
        set_other = cli.home / "settings.toml"
        text = set_other.read_text()
        set_other.write_text(text.replace(f"window = {LARGE}", "window = 9000"))
        cli.ok("-r", session, "-p", "Two?", env=ENV)
        tools = compare(cli, session)["comparison"]
        set_other.write_text(
            text.replace('model = "mine"', 'model = "other"').replace(
                "[models.mine]", "[models.other]"
            )
        )
        cli.ok("-r", session, "-p", "Three?", env=ENV)
        other = compare(cli, session)["comparison"]
    assert tools["field"] == "tools"
    assert tools["cause"].startswith("other tools: ")
    assert "is gone" in tools["cause"]
    assert (other["field"], other["cause"]) == ("model", "another model: mine, then other")


def test_the_list_of_requests_fits_a_terminal(cli: Cli) -> None:
    (cli.project / "a.py").write_text("value = 1\n" * 50)
    read = reply(call("read_file", id="r", absolute_path="a.py"), usage=USAGE)
    with server(cli, read, answer()) as on:
        set_window(cli, LARGE)
        cli.ok("-p", "Read it.", env=ENV)
        session = only_session(cli)
        cli.ok("context", session, "--drop", entry_with(cli, "Read it."), env=ENV)
        cli.ok("-r", session, "-p", "And?", env=ENV)
        assert len(on.asked) == 3
        for options in ((), ("--cache",), ("--against", requests(cli, session)[0].id)):
            shown = STYLE.sub("", cli.screen("context", session, *options, env=ENV).out)
            assert max(map(len, shown.splitlines())) <= 80, shown
        listed = cli.ok("context", session, "--cache", env=ENV).out
        assert len(re.findall(r"just now +5,000 +3,000", listed)) == 3
        assert (
            len(cli.ok("context", session, "--cache", "--last", "1", "--json").json["requests"])
            == 1
        )


def test_why_an_elision_was_made_then_is_shown(cli: Cli) -> None:
    session, entries = cli.session([user("One?"), model("Hello."), user("Two?")])
    what = Elided(entry=entries[1].id, placeholder="[gone]")
    append(cli, session, Elide(rule="stale-shell", items=(what,), reason="over budget"))
    out = cli.ok("context", session.id).out
    assert re.search(r"why at that time:\n  stale-shell, just now, .*: over budget\n", out)
    (gone,) = cli.ok("context", session.id, "--json").json["left_out"]
    assert gone["why_now"] == "over budget"
    append(cli, session, elide(entries[0]))  # by a version that did not say why
    assert "stale-search, just now" not in cli.ok("context", session.id).out


def test_an_elision_of_what_was_not_sent_yet_is_said_to_cost_nothing(cli: Cli) -> None:
    use = call("run_shell_command", command="seq 5000")
    long = result(use, "one line of output\n" * 5_000)
    session, _ = cli.session([user("One?"), model("", use), long, model("Done.")])
    with server(cli, answer(), window=200_000):
        cli.ok("-r", session.id, "-p", "Two?", env=ENV)
        out = " ".join(cli.ok("context", session.id, env=ENV).out.split())
    assert "oversized, just now" in out
    assert "it costs nothing, because nothing behind it was sent yet" in out


def test_a_held_cache_of_which_the_provider_read_nothing_is_told(cli: Cli) -> None:
    with server(cli, answer(Usage(input=5_000, cached=0, output=7, total=5_007))) as on:
        session = prompts(cli, on, "One?", "Two?")
        assert "but the provider reports nothing cached" in cli.ok("context", session, env=ENV).out


def test_a_provider_that_does_not_report_what_it_cached_is_not_said_to_cache_nothing(
    cli: Cli,
) -> None:
    with server(cli, answer(Usage(input=5_000, output=7, total=5_007))) as on:
        session = prompts(cli, on, "One?", "Two?")
        out = cli.ok("context", session, env=ENV).out
        document = cli.ok("context", session, "--json", env=ENV).json
        listed = cli.ok("context", session, "--cache", env=ENV).out
    assert "last request: 5,000 tokens (cached: not reported), reply 7\n" in out
    assert "bytes are the same\n  the provider does not report what it cached\n" in out
    assert (document["last_request"]["cached"], document["last_request"]["fresh"]) == (None, None)
    assert re.search(r"just now +5,000 +\? +\? +\d+ %  held\n\?: not reported", listed)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--cache", "--drop", "x"), "Edits are made at the head; --cache only look."),
        (("--cache", "--replay", "sent"), "--cache and --replay cannot be combined."),
        (("--diff", "x", "--against", "y"), "--diff and --against cannot be combined."),
    ],
)
def test_what_cannot_be_combined_is_refused(
    cli: Cli, options: tuple[str, ...], sentence: str
) -> None:
    session, _ = cli.session([user("Hi?")])
    refused = cli("context", session.id, *options)
    assert refused.code == 2
    assert sentence in refused.err


def test_a_session_without_requests_says_so(cli: Cli) -> None:
    session, entries = cli.session([user("Hi?"), model("Hello.")])
    assert "no request was sent in this session" in cli.ok("context", session.id, "--cache").out
    refused = cli("context", session.id, "--against", entries[1].id)
    assert refused.code == 1
    assert "no request was sent before entry" in refused.err
    with server(cli, says("Hello.")):
        cli.ok("-r", session.id, "-p", "Go.", env=ENV)
        assert "this is the first request" in cli.ok("context", session.id, "--cache").out

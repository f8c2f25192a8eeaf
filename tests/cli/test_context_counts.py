"""`recollect context`: whose count it shows, of which request, and what begins a session."""

from __future__ import annotations

import re

import pytest

from recollect.entries import Message, Text, Usage
from recollect.store.sqlite import SqliteStore
from recollect.testing import user
from tests.cli.model_server import ENV, reply, server
from tests.cli.road_sessions import only_session, requests
from tests.cli.runner import Cli
from tests.cli.test_one_road_limits import LARGE, set_window
from tests.models.server import Answer, refused


def answer(tokens: int | None) -> bytes:
    usage = Usage(input=tokens, output=7) if tokens is not None else None
    return reply(Text(text="Hello."), usage=usage)


def run(cli: Cli, *answers: Answer, compact: bool = False) -> str:
    """A prompt for each answer, in one session; what `context` shows of it then."""
    with server(cli, *answers):
        set_window(cli, LARGE)
        for number, _ in enumerate(answers):
            continued = ("-c",) if number else ()
            cli(*continued, "-p", f"Prompt {number}: " + "word " * 2_000, env=ENV)
        if compact:
            cli.ok("compact", "--no-model", "--budget", "6000", env=ENV)
        return " ".join(cli.ok("context", "--last", "1", env=ENV).out.split())


def test_a_report_of_the_last_request_is_the_count(cli: Cli) -> None:
    out = run(cli, answer(6_000), answer(8_000))
    assert re.search(r" head \w+ [\d,]+ tokens as the provider counts, ", out)
    document = cli.ok("context", "--json", env=ENV).json
    assert (document["provider_basis"], document["provider_bound"]) == ("reported", "")


def test_a_count_corrected_by_earlier_reports_is_said_to_be_about_right(cli: Cli) -> None:
    out = run(cli, answer(6_000), answer(8_000), compact=True)
    assert re.search(r" head \w+ about [\d,]+ tokens as the provider counts, ", out)


def test_a_provider_that_counts_more_than_twice_as_much_counts_at_least_what_is_shown(
    cli: Cli,
) -> None:
    out = run(cli, *(answer(7_000 + 7_500 * n) for n in range(1, 10)), compact=True)
    assert re.search(r" head \w+ at least [\d,]+ tokens as the provider counts, ", out)
    assert "(factor 2.00, its limit, error" in out


def test_a_provider_that_counts_less_than_half_counts_at_most_what_is_shown(cli: Cli) -> None:
    out = run(cli, *(answer(300 * n) for n in range(1, 8)))
    assert re.search(r" head \w+ at most [\d,]+ tokens as the provider counts, ", out)
    assert "(factor 0.50, its limit, error" in out


def test_where_the_report_cannot_be_believed_the_count_is_ours(cli: Cli) -> None:
    out = run(cli, answer(99_000_000))
    assert re.search(r" head \w+ [\d,]+ tokens as we count, ", out)
    assert "as the provider counts" not in out
    assert "its report is not used, because it cannot be a count of this request" in out


def test_a_believed_report_before_one_that_is_not_still_corrects_our_count(cli: Cli) -> None:
    out = run(cli, answer(10_000), answer(99_000_000))
    assert re.search(r" head \w+ [\d,]+ tokens as we count, corrected by 1\.\d\d, ", out)
    assert "below, tokens are not corrected: " in out


@pytest.mark.parametrize(
    ("last", "told"),
    [
        (answer(None), "no count was reported"),
        (answer(0), "no count was reported"),
        (refused("400 Bad", "no"), "no reply was stored"),
    ],
)
def test_a_last_request_without_a_report_is_told_apart_from_the_newest_with_one(
    cli: Cli, last: Answer, told: str
) -> None:
    out = run(cli, answer(6_000), answer(8_000), last)
    session = only_session(cli)
    _, second, third = requests(cli, session)
    counted = cli.ok("context", session, "--at", third.id, "--json", env=ENV).json["tokens"]
    assert f"last request: {told} just now; we count {counted:,} for it prompt cache: held: " in out
    newest = rf"newest report, of request {second.id[-8:]}: 8,000 tokens \(cached: not reported\)"
    assert re.search(rf"are the same (the provider does not report what it cached )?{newest}", out)
    then = " ".join(cli.ok("context", session, "--at", third.id, env=ENV).out.split())
    assert f"this request: {told}" in then
    document = cli.ok("context", session, "--json", env=ENV).json
    assert document["last_request"]["request"] == second.id
    assert document["prompt_cache"]["request"] == third.id


def test_a_later_reply_of_another_program_is_not_taken_for_the_request_compared(cli: Cli) -> None:
    run(cli, answer(6_000), answer(8_000))
    session = only_session(cli)
    _, second = requests(cli, session)
    theirs = Message(role="model", parts=(Text(text="So."),), usage=Usage(input=900, output=3))

    async def work(store: SqliteStore) -> None:
        head = (await store.session(session)).head
        await store.append(session, [user("And?"), theirs], parent=head)

    cli.write(work)
    out = cli.ok("context", session, env=ENV).out
    assert "last request: 900 tokens (cached: not reported), reply 3\n" in out
    assert f"prompt cache of request {second.id[-8:]}: held" in out


def test_instructions_environment_and_memory_have_a_row_each(cli: Cli) -> None:
    cli.ok("trust", "--yes")
    (cli.project / "AGENTS.md").write_text("The port of the service is 4711.\n" * 200)
    out = run(cli, answer(None))
    document = cli.ok("context", "--json", env=ENV).json
    shares = document["categories"]
    assert 1_500 < shares["memory"] < 2_000
    assert min(shares["instructions"], shares["environment"]) > 50
    assert shares["environment"] < 500
    assert sum(shares.values()) == document["tokens"]
    assert re.search(
        rf" instructions {shares['instructions']} .* memory {shares['memory']:,} ", out
    )


def test_memory_that_lost_its_middle_is_still_memory(cli: Cli) -> None:
    cli.ok("trust", "--yes")
    (cli.project / "AGENTS.md").write_text(("padding " * 12 + "\n") * 900)
    with server(cli, answer(None)):
        set_window(cli, 16_000)
        cli.ok("-p", "Hi?", env=ENV)
        shares = cli.ok("context", "--json", env=ENV).json["categories"]
    assert shares["memory"] > 10 * shares["environment"]


def test_what_the_next_request_adds_is_named(cli: Cli) -> None:
    session, _ = cli.session([user("Hi?")])
    with server(cli, answer(None)):
        set_window(cli, LARGE)
        told = cli.ok("context", session.id, "--prompt", "So?", env=ENV).out
        cli.ok("trust", "--yes")
        (cli.project / "AGENTS.md").write_text("The port is 4712.\n")
        trusted = cli.ok("context", session.id, env=ENV).out
    named = r"the instructions \(\d+ tokens\), the environment \(\d+ tokens\), the prompt \(1 token"
    assert re.search(named, " ".join(told.split()))
    assert re.search(r"the environment and memory \(\d+ tokens\)", " ".join(trusted.split()))

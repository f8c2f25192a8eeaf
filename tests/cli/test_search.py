"""`recollect search`: finding, filtering, jumping."""

from __future__ import annotations

import pytest

from recollect.entries import Entry, Message
from recollect.testing import call, model, result, user
from tests.cli.runner import Cli

DAY = 86_400_000


def test_a_hit_names_entry_role_age_session_and_how_to_jump(cli: Cli) -> None:
    session, entries = cli.session([user("Why does the rate limiter drop requests?"), model("no")])
    first, second, _, last = cli.ok("search", "limiter").out.splitlines()
    short, role, *_ = first.split()
    assert entries[0].id.endswith(short)
    assert 8 <= len(short) < 20
    assert role == "user,"
    assert f"in {session.id[-8:]}" in first
    assert "Why does the rate limiter" in second
    assert last.startswith(f"`recollect show {short}`")
    assert "▶ user" in cli.ok("show", short).out


@pytest.mark.parametrize("word", ["limiter", "令牌", "refillTokens", "refill", '"once per minute"'])
def test_words_chinese_identifiers_and_phrases_are_found(cli: Cli, word: str) -> None:
    cli.session([user("the limiter calls refillTokens once per minute; 补充令牌太慢")])
    assert len(cli.ok("search", word, "--json").json) == 1


def test_an_empty_search_says_so_on_stderr_and_suggests_a_wider_one(cli: Cli) -> None:
    cli.session([user("hi")])
    result = cli.ok("search", "nothing")
    assert result.out == ""
    assert "nothing found for 'nothing' in this project; --all searches every project" in result.err
    assert cli.ok("search", "nothing", "--json").json == []


def test_only_this_project_is_searched_unless_all_is_given(cli: Cli) -> None:
    other = cli.project / "other"
    other.mkdir()
    session, _ = cli.session([user("needle")], folder=other)
    assert cli.ok("search", "needle", "--json").json == []
    assert len(cli.ok("search", "needle", "--all", "--json").json) == 1
    assert len(cli.ok("search", "needle", "--session", session.id, "--json").json) == 1


def test_role_tool_session_and_time_narrow_the_search(cli: Cli) -> None:
    read = call("read_file", path="needle.py")
    asked = Message(role="model", parts=(read,))
    session, _ = cli.session([user("needle"), asked, result(read, "needle")])
    old = Entry("0" * 31 + "1", None, 20_000 * DAY, user("old needle"))
    cli.session([old])

    def found(*options: str) -> int:
        return len(cli.ok("search", "needle", *options, "--json").json)

    assert found() == 4
    assert found("--role", "model") == 1
    assert found("--tool", "read_file") == 2
    assert found("--session", session.id[:16]) == 3
    assert found("--after", "2d") == 3
    assert found("--before", "yesterday") == 1
    assert found("--after", "2024-10-04", "--before", "2024-10-05") == 1
    assert found("--limit", "2") == 2


def test_more_hits_than_the_limit_are_mentioned(cli: Cli) -> None:
    cli.session([user(f"needle {n}") for n in range(4)])
    result = cli.ok("search", "needle", "--limit", "3")
    assert "there are more; --limit 15" in result.err


def test_words_without_a_letter_are_an_error(cli: Cli) -> None:
    result = cli("search", "!?")
    assert result.code == 1
    assert result.err.startswith("recollect: '!?' has no word to search for")


def test_a_word_can_be_left_out(cli: Cli) -> None:
    cli.session([user("bucket redis"), user("bucket memory")])
    (hit,) = cli.ok("search", "--json", "bucket", "--", "-redis").json
    assert "memory" in hit["snippet"]

"""`recollect search`: finding, filtering, jumping."""

from __future__ import annotations

import pytest

from recollect.entries import Entry, Message
from recollect.testing import call, model, result, user
from tests.cli.runner import Cli

DAY = 86_400_000


def test_a_hit_names_entry_role_age_session_and_how_to_jump(cli: Cli) -> None:
    session, entries = cli.session([user("Why does the rate limiter drop requests?"), model("no")])
    title, _, first, second, _, last = cli.ok("search", "limiter").out.splitlines()
    short, role, *_ = first.split()
    assert entries[0].id.endswith(short)
    assert 8 <= len(short) < 20
    assert role == "user,"
    assert title.endswith(f"· session {session.id[-8:]}")
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

    assert found() == 3  # a call and its result are one hit
    assert found("--role", "model") == 1
    assert found("--tool", "read_file") == 1
    assert found("--session", session.id[:16]) == 2
    assert found("--after", "2d") == 2
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


def test_the_nearest_is_found_and_missing_words_are_named(cli: Cli) -> None:
    cli.session([user("the limiter drops requests"), model("refill happens once per minute")])
    found = cli.ok("search", "why does the limiter drop tokens of giraffes?")
    assert "    the limiter drops requests" in found.out
    assert "nowhere in this project: tokens, giraffes" in found.err
    nothing = cli.ok("search", "giraffes", "zebras")
    assert nothing.out == ""
    assert "nothing found" in nothing.err


def test_the_title_of_a_session_stands_once_above_its_hits(cli: Cli) -> None:
    for number in (1, 2):
        said = [user(f"needle {word} of session {number}") for word in ("one", "two")]
        cli.session(said, title=f"title {number}")
    out = cli.ok("search", "needle").out
    assert out.count("title 1 · session") == out.count("title 2 · session") == 1
    assert out.index("needle one of session 2") < out.index("title 1 · session")


def test_a_hit_is_a_passage_of_whole_lines_with_the_call_beside_its_result(cli: Cli) -> None:
    shell = call("shell", command="git commit -am fix")
    lines = [f"line {n}" for n in range(300)]
    lines[150:152] = ["[main 4f2a91c] needle", "1 file changed"]
    _, entries = cli.session([model("", shell), result(shell, "\n".join(lines))])
    found = cli.ok("search", "needle")
    assert "    [main 4f2a91c] needle\n    1 file changed\n    line 152\n" in found.out
    assert "shell: git commit -am fix" in found.out
    (hit,) = cli.ok("search", "needle", "--json").json
    assert hit["handle"] == entries[1].id[-8:]
    assert [beside["id"] for beside in hit["beside"]] == [entries[0].id]
    assert set(hit["snippet"].split("\n")) <= set(lines)
    assert len(hit["snippet"]) > 400
    called = cli.ok("search", "commit").out
    assert f"  → {entries[1].id[-8:]}  line 0 line 1" in called


def test_retries_are_one_hit_and_every_id_that_is_printed_can_be_shown(cli: Cli) -> None:
    tries = [call("shell", id=str(n), command="git push") for n in range(4)]
    answer = "error: failed to push, the remote has commits that are not here"
    items = [body for one in tries for body in (model("", one), result(one, answer))]
    _, entries = cli.session(items)
    (hit,) = cli.ok("search", "failed", "push", "--json").json
    assert hit["entry"]["id"] == entries[-1].id
    folded = cli.ok("search", "failed", "push").out.split("more like it: ")[1].split("\n")[0]
    for short in folded.split(", "):
        assert "failed to push" in cli.ok("show", short).out


def test_a_fork_finds_what_it_inherited(cli: Cli) -> None:
    session, entries = cli.session([user("needle one"), model("needle two")])
    forked = cli.ok("fork", session.id, "--at", entries[0].id, "--json").json["id"]
    (hit,) = cli.ok("search", "needle", "--session", forked, "--json").json
    assert hit["entry"]["id"] == entries[0].id

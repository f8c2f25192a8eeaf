"""`recollect show` with entries: how they are named, and which call a result belongs to."""

from __future__ import annotations

import pytest

from recollect.entries import Entry, Message
from recollect.store.sqlite import SqliteStore
from recollect.testing import call, model, result, user
from tests.cli.runner import Cli


def test_what_shows_a_session_cannot_be_asked_for_with_an_entry(cli: Cli) -> None:
    session, entries = cli.session([user("one"), user("two")])
    plain = [("--tree",), ("--initial",), ("--curated",)]
    for option in (*plain, ("--last", "1"), ("--turns", "1"), ("--at", entries[1].id)):
        wrong = cli("show", entries[0].id, *option)
        assert (wrong.code, wrong.out) == (2, "")
        assert option[0] in wrong.err
        assert f"is an entry, of session {session.id[-8:]}" in wrong.err
        assert "--around N shows the entries before and after it" in wrong.err
    wrong = cli("show", session.id, "--around", "1")
    assert wrong.code == 2
    assert "is a session" in wrong.err


def test_several_sessions_are_shown_in_each_form(cli: Cli) -> None:
    sessions = [cli.session([user(f"question {n}"), model(f"answer {n}")])[0].id for n in (1, 2)]
    for options in ((), ("--tree",), ("--turns", "1"), ("--curated",)):
        out = cli.ok("show", *sessions, *options).out
        assert out.index("question 1") < out.index("question 2")


@pytest.mark.parametrize("written", ["[{}]", "{},", "({}).", "`{}`;", "'{}'"])
def test_an_id_may_be_copied_with_what_stands_around_it(cli: Cli, written: str) -> None:
    session, entries = cli.session([user("here")])
    for known in (entries[0].id[-8:], session.id[-8:]):
        assert "here" in cli.ok("show", written.format(known)).out


def test_no_message_repeats_an_id_of_any_length(cli: Cli) -> None:
    session, _ = cli.session([user("here")])
    for given in ("f" * 100_000, "x y" * 30_000, "[" * 100_000):
        for arguments in ((given,), (session.id, "--at", given)):
            wrong = cli("show", *arguments)
            assert wrong.code == 1
            assert len(wrong.err) < 300


def test_an_ambiguous_id_lists_ids_that_are_enough_and_what_each_entry_says(cli: Cli) -> None:
    keys = [f"{n:028x}8518" for n in (1, 2)]
    said = ["the apple\nis red", "the pear " * 60]
    cli.session([Entry(key, None, 1, user(text)) for key, text in zip(keys, said, strict=True)])
    vague = cli("show", "8518")
    assert (vague.code, vague.out) == (1, "")
    head, *lines = vague.err.splitlines()
    assert head == "recollect: '8518' may be any of these; give one of their ids:"
    assert [line.split()[0] for line in lines] == cli_ids(cli, keys)
    assert "user, " in lines[0]
    assert lines[0].endswith(": the apple is red")
    assert len(lines[1]) < 130
    for line, text in zip(lines, said, strict=True):
        assert text[:9] in cli.ok("show", line.split()[0]).out


def cli_ids(cli: Cli, keys: list[str]) -> list[str]:
    short = cli.write(lambda store: store.short_entry_ids(keys))
    return [short[key] for key in keys]


def test_ambiguous_sessions_are_listed_with_their_titles(cli: Cli) -> None:
    ids = [f"{n}" * 28 + "8518" for n in (1, 2)]

    async def make(store: SqliteStore) -> None:
        for key in ids:
            await store.create(id=key, title=f"title {key[0]}")

    cli.write(make)
    lines = cli("show", "8518").err.splitlines()[1:]
    assert lines == ["  11118518  title 1", "  22228518  title 2"]


def test_each_result_of_parallel_calls_repeats_its_call(cli: Cli) -> None:
    calls = [call("shell", id=name, command=f"cat {name}.txt") for name in ("ant", "bee")]
    asked = Message(role="model", parts=tuple(calls))
    results = [result(calls[0], "six legs"), result(calls[1], "", is_error=True)]
    together = Message(role="user", parts=tuple(part for one in results for part in one.parts))
    for items in ([asked, *results], [asked, together]):
        session, entries = cli.session(items)
        for given in (entries[0].id, session.id):
            out = cli.ok("show", given).out
            assert "\n  → shell: cat ant.txt\n    six legs\n" in out
            assert "\n  → shell: cat bee.txt (failed)\n    (no output)\n" in out
    one = cli.ok("show", entries[1].id).out
    assert "→ shell: cat ant.txt" in one


def test_a_result_of_a_single_call_does_not_repeat_it(cli: Cli) -> None:
    shell = call("shell", command="cat ant.txt")
    _, entries = cli.session([model("", shell), result(shell, "six legs")])
    assert "\n  → shell\n    six legs\n" in cli.ok("show", entries[1].id).out

"""Ids as commands print and take them: short, from the random end, and `last`."""

from __future__ import annotations

import re

import pytest

from recollect.entries import Entry, Note, json_text
from recollect.store.ids import derived_id, new_id, now
from recollect.store.sqlite import SqliteStore
from recollect.testing import model, user
from recollect.transcripts.subagent_links import OURS, PARENT
from recollect.workspace.project_identity import identify_project
from tests.cli.model_server import ENV, server
from tests.cli.runner import Cli
from tests.models.server import HELLO, http


def test_the_command_that_a_run_prints_works_after_a_thousand_more_sessions(cli: Cli) -> None:
    with server(cli, http(HELLO)):
        said = cli.ok("-p", "remember me", env=ENV).err
        printed = re.search(r"recollect -r (\w+)", said)
        assert printed is not None
        short = printed[1]
        mine = cli.ok("sessions", "--json").json[0]["id"]
        assert len(short) < 16 < len(mine)

        async def more(store: SqliteStore) -> None:
            for _ in range(1_000):
                # all of the same minute, as their first digits say
                await store.create(
                    project=identify_project(cli.project), id=mine[:8] + new_id()[8:]
                )

        cli.write(more)
        again = cli.ok("-r", short, "-p", "and now?", "--output-format", "json", env=ENV).json
        assert again["session_id"] == mine


def test_an_id_is_taken_whole_by_its_beginning_and_by_its_end(cli: Cli) -> None:
    session, (entry,) = cli.session([user("here")])
    imported = derived_id("gemini", "s")
    cli.write(lambda store: store.create(id=imported, title="imported"))
    for known in (session.id, imported):
        for given in (known, known[:20], known[-8:], known[-7:], known[-5:].upper()):
            assert cli.ok("show", given, "--json").json["session"]["id"] == known
    for given in (entry.id, entry.id[-8:], entry.id[-9:]):
        assert cli.ok("show", given, "--json").json["marked"] == entry.id


def test_short_ids_grow_until_no_other_id_ends_or_begins_like_them(cli: Cli) -> None:
    tail = "c0ffee00"
    ids = ["a" * 22 + "11" + tail, "b" * 22 + "22" + tail, tail + "d" * 24]

    async def make(store: SqliteStore) -> None:
        for each in ids:
            await store.create(id=each, title=each[:3], project=identify_project(cli.project))

    cli.write(make)
    shown = [line.split()[0] for line in cli.ok("sessions").out.splitlines()[1:]]
    assert sorted(shown) == ["11c0ffee00", "22c0ffee00", "dddddddd"]
    for short in shown:
        assert cli.ok("show", short, "--json").json["session"]["id"].endswith(short)
    vague = cli("trash", tail)
    assert vague.code == 1
    assert all(f"{each} ({each[:3]})" in vague.err for each in ids)


def test_an_entrys_short_id_is_not_a_sessions(cli: Cli) -> None:
    session, _ = cli.session([user("hi")])
    twin = Entry("e" * 22 + "ab" + session.id[-8:], None, now(), user("twin needle"))
    cli.session([twin])
    short = cli.ok("search", "twin").out.splitlines()[2].split()[0]
    assert short == "ab" + session.id[-8:]
    assert cli.ok("show", short, "--json").json["marked"] == twin.id


@pytest.mark.parametrize("given", [(), ("last",)])
def test_last_and_no_id_are_the_session_used_last(cli: Cli, given: tuple[str, ...]) -> None:
    cli.session([user("older")])
    session, entries = cli.session([user("newest " * 50), model("answer")])
    link = json_text({OURS: {PARENT: session.id}})
    cli.session([Note(text="of a sub-agent", extra=link), user("delegated")])
    cli.session([user("elsewhere")], folder=cli.home.parent)
    assert cli.ok("show", *given, "--json").json["session"]["id"] == session.id
    assert cli.ok("context", *given, "--json").json["session"]["id"] == session.id
    assert "newest" in cli.ok("encode", *given, "--to", "openai").out
    assert "newest" in cli.ok("export", *given, "--to", "gemini", "-o", "-").out
    assert session.id[-8:] in cli("compact", *given, "--undo").err
    assert cli.ok("rename", *given, "my title", "--json").json["id"] == session.id
    head = cli.ok("rewind", *given, entries[0].id[-8:], "--json").json
    assert (head["id"], head["head"]) == (session.id, entries[0].id)
    forked = cli.ok("fork", *given, "--json").json
    assert forked["forked_from"] == entries[0].id


def test_trash_wants_an_id_and_last_is_one(cli: Cli) -> None:
    session, _ = cli.session([user("keep me")])
    assert cli("trash").code == 2
    assert cli.ok("trash", "last", "--json").json["id"] == session.id
    assert cli.ok("restore", "last", "--json").json["id"] == session.id


def test_without_a_session_last_says_so(cli: Cli) -> None:
    cli.session([user("elsewhere")], folder=cli.home.parent)
    result = cli("show")
    assert (result.code, result.out) == (1, "")
    assert "there is no session of this project" in result.err

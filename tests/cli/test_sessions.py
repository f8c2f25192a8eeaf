"""`recollect sessions` and the actions on one session."""

from __future__ import annotations

from recollect.store.sqlite import SqliteStore
from recollect.testing import model, user
from tests.cli.runner import Cli


def test_a_fresh_machine_has_no_sessions_and_the_note_says_how_to_get_one(cli: Cli) -> None:
    result = cli.ok("sessions")
    assert result.out == ""
    assert "no sessions yet" in result.err
    assert "recollect import" in result.err


def test_sessions_of_other_projects_are_counted_and_shown_with_all(cli: Cli) -> None:
    other = cli.project / "other"
    other.mkdir()
    cli.session([user("elsewhere")], folder=other)
    here = cli.ok("sessions")
    assert here.out == ""
    assert "no sessions of this project yet; `recollect sessions --all` lists 1" in here.err
    everywhere = cli.ok("sessions", "--all").out
    assert "elsewhere" in everywhere
    assert "~/project/other" in everywhere


def test_the_newest_use_comes_first_with_title_entries_and_age(cli: Cli) -> None:
    old, entries = cli.session([user("first asked")])
    cli.session([user("second asked"), model("yes")])

    async def use(store: SqliteStore) -> None:
        await store.append(old.id, [model("late answer")], parent=entries[-1].id)

    cli.write(use)
    head, first, second = cli.ok("sessions").out.splitlines()
    assert head.split() == ["ID", "TITLE", "ENTRIES", "USED"]
    assert first.split()[1:] == ["first", "asked", "2", "just", "now"]
    assert "second asked" in second


def test_the_short_id_shown_is_accepted_and_has_at_least_eight_digits(cli: Cli) -> None:
    made = [cli.session([user(f"number {n}")])[0] for n in range(3)]
    rows = [line.split()[0] for line in cli.ok("sessions").out.splitlines()[1:]]
    assert len(set(rows)) == 3
    for short in rows:
        assert len(short) >= 8
        assert cli.ok("show", short, "--json").json["session"]["id"].endswith(short)
    assert {m.id for m in made} == {s["id"] for s in cli.ok("sessions", "--json").json}


def test_wide_characters_keep_the_columns_aligned(cli: Cli) -> None:
    cli.session([user("限流器为什么丢请求")])
    cli.session([user("plain")])
    head, *rows = cli.ok("sessions").out.splitlines()
    assert rows[0].index("1  just now") == head.index("ENTRIES") + 6
    # nine wide characters: nine columns more than letters
    assert rows[1].index("1  just now") == head.index("ENTRIES") + 6 - 9


def test_limit_shows_the_newest_and_says_how_many_are_left(cli: Cli) -> None:
    for n in range(3):
        cli.session([user(f"number {n}")])
    result = cli.ok("sessions", "--limit", "1")
    assert "number 2" in result.out
    assert len(result.out.splitlines()) == 2
    assert "2 more" in result.err


def test_json_is_a_list_also_when_it_is_empty(cli: Cli) -> None:
    assert cli.ok("sessions", "--json").json == []
    session, _ = cli.session([user("hi")])
    (found,) = cli.ok("sessions", "--json").json
    assert found["id"] == session.id
    assert found["entries"] == 1


def test_trash_hides_restore_brings_back_and_nothing_is_lost(cli: Cli) -> None:
    session, _ = cli.session([user("keep me")])
    said = cli.ok("trash", session.id[:16]).out
    assert f"recollect restore {session.id[-8:]}" in said
    assert cli.ok("sessions").out == ""
    assert "keep me" in cli.ok("sessions", "--trash").out
    cli.ok("restore", session.id)
    assert "keep me" in cli.ok("sessions").out
    assert "not in the trash" in cli.ok("restore", session.id).out


def test_rename_says_the_new_title_word_for_word(cli: Cli) -> None:
    session, _ = cli.session([user("old")])
    assert "'new {} title'" in cli.ok("rename", session.id, "new {} title").out
    assert "new {} title" in cli.ok("sessions").out
    empty = cli("rename", session.id, " ")
    assert empty.code == 1
    assert empty.err == "recollect: a title needs at least one visible character\n"


def test_rewind_prints_the_way_back_and_the_way_back_works(cli: Cli) -> None:
    session, (first, last) = cli.session([user("one"), model("two")])
    said = cli.ok("rewind", session.id, first.id[:20]).out
    assert "now has 1 entry, previously 2" in said
    back = said.split("`")[1].split()[1:]
    assert back[-1] == last.id[-8:]
    cli.ok(*back)
    assert len(cli.ok("show", session.id, "--json").json["entries"]) == 2
    cli.ok("rewind", session.id, "start")
    assert cli.ok("show", session.id, "--json").json["entries"] == []


def test_fork_shares_the_beginning_and_can_be_rewound_into_it(cli: Cli) -> None:
    session, (first, second, _) = cli.session([user("one"), model("two"), user("three")])
    forked = cli.ok("fork", session.id, "--at", second.id, "--title", "mine", "--json").json
    assert (forked["entries"], forked["title"]) == (2, "mine")
    cli.ok("rewind", forked["id"], first.id)
    assert cli.ok("show", forked["id"], "--json").json["session"]["entries"] == 1
    assert cli.ok("show", session.id, "--json").json["session"]["entries"] == 3


def test_an_entry_of_another_session_cannot_be_rewound_to(cli: Cli) -> None:
    session, _ = cli.session([user("mine")])
    _, (foreign,) = cli.session([user("theirs")])
    result = cli("rewind", session.id, foreign.id)
    assert result.code == 1
    assert f"entry '{foreign.id}' is not in session '{session.id}'" in result.err


def test_an_ambiguous_beginning_lists_the_candidates(cli: Cli) -> None:
    one, other = cli.session()[0], cli.session()[0]
    result = cli("trash", "0")
    assert result.code == 1
    assert one.id in result.err
    assert other.id in result.err


def test_a_store_that_was_named_must_exist_and_is_not_made(cli: Cli) -> None:
    wrong = cli.project / "typo.db"
    result = cli("sessions", "--store", str(wrong))
    assert result.code == 1
    assert result.err == f"recollect: cannot open {wrong}: there is no such file\n"
    assert not wrong.exists()


def test_another_store_can_be_named(cli: Cli) -> None:
    cli.session([user("in the file")])
    moved = cli.project / "elsewhere.db"
    cli.store.rename(moved)
    assert "in the file" in cli.ok("sessions", "--store", str(moved)).out
    assert cli.ok("sessions").out == ""


def test_sessions_are_listed_and_read_where_the_settings_are_wrong(cli: Cli) -> None:
    session, _ = cli.session([user("hello there")])
    (cli.home / "settings.toml").write_text("modle = 3\n")
    listed = cli.ok("sessions")
    assert "hello there" in cli.ok("show", session.id).out
    assert "modle" in listed.err
    assert cli("-c", "-p", "go on").code == 52

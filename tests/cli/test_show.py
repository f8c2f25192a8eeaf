"""`recollect show`: reading a session, jumping to an entry, seeing what is damaged."""

from __future__ import annotations

import re

import apsw

from recollect.entries import (
    Body,
    Compaction,
    Elide,
    Elided,
    FileRef,
    InlineData,
    Message,
    Note,
    Text,
    Thought,
    ToolCall,
    Unknown,
    Usage,
)
from recollect.store.sqlite import SqliteStore
from recollect.testing import call, model, result, user
from tests.cli.context_session import append
from tests.cli.runner import Cli


def test_a_transcript_shows_who_when_what_was_thought_called_and_answered(cli: Cli) -> None:
    read = call("read_file", path="a.py", limit=3)
    asked = Message(
        role="model",
        parts=(Thought(text="look first", subject="Plan"), Text(text="I will look."), read),
        model="gemini-2.5-pro",
        usage=Usage(total=1_234),
    )
    items = [user("Why?"), asked, result(read, "print(1)"), result(read, "gone", is_error=True)]
    session, entries = cli.session(items)
    out = cli.ok("show", session.id).out
    assert re.search(rf"^user  \d{{4}}-\d\d-\d\d \d\d:\d\d · {entries[0].id[-8:]}", out, re.M)
    assert "gemini-2.5-pro · 1,234 tokens" in out
    assert "\n  Why?\n" in out
    assert "\n  thought: Plan: look first\n" in out
    assert '\n  read_file(path="a.py", limit=3)\n' in out
    assert "\n  → read_file\n    print(1)\n" in out
    assert "\n  → read_file (failed)\n    gone\n" in out


def test_arguments_that_are_no_json_are_shown_as_they_came(cli: Cli) -> None:
    broken = ToolCall(id="1", name="shell", arguments='{"command": "ls')
    session, _ = cli.session([Message(role="model", parts=(broken,))])
    assert 'shell({"command": "ls)' in cli.ok("show", session.id).out


def test_everything_else_a_session_may_hold_is_named(cli: Cli) -> None:
    parts = (
        InlineData(mime="image/png", data=b"x" * 3_000),
        FileRef(mime="text/plain", uri="file:///notes"),
        Unknown(data='{"type":"hologram"}'),
    )
    interrupted = Message(role="model", finish="interrupted")
    note = Note(text="beware", level="warning")
    session, _ = cli.session([Message(role="user", parts=parts), note, interrupted])
    out = cli.ok("show", session.id).out
    assert "[image/png, 3.0 kB]" in out
    assert "[text/plain file:///notes]" in out
    assert 'unknown to this version: {"type":"hologram"}' in out
    assert "warning  " in out
    assert "· interrupted ·" in out
    assert "(empty)" in out


def test_long_results_are_shortened_with_a_hint_at_full(cli: Cli) -> None:
    read = call("read_file", path="long")
    lines = "\n".join(f"line {n}" for n in range(100))
    session, _ = cli.session([result(read, lines)])
    short = cli.ok("show", session.id).out
    shown = [line.strip() for line in short.splitlines() if line.strip().startswith("line")]
    ends = (*range(6), *range(94, 100))
    assert shown == [f"line {n}" for n in ends]  # totals and errors stand at the end
    assert "… 89 more lines" in short
    assert "--full shows them" in short
    full = cli.ok("show", session.id, "--full").out
    assert "line 99" in full
    assert "more lines" not in full


def test_last_shows_the_end_and_counts_what_came_before(cli: Cli) -> None:
    session, _ = cli.session([user(f"message {n}") for n in range(9)])
    out = cli.ok("show", session.id, "--last", "2").out
    assert "message 6" not in out
    assert "message 7" in out
    assert "… 7 entries before" in out


def test_at_shows_the_session_as_it_stood(cli: Cli) -> None:
    session, entries = cli.session([user("one"), model("two"), user("three")])
    out = cli.ok("show", session.id, "--at", entries[1].id).out
    assert "two" in out
    assert "three" not in out


def test_an_entry_is_shown_alone_and_in_full(cli: Cli) -> None:
    read = call("read_file", path="long")
    lines = "\n".join(f"line {n}" for n in range(100))
    _, entries = cli.session([user("first"), model("", read), result(read, lines), user("last")])
    out = cli.ok("show", entries[2].id[-8:]).out
    assert "  line 99\n" in out
    assert 'read_file(path="long")' in out  # a result is shown with its call
    assert "  first\n" not in out
    assert "  last\n" not in out
    called = cli.ok("show", entries[1].id).out
    assert "→ read_file" in called  # and a call with its result
    assert "  line 50\n" in called
    document = cli.ok("show", entries[2].id, "--json").json
    assert document["marked"] == entries[2].id
    assert [entry["id"] for entry in document["entries"]] == [entries[1].id, entries[2].id]


def test_no_long_argument_hides_the_next_one(cli: Cli) -> None:
    old, new = ("\n".join(f"{name} {n}" for n in range(40)) for name in ("old", "new"))
    edit = call("replace", file_path="a.py", old_string=old, new_string=new)
    session, _ = cli.session([model("", edit), result(edit, "done")])
    out = cli.ok("show", session.id).out
    assert all(f"{text}\n" in out for text in ("old 0", "old 39", "new 0", "new 39"))
    assert "old 20" not in out
    assert out.count("more lines") == 2
    assert "new 20\n" in cli.ok("show", session.id, "--full").out


def test_what_several_handles_share_is_shown_once_as_fully_as_any_of_them_wants(cli: Cli) -> None:
    read = call("read_file", path="long")
    lines = "\n".join(f"line {n}" for n in range(100))
    bodies = [user("first"), model("", read), result(read, lines), user("last")]
    _, entries = cli.session(bodies)
    handles = [entry.id[-8:] for entry in entries]
    both = cli.ok("show", handles[1], handles[2]).out
    assert both.count("line 99\n") == 1
    around = cli.ok("show", handles[1], handles[3], handles[2], "--around", "1").out
    assert around.count("  first\n") == 1
    assert around.count("  last\n") == 1
    assert around.count("line 99\n") == 2  # shortened beside its call, in full where it is named
    assert around.count("line 50\n") == 1


def test_several_entries_are_shown_under_the_heading_of_their_session(cli: Cli) -> None:
    _, entries = cli.session([user(f"message {n}") for n in range(5)], title="my title")
    _, others = cli.session([user("of another session")], title="another title")
    given = (entries[3].id[-8:], entries[1].id[-8:], others[0].id[-8:])
    out = cli.ok("show", *given).out
    assert [line[2:] for line in out.splitlines() if line.startswith("  ")] == [
        "message 3",
        "message 1",
        "of another session",
    ]
    assert (out.count("my title"), out.count("another title")) == (1, 1)
    documents = cli.ok("show", *given, "--json").json
    assert [one["marked"] for one in documents] == [entries[3].id, entries[1].id, others[0].id]


def test_the_lines_of_an_argument_are_lines(cli: Cli) -> None:
    write = call("write_file", path="a.py", content="import os\n\nprint(os)")
    session, _ = cli.session([model("", write)])
    assert '\n  import os\n  \n  print(os)\n  """)' in cli.ok("show", session.id).out


def test_an_entry_is_shown_marked_among_its_neighbours(cli: Cli) -> None:
    session, entries = cli.session([user(f"message {n}") for n in range(20)])
    out = cli.ok("show", entries[9].id, "--around", "5").out
    (marked,) = [line for line in out.splitlines() if line.startswith("▶")]
    assert entries[9].id[-8:] in marked
    assert "… 4 entries before" in out
    assert "message 4\n" in out
    assert "message 14\n" in out
    assert "message 15\n" not in out
    assert f"… 5 entries after; `recollect show {session.id[-8:]}" in out


def test_an_entry_on_another_branch_is_found_and_marked_as_such(cli: Cli) -> None:
    session, entries = cli.session([user("one"), model("left behind")])
    cli.ok("rewind", session.id, entries[0].id)
    out = cli.ok("show", entries[1].id).out
    assert "left behind" in out
    assert "the head is on another branch" in out


def test_the_tree_shows_every_branch_and_where_the_head_is(cli: Cli) -> None:
    session, entries = cli.session([user("question"), model("first answer")])

    async def again(store: SqliteStore) -> None:
        await store.rewind(session.id, entries[0].id)
        await store.append(session.id, [model("second answer")], parent=entries[0].id)

    cli.write(again)
    drawn = cli.ok("show", session.id, "--tree").out.splitlines()[3:]
    assert drawn[0].startswith("● ")
    assert drawn[0].endswith("question")
    assert drawn[1].startswith("├─○ ")
    assert drawn[1].endswith("first answer")
    assert drawn[2].startswith("● ")
    assert drawn[2].endswith("second answer ← head")


def test_initial_shows_the_initial_context_else_the_first_message(cli: Cli) -> None:
    setup = Message(role="user", parts=(Text(text="My setup"),), context="initial")
    plain, _ = cli.session([Note(text="for people"), user("first"), model("second")])
    out = cli.ok("show", plain.id, "--initial").out
    assert "  first\n" in out
    assert "second" not in out
    assert "for people" not in out
    session, entries = cli.session([Message(role="system", parts=()), setup, user("first")])
    (entry,) = cli.ok("show", session.id, "--initial", "--json").json["entries"]
    assert entry["id"] == entries[1].id


def test_curated_shows_what_may_be_sent_as_the_model_sees_it(cli: Cli) -> None:
    read = call("read_file", path="a.py")
    items: list[Body] = [
        user("asked long ago"),
        model("answered long ago"),
        user("new"),
        Message(role="model", parts=(read,)),
        result(read, "long output"),
        Message(role="model"),
        Note(text="for people"),
    ]
    session, entries = cli.session(items)

    async def edit(store: SqliteStore) -> None:
        cut = Elided(entry=entries[4].id, placeholder="[left out]")
        held = Compaction(status="COMPRESSED", snapshot="the state", first_kept=entries[2].id)
        edits: list[Body] = [Elide(rule="r", items=(cut,)), held]
        await store.append(session.id, edits, parent=entries[-1].id)

    cli.write(edit)
    out = cli.ok("show", session.id, "--curated").out
    shown = re.findall(r"^(?:user|model)  .*\n  (.*)", out, re.M)
    assert shown[0] == "the state"
    assert shown[2:] == ["new", 'read_file(path="a.py")', "→ read_file"]
    assert "    [left out]\n" in out
    assert "  answered long ago" not in out
    assert "for people" not in out
    sent = cli.ok("show", session.id, "--curated", "--json").json["entries"]
    assert [entry["body"]["kind"] for entry in sent] == ["message"] * 5
    assert len(cli.ok("show", session.id, "--json").json["entries"]) == 9


def test_curated_can_be_limited_to_the_newest_or_to_an_earlier_state(cli: Cli) -> None:
    session, entries = cli.session([user(f"message {n}") for n in range(9)])
    out = cli.ok("show", session.id, "--curated", "--last", "2").out
    assert "message 6" not in out
    assert f"… 7 entries before; `recollect show {session.id[-8:]}" in out
    assert "--curated` shows all" in out
    then = cli.ok("show", session.id, "--curated", "--at", entries[1].id, "--json").json
    assert [entry["id"] for entry in then["entries"]] == [entries[0].id, entries[1].id]


def test_tree_initial_and_curated_cannot_be_combined(cli: Cli) -> None:
    session, _ = cli.session([user("hello")])
    for pair in (("--tree", "--curated"), ("--tree", "--initial"), ("--initial", "--curated")):
        wrong = cli("show", session.id, *pair)
        assert (wrong.code, wrong.out) == (2, "")


def test_json_is_the_session_and_its_entries_and_keeps_every_character(cli: Cli) -> None:
    text = "lone \ud800, nul \x00, escape \x1b[31m, 限流"
    session, entries = cli.session([user(text)])
    result = cli.ok("show", session.id, "--json")
    assert result.out.isascii()
    assert result.json["session"]["id"] == session.id
    (entry,) = result.json["entries"]
    assert entry["id"] == entries[0].id
    assert entry["body"]["parts"][0]["text"] == text


def test_an_unknown_id_is_an_error_with_a_hint(cli: Cli) -> None:
    result = cli("show", "feed")
    assert result.code == 1
    assert result.out == ""
    assert result.err.startswith("recollect: no session and no entry 'feed'; `recollect sessions")


def damage(cli: Cli, entry: str) -> None:
    """Flip a byte in an entry's stored body, behind the store's back."""
    db = apsw.Connection(str(cli.store))
    ((body,),) = db.execute("SELECT body FROM entries WHERE id = ?", (bytes.fromhex(entry),))
    broken = body[:-3] + bytes([body[-3] ^ 1]) + body[-2:]
    db.execute("UPDATE entries SET body = ? WHERE id = ?", (broken, bytes.fromhex(entry)))
    db.close()


def test_a_damaged_entry_is_shown_as_damaged_and_the_rest_is_shown(cli: Cli) -> None:
    session, entries = cli.session([user("before"), model("spoilt"), user("after")])
    damage(cli, entries[1].id)
    result = cli("show", session.id)
    assert result.code == 1
    assert "before" in result.out
    assert "after" in result.out
    assert "damaged  " in result.out
    assert "recollect: warning: 1 damaged entry; `recollect doctor` has details" in result.err
    assert cli("show", session.id, "--json").json["damaged"] == [entries[1].id]


def test_when_an_entry_is_missing_what_is_left_is_shown(cli: Cli) -> None:
    session, entries = cli.session([user("before"), model("lost"), user("after")])
    db = apsw.Connection(str(cli.store))
    db.execute("DELETE FROM entries WHERE id = ?", (bytes.fromhex(entries[1].id),))
    db.close()
    result = cli("show", session.id)
    assert result.code == 1
    assert "  before\n" in result.out
    assert "damaged  " in result.out  # without its forerunner the last one cannot be verified
    assert "is missing" in result.err


def test_the_newest_turns_are_shown_as_the_model_sees_them(cli: Cli) -> None:
    read = call("read_file", path="a.py")
    items: list[Body] = [user("one"), model("first"), user("two")]
    items += [Message(role="model", parts=(read,)), result(read, "print(1)"), model("second")]
    items += [user("three"), model("third"), Note(text="for people")]
    session, entries = cli.session(items)
    cut = Elide(rule="stale", items=(Elided(entry=entries[4].id, placeholder="[left out]"),))
    append(cli, session, cut)
    shown = cli.ok("show", session.id, "--turns", "2").out
    said = re.findall(r"^  (one|first|two|second|three|third)$", shown, re.M)
    assert said == ["two", "second", "three", "third"]
    assert "[left out]" in shown
    assert "print(1)" not in shown
    assert "for people" not in shown
    assert f"2 entries before; `recollect show {session.id[-8:]} --curated` shows all" in shown
    document = cli.ok("show", "--turns", "1", "--json").json
    assert [entry["id"] for entry in document["entries"]] == [entries[6].id, entries[7].id]
    assert len(cli.ok("show", "--turns", "9", "--json").json["entries"]) == 8


def test_turns_are_counted_from_the_head_and_need_a_number(cli: Cli) -> None:
    cli.session([user("one")])
    for options in (("--last", "2"), ("--at", "start"), ("--tree",), ("--initial",)):
        assert cli("show", "--turns", "1", *options).code == 2
    assert cli("show", "--turns", "0").code == 2
    assert "one" in cli.ok("show", "--turns", "1", "--curated").out

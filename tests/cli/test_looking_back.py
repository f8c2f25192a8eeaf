"""An agent looks back: what was compacted is found by a question and recalled by its handles, and
the commands take the same handles."""

from __future__ import annotations

import json
import re

from recollect.entries import Body, Compaction, Entry, Message, Pin, Text, ToolCall
from recollect.store.contract import SessionInfo
from recollect.store.sqlite import SqliteStore
from recollect.testing import call, model, result, user
from tests.cli.model_server import ENV, outputs, reply, server
from tests.cli.runner import Cli

COMMIT = "[main 4f2a91c] Refill the bucket once\n 2 files changed, 11 insertions(+)"
REASON = "refill_tokens became idempotent, because two timers called it within one millisecond"


def compacted(cli: Cli) -> tuple[SessionInfo, tuple[Entry, ...]]:
    """A session whose beginning the model no longer sees."""
    shell = call("run_shell_command", command="git commit -am 'Refill the bucket once'")
    said = [user("Fix the limiter"), model("", shell), result(shell, COMMIT), model(REASON)]
    noise = [model(f"Step {n} of the plan is done.") for n in range(40)]
    held = Compaction(status="COMPRESSED", snapshot="The limiter was repaired.")
    return cli.session([*said, *noise, held])


def test_a_model_finds_by_a_question_and_recalls_several_at_once(cli: Cli) -> None:
    session, entries = compacted(cli)
    commit, reason = (entry.id[-8:] for entry in entries[2:4])
    question = "Why was RateLimiter.refill_tokens made idempotent, and in which commit?"
    ask = call("search_history", id="a", words=question)
    both = call("recall", id="b", handle=[commit, reason], around="bucket")
    answers = (reply(ask), reply(both), reply(Text(text="Because of two timers.")))
    with server(cli, *answers, window=90_000) as on:
        cli.ok("-r", session.id, "-p", "Why?", env=ENV)
        found, recalled = outputs(on)
    assert "Nowhere in this session: RateLimiter.refill_tokens" in found
    assert f"> {REASON}" in found
    assert f"- {reason} said by you" in found
    assert "> run_shell_command command: git commit -am 'Refill the bucket once'" in found
    assert f"  gave ({commit}): [main 4f2a91c] Refill the bucket once" in found
    assert f"[history {commit}: " in recalled
    assert COMMIT in recalled
    assert f"{REASON}\n[end of history {reason}]" in recalled


def test_every_handle_that_a_model_is_given_can_be_shown_and_searched_by_commands(cli: Cli) -> None:
    session, entries = compacted(cli)
    ask = call("search_history", id="a", words="refill")
    with server(cli, reply(ask), reply(Text(text="I see.")), window=90_000) as on:
        cli.ok("-r", session.id, "-p", "Why?", env=ENV)
        handles = re.findall(r"^- ([0-9a-f]{8}) ", outputs(on)[0], re.MULTILINE)
    assert handles
    shown = cli.ok("show", *handles, "--json").out
    documents = json.loads(shown)
    marked = [one["marked"] for one in (documents if len(handles) > 1 else [documents])]
    assert [key[-8:] for key in marked] == handles
    assert {entry.id for entry in entries}.issuperset(marked)


def test_handles_survive_a_rewind_and_a_fork(cli: Cli) -> None:
    session, entries = cli.session([user("one"), model("two needles"), model("three")])
    handle = entries[1].id[-8:]
    cli.ok("rewind", session.id, entries[0].id)
    forked = cli.ok("fork", session.id, "--at", entries[2].id, "--json").json["id"]
    assert "two needles" in cli.ok("show", handle).out
    for where in (session.id, forked):
        (hit,) = cli.ok("search", "needles", "--session", where, "--json").json
        assert hit["handle"] == handle


def test_no_hostile_character_of_a_passage_reaches_the_terminal(cli: Cli) -> None:
    bad = "needle \x1b[2J\x1b]0;title\x07 \u202egnp\u2066 \x9b31m\rover\x08\x7f needle"
    shell = call("shell", command=bad)
    cli.session([user(bad), model("", shell), result(shell, bad)], title=bad)
    out = cli.ok("search", "needle").out
    assert "needle" in out
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", out)


def ask(cli: Cli, session: str, *calls: ToolCall) -> list[str]:
    """What the tools give when a model calls them in this session, one after the other."""
    replies = [reply(one) for one in calls]
    with server(cli, *replies, reply(Text(text="I see.")), window=90_000) as on:
        cli.ok("-r", session, "-p", "Look back.", env=ENV)
        return outputs(on)[-len(calls) :]


def handle(entry: Entry) -> str:
    return entry.id[-8:]


def test_a_model_is_told_which_of_several_calls_a_result_answers(cli: Cli) -> None:
    names = ("ant", "bee", "cow", "dog", "eel")
    calls = [call("shell", id=f"c{name}", command=f"cat {name}.txt") for name in names]
    given = [result(one, f"the {one.id[1:]} lives here") for one in calls]
    together = Message(role="user", parts=tuple(part for one in given for part in one.parts))
    several: list[list[Body]] = [[*given], [together]]
    for results in several:
        asked = Message(role="model", parts=tuple(calls))
        gone = Compaction(status="COMPRESSED", snapshot="gone")
        session, entries = cli.session([user("Go"), asked, *results, gone])
        words = '"eel lives"'
        (found,) = ask(cli, session.id, call("search_history", id="a", words=words, limit=1))
        assert f"- {handle(entries[1 + len(results)])} what shell gave" in found
        assert ", for shell: cat eel.txt\n> the eel lives here\n" in found
        assert "ant" not in found
    words = "cat eel.txt"
    (found,) = ask(cli, session.id, call("search_history", id="a", words=words, limit=1))
    assert f"  gave ({handle(entries[2])}): the eel lives here" in found


def test_a_fork_recalls_what_it_inherited_also_when_the_project_is_searched(cli: Cli) -> None:
    said = [user("the zebra is striped"), model("the giraffe is tall")]
    session, entries = cli.session([*said, user("the zebra of the other one")])
    cli.session([user("a zebra elsewhere")], title="another one")
    forked = cli.ok("fork", session.id, "--at", entries[1].id, "--json").json["id"]
    search = call("search_history", id="a", words="zebra", scope="project")
    (found,) = ask(cli, forked, search)
    assert f"Still shown to you, so not repeated: {handle(entries[0])}" in found
    assert "> the zebra is striped" not in found
    assert "> a zebra elsewhere" in found
    again = cli.ok("fork", session.id, "--at", entries[1].id, "--json").json["id"]
    append(cli, again, Compaction(status="COMPRESSED", snapshot="gone"))
    recalled = call("recall", id="b", handle=handle(entries[0]))
    found, whole = ask(cli, again, search, recalled)
    own, others = found.split("In another session")[0], found.split("In another session")[1:]
    assert f"- {handle(entries[0])} said by the user" in own
    assert "> the zebra is striped" in own
    assert "> the zebra of the other one" in "".join(others)
    assert "the zebra is striped" in whole


def test_nothing_that_the_view_shows_is_repeated(cli: Cli) -> None:
    first = Message(role="user", parts=(Text(text="the initial zebra"),), context="initial")
    said = [first, user("the pinned zebra"), model("the lost zebra"), user("the late zebra")]
    session, entries = cli.session([*said])
    keep = (entries[0].id, entries[1].id)
    held = Compaction(status="COMPRESSED", snapshot="gone", first_kept=entries[3].id, kept=keep)
    append(cli, session.id, Pin(entries=(entries[1].id,)), held)
    (found,) = ask(cli, session.id, call("search_history", id="a", words="zebra"))
    assert re.findall(r"^> (.*)", found, re.MULTILINE) == ["the lost zebra"]
    (named,) = re.findall("not repeated: (.*)", found)
    assert set(named.split(", ")) == {handle(entries[n]) for n in (0, 1, 3)}


def test_a_summary_of_another_program_is_not_repeated_while_it_is_shown(cli: Cli) -> None:
    held = Compaction(status="COMPRESSED", snapshot="a zebra was tamed", trigger="import")
    session, entries = cli.session([user("the old zebra"), held])
    (found,) = ask(cli, session.id, call("search_history", id="a", words="zebra"))
    assert re.findall(r"^> (.*)", found, re.MULTILINE) == ["the old zebra"]
    assert f"not repeated: {handle(entries[1])}" in found


def test_of_entries_that_say_the_same_the_one_in_sight_is_named(cli: Cli) -> None:
    said = "the zebra has exactly nine stripes on each side of its long and noble"
    items: list[Body] = [user(f"{said} head"), Compaction(status="COMPRESSED", snapshot="gone")]
    session, entries = cli.session([*items, user(f"{said} nose")])
    search = call("search_history", id="a", words="zebra stripes noble head")
    (found,) = ask(cli, session.id, search)
    assert "> the zebra" not in found
    assert f"not repeated: {handle(entries[2])}" in found


def test_a_call_in_sight_does_not_hide_its_result_that_was_left_out(cli: Cli) -> None:
    shell = call("shell", id="z", command="cat zebra.txt")
    session, entries = cli.session([user("Go"), model("", shell), result(shell, "nine stripes")])
    cli.ok("context", session.id, "--drop", entries[2].id)
    (found,) = ask(cli, session.id, call("search_history", id="a", words="cat zebra.txt"))
    assert f"  gave ({handle(entries[2])}): nine stripes" in found


def test_a_recall_past_the_end_says_how_long_the_text_is(cli: Cli) -> None:
    session, entries = cli.session([user("short")])
    recall = call("recall", id="a", handle=handle(entries[0]), offset=4_000)
    (found,) = ask(cli, session.id, recall)
    assert "it has only 5 characters, none of them after 4,000" in found
    assert "\n" not in found.strip()


def append(cli: Cli, session: str, *bodies: Body) -> None:
    async def work(store: SqliteStore) -> None:
        await store.append(session, bodies, parent=(await store.session(session)).head)

    cli.write(work)

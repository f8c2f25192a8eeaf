"""`recollect search`: finding, filtering, jumping."""

from __future__ import annotations

import pytest

from recollect.entries import Entry, Message, ToolCall
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


def test_a_query_without_a_word_to_search_for_is_wrong_usage(cli: Cli) -> None:
    for given, why in (("!?", "no word to search for"), ("-dialyzer", "only words to exclude")):
        result = cli("search", "--", given)
        assert (result.code, result.out) == (2, "")
        assert f"{given!r} has {why}" in result.err


def test_no_message_repeats_a_query_of_any_length(cli: Cli) -> None:
    cli.session([user("needle")])
    for given in ("x" * 100_000, "zebra " * 20_000, "!" * 100_000, "模" * 100_000):
        result = cli("search", given)
        assert len(result.err) < 500, given[:20]
    assert len(cli("search", "needle", "--session", "f" * 100_000).err) < 500
    many = cli.ok("search", "needle", "x" * 100_000)
    assert "needle" in many.out
    assert len(many.err) < 500


def test_a_word_can_be_left_out(cli: Cli) -> None:
    cli.session([user("bucket redis"), user("bucket memory")])
    (hit,) = cli.ok("search", "--json", "bucket", "--", "-redis").json
    assert "memory" in hit["snippet"]


def test_any_number_of_words_can_be_left_out_or_given(cli: Cli) -> None:
    cli.session([user("bucket redis"), user("bucket memory")])
    many = [f"-word{n}" for n in range(2_000)]
    (hit,) = cli.ok("search", "--json", "bucket", "--", "-redis", *many).json
    assert "memory" in hit["snippet"]
    assert "memory" in cli.ok("search", "memory", *[f"word{n}" for n in range(5_000)]).out


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


def parallel(*given: tuple[str, str]) -> tuple[Message, list[Message]]:
    """A reply that calls the shell several times at once, and the result of each."""
    calls = [call("shell", id=f"c{n}", command=command) for n, (command, _) in enumerate(given)]
    results = [result(one, text) for one, (_, text) in zip(calls, given, strict=True)]
    return Message(role="model", parts=tuple(calls)), results


def exchanges(calls: list[ToolCall], outputs: list[str]) -> list[Message]:
    """Each call in a reply of its own, with what it gave."""
    pairs = zip(calls, outputs, strict=True)
    return [body for one, text in pairs for body in (model("", one), result(one, text))]


COMMANDS = [(f"cat {name}.txt", f"the {name} lives here") for name in ("ant", "bee", "cow", "dog")]


def test_a_result_of_parallel_calls_is_shown_with_its_own_call(cli: Cli) -> None:
    asked, results = parallel(*COMMANDS)
    together = Message(role="user", parts=tuple(part for one in results for part in one.parts))
    for items in ([asked, *results], [asked, together]):
        session, _ = cli.session(items)
        for name in ("ant", "dog"):
            query = (f'"{name} lives here"', "--session", session.id, "--limit", "1")
            out = cli.ok("search", *query).out
            assert f"shell: cat {name}.txt" in out
            assert f"    the {name} lives here\n" in out
            assert out.count("cat ") == 1
            assert out.count("lives") == 1


def test_a_call_is_shown_with_its_own_result_and_each_of_several_with_its_name(cli: Cli) -> None:
    asked, results = parallel(*COMMANDS[:2])
    session, entries = cli.session([asked, *results])
    one = cli.ok("search", "bee.txt", "--session", session.id).out
    assert f"  → {entries[2].id[-8:]}  the bee lives here\n" in one
    assert "ant lives" not in one
    both = cli.ok("search", "cat", "txt", "ant", "bee", "--session", session.id).out
    assert "shell: cat ant.txt → the ant lives here" in both
    assert "shell: cat bee.txt → the bee lives here" in both


def test_the_call_of_a_result_is_found_however_many_ran_at_once(cli: Cli) -> None:
    asked, results = parallel(*[(f"probe {n}", f"answer number {n * 111}") for n in range(1, 60)])
    cli.session([asked, *results])
    assert "shell: probe 59" in cli.ok("search", '"answer number 6549"').out


def test_runs_of_one_command_that_came_out_differently_are_not_one_hit(cli: Cli) -> None:
    outputs = ["", "warning: variable x is unused", "", "Compiled.\n3 tests, 0 failures"]
    outputs += ["Compiled.\n3 tests, 2 failures"]
    tries = [call("shell", id=f"c{n}", command="mix compile --force") for n in range(len(outputs))]
    _, entries = cli.session(exchanges(tries, outputs))
    hits = cli.ok("search", "mix", "compile", "--json").json
    assert len(hits) == 4
    assert [hit["alike"] for hit in hits if hit["alike"]] == [[entries[0].id]]
    out = cli.ok("search", "mix", "compile").out
    assert f"  → {entries[5].id[-8:]}  (no output)\n" in out
    assert "warning: variable x is unused" in out
    assert "0 failures" in out
    assert "2 failures" in out


def test_commands_that_look_alike_and_gave_something_else_are_not_one_hit(cli: Cli) -> None:
    command = "cd /work/project && cat logs/today/notes.txt | grep needle | head -n {}"
    tries = [call("shell", id=f"c{n}", command=command.format(n)) for n in (3, 4, 5)]
    cli.session(exchanges(tries, ["the farmer went home", "an empty barn", "an empty barn"]))
    hits = cli.ok("search", "grep", "needle", "notes.txt", "--json").json
    assert sorted(len(hit["alike"]) for hit in hits) == [0, 1]


def test_two_results_of_one_command_that_say_something_else_are_two_hits(cli: Cli) -> None:
    said = ["the needle is red and the farmer went away", "no needle: an empty barn full of straw"]
    tries = [call("shell", id=f"c{n}", command="cat barn.txt") for n in range(2)]
    cli.session(exchanges(tries, said))
    assert {hit["snippet"] for hit in cli.ok("search", "needle", "--json").json} == set(said)


@pytest.mark.parametrize("query", ["为什么数据库连接失败", "数据库连接成功", "数据库 成功"])
def test_a_run_without_spaces_finds_what_has_a_part_of_it(cli: Cli, query: str) -> None:
    cli.session([user("数据库连接失败，请检查"), user("天气很好")])
    found = cli.ok("search", query)
    assert "    数据库连接失败，请检查\n" in found.out
    assert "天气" not in found.out
    absent = "为什么" if "为" in query else "成功"
    assert found.err.strip() == f"nowhere in this project: {absent}"


def test_what_has_more_of_a_run_closer_together_comes_first(cli: Cli) -> None:
    said = ["连接很慢", "数据库连接失败", "失败的连接，另一个数据库"]
    cli.session([user(text) for text in said])
    hits = cli.ok("search", "数据库连接失败", "--json").json
    assert [hit["snippet"] for hit in hits] == [said[1], said[2], said[0]]
    assert hits[0]["missing"] == []
    assert cli.ok("search", "データベース接続", "--json").json == []


def test_a_word_of_two_parts_finds_the_identifier_beside_the_word_itself(cli: Cli) -> None:
    said = ["call getUserName()", "the username is empty", "a user without a name"]
    cli.session([user(text) for text in said])
    for query in ("username", "username empty call"):
        hits = cli.ok("search", query, "--json").json
        assert {hit["snippet"] for hit in hits} >= set(said[:2])
        assert hits[0]["snippet"] != said[2]
    alone = cli.ok("search", "username")
    assert "without a name" not in alone.out
    assert alone.err == ""


def test_words_of_which_sentences_are_made_add_nothing_to_a_question(cli: Cli) -> None:
    said = ["why and the limiter of the house", "a limiter"]
    cli.session([user(text) for text in said])
    hits = cli.ok("search", "why and the limiter of the zebra?", "--json").json
    assert [hit["snippet"] for hit in hits] == [said[1], said[0]]  # equals: the newest first


def test_a_short_word_is_not_found_in_another_that_begins_like_it(cli: Cli) -> None:
    cli.session([user("a portion of it"), user("the config of testing"), user("see ﬁle and proﬁt")])
    nothing = cli.ok("search", "port")
    assert (nothing.out, "nothing found" in nothing.err) == ("", True)
    assert "nowhere in this project: port" in cli.ok("search", "port", "config").err
    assert "testing" in cli.ok("search", "tested").out
    assert "config" in cli.ok("search", "conf*").out
    found = cli.ok("search", "file", "profit")
    assert "see ﬁle and proﬁt" in found.out
    assert found.err == ""
    (hit,) = cli.ok("search", "file", "--json").json
    assert [hit["snippet"][a:b] for a, b in hit["marks"]] == ["ﬁle"]


def test_no_passage_begins_or_ends_with_a_blank_line(cli: Cli) -> None:
    cli.session(
        [
            user("\n\n   \n  the needle\n\n  \n" + "straw\n" * 300),
            user("hay\n" * 300 + "\n\nneedle\n\n"),
        ]
    )
    for hit in cli.ok("search", "needle", "--json").json:
        lines = hit["snippet"].split("\n")
        assert lines[0].strip()
        assert lines[-1].strip()

"""Loops as users meet them: in `recollect ask`, in `recollect -p`, and before the judge."""

from __future__ import annotations

import json
from typing import Any

import pytest

from recollect.entries import Text
from recollect.testing import call
from tests.cli.model_server import ENV, log, readable, reply, server
from tests.cli.runner import Cli

NUMBERS = "57. " * 2_048
STOPPED = "Stopped because the model repeated itself: "
OFF = "[agent]\ndetect_loops = false\n"


def pieces(text: str, size: int = 40) -> list[Text]:
    return [Text(text=text[at : at + size]) for at in range(0, len(text), size)]


@pytest.mark.parametrize("options", [(), ("--stream",)])
@pytest.mark.parametrize(
    "text", [NUMBERS, "57.\n" * 2_048, "57. \n" * 2_048, "57. 57.\n\n" * 1_000, "I see. " * 2_000]
)
def test_an_answer_that_repeats_itself_is_stopped_and_kept(
    cli: Cli, options: tuple[str, ...], text: str
) -> None:
    with server(cli, reply(*pieces(text))) as on:
        done = cli("ask", "Count.", *options, env=ENV)
    assert (done.code, len(on.asked)) == (1, 1)
    assert 500 < len(done.out) < len(text)
    assert text.startswith(done.out.rstrip())
    assert "the model repeats itself: " in done.err
    readable(done)
    (role, stored, finish), (level, note, _) = log(cli)[-2:]
    assert (role, finish) == ("model", "interrupted")
    assert stored.rstrip() == done.out.rstrip()
    assert (level, STOPPED in note) == ("warning", True)


def test_the_document_of_a_stopped_answer_says_so(cli: Cli) -> None:
    with server(cli, reply(*pieces(NUMBERS))):
        done = cli("ask", "Count.", "--json", env=ENV)
    assert done.code == 1
    assert (done.json["is_error"], done.json["finish"]) == (True, "loop")
    assert done.json["result"].startswith("57. 57. ")


def test_with_detection_switched_off_the_whole_answer_comes(cli: Cli) -> None:
    with server(cli, reply(*pieces(NUMBERS)), more=OFF):
        assert cli.ok("ask", "Count.", env=ENV).out.strip() == NUMBERS.strip()


def test_the_next_question_goes_on_in_the_session_of_a_stopped_answer(cli: Cli) -> None:
    with server(cli, reply(*pieces(NUMBERS)), reply(Text(text="Sorry."))) as on:
        cli("ask", "Count.", env=ENV)
        assert cli.ok("ask", "-c", "Why?", env=ENV).out == "Sorry.\n"
    assert len(on.asked) == 2


def test_a_loop_in_the_last_turn_is_reported_and_nobody_is_warned_for_nothing(cli: Cli) -> None:
    with server(cli, reply(*pieces(NUMBERS))) as on:
        done = cli("-p", "Count.", "--max-turns", "1", "--output-format", "json", env=ENV)
    assert (done.code, len(on.asked)) == (1, 1)
    assert done.json["subtype"] == "error_loop"
    assert done.json["result"].startswith("57. 57. ")
    assert [kind for kind, _, _ in log(cli)[-2:]] == ["model", "warning"]


ENDLESS = ["- yes\n", "1. yes, I do\n", "| a | b |\n", "─", "\n", "```\nx\n"]


@pytest.mark.parametrize("command", [("ask",), ("-p",)])
@pytest.mark.parametrize("unit", ENDLESS)
def test_output_without_end_is_stopped_in_any_markup(
    cli: Cli, command: tuple[str, ...], unit: str
) -> None:
    text = unit * (20_000 // len(unit))
    with server(cli, reply(*pieces(text))):
        done = cli(*command, "Go on.", env=ENV)
    assert done.code == 1
    assert "the model repeats itself: " in done.err
    readable(done)
    (_, stored, finish), (_, note, _) = log(cli)[-2:]
    assert finish == "interrupted"
    assert 0 < len(stored) < len(text)
    assert note.startswith(STOPPED)


def shown(cli: Cli) -> list[dict[str, Any]]:
    """The messages of the model and what people and the model were told, as `show` prints them."""
    bodies = [entry["body"] for entry in cli.ok("show", "--json").json["entries"]]
    return [b for b in bodies if b["kind"] in ("message", "note")]


@pytest.mark.parametrize(("command", "requests"), [("ask", 1), ("-p", 2)])
def test_a_note_for_people_says_why_a_model_was_stopped(
    cli: Cli, command: str, requests: int
) -> None:
    with server(cli, *[reply(*pieces(NUMBERS))] * requests, reply(Text(text="Sorry."))) as on:
        assert cli(command, "Count.", env=ENV).code == 1
        assert len(on.asked) == requests
        bodies = shown(cli)
        notes = [body for body in bodies if body["kind"] == "note"]
        cut = [body for body in bodies if body.get("finish") == "interrupted"]
        assert (len(notes), len(cut)) == (1, requests)
        assert bodies[-2:] == [cut[-1], notes[0]]
        assert notes[0]["text"].startswith(f"{STOPPED}the same words came at least ")
        cli.ok(command, "Why?", "-c", env=ENV)
    assert len(on.asked) == requests + 1
    assert b"Stopped because" not in on.asked[-1].body


def test_a_note_also_says_why_calls_were_not_run(cli: Cli) -> None:
    same = [reply(call("list_directory", id=f"c{n}", path=".")) for n in range(10)]
    with server(cli, *same) as on:
        assert cli("-p", "Look.", env=ENV).code == 1
    assert len(on.asked) == 10
    last = shown(cli)[-1]
    assert last["text"].startswith(f'{STOPPED}the same call of "list_directory" ')


@pytest.mark.parametrize(("count", "warned"), [(4, False), (5, True), (12, True)])
def test_equal_calls_in_one_reply_are_one_loop_of_which_the_model_is_warned(
    cli: Cli, count: int, warned: bool
) -> None:
    same = [call("list_directory", id=f"c{n}", path=".") for n in range(count)]
    with server(cli, reply(*same), reply(Text(text="I see."))) as on:
        done = cli.ok("-p", "Look.", env=ENV)
    assert done.out == "I see.\n"
    assert ("the model repeats itself: list_directory" in done.err) is warned
    assert (b"A loop was detected" in on.asked[-1].body) is warned


REPORTS = [
    "src/pkg/module_{}.py: no problems found; the types are right and all tests of it pass.\n",
    "**src/pkg/{}.py**: no problems were found in this file, and all of its tests pass.\n\n",
    "ALTER TABLE t{} ADD COLUMN created_at TIMESTAMP NOT NULL DEFAULT now();\n",
    "Item {}: check the file and fix the problem in it, then run the tests again.\n",
    '  {{"name": "n{}", "value": 0, "description": "nothing is known", "enabled": true}},\n',
    "──────────── page ────────────\nSection {}: what is in it and what follows from that.\n",
]


@pytest.mark.parametrize("line", REPORTS)
def test_a_report_that_says_the_same_of_many_things_comes_whole(cli: Cli, line: str) -> None:
    report = "I checked them:\n\n" + "".join(line.format(n) for n in range(60)) + "That is all."
    for command in ("-p", "ask"):
        with server(cli, reply(*pieces(report))) as on:
            assert cli.ok(command, "Report.", env=ENV).out.strip() == report
        assert len(on.asked) == 1


@pytest.mark.parametrize("divider", ["─", "━", "═", ". ", "#", "=-"])
def test_a_report_with_sections_under_dividers_comes_whole(cli: Cli, divider: str) -> None:
    line = (divider * 60)[:60]
    report = "\n".join(
        f"{line}\nSection {n}\n{line}\nPart {n} has {n * 37} lines." for n in range(24)
    )
    for command in (("-p",), ("ask",)):
        with server(cli, reply(*pieces(report))) as on:
            assert cli.ok(*command, "Report.", env=ENV).out.strip() == report
        assert len(on.asked) == 1


def test_the_judge_knows_what_the_user_asked_for_however_many_messages_ago(cli: Cli) -> None:
    turns = 14  # two messages each
    for number in range(turns):
        (cli.project / f"f{number}.txt").write_text(f"nothing {number}")
    reads = [reply(call("read_file", id=f"c{n}", absolute_path=f"f{n}.txt")) for n in range(turns)]
    verdict = reply(Text(text='{"why": "it reads file after file", "stuck": 0.1}'))
    more = f"[agent]\nloop_check_after = {turns}\n"
    prompt = "Find the needle. " + "x" * 100_000 + " It is not in g.txt."
    with server(cli, *reads, verdict, reply(Text(text="gone")), window=90_000, more=more) as on:
        assert cli.ok("-p", prompt, env=ENV).out == "gone\n"
    (judged,) = [asked.body for asked in on.asked if b"material to judge" in asked.body]
    shown = json.loads(judged)["messages"][0]["content"]
    assert shown.startswith('the user wanted: "Find the needle. xxx')
    assert 'It is not in g.txt."' in shown.splitlines()[0]
    assert len(shown.splitlines()[0]) < 5_000
    assert f"nothing {turns - 2}" in shown

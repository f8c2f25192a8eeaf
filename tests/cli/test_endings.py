"""Every row of the table of endings, on every wire, streamed and whole, through the front door."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from recollect.codecs.endings import FINISH_WORDS, OUTCOMES, Outcome, ReplyContent, usual_word
from recollect.codecs.wire_protocol import Finish
from recollect.entries import Message, Text, Thought, ToolCall
from recollect.profiles import WireName
from recollect.testing import ProviderLine, ScriptStep, call, faulty
from tests.cli.model_server import path
from tests.cli.provider import ENV, FORMATS, provider, run
from tests.cli.runner import Cli
from tests.cli.session_files import only_session

WRITE = call("write_file", file_path="ran.txt", content="it ran")
CONTENTS: dict[ReplyContent, tuple[ScriptStep, ...]] = {
    "calls": (WRITE,),
    "text": (Text(text="Some words."),),
    "thoughts": (Thought(text="Hm."),),
    "nothing": (Text(text="\u200b\n\ufeff"),),
}
SUBTYPES: dict[Outcome, str] = {
    "answer": "success",
    "calls": "success",
    "continue": "success",
    "ask_again": "success",
    "interrupted": "error_interrupted",
    "cut_off": "error_cut_off",
    "blocked": "error_blocked",
}


class Row(NamedTuple):
    wire: WireName
    finish: Finish
    content: ReplyContent
    streamed: bool

    @property
    def outcome(self) -> Outcome:
        # a provider that announces calls and sends none is a provider of malformed calls
        missing = self.finish == "calls" and self.content != "calls"
        return OUTCOMES["malformed_call" if missing else self.finish][self.content]

    @property
    def reply(self) -> ProviderLine:
        said = CONTENTS[self.content]
        if self.finish == "" and self.streamed:
            return faulty(*said, end="none")
        word = usual_word(self.wire, self.finish) or ("TIRED" if self.finish == "other" else "")
        return faulty(*said, finish=word, stream=self.streamed)


def rows() -> Iterator[Row]:
    for wire in FORMATS:
        for finish in OUTCOMES:
            for content in CONTENTS:
                for streamed in (True, False):
                    row = Row(wire, finish, content, streamed)
                    if is_possible(row):
                        yield row


def is_possible(row: Row) -> bool:
    known = row.finish == "other" or row.finish in FINISH_WORDS[row.wire].values()
    return known or (row.finish == "" and row.streamed)


@pytest.mark.parametrize("row", [*rows()], ids=lambda row: "-".join(map(str, row)))
def test_a_row_of_the_table_comes_to_what_it_says(cli: Cli, row: Row) -> None:
    broken = row.finish == ""
    script = [row.reply] * 2 if broken else [row.reply, "It is done."]
    with provider(cli, row.wire, script) as server:
        done = run(cli, "-p", "Hi.", "--mode", "edit")
    assert not server.exhausted
    wanted = "error" if broken else SUBTYPES[row.outcome]
    assert (done.result["subtype"], done.code) == (wanted, 0 if wanted == "success" else 1)
    assert done.result["is_error"] is (wanted != "success")
    assert (cli.project / "ran.txt").exists() is (row.outcome == "calls")
    assert len(done.of("correction")) == (row.outcome == "ask_again")
    assert len(done.of("retrying")) == broken
    kept = [e.body for e in path(cli) if isinstance(e.body, Message) and e.body.role == "model"]
    if broken:
        assert [message.finish for message in kept] in (["interrupted"], [])
        assert bool(kept) or row.content == "nothing"
    elif row.outcome in ("answer", "calls", "continue", "ask_again"):
        assert done.result["result"] == (
            "Some words." if row.outcome == "answer" else "It is done."
        )
    elif row.content == "text":
        assert done.result["result"] == "Some words."


@pytest.mark.parametrize("wire", FORMATS)
def test_a_reply_that_says_nothing_is_asked_for_twice_again_and_is_then_an_error(
    cli: Cli, wire: WireName
) -> None:
    with provider(cli, wire, [faulty(Thought(text="Hm."))] * 3) as server:
        done = run(cli)
    assert (done.code, done.result["subtype"]) == (1, "error_empty_reply")
    assert [line["attempt"] for line in done.of("correction")] == [1, 2]
    assert "no answer in 3 replies in a row" in done.result["problem"]
    assert len(server.requests) == 3
    assert b"cannot be used" in server.requests[-1].body


@pytest.mark.parametrize("wire", FORMATS)
@pytest.mark.parametrize(
    ("bad", "why"),
    [
        (call("no_tool", x=1), "there is no tool 'no_tool'"),
        (call("write_file", file_path="a.txt"), "content"),
        (call("write_file", file_path="a.txt", content=["x"]), "content"),
    ],
)
def test_a_call_that_cannot_be_run_goes_back_three_times_and_is_then_an_error(
    cli: Cli, wire: WireName, bad: ToolCall, why: str
) -> None:
    with provider(cli, wire, [faulty(bad)] * 4):
        done = run(cli, "-p", "Hi.", "--mode", "edit")
    assert (done.code, done.result["subtype"], done.result["result"]) == (1, "error_bad_calls", "")
    assert [line["attempt"] for line in done.of("correction")] == [1, 2, 3]
    assert all(why in line["problems"][0] for line in done.of("correction"))
    assert why in done.result["problem"]
    assert not (cli.project / "a.txt").exists()


@pytest.mark.parametrize("wire", ["openai", "anthropic"])
@pytest.mark.parametrize(
    "arguments",
    [
        '{"file_path": "a.txt", "content": ,,,]]',
        '{"file_path": "a.txt", "content": "half of',
        '{"file_path": "a.txt", "content": "one", "content": "two"}',
        '["a.txt", "words"]',
    ],
)
def test_broken_arguments_are_never_guessed(cli: Cli, wire: WireName, arguments: str) -> None:
    (cli.project / "a.txt").write_text("kept")
    broken = ToolCall(id="c1", name="write_file", arguments=arguments)
    sound = call("write_file", id="c2", file_path="a.txt", content="written")
    with provider(cli, wire, [faulty(broken), faulty(sound), "Done."]) as server:
        done = run(cli, "-p", "Hi.", "--mode", "edit")
    assert (done.code, len(done.of("correction"))) == (0, 1)
    (first, second) = done.of("tool_result")
    assert first["is_error"]
    assert not second["is_error"]
    assert b"JSON" in server.requests[1].body
    assert (cli.project / "a.txt").read_text() == "written"


@pytest.mark.parametrize("wire", ["openai", "anthropic"])
@pytest.mark.parametrize("cut", ["", "{}", '{"file_path": "b.txt", "content": "half'])
def test_a_call_that_the_output_limit_cut_is_not_run_but_those_before_it_are(
    cli: Cli, wire: WireName, cut: str
) -> None:
    last = ToolCall(id="c2", name="write_file", arguments=cut)
    with provider(
        cli, wire, [faulty(WRITE, last, finish=usual_word(wire, "length")), "Done."]
    ) as server:
        done = run(cli, "-p", "Hi.", "--mode", "edit")
    assert done.code == 0
    assert (cli.project / "ran.txt").read_text() == "it ran"
    assert not (cli.project / "b.txt").exists()
    ((problem,),) = (line["problems"] for line in done.of("correction"))
    assert "output limit cut this call off" in problem
    assert b"output limit cut this call off" in server.requests[-1].body


def test_rounds_of_correction_do_not_count_against_the_limit_of_turns(cli: Cli) -> None:
    script: list[ProviderLine] = [faulty(call("no_tool")), "Done."]
    with provider(cli, "openai", script):
        done = run(cli, "-p", "Hi.", "--max-turns", "1")
    assert (done.code, done.result["result"], done.result["num_turns"]) == (0, "Done.", 2)


def test_a_correct_reply_in_between_begins_the_count_anew(cli: Cli) -> None:
    bad, good = faulty(call("no_tool")), faulty(call("list_directory", path="."))
    with provider(cli, "openai", [bad, bad, good, bad, bad, bad, "Done."]):
        done = run(cli)
    assert (done.code, done.result["result"]) == (0, "Done.")
    assert [line["attempt"] for line in done.of("correction")] == [1, 2, 1, 2, 3]


def test_a_block_is_named_in_the_providers_words(cli: Cli) -> None:
    with provider(cli, "gemini", [faulty("Take the", finish="RECITATION")]):
        done = run(cli)
    assert "RECITATION" in done.result["problem"]
    blocked = faulty(events=('{"promptFeedback":{"blockReason":"PROHIBITED_CONTENT"}}',))
    with provider(cli, "gemini", [blocked]):
        done = run(cli)
    assert (done.code, done.result["subtype"]) == (1, "error_blocked")
    assert "PROHIBITED_CONTENT" in done.result["problem"]


def test_what_gemini_says_of_a_malformed_call_goes_back_to_the_model(cli: Cli) -> None:
    said = "Malformed function call: print(default_api.write_file("
    wrong = faulty(finish="MALFORMED_FUNCTION_CALL", finish_message=said)
    with provider(cli, "gemini", [wrong, "Done."]) as server:
        done = run(cli)
    assert done.code == 0
    assert said.encode() in server.requests[-1].body


@pytest.mark.parametrize("command", [("-p", "Hi."), ("ask", "Hi.")])
def test_a_person_reads_one_sentence_and_the_text_that_came(
    cli: Cli, command: tuple[str, ...]
) -> None:
    with provider(cli, "openai", [faulty("Half an ans", finish="length")]):
        done = cli(*command, env={"MY_KEY": "k"})
    assert (done.code, done.out) == (1, "Half an ans\n")
    assert "recollect: the reply was cut off at the output limit; " in done.err


@pytest.mark.parametrize("command", [("-p", "Hi."), ("ask", "Hi.")])
def test_nothing_is_printed_for_a_reply_that_says_nothing(
    cli: Cli, command: tuple[str, ...]
) -> None:
    with provider(cli, "openai", [faulty("\u200b")], repeat=True):
        done = cli(*command, env={"MY_KEY": "k"})
    assert (done.code, done.out) == (1, "")
    assert "asking again (2 of 2)" in done.err
    assert "recollect: the model gave no answer in 3 replies in a row" in done.err


@pytest.mark.parametrize("command", [("-p", "Hi."), ("ask", "Hi.")])
def test_a_stream_that_was_cut_is_stored_and_the_command_that_continues_it_is_named(
    cli: Cli, command: tuple[str, ...]
) -> None:
    with provider(cli, "openai", [faulty("Half", end="none")] * 2):
        done = cli(*command, env=ENV)
    assert done.code == 1
    error, hint = done.err.splitlines()[-2:]
    assert error.startswith("recollect: no complete reply")
    resume = hint.removeprefix("everything so far is stored · `").removesuffix("` continues")
    with provider(cli, "openai", ["Done."]) as server:
        assert cli.ok(*shlex.split(resume)[1:], env=ENV).out == "Done.\n"
    assert b"Half" in server.requests[0].body


def test_a_question_that_is_not_stored_gets_no_such_hint(cli: Cli) -> None:
    with provider(cli, "openai", [faulty("Half", end="none")] * 2):
        done = cli("ask", "Hi.", "--no-session", env=ENV)
    assert done.code == 1
    assert "stored" not in done.err


def test_a_program_that_asks_gets_a_document_for_a_failure_too(cli: Cli) -> None:
    with provider(cli, "openai", [faulty("Half", end="none")], repeat=True):
        done = cli("ask", "Hi.", "--json", env={"MY_KEY": "k"})
    assert (done.code, done.json["is_error"]) == (1, True)
    assert "broke off before its end" in done.json["result"]
    assert "no complete reply from 127.0.0.1" in done.err
    assert done.json["session_id"] == only_session(cli)["id"]


def test_a_reply_of_which_something_ran_is_progress(cli: Cli) -> None:
    def mixed(number: int) -> ProviderLine:
        good = call("write_file", f"g{number}", file_path=f"ok{number}.txt", content="x")
        return faulty(good, call("no_tool", f"b{number}"))

    with provider(cli, "openai", [*map(mixed, range(6)), "Done."]):
        done = run(cli, "-p", "Hi.", "--mode", "edit")
    assert (done.code, done.result["num_turns"]) == (0, 7)
    assert [line["attempt"] for line in done.of("correction")] == [1] * 6
    with provider(cli, "openai", [*map(mixed, range(6))]):
        done = run(cli, "-p", "Hi.", "--mode", "edit", "--max-turns", "3")
    assert done.result["subtype"] == "error_max_turns"


def test_a_part_of_an_unknown_kind_is_no_answer_and_a_picture_is_named(cli: Cli) -> None:
    part = '{"candidates":[{"content":{"parts":[%s]},"finishReason":"STOP"}]}'
    code = faulty(events=(part % '{"executableCode":{"language":"PYTHON","code":"1"}}',))
    with provider(cli, "gemini", [code], repeat=True):
        assert run(cli).result["subtype"] == "error_empty_reply"
    picture = faulty(events=(part % '{"inlineData":{"mimeType":"image/png","data":"AAAA"}}',))
    with provider(cli, "gemini", [picture]):
        assert run(cli).result["result"] == "[image/png, 3 bytes]"


def test_the_calls_of_an_interrupted_reply_are_said_not_to_have_run(cli: Cli) -> None:
    with provider(cli, "openai", [faulty(WRITE, end="none")] * 2):
        assert run(cli, "-p", "Hi.", "--mode", "edit").code == 1
    with provider(cli, "openai", ["Done."], validate=True) as server:
        assert run(cli, "-c", "-p", "Go on.").code == 0
    assert b"interrupted before it was run" in server.requests[0].body


def test_a_paused_turn_is_sent_back_as_it_is_and_goes_on(cli: Cli) -> None:
    """Anthropic's `pause_turn`, with the blocks of a tool that Anthropic runs itself."""
    search = {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "x"}}
    reply = {
        "id": "m",
        "type": "message",
        "role": "assistant",
        "model": "claude",
        "content": [{"type": "text", "text": "I look."}, search],
        "stop_reason": "pause_turn",
        "usage": {"input_tokens": 3, "output_tokens": 4},
    }
    paused = faulty(events=(json.dumps(reply),), stream=False)
    with provider(cli, "anthropic", [paused, "Found."]) as server:
        done = run(cli)
    assert (done.code, done.result["result"], done.result["num_turns"]) == (0, "Found.", 2)
    last = server.requests[1].json["messages"][-1]
    assert last == {"role": "assistant", "content": reply["content"]}


def test_a_server_that_pauses_for_ever_ends_with_the_turns(cli: Cli) -> None:
    with provider(cli, "anthropic", [faulty("…", finish="pause_turn")], repeat=True) as server:
        done = run(cli, "-p", "Hi.", "--max-turns", "3")
    assert (done.code, done.result["subtype"]) == (53, "error_max_turns")
    assert len(server.requests) == 3

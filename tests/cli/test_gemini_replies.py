"""Replies of Gemini in the forms that the tests of Gemini CLI 0.61.0 have."""

from __future__ import annotations

import json
from typing import Any

import pytest

from recollect.entries import Text, Thought, ToolCall
from recollect.testing import WireReply, faulty
from tests.cli.model_server import parts_of
from tests.cli.provider import provider, run
from tests.cli.runner import Cli

Json = dict[str, Any]
LIST: Json = {"functionCall": {"name": "list_directory", "args": {"path": "."}}}
READ: Json = {"functionCall": {"name": "list_directory", "args": {"path": "./"}}}


def event(*parts: Json, finish: str = "", **more: object) -> str:
    candidate = {"content": {"role": "model", "parts": parts}, **more}
    return json.dumps(
        {"candidates": [{**candidate, **({"finishReason": finish} if finish else {})}]}
    )


def reply(*parts: Json, finish: str = "STOP", stream: bool = True) -> WireReply:
    return faulty(events=(event(*parts, finish=finish),), stream=stream)


CALLS: dict[str, list[str]] = {
    "an empty text in the same part": [event({"text": "", **LIST}, finish="STOP")],
    "a text in the same part": [event({"text": "Let me look.", **LIST}, finish="STOP")],
    "no arguments": [event({"functionCall": {"name": "list_directory"}}, finish="STOP")],
    "an empty part after it": [event(LIST), event({"text": ""}, finish="STOP")],
    "texts around it": [
        event({"text": "One"}),
        event(LIST),
        event({"text": "two."}, finish="STOP"),
    ],
}


WAYS = [(name, True) for name in CALLS] + [(name, False) for name in CALLS if len(CALLS[name]) == 1]


@pytest.mark.parametrize(("name", "streamed"), WAYS)
def test_a_call_with_something_beside_it_runs(cli: Cli, name: str, streamed: bool) -> None:
    odd = faulty(events=tuple(CALLS[name]), stream=streamed)
    with provider(cli, "gemini", [odd, "Done."]):
        done = run(cli)
    assert (done.code, done.result["result"]) == (0, "Done.")
    assert (done.of("retrying"), done.of("correction")) == ([], [])
    assert [line["is_error"] for line in done.of("tool_result")] == [False]
    said = [part.text for part in parts_of(cli, Text)]
    assert ("Let me look." in said) == (name == "a text in the same part")
    assert ("two." in said) == (name == "texts around it")


@pytest.mark.parametrize(
    "events", [(event(LIST), event(READ, finish="STOP")), (event(LIST, READ, finish="STOP"),)]
)
def test_calls_of_one_name_and_in_several_events_all_run(cli: Cli, events: tuple[str, ...]) -> None:
    with provider(cli, "gemini", [faulty(events=events), "Done."]):
        done = run(cli)
    assert [line["is_error"] for line in done.of("tool_result")] == [False, False]
    assert len({call.id for call in parts_of(cli, ToolCall)}) == 2


@pytest.mark.parametrize(
    ("thought", "text"),
    [({"thought": "I plan."}, "I plan."), ({"thought": "planning", "text": "I plan."}, "I plan.")],
)
@pytest.mark.parametrize("streamed", [True, False])
def test_a_thought_that_is_marked_by_a_text_is_one_and_hides_no_answer(
    cli: Cli, thought: Json, text: str, streamed: bool
) -> None:
    odd = reply(thought, {"text": "The answer."}, stream=streamed)
    with provider(cli, "gemini", [odd]):
        done = run(cli)
    assert (done.code, done.result["result"]) == (0, "The answer.")
    assert [part.text for part in parts_of(cli, Thought)] == [text]


def test_empty_text_at_the_end_of_an_answer_is_no_harm(cli: Cli) -> None:
    events = (event({"text": "All"}), event({"text": " of it"}), event({"text": ""}, finish="STOP"))
    with provider(cli, "gemini", [faulty(events=events)]):
        done = run(cli)
    assert (done.code, done.result["result"]) == (0, "All of it")


@pytest.mark.parametrize("parts", [(), ({"thought": True},), ({"thought": True, "text": "Hm."},)])
def test_a_reply_that_says_nothing_after_a_result_is_asked_for_again(
    cli: Cli, parts: tuple[Json, ...]
) -> None:
    with provider(cli, "gemini", [reply(LIST), reply(*parts), "Done."]) as server:
        done = run(cli)
    assert (done.code, done.result["result"], len(done.of("correction"))) == (0, "Done.", 1)
    assert len(server.requests) == 3


def test_a_comment_is_an_answer(cli: Cli) -> None:
    with provider(cli, "gemini", [reply({"text": "<!-- as you asked -->"})]):
        done = run(cli)
    assert (done.code, done.result["result"]) == (0, "<!-- as you asked -->")


def test_an_output_limit_before_the_first_word_is_named(cli: Cli) -> None:
    with provider(cli, "gemini", [reply(finish="MAX_TOKENS")] * 3):
        done = run(cli)
    assert (done.code, done.result["subtype"]) == (1, "error_empty_reply")
    assert "reached the output limit" in done.result["problem"]


def test_a_call_without_a_name_goes_back_and_is_not_run(cli: Cli) -> None:
    nameless = {"functionCall": {"args": {"path": "."}}}
    with provider(cli, "gemini", [reply(nameless), "Done."]):
        done = run(cli)
    assert (done.code, len(done.of("correction"))) == (0, 1)


@pytest.mark.parametrize(("code", "tries"), [(503, 2), (400, 1)])
def test_an_error_after_the_first_words_is_judged_by_its_code(
    cli: Cli, code: int, tries: int
) -> None:
    failed = json.dumps({"error": {"code": code, "message": "It broke."}})
    broken = faulty(events=(event({"text": "First"}), failed))
    with provider(cli, "gemini", [broken, "Whole."]) as server:
        done = run(cli)
    assert len(server.requests) == tries
    assert done.result["result"] == (
        "Whole." if tries == 2 else "the provider refused (400): It broke."
    )


def test_a_prompt_after_a_run_that_ended_at_a_result_is_no_part_of_the_result(cli: Cli) -> None:
    refused = faulty(status=400, body=b'{"error": {"message": "no"}}')
    with provider(cli, "gemini", [reply(LIST), refused]):
        assert run(cli).code == 1
    with provider(cli, "gemini", ["Done."]) as server:
        assert run(cli, "-c", "-p", "Are you done?").code == 0
    *_, result, prompt = server.requests[-1].json["contents"]
    assert [list(part) for part in result["parts"]] == [["functionResponse"]]
    assert prompt == {"role": "user", "parts": [{"text": "Are you done?"}]}

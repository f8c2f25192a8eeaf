"""Legal and usual forms of replies that strictness about damaged calls must not refuse."""

from __future__ import annotations

import json

import pytest

from recollect.testing import call, faulty
from tests.cli.provider import provider, run
from tests.cli.runner import Cli

ARGUMENTS = json.dumps({"file_path": "a.txt", "content": 'new "x"'})


def function(**fields: object) -> dict[str, object]:
    return {"index": 0, "id": "c1", "type": "function", "function": fields}


def delta(finish: str | None = None, **fields: object) -> dict[str, object]:
    return {"choices": [{"index": 0, "delta": fields, "finish_reason": finish}]}


WHOLE = [function(name="write_file", arguments=ARGUMENTS)]
FIRST = function(name="write_file", arguments=None, strict=False)
CALLS: dict[str, list[dict[str, object]]] = {
    "null arguments and another key first": [
        delta(tool_calls=[FIRST]),
        delta(tool_calls=[{"index": 0, "function": {"arguments": ARGUMENTS}}]),
        delta("tool_calls"),
    ],
    "everything again at the end": [
        delta(tool_calls=WHOLE),
        {
            "choices": [
                {
                    "index": 0,
                    "delta": {},
                    "message": {"role": "assistant", "tool_calls": WHOLE},
                    "finish_reason": "tool_calls",
                }
            ]
        },
    ],
    "an index in a string": [delta(tool_calls=[{**WHOLE[0], "index": "0"}]), delta("tool_calls")],
    "another choice with a call": [
        delta(tool_calls=WHOLE),
        {"choices": [{"index": 1, "delta": {"tool_calls": WHOLE}, "finish_reason": None}]},
        delta("tool_calls"),
    ],
}


@pytest.mark.parametrize("name", CALLS)
def test_a_call_in_an_odd_but_clear_form_runs(cli: Cli, name: str) -> None:
    reply = faulty(events=tuple(map(json.dumps, CALLS[name])))
    with provider(cli, "openai", [reply, "Done."]):
        done = run(cli, "-p", "Hi.", "--mode", "edit")
    assert (done.code, done.of("retrying"), done.of("correction")) == (0, [], [])
    assert (cli.project / "a.txt").read_text() == 'new "x"'


def test_a_tool_that_ran_at_the_provider_is_no_damage(cli: Cli) -> None:
    ran = [{"index": 0, "type": "search", "arguments": '{"q": 1}', "output": "o"}]
    reply = faulty(events=(json.dumps(delta("stop", content="all done", executed_tools=ran)),))
    with provider(cli, "openai", [reply]):
        done = run(cli)
    assert (done.code, done.result["result"], done.of("retrying")) == (0, "all done", [])


@pytest.mark.parametrize(
    "line", [b': {"status":"processing"}', b': ping "x"', b'id: "1"', b'event: "message"', b" "]
)
def test_lines_with_quotation_marks_beside_a_call_are_no_damage(cli: Cli, line: bytes) -> None:
    events = [delta(tool_calls=WHOLE), delta("tool_calls")]
    body = b"".join(b"data: " + json.dumps(e).encode() + b"\n\n" + line + b"\n\n" for e in events)
    reply = faulty(body=body + b"data: [DONE]\n\n", content_type="text/event-stream")
    with provider(cli, "openai", [reply, "Done."]):
        done = run(cli, "-p", "Hi.", "--mode", "edit")
    assert (done.code, done.of("retrying")) == (0, [])
    assert (cli.project / "a.txt").read_text() == 'new "x"'


def test_a_count_in_a_string_beside_a_call_is_no_damage(cli: Cli) -> None:
    call = {"functionCall": {"name": "write_file", "args": json.loads(ARGUMENTS)}}
    event = {
        "candidates": [{"content": {"parts": [call]}, "finishReason": "STOP"}],
        "usageMetadata": {"promptTokenCount": "5"},
    }
    with provider(cli, "gemini", [faulty(events=(json.dumps(event),)), "Done."]):
        done = run(cli, "-p", "Hi.", "--mode", "edit")
    assert (done.code, done.of("retrying")) == (0, [])
    assert (cli.project / "a.txt").exists()


@pytest.mark.parametrize(
    "before",
    [
        "I need a module (e.g. for parsing). Now I write it:",
        "We could name it e.g. `a.txt`. Now I write it:",
        "I'll add a file for helpers (e.g. parsing):",
    ],
)
def test_words_of_an_example_elsewhere_do_not_make_a_call_one(cli: Cli, before: str) -> None:
    call = f'{{"tool_call": {{"name": "write_file", "arguments": {ARGUMENTS}}}}}'
    reply = f"{before}\n\n```json\n{call}\n```"
    with provider(cli, "openai", [reply, "Done."], 'tools = "text"\n'):
        done = run(cli, "-p", "Hi.", "--mode", "edit")
    assert (done.code, len(done.of("tool_use"))) == (0, 1)
    assert (cli.project / "a.txt").read_text() == 'new "x"'


def test_a_tag_in_the_arguments_of_a_tagged_call_with_an_id_is_literal(cli: Cli) -> None:
    arguments = json.dumps({"file_path": "a.txt", "content": "<think>\nno\n"})
    reply = f'<tool_call>{{"id":"c","name":"write_file","arguments":{arguments}}}</tool_call>'
    with provider(cli, "openai", [reply, "Done."], 'tools = "text"\n'):
        done = run(cli, "-p", "Hi.", "--mode", "edit")
    assert (done.code, done.of("correction")) == (0, [])
    assert (cli.project / "a.txt").read_text() == "<think>\nno\n"


def test_a_glob_ignores_case_unless_it_is_asked_for_and_refuses_a_blank_pattern(cli: Cli) -> None:
    (cli.project / "README.MD").write_text("x")
    calls = (
        call("glob", "g1", pattern="*.md"),
        call("glob", "g2", pattern="*.md", case_sensitive=True),
        call("glob", "g3", pattern="  "),
    )
    with provider(cli, "openai", [faulty(*calls), "Done."]):
        done = run(cli)
    insensitive, sensitive, blank = done.of("tool_result")
    assert "README.MD" in insensitive["content"]
    assert "README.MD" not in sensitive["content"]
    assert blank["is_error"]


def test_a_pattern_that_is_the_path_of_a_file_means_that_file(cli: Cli) -> None:
    for name in ("app/[id]/(x)/page.tsx", "file[1].txt"):
        (cli.project / name).parent.mkdir(parents=True, exist_ok=True)
        (cli.project / name).write_text("a word")
    calls = (
        call("glob", "g1", pattern="app/[id]/(x)/page.tsx"),
        call("glob", "g2", pattern="file[1].txt"),
        call("search_file_content", "s1", pattern="word", include="file[1].txt"),
    )
    with provider(cli, "openai", [faulty(*calls), "Done."]):
        done = run(cli)
    page, file, found = (line["content"] for line in done.of("tool_result"))
    assert f"{cli.project}/app/[id]/(x)/page.tsx" in page
    assert f"{cli.project}/file[1].txt" in file
    assert "1→a word" in found

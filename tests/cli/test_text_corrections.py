"""Calls in text that cannot be run: told, asked again, and never an answer."""

from __future__ import annotations

import pytest

from recollect.entries import Text
from recollect.profiles import WireName
from recollect.testing import ProviderLine, faulty
from tests.cli.provider import FORMATS, provider, run
from tests.cli.runner import Cli

IN_TEXT = 'tools = "text"\n'
FENCE = "```json\n{}\n```"
CALL = (
    '{"tool_call": {"name": "write_file", "arguments": {"file_path": "a.txt", "content": "new"}}}'
)
SOUND = FENCE.replace("{}", CALL)
LIMIT = {"gemini": "MAX_TOKENS", "openai": "length", "anthropic": "max_tokens"}


def wrong(arguments: str, name: str = "write_file") -> str:
    return FENCE.replace("{}", f'{{"tool_call": {{"name": "{name}", "arguments": {arguments}}}}}')


@pytest.mark.parametrize("wire", FORMATS)
@pytest.mark.parametrize(
    ("reply", "told"),
    [
        (wrong('{"file_path": "a.txt", "content": ,,,]]'), "write_file"),
        (wrong('{"file_path": "a.txt", "content": "one", "content": "two"}'), "content"),
        (wrong('{"file_path": "a.txt"}'), "content"),
        (wrong('{"x": 1}', "no_tool"), "there is no tool"),
        ('{tool_call: {name: "write_file", arguments: {file_path: "a.txt"}}}', "not valid JSON"),
        ("{“tool_call”: {“name”: “write_file”, “arguments”: {}}}", "not valid JSON"),
        (FENCE.replace("{}", '{"tool_calls": [' + CALL + "]}"), "not valid JSON"),
        ('"tool_call": {"name": "write_file", "arguments": {}}}', "not valid JSON"),
        ("<function=no_tool>\n<parameter=x>\n1\n</parameter>\n</function>", "there is no tool"),
    ],
)
def test_a_broken_call_in_text_is_told_and_then_written_again(
    cli: Cli, wire: WireName, reply: str, told: str
) -> None:
    (cli.project / "a.txt").write_text("kept")
    script: list[ProviderLine] = [reply, SOUND, "It is done."]
    with provider(cli, wire, script, IN_TEXT) as server:
        done = run(cli, "-p", "Hi.", "--mode", "edit")
    assert (done.code, done.result["result"]) == (0, "It is done.")
    ((problem,),) = (line["problems"] for line in done.of("correction"))
    assert told in problem
    assert b"looked like a call" in server.requests[1].body
    assert (cli.project / "a.txt").read_text() == "new"


@pytest.mark.parametrize("wire", FORMATS)
def test_a_call_in_text_that_the_output_limit_cut_is_not_run(cli: Cli, wire: WireName) -> None:
    (cli.project / "a.txt").write_text("kept")
    for at in (20, 60, len(CALL) - 20, len(CALL) - 4, len(CALL) - 1):
        cut = faulty(Text(text="I write it.\n```json\n" + CALL[:at]), finish=LIMIT[wire])
        with provider(cli, wire, [cut, "I stop here."], IN_TEXT):
            done = run(cli, "-p", "Hi.", "--mode", "edit")
        assert (done.code, done.result["result"]) == (0, "I stop here."), at
        assert len(done.of("correction")) == 1, at
        assert (cli.project / "a.txt").read_text() == "kept"


def test_four_broken_calls_in_a_row_are_an_error_and_no_answer(cli: Cli) -> None:
    bad = wrong('{"file_path": "a.txt", "content": ,,,]]')
    with provider(cli, "openai", [bad] * 4, IN_TEXT):
        done = run(cli, "-p", "Hi.", "--mode", "edit")
    assert (done.code, done.result["subtype"], done.result["result"]) == (1, "error_bad_calls", "")
    assert len(done.of("correction")) == 3


@pytest.mark.parametrize(
    "text",
    [
        f"<think>I could write it:\n{SOUND}\n</think>\nNo, I leave it.",
        f"A call looks like this, for example:\n\n{SOUND}\n\nThat is all.",
        f"This is how:\n\n    {CALL}\n\nThat is all.",
        "In Python, for example:\n```python\n{tool_call: {1: 2}}\n```",
        'Write it so, for example:\n```json\n{tool_call: {"name": "x"}}\n```',
    ],
)
def test_what_is_thought_or_quoted_is_no_call(cli: Cli, text: str) -> None:
    with provider(cli, "openai", [text], IN_TEXT):
        done = run(cli, "-p", "Hi.", "--mode", "edit")
    assert (done.code, done.of("tool_use"), done.of("correction")) == (0, [], [])
    assert not (cli.project / "a.txt").exists()

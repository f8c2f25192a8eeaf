"""A model that calls tools in its text: what it did not write completely does no harm."""

from __future__ import annotations

import json

import pytest

from recollect.entries import Message, Text, ToolCall
from tests.cli.model_server import ENV, WIRE, parts_of, path, reply, server
from tests.cli.runner import Cli
from tests.models.server import http

SETTINGS = 'tools = "text"\n[permissions]\nmode = "edit"\n'
KEPT = "three\nlines of\nwork\n"
WRITE = '{"tool_call": {"name": "write_file", "arguments": {"file_path": "a.txt", "content": '
MISSING = WRITE + ",,,]]}}}"
WHOLE = WRITE + '"new\\n"}}}'


def answered(text: str, finish: str) -> bytes:
    made = Message(role="model", parts=(Text(text=text),), finish=finish)
    return http(b"".join(WIRE.encode_stream(made)))


def run(cli: Cli, *answers: bytes) -> str:
    """What a.txt holds after the run."""
    file = cli.project / "a.txt"
    file.write_text(KEPT)
    with server(cli, *answers, reply(Text(text="I stop here.")), more=SETTINGS):
        cli("-p", "Improve a.txt.", env=ENV)
    return file.read_text()


def problems(cli: Cli) -> list[str]:
    bodies = [entry.body for entry in path(cli) if isinstance(entry.body, Message)]
    extras = [json.loads(body.extra) for body in bodies if body.extra]
    return [line for extra in extras for line in extra.get("tool_call_problems", ())]


def test_a_call_in_text_runs(cli: Cli) -> None:
    assert run(cli, answered(f"I write.\n\n```json\n{WHOLE}\n```\n", "stop")) == "new\n"
    assert problems(cli) == []


@pytest.mark.parametrize(
    ("text", "finish", "why"),
    [
        (MISSING, "stop", "content has no value before ',,,]]}'"),
        (f"```json\n{MISSING}\n```", "stop", "content has no value before ',,,]]}'"),
        (WRITE + '"three\\nli', "length", "it was cut off before its end"),
        (f"```json\n{WRITE}" + '"three\\nli', "length", "it was cut off before its end"),
        (WRITE + '"three\\nli', "stop", "a string without a closing quotation mark"),
        (WRITE + '"three"', "length", "it was cut off before its end"),
        (WRITE + '"a", "content": "b"}}}', "stop", "the key 'content' has two values"),
        (
            "<function=write_file>\n<parameter=file_path>a.txt</parameter>\n<parameter=content>\nth",
            "length",
            "it was cut off before its end",
        ),
        (
            '{"tool_call": {"name": "write_file", "arguments": {"file_path": "a.txt"}}}',
            "stop",
            "'content'",
        ),
        (WHOLE.replace("write_file", "write"), "stop", "there is no tool 'write'"),
    ],
)
def test_a_file_keeps_its_content_if_the_new_one_was_not_completely_written(
    cli: Cli, text: str, finish: str, why: str
) -> None:
    assert run(cli, answered(text, finish)) == KEPT
    assert parts_of(cli, ToolCall) == []
    (problem,) = problems(cli)
    assert why in problem


@pytest.mark.parametrize(
    "text",
    [
        f"<think>\nI could write\n{WHOLE}\n</think>\n\nBut it is fine as it is.",
        f"I could write\n{WHOLE}\n</think>\n\nBut it is fine as it is.",
        f"It is fine. This is how I would call the tool:\n\n    {WHOLE}\n",
        f"It is fine. You could write, for example:\n\n```json\n{WHOLE}\n```\n",
    ],
)
def test_a_call_that_is_only_thought_or_shown_does_not_run(cli: Cli, text: str) -> None:
    assert run(cli, answered(text, "stop")) == KEPT
    assert parts_of(cli, ToolCall) == []
    assert problems(cli) == []

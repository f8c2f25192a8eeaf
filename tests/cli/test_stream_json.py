"""docs/stream-json.md says exactly what `--output-format stream-json` prints."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from recollect.entries import Text, Usage
from recollect.runtime.run_documents import LINE_TYPES
from recollect.testing import call
from tests.cli.model_server import ENV, reply, server
from tests.cli.runner import Cli
from tests.models.server import HELLO, Answer, http, refused

PAGE = (Path(__file__).parents[2] / "docs" / "stream-json.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^## `(.+?)`\n(.*?)(?=^## |\Z)", PAGE, re.M | re.S))
FAILED = "result, failed"
LOOK = reply(call("list_directory", id="call_1"))
ANSWER = reply(Text(text="It returns 7."), usage=Usage(input=1_204, output=9, total=1_213))
BUSY = refused("503 Service Unavailable", "overloaded")
OVERFLOW = refused("400 Bad Request", "the maximum context length is 4096 tokens, not 5321")
LONG = "many words " * 800  # some 2,200 tokens


def stream(cli: Cli, *answers: Answer, line: tuple[str, ...] = ("-p", "Hi.")) -> list[Any]:
    with server(cli, *answers):
        done = cli(*line, "--output-format", "stream-json", env=ENV)
    return [json.loads(each) for each in done.out.splitlines()]


def work(cli: Cli) -> list[Any]:
    (cli.project / "limiter.py").write_text("def refill():\n    return 7\n")
    asks = reply(
        Text(text="I look."),
        call("read_file", id="call_1", absolute_path="limiter.py"),
        call("run_shell_command", id="call_2", command="pytest -q"),
        usage=Usage(input=1_100, output=31, total=1_131),
    )
    return stream(cli, asks, ANSWER, line=("-p", "What does refill return?"))


def every_line(cli: Cli) -> list[Any]:
    lines = work(cli)
    lines += stream(cli, BUSY, http(HELLO))
    lines += stream(cli, LOOK)  # for ever: a loop
    lines += stream(cli, reply(call("no_tool", id="call_3")), http(HELLO))
    lines += stream(cli, refused("401 Unauthorized", "bad key"))
    lines += stream(cli, http(HELLO), line=("-p", LONG))
    return lines + stream(cli, OVERFLOW, http(HELLO), line=("-c", "-p", LONG))


def section_of(line: dict[str, Any]) -> str:
    failed = line["type"] == "result" and line["subtype"] in ("error", "interrupted")
    return FAILED if failed else str(line["type"])


def fields(section: str) -> list[str]:
    return re.findall(r"^\| `(\w+)` \|", SECTIONS[section], re.M)


def example(section: str) -> Any:
    (text,) = re.findall(r"```json\n(.*?)```", SECTIONS[section], re.S)
    return json.loads(text)


def test_every_line_is_of_a_documented_type_and_has_the_documented_fields(cli: Cli) -> None:
    lines = every_line(cli)
    assert {section_of(line) for line in lines} == set(SECTIONS)
    for line in lines:
        assert list(line) == ["type", *fields(section_of(line))], line


def test_the_example_of_each_type_has_its_fields(cli: Cli) -> None:
    real = {section_of(line): line for line in every_line(cli)}
    for section in SECTIONS:
        shown = example(section)
        assert section_of(shown) == section
        assert list(shown) == ["type", *fields(section)]
        assert {key: type(value) for key, value in shown.items() if value is not None} == {
            key: type(value) for key, value in real[section].items() if shown[key] is not None
        }


def test_every_type_that_the_program_can_print_is_documented() -> None:
    assert {*LINE_TYPES, "result"} == set(SECTIONS) - {FAILED}


def test_the_first_line_says_what_answers_where_and_with_what(cli: Cli) -> None:
    (cli.project / "sub").mkdir()
    with server(cli, http(HELLO)):
        line = ("-p", "Hi.", "--mode", "edit", "--output-format", "stream-json")
        done = cli.ok(*line, env=ENV, cwd=cli.project / "sub")
    first, *_, last = map(json.loads, done.out.splitlines())
    assert (first["type"], first["model"], first["permission_mode"]) == ("init", "mine", "edit")
    assert first["cwd"] == str(cli.project / "sub")
    assert {"read_file", "replace", "run_shell_command"} <= set(first["tools"])
    assert first["session_id"] == last["session_id"]


def test_the_result_has_turns_usage_refusals_and_cost(cli: Cli) -> None:
    last = work(cli)[-1]
    assert (last["subtype"], last["num_turns"], last["total_cost_usd"]) == ("success", 2, None)
    assert last["usage"] | {"input": 2_304, "output": 40} == last["usage"]
    (denial,) = last["permission_denials"]
    assert list(denial) == re.findall(r"^\| `permission_denials\[\]\.(\w+)`", PAGE, re.M)
    assert list(last["usage"]) == re.findall(r"^\| `usage\.(\w+)`", PAGE, re.M)

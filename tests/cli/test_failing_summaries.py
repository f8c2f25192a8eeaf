"""`recollect -p` when the model that summarizes tool output fails: the run goes on, shortened."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from recollect.agent.loop import Agent
from recollect.agent.tool_calls import CallPermission
from recollect.entries import Elide, Message, Text, ToolCall, ToolResult, handle_of
from recollect.testing import ScriptedModel, call, says
from recollect.tokens import ESTIMATE, counter_for
from recollect.tools.tool import Tool, tool
from tests.cli.model_server import ENV, NAME, messages, outputs, parts_of, path, reply, server
from tests.cli.runner import Cli
from tests.models.server import HELLO, Answer, break_off, http, refused

LIMIT = 500
ERROR = "ValueError: the boiler is cold"
COMMAND = f"seq 2500; echo '{ERROR}'; seq 2500 5000"
MORE = (
    '[permissions]\nallow = ["seq *", "echo *"]\n'
    f'[context]\nsummarize_tools = ["run_shell_command"]\nsummary_tokens = {LIMIT}\n'
)
RUN = reply(call("run_shell_command", id="a", command=COMMAND))
FAILURES: dict[str, Answer] = {
    "500": refused("500 Oops", "the boiler is cold"),
    "400": refused("400 Bad", "no"),
    "too long": refused("400 Bad", "maximum context length is 2000 tokens"),
    "hangs up": break_off,
    "nothing": reply(Text(text="")),
    "blank": reply(Text(text=" \n")),
    "no prose": reply(Text(text=f"<error>{ERROR}</error>")),
    "not HTTP": http(b"<html>busy</html>", kind="text/html"),
}


def never_retry(cli: Cli) -> None:
    file = cli.home / "settings.toml"
    file.write_text(file.read_text().replace("retries = 1\n", "retries = 0\n"))


@pytest.mark.parametrize("failure", FAILURES)
def test_a_failing_summary_neither_ends_the_run_nor_sends_everything(
    cli: Cli, failure: str
) -> None:
    with server(cli, RUN, FAILURES[failure], http(HELLO), more=MORE) as on:
        never_retry(cli)
        done = cli.ok("-p", "Heat it.", env=ENV)
    assert (done.out, len(on.asked)) == ("hello\n", 3)
    (output,) = outputs(on)
    assert counter_for(NAME).text(output) <= LIMIT
    assert f"<error>\n{ERROR}\n</error>" in output
    assert "\n5000\n[exit code 0 " in output
    (edit,) = [entry.body for entry in path(cli) if isinstance(entry.body, Elide)]
    assert edit.rule == "oversized"
    assert "not summarized: the model " in edit.reason
    assert handle_of(edit.items[0].entry) in output
    (kept,) = parts_of(cli, ToolResult)
    assert "\n1234\n" in kept.content[0].text


def test_what_a_summarizer_is_sent_fits_its_window(cli: Cli) -> None:
    summary = reply(Text(text="Numbers."))
    with server(cli, RUN, summary, http(HELLO), more=MORE) as on:
        cli.ok("-p", "Heat it.", env=ENV)
    sent = sum(counter_for(NAME).text(str(message["content"])) for message in messages(on, 1))
    assert sent < 9_000 // 2 + 500


# --- a function of a program's own ---------------------------------------------------------------


@tool
def measure() -> str:
    """Measure everything."""
    return "\n".join(f"value {n}" for n in range(5_000))


async def allow_everything(_: Tool, __: ToolCall) -> CallPermission:
    return CallPermission()


class Broken:
    """A summarizer that raises what no model of ours raises."""

    async def __call__(self, _: Sequence[Message], __: str) -> str:
        raise ValueError("no such thing")


def test_whatever_a_summarizer_raises_the_run_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RECOLLECT_HOME", str(tmp_path))
    scripted = ScriptedModel([says(call("measure", id="a")), "All measured."])
    agent = Agent(
        model=scripted,
        tools=(measure,),
        summarizer=Broken(),
        summarized_tools=("measure",),
        permission_check=allow_everything,
    )
    done = asyncio.run(agent.run("Measure."))
    assert done.text == "All measured."
    sent = [p for m in scripted.requests[-1].messages for p in m.parts]
    (shown,) = [part for part in sent if isinstance(part, ToolResult)]
    assert ESTIMATE.part(shown) < 2_100

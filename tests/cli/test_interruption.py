"""`recollect -p` when it is interrupted, by the person or by whoever started it."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from recollect.agent.tool_calls import UNKNOWN_OUTCOME
from recollect.entries import ToolCall, ToolResult
from recollect.testing import call
from tests.cli.runner import COMMAND, Cli
from tests.cli.test_ask import ENV, _stalls, server
from tests.cli.test_headless import reply
from tests.cli.test_run import heard_in, hearing, hook, outputs, parts_of, script, texts
from tests.models.server import HELLO, http


def started(cli: Cli, prompt: str, output: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [*COMMAND, "-p", prompt, "--output-format", output],
        cwd=cli.project,
        env=cli.env(ENV),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def interrupted(
    cli: Cli, until: Callable[[dict[str, Any]], bool], by: signal.Signals = signal.SIGINT
) -> tuple[list[str], float]:
    """Stopped once this event came: the command that goes on, and the seconds until the end."""
    process = started(cli, "Look into a.txt.", "stream-json")
    assert process.stdout is not None
    assert any(until(json.loads(line)) for line in process.stdout)
    process.send_signal(by)
    began = time.monotonic()
    out, err = process.communicate(timeout=30)
    took = time.monotonic() - began
    assert process.returncode == 130, err
    assert b"Traceback" not in err
    result = json.loads(out.splitlines()[-1])
    assert (result["type"], result["subtype"], result["is_error"]) == (
        "result",
        "interrupted",
        True,
    )
    last = err.decode().splitlines()[-1]
    assert result["session_id"].startswith(last.split()[4])
    assert last.startswith("stopped · `recollect -r ")
    assert last.endswith(' -p "…"` goes on')
    return last.split("`")[1].split()[1:3], took


def test_ctrl_c_tells_hooks_within_a_second_and_the_session_goes_on(
    cli: Cli, tmp_path: Path
) -> None:
    told, heard = hearing(tmp_path)
    (cli.project / "a.txt").write_text("seven\n")
    slow = script(tmp_path, "slow.sh", '[ -e "$0.once" ] || { touch "$0.once"; sleep 30; }\n')
    hooks = hook("SessionEnd", told) + hook("SessionEnd", slow)
    asks = reply(call("read_file", id="a", absolute_path="a.txt"))
    with server(cli, asks, _stalls, http(HELLO), more=hooks) as on:
        goes_on, took = interrupted(cli, lambda event: event.get("text") == "hel")
        assert took < 5, "a hook of 30 seconds was waited for"
        assert [(name, data["reason"]) for name, data in heard_in(heard)] == [
            ("SessionEnd", "interrupted")
        ]
        done = cli.ok(*goes_on, "-p", "Go on.", env=ENV)
    said = texts(on)
    assert done.out == "hello\n"
    assert [said.count(text) for text in ("Look into a.txt.", "Go on.")] == [1, 1]
    assert "seven" in outputs(on)[0]
    assert "hel" in said  # what had arrived of the reply
    assert len(parts_of(cli, ToolResult)) == len(parts_of(cli, ToolCall)) == 1


@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGTERM])
def test_a_running_command_is_ended_too_and_nobody_runs_it_again(
    cli: Cli, by: signal.Signals
) -> None:
    run = reply(call("run_shell_command", id="a", command="sleep 25"))
    with server(cli, run, http(HELLO), more='[permissions]\nallow = ["sleep *"]\n') as on:
        goes_on, took = interrupted(cli, lambda event: event["type"] == "call", by)
        assert took < 10, "a command of 25 seconds was waited for"
        cli.ok(*goes_on, "-p", "Go on.", env=ENV)
    assert len(on.asked) == 2
    (output,) = outputs(on)
    assert UNKNOWN_OUTCOME in output


def test_whoever_asked_for_one_document_gets_one_when_it_is_stopped(cli: Cli) -> None:
    with server(cli, _stalls) as on:
        process = started(cli, "Hi.", "json")
        while not on.asked:
            time.sleep(0.01)
        process.terminate()
        out, _ = process.communicate(timeout=30)
    assert process.returncode == 130
    assert json.loads(out)["subtype"] == "interrupted"

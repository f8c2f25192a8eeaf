"""`recollect -p` interrupted by Ctrl-C or by SIGTERM."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from recollect.agent.tool_calls import UNKNOWN_OUTCOME
from recollect.entries import ToolCall, ToolResult
from recollect.testing import call
from tests.cli.model_server import (
    ENV,
    hook,
    outputs,
    parts_of,
    recorded,
    recording_hook,
    reply,
    script,
    server,
    stall,
    texts,
)
from tests.cli.runner import PATIENCE, Cli
from tests.models.server import HELLO, http

ENDLESS = 10 * PATIENCE  # seconds: a run that waited for it would fail the test


def interrupt(
    cli: Cli, until: Callable[[dict[str, Any]], bool], by: signal.Signals = signal.SIGINT
) -> list[str]:
    """Interrupt a run once this event came; the options of the command that continues it."""
    process = cli.start("-p", "Look into a.txt.", "--output-format", "stream-json", env=ENV)
    assert process.stdout is not None
    assert any(until(json.loads(line)) for line in process.stdout)
    process.send_signal(by)
    out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130, err
    assert b"Traceback" not in err
    result = json.loads(out.splitlines()[-1])
    assert (result["type"], result["subtype"], result["is_error"]) == (
        "result",
        "interrupted",
        True,
    )
    last = err.decode().splitlines()[-1]
    assert result["session_id"].endswith(last.split()[4])
    assert last.startswith("stopped · `recollect -r ")
    assert last.endswith(' -p "…"` continues')
    return last.split("`")[1].split()[1:3]


def test_ctrl_c_notifies_hooks_without_waiting_for_slow_ones_and_the_session_continues(
    cli: Cli, tmp_path: Path
) -> None:
    hear, heard = recording_hook(tmp_path)
    (cli.project / "a.txt").write_text("seven\n")
    once = f'[ -e "$0.once" ] || {{ touch "$0.once"; sleep {ENDLESS}; }}\n'
    slow = script(tmp_path, "slow.sh", once)
    hooks = hook("SessionEnd", hear) + hook("SessionEnd", slow)
    asks = reply(call("read_file", id="a", absolute_path="a.txt"))
    with server(cli, asks, stall, http(HELLO), more=hooks) as on:
        resume = interrupt(cli, lambda event: event.get("text") == "hel")
        assert [(name, data["reason"]) for name, data in recorded(heard)] == [
            ("SessionEnd", "interrupted")
        ]
        done = cli.ok(*resume, "-p", "Go on.", env=ENV)
    sent = texts(on)
    assert done.out == "hello\n"
    assert [sent.count(text) for text in ("Look into a.txt.", "Go on.")] == [1, 1]
    assert "seven" in outputs(on)[0]
    assert "hel" in sent  # as much of the reply as had arrived
    assert len(parts_of(cli, ToolResult)) == len(parts_of(cli, ToolCall)) == 1


@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGTERM])
def test_a_running_command_is_ended_too_and_not_run_again(cli: Cli, by: signal.Signals) -> None:
    run = reply(call("run_shell_command", id="a", command=f"touch begun; sleep {ENDLESS}"))
    allowed = '[permissions]\nallow = ["sleep *", "touch begun"]\n'
    with server(cli, run, http(HELLO), more=allowed) as on:
        resume = interrupt(cli, lambda event: _runs(cli.project / "begun", event), by)
        cli.ok(*resume, "-p", "Go on.", env=ENV)
    assert len(on.asked) == 2
    (output,) = outputs(on)
    assert UNKNOWN_OUTCOME in output


def _runs(file: Path, event: dict[str, Any]) -> bool:
    """Whether the event is the command's; if so, once its file is there."""
    if event["type"] != "tool_use":
        return False
    ends = time.monotonic() + PATIENCE
    while not file.exists():
        assert time.monotonic() < ends, "the command did not begin"
        time.sleep(0.01)
    return True


def test_an_interrupted_run_still_prints_its_one_document(cli: Cli) -> None:
    with server(cli, stall) as on:
        process = cli.start("-p", "Hi.", "--output-format", "json", env=ENV)
        while not on.asked:
            time.sleep(0.01)
        process.terminate()
        out, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert json.loads(out)["subtype"] == "interrupted"

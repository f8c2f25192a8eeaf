"""Hooks that are commands: what they are given, what they answer, and how they fail."""

from __future__ import annotations

import asyncio
import json
import time
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.agent.hooks import CommandHook, Hooks
from recollect.hook_events import (
    AfterTool,
    BeforeTool,
    HookDecision,
)
from tests.agent.harness import is_gone
from tests.agent.hook_builders import CALL, PROMPT, fired, prints, program, shell


def test_a_command_gets_the_event_on_its_standard_input(tmp_path: Path) -> None:
    hook = shell("cat > stdin.json")
    event = AfterTool(
        session="s1", time=1_700_000_000_123, tool="t", arguments='{"a":[1]}', output="\ud800é"
    )

    async def transcript(session: str) -> str:
        return f"/x/{session}.json"

    assert fired(hook, event=event, cwd=tmp_path, transcript=transcript) == HookDecision()
    assert json.loads((tmp_path / "stdin.json").read_bytes()) == {
        "session_id": "s1",
        "transcript_path": "/x/s1.json",
        "cwd": str(tmp_path),
        "hook_event_name": "AfterTool",
        "timestamp": "2023-11-14T22:13:20.123+00:00",
        "tool_name": "t",
        "tool_use_id": "",
        "tool_input": {"a": [1]},
        "data": {
            "tool": "t",
            "call": "",
            "arguments": {"a": [1]},
            "output": "\ud800é",
            "is_error": False,
            "duration": 0.0,
        },
    }


@pytest.mark.parametrize("code", [1, 3, 127, 255])
def test_any_other_exit_code_causes_a_warning_with_stderr(code: int) -> None:
    made = fired(shell(f'echo \'{{"additionalContext":"x"}}\'; echo oops >&2; exit {code}'))
    assert made == HookDecision(warnings=(f"hook hook: exit code {code}: oops",))


def test_a_command_that_dies_or_cannot_start_causes_a_warning() -> None:
    assert "signal 9" in fired(shell("kill -9 $$")).warnings[0]
    assert "cannot be started" in fired(CommandHook(command=("/no/such/hook",))).warnings[0]
    assert "cannot be started" in fired(CommandHook(command=("a\0b",))).warnings[0]
    assert "cannot be started" in fired(shell("true"), cwd=Path("/no/such/place")).warnings[0]


def test_a_refusal_without_a_reason_gets_one() -> None:
    assert fired(shell("exit 2")).reason == "hook blocked it without a reason"


def test_a_refusal_can_be_printed_as_well() -> None:
    made = fired(prints({"decision": "deny", "reason": "frozen"}))
    assert (made.allowed, made.reason) == (False, "frozen")


def test_plain_text_on_stdout_is_ignored() -> None:
    assert fired() == fired(shell("echo all is well")) == HookDecision()


@pytest.mark.parametrize(
    "printed",
    [
        "{",
        '{"additionalContext": 7}',
        '{"arguments": "rm"}',
        '{"additionalContext": "a", "additionalContext": "b"}',
        '{"additionalContext": NaN}',
        '{"x": ' + "[" * 60_000 + "]" * 60_000 + "}",
        '{"x": ' + "[" * 150 + "]" * 150 + "}",
        '{"x": ' + "9" * 50_000 + "}",
    ],
)
def test_hostile_output_causes_a_warning_and_is_no_consent(printed: str, tmp_path: Path) -> None:
    (tmp_path / "printed").write_text(printed)
    made = fired(shell("cat printed"), event=CALL, cwd=tmp_path)
    assert made.warnings
    assert made == HookDecision(ask=made.ask, reason=made.reason, warnings=made.warnings)
    readable = printed == '{"additionalContext": 7}'  # the answer is one, only its text is not
    assert made.ask != readable


@given(st.binary(max_size=200))
def test_no_output_makes_it_fail(data: bytes) -> None:
    made = fired(program(f"import os; os.write(1, {b'{' + data!r})"))
    assert made.allowed
    assert len(made.warnings) <= 1


def test_endless_output_is_discarded_and_the_timeout_still_fires() -> None:
    started = time.monotonic()
    tracemalloc.start()
    made = fired(shell("yes '{'", timeout=1.0))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert "stopped after 1 seconds" in made.warnings[0]
    assert time.monotonic() - started < 60
    assert peak < 20_000_000


def test_output_over_the_limit_is_no_answer() -> None:
    source = "import sys; sys.stdout.write('{\"additionalContext\":\"' + 'x' * 9_000_000 + '\"}')"
    made = fired(program(source))
    assert made.additional_context == ""
    assert "8,000,000" in made.warnings[0]


def test_the_whole_process_group_is_killed_after_the_timeout(tmp_path: Path) -> None:
    child = tmp_path / "child"
    for seconds in (0.5, 5, 50):  # a busy machine may need longer to start the child
        hook = shell("sleep 600 & echo $! > started; mv started child; sleep 600", timeout=seconds)
        assert f"stopped after {seconds:g} seconds" in fired(hook, cwd=tmp_path).warnings[0]
        if child.exists():
            break
    assert is_gone(int(child.read_text()))


def test_a_cancelled_agent_leaves_no_command_behind(tmp_path: Path) -> None:
    async def story() -> None:
        hooks = Hooks([shell("echo $$ > pid; sleep 600")], cwd=tmp_path)
        firing = asyncio.ensure_future(hooks.fire(PROMPT))
        while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text().strip():
            await asyncio.sleep(0.02)
        firing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await firing

    asyncio.run(story())
    assert is_gone(int((tmp_path / "pid").read_text()))


def test_a_background_child_does_not_delay_the_answer() -> None:
    started = time.monotonic()
    made = fired(shell('sleep 90 & echo \'{"additionalContext":"quick"}\''))
    assert made.additional_context == "quick"
    assert time.monotonic() - started < 60


def test_a_command_need_not_read_its_standard_input() -> None:
    event = BeforeTool(session="s", time=1, tool="t", arguments=json.dumps({"a": "x" * 2_000_000}))
    assert fired(shell("exit 0"), event=event) == HookDecision()


def test_no_file_descriptor_is_left_open() -> None:
    fired(shell("true"))
    before = len(list(Path("/proc/self/fd").iterdir()))
    for hook in (shell("true"), shell("sleep 600", timeout=0.1), CommandHook(command=("/no",))):
        fired(hook)
    assert len(list(Path("/proc/self/fd").iterdir())) == before

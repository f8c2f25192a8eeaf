from __future__ import annotations

import asyncio
import contextlib
import functools
import json
import sys
import threading
import time
import tracemalloc
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.agent.hook_runner import MAX_CONTEXT
from recollect.agent.hooks import CommandHook, Hook, Hooks, PythonHook
from recollect.errors import BadInput
from recollect.hook_events import (
    AfterTool,
    BeforeAgent,
    BeforeTool,
    HookDecision,
    HookEvent,
    PreCompress,
    SessionStart,
)
from tests.agent.harness import is_gone

PROMPT = BeforeAgent(session="s1", time=1_700_000_000_000, prompt="fix it")
CALL = BeforeTool(session="s1", time=1, tool="run", call="c1", arguments='{"command":"ls"}')


def fired(
    *hooks: Hook | Callable[[HookEvent], Any], event: HookEvent = PROMPT, **given: Any
) -> HookDecision:
    return asyncio.run(Hooks(hooks, **given).fire(event))


def program(source: str) -> CommandHook:
    return CommandHook(command=(sys.executable, "-S", "-c", source), name="hook")


def shell(source: str, **given: Any) -> CommandHook:
    return CommandHook(command=("sh", "-c", source), name="hook", **given)


def prints(value: object) -> CommandHook:
    return shell(f"cat <<'END'\n{value if isinstance(value, str) else json.dumps(value)}\nEND")


# --- both kinds --------------------------------------------------------------------------------


def test_contexts_of_callables_and_commands_are_joined_in_order() -> None:
    async def second(event: HookEvent) -> HookDecision:
        return HookDecision(additional_context="two")

    made = fired(lambda event: "one", second, prints({"additionalContext": "three"}))
    assert made == HookDecision(additional_context="one\n\ntwo\n\nthree")


def test_the_first_refusal_wins_and_later_hooks_do_not_run() -> None:
    later: list[str] = []
    made = fired(
        lambda event: "before",
        shell("echo not today >&2; exit 2"),
        lambda event: later.append("after"),
    )
    assert (made.allowed, made.reason, made.additional_context) == (False, "not today", "before")
    assert later == []


def test_a_hook_receives_only_the_events_it_names() -> None:
    received: list[HookEvent] = []
    hook = PythonHook(call=received.append, on=("BeforeTool", "PreCompress"))
    for event in (PROMPT, CALL, PreCompress(session="s1", time=2)):
        fired(hook, event=event)
    assert received == [CALL, PreCompress(session="s1", time=2)]


def test_the_next_hook_sees_changed_arguments() -> None:
    seen: list[HookEvent] = []
    made = fired(
        prints({"arguments": {"command": "ls -l"}}),
        seen.append,
        lambda event: {"arguments": {"command": "ls -la"}},
        event=CALL,
    )
    assert [event.arguments for event in seen if isinstance(event, BeforeTool)] == [
        '{"command":"ls -l"}'
    ]
    assert made.arguments == '{"command":"ls -la"}'


def test_arguments_can_only_be_changed_before_a_tool() -> None:
    made = fired(prints({"arguments": {}}))
    assert (made.arguments, made.allowed) == (None, True)
    assert "only BeforeTool" in made.warnings[0]


def test_text_to_keep_reaches_the_compaction() -> None:
    event = PreCompress(session="s1", time=1)
    made = fired(
        prints({"keep": "the port is 8080"}), lambda e: HookDecision(keep="b"), event=event
    )
    assert made.keep == "the port is 8080\n\nb"


def test_hooks_of_a_project_run_only_in_a_trusted_folder() -> None:
    hooks = (
        shell("exit 2", of_project=True),
        PythonHook(call=lambda event: "mine", of_project=False),
    )
    start = SessionStart(session="s1", time=1)
    assert not fired(*hooks, event=start, trusted=True).allowed
    made = fired(*hooks, event=start)
    assert (made.allowed, made.additional_context) == (True, "mine")
    assert "not trusted" in made.warnings[0]
    assert fired(*hooks).warnings == ()  # said once, when the session starts


def test_unknown_events_and_empty_commands_are_refused() -> None:
    with pytest.raises(BadInput, match="BeforeTol"):
        Hooks([shell("true", on=("BeforeTol",))])
    with pytest.raises(BadInput, match="empty"):
        Hooks([CommandHook(command=())])


def test_contexts_together_are_bounded_and_cleaned() -> None:
    made = fired(*[lambda event: "\x1b[31mred\u202e\U000e0041" + "x" * 15_000] * 3)
    assert len(made.additional_context) == MAX_CONTEXT
    assert made.additional_context.startswith("redxx")
    assert made.additional_context.endswith("…")


# --- callables ---------------------------------------------------------------------------------


def _raises(error: BaseException) -> Callable[[HookEvent], None]:
    def hook(event: HookEvent) -> None:
        raise error

    return hook


@pytest.mark.parametrize(
    "error",
    [ValueError("no"), SystemExit(2), StopIteration("no"), RecursionError(), KeyError("\x1b[2J")],
)
def test_a_callable_that_fails_warns_and_the_next_hook_runs(
    error: BaseException,
) -> None:
    async def waits(event: HookEvent) -> None:
        if not isinstance(error, StopIteration):
            raise error
        raise ValueError

    made = fired(_raises(error), waits, lambda event: "still here")
    assert (made.allowed, made.additional_context) == (True, "still here")
    assert len(made.warnings) == 2
    assert all("failed" in each and "\x1b" not in each for each in made.warnings)


@pytest.mark.parametrize(
    "value",
    [
        5,
        ["list"],
        {"arguments": "no object"},
        {"additionalContext": 5},
        HookDecision(additional_context=5),  # type: ignore[arg-type]
        HookDecision(arguments="[1]"),
        HookDecision(arguments="{"),
        HookDecision(arguments='{"a":1,"a":2}'),
        HookDecision(arguments='{"a":NaN}'),
        HookDecision(arguments='{"a":' + "[" * 50_000 + "]" * 50_000 + "}"),
        HookDecision(arguments='{"a":' + "[" * 200 + "]" * 200 + "}"),
        HookDecision(warnings=5),  # type: ignore[arg-type]
    ],
)
def test_an_invalid_answer_causes_a_warning(value: object) -> None:
    made = fired(lambda event: value, event=CALL)
    assert made.warnings
    assert made == HookDecision(warnings=made.warnings)
    assert len(made.warnings[0]) <= 500


def _gives(value: object, event: HookEvent) -> object:
    return value


def test_a_refusal_counts_however_badly_it_is_worded() -> None:
    bad = HookDecision(allowed=False, reason=5)  # type: ignore[arg-type]
    for value in (bad, {"decision": "block", "reason": 5, "arguments": 7}):
        made = fired(functools.partial(_gives, value))
        assert not made.allowed
        assert "invalid" in made.reason


def test_a_callable_that_hangs_is_abandoned_after_its_timeout() -> None:
    async def stubborn(event: HookEvent) -> None:
        for _ in range(2):
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(60)

    started = time.monotonic()
    made = fired(
        PythonHook(call=lambda event: time.sleep(60), timeout=0.1),
        PythonHook(call=stubborn, timeout=0.1),
        lambda event: "next",
    )
    assert made.additional_context == "next"
    assert [("abandoned" in warning) for warning in made.warnings] == [True, True]
    assert time.monotonic() - started < 60


def test_a_hook_that_cancels_itself_does_not_cancel_the_agent() -> None:
    async def hook(event: HookEvent) -> None:
        raise asyncio.CancelledError

    assert "cancelled" in fired(hook).warnings[0]


def test_awaitables_that_callables_return_are_awaited() -> None:
    async def later(word: str, event: HookEvent) -> str:
        await asyncio.sleep(0)
        return word

    class Waits:
        def __call__(self, event: HookEvent) -> Awaitable[str]:
            return later("object", event)

    made = fired(functools.partial(later, "partial"), Waits())
    assert made == HookDecision(additional_context="partial\n\nobject")


def test_a_sync_callable_does_not_block_the_event_loop() -> None:
    started, released = threading.Event(), threading.Event()

    def hook(event: HookEvent) -> str:
        started.set()
        return "released" if released.wait(60) else "the loop was blocked"

    async def story() -> HookDecision:
        firing = asyncio.ensure_future(Hooks([hook]).fire(PROMPT))
        while not started.is_set():
            await asyncio.sleep(0.01)
        released.set()
        return await firing

    assert asyncio.run(story()).additional_context == "released"


# --- commands ----------------------------------------------------------------------------------


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

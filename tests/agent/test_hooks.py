from __future__ import annotations

import asyncio
import contextlib
import functools
import threading
import time
from collections.abc import Awaitable, Callable

import pytest

from recollect.agent.hook_runner import MAX_CONTEXT
from recollect.agent.hooks import CommandHook, Hooks, PythonHook
from recollect.errors import BadInput
from recollect.hook_events import (
    BeforeTool,
    HookDecision,
    HookEvent,
    PreCompress,
    SessionStart,
)
from tests.agent.hook_builders import CALL, PROMPT, fired, prints, shell


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

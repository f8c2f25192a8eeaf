from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.agent.hook_events import (
    EVENT_NAMES,
    HOOK_EVENTS,
    AfterTool,
    BeforeTool,
    HookEvent,
    LoopDetected,
    SessionEnd,
    encode_command_input,
    event_name,
)
from recollect.agent.hooks import MAX_EVENTS, MAX_TEXT, ActivityLog, Hooks

# any character at all, lone surrogates too
anything = st.text(st.characters(exclude_categories=()), max_size=30)


def events() -> st.SearchStrategy[HookEvent]:
    def one(kind: type[HookEvent]) -> st.SearchStrategy[HookEvent]:
        texts: dict[str, st.SearchStrategy[Any]] = {
            "session": anything,
            "time": st.integers(0, 2**42),
        }
        for name in ("prompt", "text", "arguments", "output", "what", "reason", "model"):
            if name in kind.__struct_fields__:
                texts[name] = anything
        if "tool" in kind.__struct_fields__:
            texts["tool"] = anything
        if "duration" in kind.__struct_fields__:
            texts["duration"] = st.floats(0, 1e9)
        return st.builds(kind, **texts)

    return st.one_of([one(kind) for kind in HOOK_EVENTS])


def test_the_names_of_the_events_do_not_change() -> None:
    assert EVENT_NAMES == (
        "SessionStart",
        "BeforeAgent",
        "BeforeModel",
        "AfterModel",
        "BeforeTool",
        "AfterTool",
        "PreCompress",
        "ChatCompressed",
        "ContextWindowWillOverflow",
        "LoopDetected",
        "AfterAgent",
        "SessionEnd",
    )


# --- the input of commands ---------------------------------------------------------------------


def command_input(event: HookEvent) -> Any:
    return json.loads(encode_command_input(event, Path("/p"), ""))


@given(events())
def test_any_event_can_be_encoded_in_ascii(event: HookEvent) -> None:
    assert encode_command_input(event, Path("/p"), "\ud800").isascii()
    assert command_input(event)["hook_event_name"] == event_name(event)


@pytest.mark.parametrize("arguments", ["{", '{"a":NaN}', "[" * 100_000, '{"n":' + "9" * 5000 + "}"])
def test_arguments_that_are_not_json_are_passed_as_text(arguments: str) -> None:
    event = BeforeTool(session="s", time=1, tool="t", arguments=arguments)
    assert command_input(event)["data"]["arguments"] == arguments


def test_arguments_are_passed_whole_and_other_texts_shortened() -> None:
    arguments = json.dumps({"a": "x" * 3_000_000})
    event = AfterTool(session="s", time=1, tool="t", arguments=arguments, output="y" * 10**6)
    data = command_input(event)["data"]
    assert len(data["arguments"]["a"]) == 3_000_000
    assert len(data["output"]) <= 200_000


# --- the activity ------------------------------------------------------------------------------


@given(st.integers(0, 3 * MAX_EVENTS))
def test_the_last_hundred_events_are_logged_in_order(count: int) -> None:
    activity = ActivityLog()
    for number in range(count):
        activity.record(LoopDetected(session="s", time=number))
    assert [event.time for event in activity.events] == list(range(count))[-100:]


def test_a_long_text_is_shortened_in_the_log_and_nowhere_else() -> None:
    activity = ActivityLog()
    event = AfterTool(session="s", time=1, tool="cat", output="x" * 1_000_000)
    activity.record(event)
    (kept,) = activity.events
    assert isinstance(kept, AfterTool)
    assert len(kept.output) <= MAX_TEXT
    assert "characters left out" in kept.output
    assert len(event.output) == 1_000_000
    activity.record(short := BeforeTool(session="s", time=2, tool="cat"))
    assert activity.events[1] is short


def test_fired_events_are_in_the_activity_log() -> None:
    hooks = Hooks()
    fired = (SessionEnd(session="s", time=1), BeforeTool(session="s", time=2, tool="cat"))
    for event in fired:
        asyncio.run(hooks.fire(event))
    assert hooks.activity.events == fired


def test_the_page_on_hooks_names_every_event_with_its_data_and_its_example_runs() -> None:
    page = (Path(__file__).parents[2] / "docs" / "hooks.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `(\w+)` \| [^|]+ \| (.+) \|$", page, re.M))
    for kind in HOOK_EVENTS:
        fields = {f for f in kind.__struct_fields__ if f not in ("session", "time")}
        assert set(re.findall(r"`(\w+)`", rows[kind.__name__])) == fields
    ((program, printed),) = re.findall(r"```python\n(.*?)```\n\n```\n(.*?)```", page, re.S)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == (printed, "")

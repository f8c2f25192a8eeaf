"""Hooks, permissions and elision rules that a user adds to an agent with decorators."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import recollect
from recollect import RunFinished, Tool, ToolCall, View, elision_rule, hook, permission, tool
from recollect.agent.tool_calls import CallPermission
from recollect.engine import ElisionRules, Hooks
from recollect.entries import Text, ToolResult
from recollect.errors import BadInput
from recollect.testing import ScriptedModel, call, says
from recollect.view.view import ViewItem

if TYPE_CHECKING:
    from recollect.hook_events import AfterTool, BeforeTool, HookDecision, HookEvent

FORECAST = "It rains in Bergen, and it goes on raining. " * 30


@tool
def weather(city: str) -> str:
    """Tells the weather."""
    return f"{city}: {FORECAST}"


@tool("write")
def send(to: str) -> str:
    """Sends a letter."""
    return f"sent to {to}"


def run(folder: Path, *calls: ToolCall, **options: Any) -> tuple[RunFinished, list[ToolResult]]:
    """One prompt whose reply makes these calls; the run, and the results in the log."""

    async def play() -> tuple[RunFinished, list[ToolResult]]:
        async with recollect.open(folder / "s.db") as store:
            session = await store.create()
            model = ScriptedModel([says(*calls), "done"])
            agent = recollect.Agent(model, tools=[weather, send], **options)
            done = await agent.run("go", session)
            parts = [p for i in session.view().items for p in i.message.parts]
            return done, [part for part in parts if isinstance(part, ToolResult)]

    return asyncio.run(play())


def text_of(result: ToolResult) -> str:
    return "".join(part.text for part in result.content if isinstance(part, Text))


SEND = call("send", to="Ada")


# --- hooks -------------------------------------------------------------------------------------


def test_a_bare_hook_runs_for_the_event_that_its_parameter_names(tmp_path: Path) -> None:
    seen: list[str] = []

    @hook
    def before(event: BeforeTool) -> None:
        seen.append(f"before {event.tool}")

    @hook
    async def both(event: BeforeTool | AfterTool) -> None:
        seen.append(type(event).__name__)

    @hook()
    def every(event: HookEvent) -> None:
        seen.append("any")

    run(tmp_path, call("weather", city="Oslo"), hooks=[before, both])
    assert seen == ["before weather", "BeforeTool", "AfterTool"]
    assert (before.on, both.on, every.on) == (("BeforeTool",), ("BeforeTool", "AfterTool"), ())


def test_a_hook_names_its_events_by_type_or_by_name_and_may_refuse(tmp_path: Path) -> None:
    from recollect.hook_events import AfterTool, HookDecision

    @hook("BeforeTool", AfterTool, timeout=5)
    def no_letters(event: Any) -> HookDecision | None:
        return HookDecision(allowed=False, reason="no letters today")

    assert (no_letters.on, no_letters.timeout) == (("BeforeTool", "AfterTool"), 5)
    _, (result,) = run(tmp_path, SEND, hooks=[no_letters])
    assert text_of(result) == "Error: a hook refused it: no letters today"


def test_a_hook_that_fails_is_a_warning_under_its_name(tmp_path: Path) -> None:
    warnings: list[str] = []

    @hook("BeforeTool")
    def broken(event: HookEvent) -> None:
        raise ValueError("no")

    run(tmp_path, SEND, hooks=Hooks([broken], warn=warnings.append))
    assert [text.split(": ")[0] for text in warnings] == ["hook broken"]


def test_a_hook_without_an_event_or_with_an_unknown_one_is_refused_where_it_is_made() -> None:
    with pytest.raises(BadInput, match=r"nothing names no event; .*@hook\(BeforeTool\)"):

        @hook
        def nothing(event):  # type: ignore[no-untyped-def]
            pass

    with pytest.raises(BadInput, match="no event 'BeforeTools'; the events are SessionStart, "):
        hook("BeforeTools")
    with pytest.raises(BadInput, match="there is no event 'int'"):

        @hook  # type: ignore[type-var]
        def number(event: int) -> None:
            pass

    with pytest.raises(BadInput, match="there is no event 'Undefined'"):

        @hook
        def undefined(event: Undefined) -> None:  # type: ignore[name-defined]  # noqa: F821
            pass


# --- permissions -------------------------------------------------------------------------------


BAD_ANSWER = (
    "Error: send was not run: the permission check _answer returned int; it must return True, "
    "False, a text or None"
)


def answers(*given: object) -> list[Any]:
    return [permission(partial(_answer, each)) for each in given]  # type: ignore[arg-type]


def _answer(given: object, tool: Tool, call: ToolCall) -> object:
    return given


@pytest.mark.parametrize(
    ("given", "output"),
    [
        ((True,), "sent to Ada"),
        (("",), "sent to Ada"),
        ((None, True, None), "sent to Ada"),
        ((), "Error: send needs a permission that nobody gave"),
        ((None, None), "Error: send needs a permission that nobody gave"),
        ((True, False), "Error: send was refused by the permission check _answer"),
        ((True, "ask Ada first"), "Error: ask Ada first"),
        (("ask Ada first", True), "Error: ask Ada first"),
        ((True, 1), BAD_ANSWER),
    ],
)
def test_a_refusal_wins_then_an_approval_and_without_both_only_reads_run(
    tmp_path: Path, given: Sequence[object], output: str
) -> None:
    _, (result,) = run(tmp_path, SEND, permissions=answers(*given))
    assert text_of(result) == output
    assert result.is_error == output.startswith("Error")


def test_a_check_that_fails_refuses_and_the_run_goes_on(tmp_path: Path) -> None:
    @permission
    def broken(tool: Tool, call: ToolCall) -> bool:
        raise KeyError("token")

    done, (result,) = run(tmp_path, SEND, permissions=[broken, lambda tool, call: True])
    assert "the permission check broken failed (KeyError: 'token')" in text_of(result)
    assert done.text == "done"


def test_a_check_sees_the_tools_it_names_only_and_a_sync_one_runs_in_a_thread(
    tmp_path: Path,
) -> None:
    seen: list[tuple[str, bool]] = []

    @permission("send")
    def by_name(tool: Tool, call: ToolCall) -> bool | None:
        seen.append((call.name, threading.current_thread() is threading.main_thread()))
        return None

    @permission(send)
    async def by_tool(tool: Tool, call: ToolCall) -> bool:
        seen.append((call.name, threading.current_thread() is threading.main_thread()))
        return '"Ada"' in call.arguments

    calls = call("weather", city="Oslo"), call("send", "call-2", to="Ada")
    _, results = run(tmp_path, *calls, permissions=[by_name, by_tool])
    assert seen == [("send", False), ("send", True)]
    assert [result.is_error for result in results] == [False, False]


def test_what_the_checks_leave_open_is_decided_by_the_permission_check(tmp_path: Path) -> None:
    async def nobody(tool: Tool, call: ToolCall) -> CallPermission:
        return CallPermission("not even reading")

    checked = [permission("send")(lambda tool, call: True)]
    calls = SEND, call("weather", "call-2", city="Oslo")
    _, results = run(tmp_path, *calls, permissions=checked, permission_check=nobody)
    assert sorted(map(text_of, results)) == ["Error: not even reading", "sent to Ada"]


def test_permission_takes_only_tools_and_names() -> None:
    with pytest.raises(BadInput, match="permission takes tools or their names"):
        permission("send", 3)  # type: ignore[call-overload]


# --- elision rules -----------------------------------------------------------------------------


@elision_rule("old-forecast")
def old_forecasts(view: View, now: int) -> Iterator[tuple[ViewItem, str]]:
    for item in view.items:
        for part in item.message.parts:
            if isinstance(part, ToolResult) and part.name == "weather":
                yield item, "yesterday's weather"


def two_prompts(folder: Path, rules: object) -> tuple[str, str, list[str]]:
    """What the model is sent of the first forecast with a second prompt, the explanation, and the
    warnings."""

    async def play() -> tuple[str, str, list[str]]:
        async with recollect.open(folder / "s.db") as store:
            session = await store.create()
            warnings: list[str] = []
            session.warn = warnings.append
            looked = says(call("weather", city="Oslo"))
            model = ScriptedModel([looked, "It rains.", "Still."])
            agent = recollect.Agent(model, tools=[weather], rules=rules)  # type: ignore[arg-type]
            await agent.run("How is the weather?", session)
            await agent.run("And now?", session)
            parts = [part for message in model.requests[-1].messages for part in message.parts]
            (sent,) = [text_of(part) for part in parts if isinstance(part, ToolResult)]
            return sent, str(await session.explain()), warnings

    return asyncio.run(play())


def test_an_agent_applies_a_rule_and_the_model_reads_what_was_left_out(tmp_path: Path) -> None:
    rules = ElisionRules(min_saving=1, custom=(old_forecasts,))
    sent, explained, warnings = two_prompts(tmp_path, rules)
    assert re.fullmatch(r"\[recall \w{8}: old-forecast: yesterday's weather, \d+ tokens\]", sent)
    assert re.search(r"old-forecast .* yesterday's weather", explained)
    assert warnings == []


def test_a_list_of_rules_keeps_the_default_rules_and_waits_until_it_saves_enough(
    tmp_path: Path,
) -> None:
    agent = recollect.Agent("gpt-5", rules=[old_forecasts])
    assert agent.rules == ElisionRules(custom=(old_forecasts,))
    sent, _, _ = two_prompts(tmp_path, [old_forecasts])
    assert sent.endswith(FORECAST)


def test_a_rule_that_fails_is_a_warning_and_the_run_goes_on(tmp_path: Path) -> None:
    @elision_rule("broken")
    def broken(view: View, now: int) -> list[tuple[str, str]]:
        raise LookupError("no weather")

    sent, _, warnings = two_prompts(tmp_path, [broken])
    assert sent.endswith(FORECAST)
    told = "the elision rule broken failed and left nothing out: LookupError: no weather"
    assert warnings == [told, told]  # once for each prompt


def test_a_rule_needs_a_name() -> None:
    with pytest.raises(BadInput, match="an elision rule needs a name"):

        @elision_rule  # type: ignore[arg-type]
        def nameless(view: View, now: int) -> list[tuple[str, str]]:
            return []


def test_a_rule_that_is_no_rule_is_refused_when_the_agent_is_made() -> None:
    with pytest.raises(BadInput, match="is no elision rule"):
        recollect.Agent("gpt-5", rules=[lambda view, now: []])  # type: ignore[list-item]
    with pytest.raises(BadInput, match="is no permission check"):
        recollect.Agent("gpt-5", permissions=["send"])  # type: ignore[list-item]


# --- documentation -----------------------------------------------------------------------------


@pytest.mark.parametrize("page", ["tools.md", "hooks.md"])
def test_the_programs_of_the_guides_print_what_the_guides_say(page: str, tmp_path: Path) -> None:
    text = (Path(__file__).parents[2] / "docs" / page).read_text(encoding="utf-8")
    found = re.findall(r"```python\n(.*?)```\n\n```\n(.*?)```", text, re.S)
    assert found
    for program, printed in found:
        done = subprocess.run(
            [sys.executable, "-c", program],
            cwd=tmp_path,
            env={"RECOLLECT_HOME": str(tmp_path), "PYTHONUTF8": "1"},
            capture_output=True,
            encoding="utf-8",
            timeout=60,
        )
        assert (done.stdout, done.stderr) == (printed, "")

"""The agent loop, with a scripted model and tools that are real functions."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from recollect.agent.exchange import NOT_BEGUN
from recollect.agent.fit_context import ContextReduced, summarizer_from
from recollect.agent.hooks import Hooks
from recollect.agent.loop import Agent
from recollect.agent.run_events import AgentEvent, LoopFound, RunFinished
from recollect.agent.tool_calls import UNKNOWN_OUTCOME, ToolFinished, ToolStarted
from recollect.codecs.anthropic import AnthropicWire
from recollect.codecs.encoder import encode
from recollect.codecs.gemini import GeminiWire
from recollect.codecs.openai import OpenAIWire
from recollect.codecs.wire_protocol import Delta, RequestOptions
from recollect.compaction.budget import Budget
from recollect.entries import Compaction, Message, Text, Usage
from recollect.errors import BadReply, ContextOverflow, RefusedByHook
from recollect.hook_events import BeforeAgent, BeforeTool, HookDecision
from recollect.session import Session
from recollect.store.sqlite import SqliteStore
from recollect.testing import ScriptedModel, ScriptLine, breaks_after, call, fails, says
from recollect.tools.tool import ToolContext, ToolFailed, tool
from recollect.view.view import View
from tests.agent.harness import allow_all, in_store, new_session, result_text, stored_results

running: list[str] = []


@tool("read")
async def look(what: str) -> str:
    """Looks at something."""
    running.append(f"+{what}")
    await asyncio.sleep(0.01)
    running.append(f"-{what}")
    return f"saw {what}"


@tool("write")
async def change(what: str, place: ToolContext) -> str:
    """Changes something."""
    running.append(f"+{what}")
    await asyncio.sleep(0.01)
    running.append(f"-{what}")
    if what == "nothing":
        raise ToolFailed("there is nothing to change; name something")
    if what == "bug":
        raise ZeroDivisionError("oh")
    return f"changed {what} in {place.root.name}"


@pytest.fixture(autouse=True)
def _nothing_is_running() -> None:
    running.clear()


async def run(agent: Agent, session: Session, prompt: str = "go") -> list[AgentEvent]:
    return [event async for event in agent.stream(prompt, session)]


def agent(*script: ScriptLine, **more: Any) -> Agent:
    fields = {"tools": (look, change), "permission_check": allow_all, "roots": (Path("/work"),)}
    return Agent(model=ScriptedModel(script), **{**fields, **more})


async def results(session: Session) -> list[tuple[str, str, str]]:
    found = await stored_results(session.store, session.id)
    return [(each.call_id, result_text(each), each.status) for each in found]


def finished(events: list[AgentEvent]) -> RunFinished:
    last = events[-1]
    assert isinstance(last, RunFinished)
    return last


def test_a_run_leaves_prompt_requests_replies_and_results_in_the_log(tmp_path: Path) -> None:
    async def story(store: SqliteStore) -> None:
        session = await new_session(store)
        usage = Usage(input=5, output=2)
        events = await run(
            agent(says("I look.", call("look", id="a", what="x"), usage=usage), says("It is x.")),
            session,
        )
        assert "".join(e.text for e in events if isinstance(e, Delta) and e.kind == "text") == (
            "I look.It is x."
        )
        done = finished(events)
        assert (done.reason, done.turns, done.usage.input) == ("answered", 2, 5)
        kept = await store.path(session.id)
        assert kept == done.session.view().entries
        kinds = [type(entry.body).__name__ for entry in kept]
        assert kinds == ["Message", "Request", "Message", "Message", "Request", "Message"]
        assert await results(session) == [("a", "saw x", "success")]

    in_store(tmp_path, story)


def test_read_only_calls_run_together_and_others_one_after_the_other(tmp_path: Path) -> None:
    async def story(store: SqliteStore) -> None:
        calls = [call("look", id=n, what=n) for n in ("a", "b")]
        changes = [call("change", id=n, what=n) for n in ("c", "d")]
        session = await new_session(store)
        events = await run(agent(says(*calls, *changes, calls[0]), "done"), session)
        assert running[:4] == ["+a", "+b", "-a", "-b"]
        assert running[4:8] == ["+c", "-c", "+d", "-d"]
        ran = [event.call.id for event in events if isinstance(event, ToolFinished)]
        assert ran == ["a", "b", "c", "d", "a"]

    in_store(tmp_path, story)


def test_the_model_is_sent_the_errors_of_tools(tmp_path: Path) -> None:
    async def story(store: SqliteStore) -> None:
        session = await new_session(store)
        await run(
            agent(
                says(
                    call("change", id="a", what="nothing"),
                    call("change", id="b", what="bug"),
                    call("fly", id="c"),
                    call("look", id="d", where="x"),
                ),
                "I see.",
            ),
            session,
        )
        told = {key: text for key, text, _ in await results(session)}
        assert told["a"] == "Error: there is nothing to change; name something"
        assert told["b"] == "Error: change failed: ZeroDivisionError: oh"
        assert told["c"] == "Error: there is no tool 'fly'; the tools are look, change"
        assert "the parameters are what" in told["d"]

    in_store(tmp_path, story)


def test_without_a_permission_nothing_is_changed(tmp_path: Path) -> None:
    async def story(store: SqliteStore) -> None:
        session = await new_session(store)
        careful = Agent(
            model=ScriptedModel([says(call("change", id="a", what="x")), "All right."]),
            tools=(look, change),
        )
        await run(careful, session)
        assert running == []
        assert [status for *_, status in await results(session)] == ["refused"]

    in_store(tmp_path, story)


def test_the_number_of_turns_is_limited(tmp_path: Path) -> None:
    async def story(store: SqliteStore) -> None:
        session = await new_session(store)
        again = [says(call("look", id=f"c{n}", what=str(n))) for n in range(5)]
        done = finished(await run(agent(*again, max_turns=3), session))
        assert (done.reason, done.turns) == ("turns", 3)
        assert len(await results(session)) == 3

    in_store(tmp_path, story)


@pytest.mark.parametrize("how", ["cancel", "close"])
def test_an_interrupted_call_has_a_result_that_says_so(tmp_path: Path, how: str) -> None:
    async def story(store: SqliteStore) -> None:
        session = await new_session(store)
        started = asyncio.Event()

        @tool("write")
        async def sleep() -> str:
            """Sleeps."""
            started.set()
            await asyncio.sleep(60)
            return "awake"

        sleepy = agent(says(call("sleep", id="a"), call("sleep", id="b")), "never", tools=(sleep,))

        async def listen() -> None:
            async with aclosing(sleepy.stream("go", session)) as events:
                async for event in events:
                    if how == "close" and isinstance(event, ToolStarted):
                        return

        task = asyncio.create_task(listen())
        if how == "cancel":
            await started.wait()
            task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        kept = await store.path(session.id)
        assert await results(session) == [
            ("a", f"Error: {UNKNOWN_OUTCOME if how == 'cancel' else NOT_BEGUN}", "interrupted"),
            ("b", f"Error: {NOT_BEGUN}", "interrupted"),
        ]
        later = Session(store, session.id, View.fold(kept))
        done = finished(await run(agent("I go on."), later, "and now?"))
        assert done.reason == "answered"

    in_store(tmp_path, story)


def test_a_session_continues_after_a_reply_that_broke_off(tmp_path: Path) -> None:
    async def story(store: SqliteStore) -> None:
        session = await new_session(store)
        with pytest.raises(BadReply):
            await run(agent(breaks_after("I was")), session)
        kept = await store.path(session.id)
        later = Session(store, session.id, View.fold(kept))
        done = finished(await run(agent("Again."), later, "once more"))
        said = [
            m.parts[0].text for m in done.session.view().messages if isinstance(m.parts[0], Text)
        ]
        assert said == ["go", "I was", "once more", "Again."]

    in_store(tmp_path, story)


def test_a_long_session_is_compacted_and_always_fits_every_provider(tmp_path: Path) -> None:
    async def story(store: SqliteStore) -> None:
        session = await new_session(store)
        budget = Budget.of(target=3_000)
        script: list[ScriptLine] = []
        for n in range(30):
            script += [says(f"Step {n}.", call("look", id=f"c{n}", what="word " * 200)), "Done."]
        busy = agent(*script, budget=budget)
        rooms = 0
        for n in range(30):
            events = await run(busy, session, f"Do step {n} of limiter.py.")
            session = finished(events).session
            rooms += sum(isinstance(event, ContextReduced) for event in events)
            assert session.view().tokens < 6_000
            for wire in (GeminiWire(model="m"), OpenAIWire(model="m"), AnthropicWire(model="m")):
                encode(wire, session.view(), RequestOptions(model="m"))
        assert rooms
        assert any(isinstance(entry.body, Compaction) for entry in session.view().entries)
        assert len(await store.path(session.id)) == len(session.view().entries)

    in_store(tmp_path, story)


def test_a_smaller_window_is_learned_from_the_providers_error(tmp_path: Path) -> None:
    async def story(store: SqliteStore) -> None:
        session = await new_session(store)
        for n in range(6):
            await session.append(
                Message(role="user", parts=(Text(text=f"{n} " + "word " * 400),)),
                Message(role="model", parts=(Text(text="noted " * 300),)),
            )
        tight = agent(fails(ContextOverflow("too many tokens", 400, 2_500)), "Now it fits.")
        events = await run(tight, session)
        assert any(isinstance(event, ContextReduced) for event in events)
        assert finished(events).session.view().tokens <= 2_500
        assert isinstance(tight.model, ScriptedModel)
        assert len(tight.model.requests) == 2

    in_store(tmp_path, story)


def test_a_model_can_write_the_snapshot(tmp_path: Path) -> None:
    async def story(store: SqliteStore) -> None:
        session = await new_session(store)
        for n in range(8):
            await session.append(
                Message(role="user", parts=(Text(text=f"{n} " + "word " * 300),)),
                Message(role="model", parts=(Text(text="noted " * 200),)),
            )
        wrote = "<state_snapshot><overall_goal>Win the race</overall_goal></state_snapshot>"
        writer = ScriptedModel([wrote])
        helped = agent("ok", budget=Budget.of(target=3_000), summarizer=summarizer_from(writer))
        done = finished(await run(helped, session))
        (held,) = [e.body for e in done.session.view().entries if isinstance(e.body, Compaction)]
        assert "Win the race" in held.snapshot

    in_store(tmp_path, story)


def test_a_model_that_repeats_a_call_is_warned_once_and_stopped_the_second_time(
    tmp_path: Path,
) -> None:
    async def story(store: SqliteStore) -> None:
        session = await new_session(store)
        same = [says(call("look", id=f"c{n}", what="x")) for n in range(20)]
        events = await run(agent(*same), session)
        assert [event.stopped for event in events if isinstance(event, LoopFound)] == [False, True]
        done = finished(events)
        assert (done.reason, done.turns) == ("loop", 10)
        kept = await results(session)
        assert len(kept) == 10
        assert kept[-1][2] == "refused"

    in_store(tmp_path, story)


def test_a_reply_that_repeats_itself_is_cut_off_and_stored(tmp_path: Path) -> None:
    async def story(store: SqliteStore) -> None:
        session = await new_session(store)
        words = "I will now look at the file again and again to be sure. " * 40
        events = await run(agent(says(words), "I stop."), session)
        assert [event.stopped for event in events if isinstance(event, LoopFound)] == [False]
        done = finished(events)
        assert (done.reason, done.turns) == ("answered", 2)
        cut = [m for m in done.session.view().messages if m.finish == "interrupted"]
        assert len(cut) == 1

    in_store(tmp_path, story)


def test_hooks_can_add_context_refuse_calls_and_change_arguments(tmp_path: Path) -> None:
    async def story(store: SqliteStore) -> None:
        def hook(event: object) -> HookDecision | None:
            if isinstance(event, BeforeAgent):
                return HookDecision(additional_context="Mind the tests.")
            if isinstance(event, BeforeTool) and event.tool == "change":
                return HookDecision(allowed=False, reason="not today")
            if isinstance(event, BeforeTool):
                return HookDecision(arguments='{"what":"y"}')
            return None

        session = await new_session(store)
        calls = (call("look", id="a", what="x"), call("change", id="b", what="z"))
        hooked = agent(says(*calls), "Done.", hooks=Hooks([hook]))
        done = finished(await run(hooked, session))
        assert "Mind the tests." in str(done.session.view().messages[1])
        kept = await results(session)
        assert kept[0] == ("a", "saw y", "success")
        assert kept[1][2] == "refused"
        assert "not today" in kept[1][1]
        names = [type(event).__name__ for event in hooked.fired_hooks.activity.events]
        assert names[0] == "BeforeAgent"
        assert names[-1] == "AfterAgent"

    in_store(tmp_path, story)


def test_a_hook_that_refuses_the_prompt_leaves_it_in_the_log(tmp_path: Path) -> None:
    async def story(store: SqliteStore) -> None:
        session = await new_session(store)
        no = Hooks([lambda _: HookDecision(allowed=False, reason="a holiday")])
        with pytest.raises(RefusedByHook, match="a holiday"):
            await run(agent("never", hooks=no), session)
        assert len(await store.path(session.id)) == 1

    in_store(tmp_path, story)


def test_calls_of_an_earlier_prompt_are_no_loop(tmp_path: Path) -> None:
    async def story(store: SqliteStore) -> None:
        session = await new_session(store)
        for _ in range(2):
            same = [says(call("look", id=f"c{n}", what="x")) for n in range(3)]
            events = await run(agent(*same, "Done."), session)
            assert not any(isinstance(event, LoopFound) for event in events)
            session = finished(events).session

    in_store(tmp_path, story)

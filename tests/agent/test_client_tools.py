"""Tools that only a client can run: their calls end a run and wait for the client's results."""

from __future__ import annotations

from pathlib import Path

import pytest

from recollect.agent.loop import Agent
from recollect.agent.tool_calls import ToolFinished
from recollect.codecs.wire_protocol import Declaration
from recollect.entries import Entry, Message, SettingsEdit, Text, ToolCall, ToolResult
from recollect.errors import ContextOverflow
from recollect.store.ids import new_id, now
from recollect.store.sqlite import SqliteStore
from recollect.testing import ScriptedModel, call, says, user
from recollect.tools.tool import tool
from tests.agent.harness import allow_all, in_store, new_session, result_text, stored_results

WEATHER = Declaration(name="get_weather", description="The weather of a place")


@tool
async def add(a: int, b: int) -> str:
    """Add two numbers.

    Args:
        a: one
        b: the other
    """
    return str(a + b)


def agent(*script: object, **options: object) -> Agent:
    given = {"tools": (add,), "permission_check": allow_all, "client_tools": (WEATHER,)} | options
    return Agent(model=ScriptedModel(list(script)), **given)  # type: ignore[arg-type]


def answer(id_: str, text: str) -> Message:
    content = (Text(text=text),)
    return Message(
        role="user", parts=(ToolResult(call_id=id_, name="get_weather", content=content),)
    )


def test_a_call_of_a_clients_tool_ends_the_run_and_stays_open(tmp_path: Path) -> None:
    async def story(store: SqliteStore) -> None:
        session = await new_session(store)
        ended = await agent(says("I look.", call("get_weather"))).run("Weather?", session)
        assert (ended.reason, ended.text, ended.problem) == ("client_calls", "I look.", "")
        assert await stored_results(store, session.id) == []

    in_store(tmp_path, story)


def test_the_agents_own_calls_run_before_the_run_ends(tmp_path: Path) -> None:
    async def story(store: SqliteStore) -> None:
        session = await new_session(store)
        both = says(call("get_weather", id="w"), call("add", id="a", a=1, b=2))
        events = [event async for event in agent(both).stream("Both", session)]
        finished = [event for event in events if isinstance(event, ToolFinished)]
        assert [event.call.id for event in finished] == ["a"]
        assert [r.call_id for r in await stored_results(store, session.id)] == ["a"]
        assert events[-1].reason == "client_calls"  # type: ignore[union-attr]

    in_store(tmp_path, story)


def test_the_clients_result_continues_the_run(tmp_path: Path) -> None:
    async def story(store: SqliteStore) -> None:
        session = await new_session(store)
        model = ScriptedModel([says(call("get_weather", id="w")), "20 degrees."])
        built = Agent(model=model, client_tools=(WEATHER,))
        await built.run("Weather?", session)
        ended = await built.run(answer("w", "20"), session)
        assert (ended.reason, ended.text) == ("answered", "20 degrees.")
        sent = model.requests[-1].messages
        assert [type(part) for message in sent for part in message.parts] == [
            Text,
            ToolCall,
            ToolResult,
        ]

    in_store(tmp_path, story)


def test_equal_calls_of_a_clients_tool_are_no_loop_of_ours(tmp_path: Path) -> None:
    async def story(store: SqliteStore) -> None:
        session = await new_session(store)
        same = says(*(call("get_weather", id=f"w{n}") for n in range(12)))
        ended = await agent(same).run("Weather?", session)
        assert ended.reason == "client_calls"
        assert await stored_results(store, session.id) == []

    in_store(tmp_path, story)


def test_an_unknown_tool_is_corrected_and_a_clients_tool_beside_it_still_goes_out(
    tmp_path: Path,
) -> None:
    async def story(store: SqliteStore) -> None:
        session = await new_session(store)
        script = says(call("no_such", id="n")), says(call("get_weather", id="w"))
        ended = await agent(*script).run("x", session)
        assert ended.reason == "client_calls"
        (refused,) = await stored_results(store, session.id)
        assert "there is no tool 'no_such'" in result_text(refused)

    in_store(tmp_path, story)


def test_a_clients_tool_takes_the_place_of_ours_with_its_name(tmp_path: Path) -> None:
    async def story(store: SqliteStore) -> None:
        session = await new_session(store)
        model = ScriptedModel([says(call("add", a=1, b=2))])
        mine = Declaration(name="add", description="The client's own")
        ended = await Agent(model=model, tools=(add,), client_tools=(mine,)).run("x", session)
        assert ended.reason == "client_calls"
        declared = model.requests[0].options.tools
        assert [(t.name, t.description) for t in declared] == [("add", "The client's own")]

    in_store(tmp_path, story)


def test_a_call_that_was_cut_off_is_not_given_to_the_client(tmp_path: Path) -> None:
    async def story(store: SqliteStore) -> None:
        session = await new_session(store)
        cut = ToolCall(id="w", name="get_weather", arguments='{"place": "Par')
        whole = says(call("get_weather", id="again", place="Paris"))
        ended = await agent(says(cut, finish="length"), whole).run("x", session)
        assert ended.reason == "client_calls"
        (refused,) = await stored_results(store, session.id)
        assert refused.call_id == "w"
        assert "cut this call off" in result_text(refused)

    in_store(tmp_path, story)


def test_a_forced_tool_is_forced_only_once(tmp_path: Path) -> None:
    async def story(store: SqliteStore) -> None:
        session = await new_session(store)
        model = ScriptedModel([says(call("add", a=1, b=2)), "3"])
        built = Agent(model=model, tools=(add,), permission_check=allow_all, tool_choice="required")
        assert (await built.run("x", session)).text == "3"
        assert [r.options.tool_choice for r in model.requests] == ["required", "auto"]

    in_store(tmp_path, story)


def test_a_prompt_that_must_follow_an_entry_goes_on_in_a_fork_beside_another_writer(
    tmp_path: Path,
) -> None:
    async def story(store: SqliteStore) -> None:
        session = await new_session(store, user("a"))
        place = session.view().head
        assert place is not None
        await session.append(user("another writer"))
        entry = Entry(new_id(), place, now(), SettingsEdit(values='{"x":1}'))
        model = ScriptedModel(["ok"])
        ended = await Agent(model=model).run((entry, user("b")), session)
        texts = [p.text for m in model.requests[0].messages for p in m.parts if isinstance(p, Text)]
        assert texts == ["a", "b"]
        assert len(await store.sessions()) == 2
        assert (await store.entry(entry.id))[0].id == ended.session.id

    in_store(tmp_path, story)


def test_nothing_is_left_out_where_it_must_not_be(tmp_path: Path) -> None:
    async def story(store: SqliteStore) -> None:
        session = await new_session(store)
        with pytest.raises(ContextOverflow, match="nothing may be left out"):
            await agent("never", reduces=False).run("word " * 2_000_000, session)

    in_store(tmp_path, story)

from __future__ import annotations

import asyncio
import doctest
import re
from contextlib import aclosing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.codecs.wire_protocol import Delta, RequestOptions
from recollect.entries import Entry, Message, Text, Thought, ToolCall, Usage
from recollect.errors import BadReply, ModelError, ProviderBusy
from recollect.models.model_protocol import Model, ModelEvent, Retrying, partial_of
from recollect.testing import (
    ScriptedModel,
    ScriptExhausted,
    Turn,
    breaks_after,
    call,
    fails,
    model,
    says,
    user,
)
from recollect.view.view import View

OPTIONS = RequestOptions(model="scripted")


def play(scripted: Model, *said: str) -> list[ModelEvent]:
    async def all_of_it() -> list[ModelEvent]:
        return [event async for event in scripted.stream([user(text) for text in said], OPTIONS)]

    return asyncio.run(all_of_it())


def last(events: list[ModelEvent]) -> Message:
    assert isinstance(events[-1], Message)
    return events[-1]


def test_a_text_is_streamed_in_pieces_and_ends_with_the_whole_message() -> None:
    events = play(ScriptedModel(["hello, world"], piece=5), "hi")
    assert events == [
        Delta("text", "hello"),
        Delta("text", ", wor"),
        Delta("text", "ld"),
        Message(role="model", parts=(Text(text="hello, world"),), model="scripted", finish="stop"),
    ]


def test_a_reply_can_have_thoughts_calls_and_usage() -> None:
    grep = call("grep", pattern="def")
    used = Usage(input=7, output=3, total=10)
    events = play(ScriptedModel([says(Thought(text="hm"), "I look", grep, usage=used)]), "where?")
    reply = last(events)
    assert reply.parts == (Thought(text="hm"), Text(text="I look"), grep)
    assert (reply.finish, reply.usage) == ("calls", used)
    calls = [event for event in events if isinstance(event, Delta) and event.kind == "call"]
    assert [piece.name for piece in calls] == ["grep", *[""] * (len(calls) - 1)]
    assert "".join(piece.text for piece in calls) == grep.arguments


def test_the_turns_come_in_order_and_the_requests_are_kept() -> None:
    scripted = ScriptedModel(["one", "two"])
    assert last(play(scripted, "a")).parts == (Text(text="one"),)
    assert scripted.left == 1
    assert last(play(scripted, "a", "b")).parts == (Text(text="two"),)
    assert [request.messages for request in scripted.requests] == [
        (user("a"),),
        (user("a"), user("b")),
    ]
    assert scripted.requests[0].options == OPTIONS
    assert scripted.left == 0


def test_a_view_can_be_sent_too() -> None:
    view = View.fold([Entry("e1", None, 0, user("a")), Entry("e2", "e1", 1, model("b"))])
    scripted = ScriptedModel(["c"])

    async def ask() -> list[ModelEvent]:
        return [event async for event in scripted.stream(view, OPTIONS)]

    assert last(asyncio.run(ask())).parts == (Text(text="c"),)
    assert scripted.requests[0].messages == (user("a"), model("b"))


def test_an_exhausted_script_raises_and_not_a_model_error() -> None:
    scripted = ScriptedModel(["only this"])
    play(scripted, "a")
    with pytest.raises(ScriptExhausted, match=r"has 1 turns .* after user 'once more'") as caught:
        play(scripted, "once more")
    assert isinstance(caught.value, AssertionError)
    assert not isinstance(caught.value, ModelError)
    assert len(scripted.requests) == 1


@pytest.mark.parametrize("as_turn", [True, False])
def test_a_failure_is_raised_and_the_next_turn_is_there(as_turn: bool) -> None:
    busy = ProviderBusy("slow down", 429)
    scripted = ScriptedModel([fails(busy) if as_turn else busy, "now"])
    with pytest.raises(ProviderBusy) as caught:
        play(scripted, "a")
    assert caught.value is busy
    assert partial_of(busy) is None
    assert last(play(scripted, "a")).finish == "stop"


def test_a_broken_stream_shows_its_pieces_and_keeps_them_on_the_error() -> None:
    shown: list[ModelEvent] = []

    async def ask() -> None:
        async for event in ScriptedModel([breaks_after("half of")], piece=4).stream([], OPTIONS):
            shown.append(event)  # noqa: PERF401 - what was shown before it broke is the point

    with pytest.raises(BadReply) as caught:
        asyncio.run(ask())
    assert shown == [Delta("text", "half"), Delta("text", " of")]
    partial = partial_of(caught.value)
    assert partial is not None
    assert (partial.parts, partial.finish) == ((Text(text="half of"),), "")


def test_parts_before_a_retry_are_void() -> None:
    again = Retrying("the connection broke", 0.0, 1, shown=True)
    events = play(ScriptedModel([says("hal", again, "whole")]), "a")
    assert events[:3] == [Delta("text", "hal"), again, Delta("text", "whole")]
    assert last(events).parts == (Text(text="whole"),)


def test_a_function_receives_the_request() -> None:
    scripted = ScriptedModel([lambda request: f"{len(request.messages)} messages"] * 2)
    assert last(play(scripted, "a", "b")).parts == (Text(text="2 messages"),)
    assert last(play(scripted, "a")).parts == (Text(text="1 messages"),)


def test_a_message_is_the_reply() -> None:
    reply = last(play(ScriptedModel([model("hello", call("now"))]), "a"))
    assert (reply.parts, reply.finish) == ((Text(text="hello"), call("now")), "calls")


def test_a_slow_turn_can_be_stopped_at_once() -> None:
    async def ask() -> list[ModelEvent]:
        slow = ScriptedModel([says("late", delay=3_600)])
        async with asyncio.timeout(0.05):
            return [event async for event in slow.stream([], OPTIONS)]

    with pytest.raises(TimeoutError):
        asyncio.run(ask())


def test_closing_early_gives_no_more_and_the_next_request_is_the_next_turn() -> None:
    async def ask() -> list[ModelEvent]:
        scripted = ScriptedModel(["a long first answer", "second"])
        async with aclosing(scripted.stream([], OPTIONS)) as events:
            first = await anext(events)
        assert first == Delta("text", "a long f")
        return [event async for event in scripted.stream([], OPTIONS)]

    assert last(asyncio.run(ask())).parts == (Text(text="second"),)


def test_an_invalid_line_of_a_script_is_refused_with_its_type() -> None:
    wrong: list[Turn] = [3]  # type: ignore[list-item]
    with pytest.raises(TypeError, match="not int"):
        play(ScriptedModel(wrong), "a")
    with pytest.raises(ValueError, match="0 characters; it needs at least one"):
        ScriptedModel([], piece=0)


parts = st.one_of(
    st.text().map(lambda text: Text(text=text)),
    st.text().map(lambda text: Thought(text=text)),
    st.dictionaries(st.text(max_size=3), st.integers(), max_size=3).map(
        lambda given: ToolCall(id="c", name="tool", arguments=str(given))
    ),
)


@given(st.lists(parts, max_size=5), st.integers(1, 50))
def test_the_pieces_put_together_are_the_reply_whatever_their_length(
    said: list[Text | Thought | ToolCall], piece: int
) -> None:
    events = play(ScriptedModel([says(*said)], piece=piece), "a")
    deltas = [event for event in events if isinstance(event, Delta)]
    assert all(0 < len(delta.text) <= piece for delta in deltas)
    kinds = {Text: "text", Thought: "thought", ToolCall: "call"}
    for cls, kind in kinds.items():
        whole = [p.arguments if isinstance(p, ToolCall) else p.text for p in said if type(p) is cls]
        assert "".join(d.text for d in deltas if d.kind == kind) == "".join(whole)
    assert last(events).parts == tuple(said)


def test_the_example_in_its_documentation_works() -> None:
    import recollect.testing

    assert recollect.testing.ScriptedModel.__doc__
    found = doctest.DocTestFinder().find(recollect.testing.ScriptedModel, "ScriptedModel")
    done = [doctest.DocTestRunner().run(test) for test in found if test.examples]
    assert [result.failed for result in done] == [0]
    assert done[0].attempted >= 3


def test_the_script_in_the_documentation_plays_as_it_says() -> None:
    page = (Path(__file__).parent.parent / "docs" / "embedded.md").read_text(encoding="utf-8")
    (program,) = [
        block
        for block in re.findall(r"```python\n(.*?)```", page, re.S)
        if "ScriptedModel" in block
    ]
    names: dict[str, ScriptedModel] = {}
    exec(program, names)
    scripted = names["model"]
    assert last(play(scripted, "a")).parts == (Text(text="hello"),)
    assert last(play(scripted, "a")).finish == "calls"
    with pytest.raises(ProviderBusy):
        play(scripted, "a")
    with pytest.raises(BadReply):
        play(scripted, "a")
    assert last(play(scripted, "a", "b")).parts == (Text(text="2 messages"),)
    with pytest.raises(ScriptExhausted):
        play(scripted, "a")

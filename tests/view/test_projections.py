from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from recollect.entries import Entry, Message, Text, Thought
from recollect.testing import call, model, result, user
from recollect.view.projections import routing_window
from recollect.view.view import View
from tests.view.logs import logs, name

GREP = call("grep", pattern="x")
SMALL = logs(max_size=10)


def numbered(*messages: Message) -> list[Entry]:
    return [Entry(name(i), None, i, message) for i, message in enumerate(messages)]


@given(SMALL, st.integers(0, 30), st.integers(0, 6))
def test_a_routing_window_is_text_of_the_newest_messages_in_their_order(
    log: tuple[Entry, ...], last: int, of_these: int
) -> None:
    view = View.fold(log)
    window = routing_window(view, last, of_these)
    assert len(window) <= of_these
    assert all(type(part) is Text and part.text.strip() for m in window for part in m.parts)
    assert all(message.parts for message in window)
    texts = [p for m in view.messages[-last:] for p in m.parts] if last else []
    rest = iter(texts)
    assert all(any(part == other for other in rest) for m in window for part in m.parts)


def test_a_router_sees_no_calls_no_results_no_thoughts_and_only_the_newest_four() -> None:
    said = [user(f"question {n}") for n in range(5)]
    asked = Message(role="model", parts=(Thought(text="hm"), Text(text="I look."), GREP))
    view = View.fold(numbered(*said, asked, result(GREP, "found")))
    window = routing_window(view)
    assert [m.parts for m in window] == [*(m.parts for m in said[2:]), (Text(text="I look."),)]


def test_a_router_looks_no_further_back_than_twenty_messages() -> None:
    noise = [model("", GREP), result(GREP, "found")] * 10
    assert routing_window(View.fold(numbered(user("long ago"), *noise))) == ()
    assert len(routing_window(View.fold(numbered(user("in sight"), *noise[:-1])))) == 1

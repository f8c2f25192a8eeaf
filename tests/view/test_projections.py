from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.entries import Entry, Message, Text, Thought
from recollect.errors import UnknownEntry
from recollect.testing import call, model, result, user
from recollect.view.projections import MAX_PAGE_SIZE, HistoryPage, routing_window, take_page
from recollect.view.view import View
from tests.view.logs import logs, name

GREP = call("grep", pattern="x")
SMALL = logs(max_size=10)


def numbered(*messages: Message) -> list[Entry]:
    return [Entry(name(i), None, i, message) for i, message in enumerate(messages)]


histories = st.integers(0, 40).map(lambda n: numbered(*[user(str(i)) for i in range(n)]))


@given(histories, st.integers(-3, 50))
def test_pages_joined_give_the_whole_in_its_order(log: list[Entry], limit: int) -> None:
    joined: tuple[Entry, ...] = ()
    found = take_page(log, limit=limit)
    while True:
        assert len(found.entries) <= max(1, limit)
        joined = found.entries + joined
        if found.before is None:
            break
        found = take_page(log, before=found.before, limit=limit)
    assert list(joined) == log


@given(histories, histories, st.integers(1, 5))
def test_entries_appended_meanwhile_move_no_page(
    log: list[Entry], more: list[Entry], limit: int
) -> None:
    newest = take_page(log, limit=limit)
    if newest.before is not None:
        later = [Entry(name(1_000 + i), None, 0, e.body) for i, e in enumerate(more)]
        grown = take_page([*log, *later], before=newest.before, limit=limit)
        assert grown == take_page(log, before=newest.before, limit=limit)


def test_a_page_is_bounded_and_an_unknown_cursor_is_an_error() -> None:
    log = numbered(*[user("x")] * (MAX_PAGE_SIZE + 7))
    assert len(take_page(log, limit=10**9).entries) == MAX_PAGE_SIZE
    assert take_page([], limit=5) == HistoryPage(())
    assert take_page(log, before=name(0)) == HistoryPage(())
    with pytest.raises(UnknownEntry):
        take_page(log, before="gone")


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

"""What an edit would save and cost, before it is made."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from recollect.entries import Body, Entry, Request
from recollect.session_edits import plan_edits, plan_undo
from recollect.testing import model, user
from recollect.view.cache_cost import EXPIRED, FREE, REWRITE_COST
from recollect.view.edit_forecast import forecast_edit
from recollect.view.view import View
from tests.compaction.sessions import entries
from tests.view.logs import name


def sent(count: int, *after: Body) -> View:
    """Messages of which a request has sent all but those after it."""
    said: list[Body] = []
    for number in range(count):
        said += [user(f"question {number} " * 20), model(f"answer {number} " * 20)]
    request = Request(as_of=0, head=name(len(said) - 1), model="m")
    return View.fold(entries(*said, request, *after))


def drop(view: View, at: int) -> View:
    return plan_edits(view, drop=[view.log.entries[at]])[1]


def test_a_drop_breaks_the_cache_behind_it() -> None:
    view = sent(5)
    found = forecast_edit(view, drop(view, 2), expired=False)
    assert found.saved == view.items[2].tokens
    assert found.behind == sum(item.tokens for item in view.items[3:])
    assert found.requests == -(-REWRITE_COST * found.behind // found.saved)


def test_what_was_not_sent_or_has_expired_costs_nothing() -> None:
    view = sent(2, user("new words " * 20))
    assert forecast_edit(view, drop(view, 5), expired=False).free == FREE
    assert forecast_edit(view, drop(view, 0), expired=True).free == EXPIRED
    nothing = View.fold(entries(user("a"), user("b")))
    assert forecast_edit(nothing, drop(nothing, 0), expired=False).free == FREE


def rename(bodies: tuple[Body, ...], view: View) -> list[Entry]:
    """As entries after those of a view."""
    return [Entry(name(1_000 + n), view.head, 0, body) for n, body in enumerate(bodies)]


@given(st.integers(0, 9), st.integers(0, 9))
def test_an_undo_gives_the_view_from_before(first: int, second: int) -> None:
    view = sent(5)
    dropped = drop(view, first)
    made = dropped.entries[view.n :]
    undone = dropped.append(*rename(plan_undo(view, made), dropped))
    assert undone.messages == view.messages
    restored = plan_edits(dropped, restore=[dropped.log.entries[first]])[1]
    again = restored.append(*rename(plan_undo(dropped, restored.entries[dropped.n :]), restored))
    assert again.messages == dropped.messages
    pinned = plan_edits(view, pin=[view.log.entries[second]])[1]
    free = pinned.append(*rename(plan_undo(view, pinned.entries[view.n :]), pinned))
    assert [item.pinned for item in free.items] == [False] * len(view.items)

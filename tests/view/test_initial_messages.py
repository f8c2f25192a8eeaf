"""What is planned so that a view begins with instructions and the environment block."""

from __future__ import annotations

from itertools import count

import pytest
from hypothesis import given

from recollect.compaction.proposal import propose_compaction
from recollect.compaction.view_reduction import fit_view
from recollect.entries import Body, Compaction, Elide, Elided, Entry, Message, Pin, Restore, Text
from recollect.testing import model, user
from recollect.view.initial_messages import (
    REPLACED_RULE,
    instructions_message,
    is_environment,
    mark_environment,
    plan_initial_context,
)
from recollect.view.omissions import find_omissions
from recollect.view.view import View
from tests.compaction.sessions import SMALL, turns
from tests.view.logs import logs, name

INSTRUCTIONS = instructions_message("You are recollect, an agent. Look first.")
ASK = instructions_message("Answer briefly.", "ask")
BLOCK_BEGINNING = "This is recollect. We are setting up the context for our chat."


def initial(text: str, extra: str = "") -> Message:
    return Message(role="user", parts=(Text(text=text),), context="initial", extra=extra)


BLOCK = initial(f"{BLOCK_BEGINNING}\nToday's date is …", mark_environment(""))
FOLDER = initial("I'm currently working in the directory: /p")


def viewed(*bodies: Body) -> View:
    return View.fold(Entry(name(i), None, i * 1_000, body) for i, body in enumerate(bodies))


def planned(view: View, instructions: Message = INSTRUCTIONS) -> tuple[Body | Entry, ...]:
    ids = (name(100_000 + view.n + i) for i in count())
    return plan_initial_context(view, instructions, BLOCK, new_id=lambda: next(ids), now=1)


def extended(view: View, *items: Body | Entry) -> View:
    return view.append(
        *(
            i if isinstance(i, Entry) else Entry(name(view.n + n), None, 0, i)
            for n, i in enumerate(items)
        )
    )


def ensured(view: View) -> View:
    after = extended(view, *planned(view))
    assert planned(after) == ()
    assert after.problems == view.problems
    return after


def texts(view: View) -> list[str]:
    return [m.parts[0].text for m in view.messages if m.parts and isinstance(m.parts[0], Text)]


TALK = (user("hi"), model("hello"))
FIRST = [INSTRUCTIONS, BLOCK]


def test_an_empty_session_begins_with_plain_messages() -> None:
    assert planned(viewed()) == (INSTRUCTIONS, BLOCK)
    assert planned(viewed(INSTRUCTIONS, BLOCK, *TALK)) == ()


@pytest.mark.parametrize(
    "history",
    [
        pytest.param(TALK, id="imported"),
        pytest.param((user("<session_context>\nThis is the Gemini CLI."), *TALK), id="from gemini"),
        pytest.param((Message(role="system", parts=(Text(text="Be nice"),)), *TALK), id="system"),
        pytest.param((FOLDER, *TALK), id="a directory message first"),
        pytest.param((INSTRUCTIONS, *TALK), id="no block"),
        pytest.param((INSTRUCTIONS, *TALK, BLOCK), id="the block too late"),
        pytest.param((user("hi"), BLOCK), id="no instructions"),
    ],
)
def test_what_is_missing_comes_first_and_the_rest_stays(history: tuple[Message, ...]) -> None:
    others = [message for message in history if message not in FIRST]
    view = ensured(viewed(*history))
    assert list(view.messages) == [*FIRST, *others]
    assert sum(isinstance(entry.body, Pin) for entry in view.entries) == 1
    again = ensured(extended(view, user("more"), model("yes")))
    assert again.n == view.n + 2


def test_the_agents_instructions_take_the_place_of_those_of_ask() -> None:
    before = viewed(ASK, *TALK)
    view = ensured(before)
    assert list(view.messages) == [*FIRST, *TALK]
    (left_out,) = find_omissions(view)
    assert (left_out.rule, left_out.entry) == (REPLACED_RULE, name(0))
    restored = ensured(extended(view, Restore(entries=(name(0),))))
    assert list(restored.messages) == [*FIRST, ASK, *TALK]


def test_ask_goes_on_with_whichever_instructions_are_there() -> None:
    assert planned(viewed(INSTRUCTIONS, BLOCK, *TALK), ASK) == ()
    assert planned(viewed(ASK, BLOCK, *TALK), ASK) == ()


def test_instructions_and_blocks_of_earlier_versions_stay() -> None:
    old = Message(
        role="system", parts=(Text(text="You are recollect, an agent of old."),), context="initial"
    )
    block = initial(f"{BLOCK_BEGINNING}\nlong ago")
    assert is_environment(block)
    assert planned(viewed(old, block, *TALK)) == ()
    without = Message(role="system", parts=(Text(text="You help."),), context="initial")
    assert list(ensured(viewed(without, *TALK)).messages) == [*FIRST, *TALK]


def test_a_block_that_the_user_left_out_stays_out() -> None:
    for placeholder in ("", "[left out]"):
        drop = Elide(rule="drop", items=(Elided(entry=name(1), placeholder=placeholder),))
        assert planned(viewed(INSTRUCTIONS, BLOCK, *TALK, drop)) == ()


def test_undoing_the_pin_shows_the_messages_where_they_were_appended() -> None:
    view = ensured(viewed(*TALK))
    pin = next(entry for entry in view.entries if isinstance(entry.body, Pin))
    undone = extended(view, Restore(entries=(pin.id,)))
    assert list(undone.messages) == [*TALK, *FIRST]
    assert undone.state.first == ()


def test_a_compaction_keeps_them_first() -> None:
    view = extended(ensured(viewed(*turns(20))), *turns(20))
    for _ in range(2):
        proposal = propose_compaction(view, SMALL)
        assert proposal.succeeded
        view = extended(view, proposal.compaction)
        assert list(view.messages[:2]) == FIRST
        assert [item.place for item in view.items[:3]] == ["first", "first", "snapshot"]
        assert view.tokens == sum(item.tokens for item in view.items)
        assert view.tokens <= SMALL.target
        assert planned(view) == ()
        view = extended(view, *turns(20))


def test_a_block_that_was_lost_to_a_compaction_comes_again() -> None:
    large = initial(f"{BLOCK_BEGINNING}\n" + "tree " * 4_000, mark_environment(""))
    view = viewed(INSTRUCTIONS, large, *turns(3))
    # as a compaction of an earlier version left it
    snapshot, kept = "<state_snapshot></state_snapshot>", (view.items[0].entry.id,)
    lost = extended(view, Compaction(status="COMPRESSED", snapshot=snapshot, kept=kept))
    assert large not in lost.messages
    assert list(ensured(lost).messages[:2]) == FIRST


def test_what_is_first_stays_whole_when_a_view_is_made_to_fit() -> None:
    view = extended(ensured(viewed(*turns(30))), user("and now?"))
    fitted = fit_view(view, 2_000, 10**12).view
    assert list(fitted.messages[:2]) == FIRST
    assert fitted.tokens <= 2_000
    assert texts(fitted)[-1] == "and now?"


def test_a_view_whose_order_changed_is_not_a_continuation_of_an_earlier_one() -> None:
    before = viewed(*TALK)
    after = ensured(before)
    assert after.messages_after(before) is None
    assert extended(after, user("more")).messages_after(after) == [user("more")]


@given(logs())
def test_any_view_begins_with_them_and_shows_nothing_twice(log: tuple[Entry, ...]) -> None:
    view = extended(View.fold(log), *planned(View.fold(log)))
    assert planned(view) == ()
    assert list(view.messages[:2]) == FIRST
    assert view.tokens == sum(item.tokens for item in view.items)
    entries = [item.entry.id for item in view.items if item.place != "snapshot"]
    assert len(entries) == len(set(entries))

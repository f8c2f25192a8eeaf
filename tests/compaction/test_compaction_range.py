"""Compacting only a part: what is outside stays word for word, and no call loses its result."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.compaction.budget import Budget
from recollect.compaction.compaction_range import CompactionRange
from recollect.compaction.edited_snapshot import EDITED, edit_proposal, with_directive
from recollect.compaction.proposal import Proposal, propose_compaction
from recollect.entries import Pin, ToolCall, ToolResult
from recollect.errors import CannotEdit
from recollect.snapshot.snapshot_format import parse_snapshot
from recollect.testing import user
from recollect.view.view import View
from tests.compaction.sessions import SMALL, applied, entries, turns
from tests.view.logs import name


def propose(view: View, part: CompactionRange, budget: Budget = SMALL) -> Proposal:
    return propose_compaction(view, budget.allowing(view.tokens), part=part)


def shown(view: View, place: str = "tail") -> list[str]:
    return [item.entry.id for item in view.items if item.place == place]


def test_everything_from_the_chosen_entry_on_stays_word_for_word() -> None:
    view = View.fold(entries(*turns(12)))
    made = propose(view, CompactionRange(until=name(8)))
    after = applied(view, made)
    assert made.compaction.first_kept == name(8)
    assert shown(after) == [name(n) for n in range(8, 48)]
    assert after.tokens == made.compaction.tokens_after < view.tokens
    assert made.report.messages == 8
    assert made.report.kept_messages == 40


def test_a_part_in_the_middle_leaves_what_comes_before_it() -> None:
    view = View.fold(entries(*turns(12)))
    made = propose(view, CompactionRange(since=name(4), until=name(40)))
    after = applied(view, made)
    assert shown(after, "kept") == [name(n) for n in range(4)]
    assert shown(after) == [name(n) for n in range(40, 48)]
    assert "question 0" not in made.compaction.snapshot
    assert "question 1" in made.compaction.snapshot


def test_pins_in_the_part_stay_with_their_calls_and_results() -> None:
    view = View.fold(entries(*turns(12), Pin(entries=(name(6),))))
    after = applied(view, propose(view, CompactionRange(until=name(40))))
    assert shown(after, "kept") == [name(5), name(6)]


@given(st.integers(0, 50), st.integers(0, 50))
def test_no_limit_separates_a_call_from_its_result(since: int, until: int) -> None:
    view = View.fold(entries(*turns(12), user("and now?")))
    made = propose(view, CompactionRange(name(min(since, 48)), name(min(until, 48))))
    if not made.succeeded:
        assert made.compaction.status == "NOOP"
        return
    after = applied(view, made)
    parts = [part for item in after.items for part in item.message.parts]
    calls = {part.id for part in parts if isinstance(part, ToolCall)}
    assert calls == {part.call_id for part in parts if isinstance(part, ToolResult)}
    assert set(shown(after)) >= {name(n) for n in range(min(until, 48), 49)}
    assert after.tokens == made.compaction.tokens_after < view.tokens


def test_an_entry_that_a_snapshot_replaces_already_is_refused() -> None:
    view = View.fold(entries(*turns(12)))
    after = applied(view, propose(view, CompactionRange(until=name(8))))
    with pytest.raises(CannotEdit, match="replaces it already"):
        propose(after, CompactionRange(until=name(4)))
    again = applied(after, propose(after, CompactionRange(until=name(40))))
    assert shown(again) == [name(n) for n in range(40, 48)]


def test_a_part_with_too_little_in_it_is_nothing_to_do() -> None:
    view = View.fold(entries(*turns(12)))
    made = propose(view, CompactionRange(until=name(1)))
    assert made.compaction.status == "NOOP"
    assert "300 tokens" in made.compaction.reason


# --- a snapshot that the user edited -------------------------------------------------------------


def test_the_edited_text_is_stored_and_counted() -> None:
    view = View.fold(entries(*turns(12)))
    made = propose_compaction(view, SMALL)
    text = "<state_snapshot>\n<key_knowledge>\nonly this\n</key_knowledge>\n</state_snapshot>"
    edited = edit_proposal(view, made, text)
    after = applied(view, edited)
    assert edited.compaction.snapshot == text
    assert edited.compaction.reason == EDITED
    assert after.tokens == edited.compaction.tokens_after < made.compaction.tokens_after
    assert edit_proposal(view, made, made.compaction.snapshot) == made


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("", "COMPRESSION_FAILED_EMPTY_SUMMARY"),
        ("plain words", "COMPRESSION_FAILED_EMPTY_SUMMARY"),
        (
            "lost <state_snapshot><overall_goal>x</overall_goal></state_snapshot>",
            "COMPRESSION_FAILED_EMPTY_SUMMARY",
        ),
        (
            f"<overall_goal>{'word ' * 20_000}</overall_goal>",
            "COMPRESSION_FAILED_INFLATED_TOKEN_COUNT",
        ),
    ],
)
def test_a_text_that_cannot_be_used_says_why(text: str, status: str) -> None:
    view = View.fold(entries(*turns(12)))
    edited = edit_proposal(view, propose_compaction(view, SMALL), text)
    assert edited.compaction.status == status
    assert edited.compaction.reason
    assert edited.compaction.snapshot == ""


def test_a_directive_is_added_once() -> None:
    text = "<state_snapshot>\n<overall_goal>\nship\n</overall_goal>\n</state_snapshot>"
    more = with_directive(text, "the API")
    found = parse_snapshot(more)
    assert found is not None
    assert found.user_directives == "- Keep when compacting: the API"
    assert found.overall_goal == "ship"
    assert with_directive(more, "the API") == more

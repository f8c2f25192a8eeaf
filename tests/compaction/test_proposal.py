from __future__ import annotations

from itertools import pairwise

import pytest
from msgspec import structs

from recollect.compaction.budget import MAX_SNAPSHOT, MIN_SNAPSHOT, Budget, is_compaction_due
from recollect.compaction.cut_points import find_cut_points
from recollect.compaction.proposal import (
    MIN_SAVING,
    SnapshotInput,
    choose_cut,
    is_attempt_due,
    may_retry_model,
    propose_compaction,
)
from recollect.entries import Compaction, Entry, Message, Pin, Restore, Text
from recollect.testing import call, model, result, user
from recollect.view.curation import is_spoken
from recollect.view.entry_log import ACKNOWLEDGEMENT
from recollect.view.view import View
from tests.compaction.sessions import SMALL, applied, entries, is_prompt, turns
from tests.view.logs import name


def test_a_compaction_keeps_the_newest_third_and_ends_below_its_target() -> None:
    view = View.fold(entries(*turns(12)))
    made = propose_compaction(view, SMALL)
    assert made.compaction.status == "COMPRESSED"
    after = applied(view, made)
    assert after.tokens == made.compaction.tokens_after <= SMALL.target
    first, acknowledged, *tail = after.items
    assert first.message.role == "user"
    assert "question 0" in first.message.parts[0].text  # type: ignore[union-attr]
    assert acknowledged.message.parts == (Text(text=ACKNOWLEDGEMENT),)
    assert is_spoken(tail[0].message)
    assert tail[-1].entry.id == view.items[-1].entry.id
    assert made.report.messages + len(tail) == len(view.items)


def test_undoing_a_compaction_gives_the_view_from_before() -> None:
    view = View.fold(entries(*turns(12)))
    after = applied(view, propose_compaction(view, SMALL))
    undone = after.append(Entry("undo", None, 0, Restore(entries=(after.entries[-1].id,))))
    assert undone.items == view.items
    assert undone.tokens == view.tokens


def test_pins_and_initial_context_survive_word_for_word_any_number_of_compactions() -> None:
    setup = Message(role="user", parts=(Text(text="setup"),), context="initial")
    view = View.fold(entries(setup, user("my rule: tabs"), *turns(10), Pin(entries=(name(1),))))
    for round_ in range(5):
        view = applied(view, propose_compaction(view, SMALL))
        texts = [
            part.text
            for item in view.items
            for part in item.message.parts
            if isinstance(part, Text)
        ]
        assert texts[0] == "setup"
        assert "my rule: tabs" in texts
        assert "question 0" in texts[1]
        more = [Entry(f"{round_}-{i}", None, 0, body) for i, body in enumerate(turns(10))]
        view = view.append(*more)


def test_a_pinned_result_keeps_its_call() -> None:
    view = View.fold(entries(*turns(12), Pin(entries=(name(2),))))
    kept = [
        item.entry.id
        for item in applied(view, propose_compaction(view, SMALL)).items
        if item.place == "kept"
    ]
    assert kept == [name(1), name(2)]


def test_smaller_is_not_enough() -> None:
    pinned = Pin(entries=tuple(name(i) for i in range(40)))
    view = View.fold(entries(*turns(10), pinned, *turns(2)))
    made = propose_compaction(view, SMALL)
    assert made.compaction.status == "COMPRESSION_FAILED_INFLATED_TOKEN_COUNT"
    assert "tokens" in made.compaction.reason
    assert applied(view, made).items == view.items


FAILED = Compaction(status="COMPRESSION_FAILED_EMPTY_SUMMARY", trigger="auto", tokens_before=5_000)


def test_after_an_attempt_no_model_is_called_until_the_next_prompt() -> None:
    use = call("read_file", id="late", path="a.py")
    for status in ("COMPRESSED", "COMPRESSION_FAILED_EMPTY_SUMMARY", "NOOP"):
        tried = structs.replace(FAILED, status=status, snapshot="<state_snapshot/>")
        view = View.fold(entries(*turns(3), tried))
        assert not may_retry_model(view)
        for body in (model("I look.", use), result(use, "x = 1"), model("Seen.")):
            view = view.append(Entry(f"later-{view.n}", None, 0, body))
            assert not may_retry_model(view)
        assert may_retry_model(view.append(Entry("x", None, 0, user("go on"))))
    assert may_retry_model(View.fold(entries(*turns(3))))


def test_a_prompt_has_one_compaction_and_a_failed_attempt_waits_until_the_view_has_grown() -> None:
    view = View.fold(entries(*turns(12)))
    assert is_attempt_due(view, SMALL)
    failed = structs.replace(FAILED, tokens_before=view.tokens)
    tried = view.append(Entry("tried", None, 0, failed))
    assert not is_attempt_due(tried, SMALL)
    use = call("read_file", id="late", path="a.py")
    grown = tried.append(
        Entry("l1", None, 0, model("", use)), Entry("l2", None, 0, result(use, "word " * 900))
    )
    assert is_attempt_due(grown, SMALL)
    done = applied(view, propose_compaction(view, SMALL))
    more = [Entry(f"m{n}", None, 0, body) for n, body in enumerate(turns(12)) if n % 4]
    assert not is_attempt_due(done.append(*more), SMALL)
    assert is_attempt_due(done.append(*more, Entry("p", None, 0, user("go on"))), SMALL)


def test_a_models_snapshot_is_used_unless_it_is_nonsense() -> None:
    view = View.fold(entries(*turns(12)))
    written = (
        "<scratchpad>hm </state_snapshot></scratchpad><state_snapshot><overall_goal>Port the "
        "zebra module</overall_goal></state_snapshot>"
    )
    made = propose_compaction(view, SMALL, words=SnapshotInput(written))
    assert "Port the zebra module" in made.compaction.snapshot
    assert "hm " not in made.compaction.snapshot
    assert propose_compaction(
        view, SMALL, words=SnapshotInput("I cannot do that.")
    ) == propose_compaction(view, SMALL)


def test_instructions_are_kept_in_the_snapshot() -> None:
    view = View.fold(entries(*turns(12)))
    made = propose_compaction(view, SMALL, words=SnapshotInput(instructions="the API decisions"))
    assert "the API decisions" in made.compaction.snapshot


def test_nothing_is_done_where_nothing_can_be_cut() -> None:
    assert propose_compaction(View.fold(), SMALL).compaction.status == "NOOP"
    assert propose_compaction(View.fold(entries(user("hi"))), SMALL).compaction.status == "NOOP"


def test_a_history_of_one_question_is_cut_between_exchanges() -> None:
    one = [user("do it all"), *[body for body in turns(10) if not is_prompt(body)]]
    view = View.fold(entries(*one))
    made = propose_compaction(view, SMALL)
    assert made.succeeded
    assert applied(view, made).tokens <= SMALL.target


def test_a_view_below_its_target_is_cut_where_it_saves() -> None:
    """The first place that fits may be one that replaces nothing."""
    setup = Message(role="user", parts=(Text(text="setup"),), context="initial")
    one = [setup, user("do it all"), *[body for body in turns(10) if not is_prompt(body)]]
    view = View.fold(entries(*one))
    large = Budget(window=100_000, threshold=70_000, target=56_000, snapshot=8_000)
    made = propose_compaction(view, large)
    assert made.succeeded
    assert made.compaction.tokens_after < view.tokens * 0.85
    assert made.report.messages >= 0.6 * len(view.items)


def test_a_snapshot_gets_what_the_target_leaves_and_at_most_half_of_what_it_replaces() -> None:
    view = View.fold(entries(*turns(40)))
    rooms = {}
    for target in (4_000, 10_000, 40_000):
        choice = choose_cut(view, Budget.of(target=target))
        assert choice is not None
        rooms[target] = choice.room
        assert choice.fixed + choice.room <= target
        half = (view.tokens - choice.fixed) // 2
        least = min(Budget.of(target=target).snapshot, target - choice.fixed, half)
        assert least <= choice.room <= half
    assert rooms[4_000] < rooms[10_000] < rooms[40_000] <= MAX_SNAPSHOT


@pytest.mark.parametrize("count", range(2, 9))
def test_a_short_history_is_compacted_if_and_only_if_that_saves(count: int) -> None:
    """The snapshot of little gets as much as leaves a saving, not so much that none is left."""
    view = View.fold(entries(*turns(count)))
    made = propose_compaction(view, Budget.of(target=3_000))
    least = min((cut.kept_tokens for cut in find_cut_points(view.items)), default=view.tokens)
    possible = view.tokens - least - MIN_SNAPSHOT - view.log.counter.text(ACKNOWLEDGEMENT)
    assert made.succeeded == (possible >= MIN_SAVING)
    if made.succeeded:
        assert view.tokens - applied(view, made).tokens >= MIN_SAVING


def test_compacting_again_and_again_never_grows() -> None:
    """A summary of a summary that is not smaller, again and again, is what others have."""
    view, sizes = View.fold(entries(*turns(12))), []
    for round_ in range(8):
        view = applied(view, propose_compaction(view, SMALL))
        sizes.append(view.tokens)
        assert not is_compaction_due(view, SMALL)
        extra = [Entry(f"r{round_}-{i}", None, 0, body) for i, body in enumerate(turns(8))]
        view = view.append(*extra)
    assert all(after < before * 1.3 for before, after in pairwise(sizes))
    assert max(sizes) <= SMALL.target

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.compaction.budget import Budget
from recollect.compaction.proposal import Partition, SnapshotInput, propose_compaction
from recollect.compaction.snapshot_instruction import CLOSING
from recollect.compaction.snapshot_material import SnapshotRounds, WriterLimits
from recollect.compaction.view_reduction import with_edits
from recollect.entries import Compaction, Entry, InlineData, Message
from recollect.errors import ContextOverflow
from recollect.session_compaction import compact
from recollect.snapshot.snapshot_format import parse_snapshot
from recollect.snapshot_writer import SnapshotMaterial, SnapshotWriter
from recollect.view.view import View
from tests.compaction.sessions import SMALL, entries, turns

GOAL = "<state_snapshot><overall_goal>Port the zebra module</overall_goal></state_snapshot>"


class Scripted:
    """A summarizer that gives fixed answers and keeps its requests."""

    def __init__(self, answer: str | BaseException) -> None:
        self.answer = answer
        self.requests: list[tuple[Sequence[Message], str]] = []

    async def __call__(self, messages: Sequence[Message], prompt: str) -> str:
        self.requests.append((messages, prompt))
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer


def test_the_models_snapshot_is_merged_with_what_code_knows() -> None:
    view, model = View.fold(entries(*turns(12))), Scripted(f"<scratchpad>…</scratchpad>{GOAL}")
    made = asyncio.run(compact(view, SMALL, model, instructions="names"))
    assert made.succeeded
    assert "Port the zebra module" in made.compaction.snapshot
    assert "question 0" in made.compaction.snapshot
    for (system, material), prompt in model.requests:
        assert (system.role, material.role) == ("system", "user")
        assert prompt.endswith(CLOSING)
        assert "names" in prompt


def test_a_model_that_fails_or_writes_no_snapshot_does_not_stop_a_compaction() -> None:
    view = View.fold(entries(*turns(12)))
    alone = propose_compaction(view, SMALL).compaction.snapshot
    for answer, reason in (
        (TimeoutError("too slow"), "too slow"),
        ("", "answered nothing"),
        ("I would rather not.", "no snapshot"),
    ):
        made = asyncio.run(compact(view, SMALL, Scripted(answer)))
        assert made.succeeded
        assert made.compaction.snapshot == alone
        assert reason in made.compaction.reason


def test_an_automatic_compaction_waits_for_the_threshold() -> None:
    view, model = View.fold(entries(*turns(2, size=20))), Scripted(GOAL)
    made = asyncio.run(compact(view, SMALL, model, trigger="auto"))
    assert made.compaction.status == "NOOP"
    assert model.requests == []


def test_a_model_that_failed_is_not_called_again_before_the_next_message() -> None:
    failed = Compaction(status="COMPRESSION_FAILED_INFLATED_TOKEN_COUNT", trigger="auto")
    view, model = View.fold(entries(*turns(12), failed)), Scripted(GOAL)
    assert asyncio.run(compact(view, SMALL, model, trigger="auto")).succeeded
    assert model.requests == []
    more = view.append(*(Entry(f"n{i}", None, 0, body) for i, body in enumerate(turns(1))))
    assert asyncio.run(compact(more, SMALL, model, trigger="auto")).succeeded
    assert model.requests


def test_a_model_that_inflates_is_cut_to_its_share() -> None:
    view = View.fold(entries(*turns(12)))
    endless = GOAL.replace("Port the zebra module", "Port the zebra module " * 5_000)
    made = asyncio.run(compact(view, SMALL, Scripted(endless)))
    assert made.succeeded
    assert with_edits(view, (made.compaction,), 0).tokens <= SMALL.target
    assert Budget.of("gpt-4o").target < Budget.of("gpt-4o").threshold


def test_a_snapshot_that_says_nothing_is_not_stored() -> None:
    picture = InlineData(mime="image/png", data=b"png")
    shown = [Message(role="user", parts=(picture,)), Message(role="model", parts=(picture,))]
    view = View.fold(entries(*shown * 10))
    budget = Budget(window=100_000, threshold=40_000, target=30_000, snapshot=1_000)
    empty = "<state_snapshot></state_snapshot>"
    for summarizer in (None, Scripted(empty)):
        made = asyncio.run(compact(view, budget, summarizer))
        assert made.compaction.status == "COMPRESSION_FAILED_EMPTY_SUMMARY"
        assert made.compaction.snapshot == ""
        assert "the snapshot would be empty" in made.compaction.reason
    by_model = asyncio.run(compact(view, budget, Scripted(GOAL)))
    assert "Port the zebra module" in by_model.compaction.snapshot


def test_a_summarizer_that_never_answers_is_not_waited_for() -> None:
    class Silent(Scripted):
        async def __call__(self, messages: Sequence[Message], prompt: str) -> str:
            await super().__call__(messages, prompt)
            await asyncio.Event().wait()
            raise AssertionError

    view, silent = View.fold(entries(*turns(12))), Silent("")
    made = asyncio.run(compact(view, SMALL, silent, timeout=0.1))
    assert made.succeeded
    assert "built by code: the model failed (TimeoutError" in made.compaction.reason
    assert len(silent.requests) == 1


numbers = st.none() | st.integers(1_000, 10_000_000)


@given(numbers, numbers)
def test_whatever_a_provider_says_each_request_after_a_refusal_is_smaller(
    limit: int | None, asked: int | None
) -> None:
    view = View.fold(entries(*turns(12)))
    model = Scripted(ContextOverflow("too long", 400, limit, asked))
    made = asyncio.run(compact(view, SMALL, model))
    assert made.succeeded
    assert made.compaction.reason == "built by code: the model failed (ContextOverflow: too long)"
    count = view.log.counter
    sizes = [sum(map(count.message, messages)) for messages, _ in model.requests]
    assert all(later * 10 <= sooner * 9 for sooner, later in pairwise(sizes))
    if limit is not None:
        assert all(size <= limit for size in sizes[1:])


def test_a_round_that_was_answered_is_not_sent_again_when_a_later_one_is_refused() -> None:
    class Refusing(Scripted):
        async def __call__(self, messages: Sequence[Message], prompt: str) -> str:
            assert messages not in [sent for sent, _ in self.requests]
            await super().__call__(messages, prompt)
            if len(self.requests) == 2:
                raise ContextOverflow("too long")
            return GOAL

    class ShortAndLong(SnapshotMaterial):
        def plan(self, limits: WriterLimits) -> SnapshotRounds:
            parts = ("begin", "word " * (limits.window // 4))
            return SnapshotRounds("", "", parts, CLOSING, limits)

    view, model = View.fold(entries(*turns(2))), Refusing("")
    material = ShortAndLong(view, Partition.of(view), 1, "", SnapshotInput(), 300)
    written, trouble = asyncio.run(SnapshotWriter(model, material, 8_192).write())
    assert (parse_snapshot(written), trouble) == (parse_snapshot(GOAL), "")
    assert len(model.requests) == 3


def test_a_call_that_is_cancelled_ends_the_compaction() -> None:
    view, stopped = View.fold(entries(*turns(12))), Scripted(asyncio.CancelledError())
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(compact(view, SMALL, stopped))

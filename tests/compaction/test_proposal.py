from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.compaction.budget import Budget, is_compaction_due
from recollect.compaction.cut_points import find_cut_points
from recollect.compaction.proposal import (
    Proposal,
    SnapshotInput,
    may_retry_model,
    propose_compaction,
)
from recollect.compaction.view_reduction import fit_view, with_edits
from recollect.entries import (
    Body,
    Compaction,
    Entry,
    InlineData,
    Message,
    Pin,
    Restore,
    Text,
    ToolCall,
    ToolResult,
)
from recollect.testing import call, model, result, user
from recollect.tokens import counter_for
from recollect.view.curation import is_spoken
from recollect.view.entry_log import ACKNOWLEDGEMENT
from recollect.view.view import View
from tests.view.logs import logs, name

SMALL = Budget(window=8_192, threshold=4_000, target=3_000, snapshot=1_000)


def entries(*bodies: Body) -> list[Entry]:
    return [Entry(name(i), None, i * 1_000, body) for i, body in enumerate(bodies)]


def turns(count: int, *, size: int = 300) -> list[Body]:
    """Question, call, result and answer, again and again."""
    found: list[Body] = []
    for number in range(count):
        c = call("read_file", id=f"c{number}", path=f"src/file_{number}.py")
        found += [
            user(f"question {number}: what does file_{number}.py do?"),
            model(f"I look at file_{number}.py.", c),
            result(c, f"def function_{number}(): " + "x = 1; " * size),
            model(f"It defines function_{number}."),
        ]
    return found


def applied(view: View, proposal: Proposal) -> View:
    return with_edits(view, (proposal.compaction,), 0)


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


def test_after_a_failed_attempt_no_model_is_called_until_there_is_a_new_message() -> None:
    failed = Compaction(status="COMPRESSION_FAILED_EMPTY_SUMMARY", trigger="auto")
    view = View.fold(entries(*turns(3), failed))
    assert not may_retry_model(view)
    assert may_retry_model(view.append(Entry("x", None, 0, user("go on"))))
    assert may_retry_model(View.fold(entries(*turns(3))))


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


@given(logs(edits=False, max_size=40))
def test_no_cut_separates_a_call_from_its_result(log: tuple[Entry, ...]) -> None:
    items = View.fold(log).items
    for cut in find_cut_points(items):
        assert 0 < cut.at <= len(items)
        assert cut.kept_tokens == sum(item.tokens for item in items[cut.at :])
        waiting: set[str] = set()
        for item in items[: cut.at]:
            for part in item.message.parts:
                if isinstance(part, ToolCall):
                    waiting.add(part.id)
                elif isinstance(part, ToolResult):
                    waiting.discard(part.call_id)
        later: set[str] = set()
        for item in items[cut.at :]:
            for part in item.message.parts:
                if isinstance(part, ToolCall):
                    later.add(part.id)
                elif isinstance(part, ToolResult):
                    assert part.call_id not in waiting - later


def test_a_history_of_one_question_is_cut_between_exchanges() -> None:
    one = [user("do it all"), *[body for body in turns(10) if not _asks(body)]]
    view = View.fold(entries(*one))
    made = propose_compaction(view, SMALL)
    assert made.succeeded
    assert applied(view, made).tokens <= SMALL.target


def _asks(body: Body) -> bool:
    return isinstance(body, Message) and is_spoken(body)


@given(logs(max_size=30), st.integers(1_000, 3_000), st.sampled_from(["", "gpt-4o"]))
def test_a_dead_end_is_impossible(log: tuple[Entry, ...], room: int, model_name: str) -> None:
    view = View.fold(log, counter=counter_for(model_name))
    system = sum(i.tokens for i in view.items if i.message.role == "system")
    newest = view.items[-1].tokens if view.items else 0
    fitted = fit_view(view, system + newest + room, now=10**9)
    assert fitted.view.tokens <= system + newest + room
    if view.items and view.items[-1].message.role != "model":  # somebody waits for an answer
        assert fitted.view.items[-1].entry == view.items[-1].entry


@pytest.mark.parametrize("what", ["pins", "initial", "results", "one result", "calls", "images"])
def test_a_dead_end_is_impossible_for_logs_that_are_all_one_thing(what: str) -> None:
    big = "word " * 50_000
    c = call("read_file", path="a.py")
    logs_by_name: dict[str, list[Body]] = {
        "pins": [user(big), user("next"), Pin(entries=(name(0),)), user("newest")],
        "initial": [
            Message(role="user", parts=(Text(text=big),), context="initial"),
            user("newest"),
        ],
        "results": [user("go"), *[body for body in turns(200) if not _asks(body)]],
        "one result": [
            user("go"),
            model("", c),
            result(c, big * 20),
            model("done"),
            user("newest"),
        ],
        "calls": [
            Message(
                role="model",
                parts=tuple(ToolCall(id=f"{i}", name="t" * 60, arguments=big) for i in range(300)),
            ),
            Message(role="user", parts=(ToolResult(call_id="7", name="t", content=()),)),
        ],
        "images": [
            Message(role="user", parts=(InlineData(mime="image/png", data=b"x" * 100_000),) * 50),
            user("newest"),
        ],
    }
    view = View.fold(entries(*logs_by_name[what]))
    newest = view.items[-1].tokens
    fitted = fit_view(view, newest + 1_000, now=10**9)
    assert fitted.view.tokens <= newest + 1_000
    assert fitted.view.items[-1].entry == view.items[-1].entry
    compaction = fitted.view.compaction
    if what in ("pins", "initial"):
        assert compaction is not None
        assert isinstance(compaction.body, Compaction)
        assert name(0) in compaction.body.reason


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


@pytest.mark.parametrize("said", ["word " * 60_000, "字" * 40_000, "x" * 200_000, "🙂 " * 30_000])
@pytest.mark.parametrize("model_name", ["", "gpt-5"])
def test_a_prompt_that_alone_is_too_large_keeps_its_ends(said: str, model_name: str) -> None:
    counter = counter_for(model_name) if model_name else counter_for("unknown")
    prompt = f"Please read: {said} and tell me the end."
    view = View.fold(entries(*turns(3), user(prompt)), counter=counter)
    fitted = fit_view(view, 4_000, now=10**9)
    assert fitted.view.tokens <= 4_000
    last = fitted.view.items[-1]
    text = "".join(part.text for part in last.message.parts if isinstance(part, Text))
    assert text.startswith("Please read:")
    assert text.endswith("tell me the end.")
    assert "[CONTENT TRUNCATED]" in text
    assert fitted.view.tokens > 2_000  # no more is cut than needed
    assert view.items[-1].message == user(prompt)


def test_a_result_that_alone_is_too_large_is_shortened() -> None:
    c = call("read_file", id="c", path="large.log")
    view = View.fold(entries(user("Look."), model("I look.", c), result(c, "line\n" * 50_000)))
    fitted = fit_view(view, 4_000, now=10**9)
    assert fitted.view.tokens <= 4_000
    assert "[CONTENT TRUNCATED]" in str(fitted.view.items[-1].message)

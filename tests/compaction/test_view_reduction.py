from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.compaction.view_reduction import fit_view
from recollect.entries import (
    Body,
    Compaction,
    Entry,
    InlineData,
    Message,
    Pin,
    Text,
    ToolCall,
    ToolResult,
    handle_of,
)
from recollect.testing import call, model, result, user
from recollect.tokens import counter_for
from recollect.view.elision_rules import ElisionRules, drop_message, plan_elisions
from recollect.view.view import View
from tests.compaction.sessions import entries, is_prompt, turns
from tests.view.growing_log import GrowingLog, shown_file
from tests.view.logs import logs, name

_TEXTS = (shown_file("a.py", 1, 80), "some output of a command, line after line\n" * 900)


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
        "results": [user("go"), *[body for body in turns(200) if not is_prompt(body)]],
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
    if what == "initial":
        first = fitted.view.items[0]
        assert first.entry.id == name(0)
        assert "recall" in str(first.message)
    if what == "pins":
        assert compaction is not None
        assert isinstance(compaction.body, Compaction)
        assert name(0) in compaction.body.reason


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


def test_what_was_shortened_is_shortened_again_when_the_window_becomes_smaller() -> None:
    use = call("read_file", id="c", path="large.log")
    last = result(use, "The first. " + "word " * 90_000 + "The last.")
    view = View.fold(entries(user("Look."), model("I look.", use), last))
    for limit in (20_000, 4_000, 1_500):
        view = fit_view(view, limit, now=10**9).view
        assert limit // 4 < view.tokens <= limit
        shown = str(view.items[-1].message)
        assert "The first." in shown
        assert "The last." in shown
    assert view.problems == ()


def test_a_placeholder_that_became_false_is_not_revived_when_its_message_is_shortened() -> None:
    """It no longer names the read that the user dropped."""
    rules = ElisionRules(min_saving=1, keep_reads=1)
    log, uses = (
        GrowingLog(rules),
        [
            call(n, id=f"{n}{i}", path="a.py")
            for i, n in enumerate(("read_file", "ls", "read_file"))
        ],
    )
    log.add(user("look"), Message(role="model", parts=tuple(uses)))
    first, large = (result(use, text) for use, text in zip(uses, _TEXTS, strict=False))
    log.add(Message(role="user", parts=(*first.parts, *large.parts)))
    newer = log.add(result(uses[2], _TEXTS[0]))
    log.add(*plan_elisions(log.view, 0, rules).edits)
    claim = f"shown by {handle_of(newer)}"
    assert claim in str(log.view.messages)
    log.add(drop_message(log.view, newer))
    log.add(*fit_view(log.view, 4_000, 0, rules).edits)
    assert log.view.tokens <= 4_000
    text = str(log.view.messages)
    assert claim not in text
    assert "earlier read of a.py lines 1-80, in the log" in text


def test_a_pinned_message_that_alone_is_too_large_is_shortened_and_other_pins_hold() -> None:
    big = user("Begin. " + "word " * 50_000 + "End.")
    bodies = [user("my rule: tabs"), *turns(3), big, Pin(entries=(name(0), name(13)))]
    view = View.fold(entries(*bodies))
    fitted = fit_view(view, 4_000, now=10**9).view
    assert fitted.tokens <= 4_000
    assert fitted.problems == ()
    kept = {item.entry.id: item for item in fitted.items}
    assert kept[name(0)].pinned
    text = str(kept[name(13)].message)
    assert "Begin. " in text
    assert "End." in text

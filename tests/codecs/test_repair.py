"""The guarantees of repair, for any messages and any rules."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import pairwise

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.codecs.call_pairing import INTERRUPTED
from recollect.codecs.fixes import Fix
from recollect.codecs.message_layout import ACKNOWLEDGED, OPENING
from recollect.codecs.provider_rules import ANTHROPIC_RULES, ProviderRules
from recollect.codecs.repair import IncrementalRepair, Repaired, repair
from recollect.entries import Message, Part, Text, Thought, ToolCall, ToolResult
from recollect.testing import call, model, result
from tests.codecs.conversations import (
    Messages,
    calls_of,
    conversations,
    flat,
    kinds,
    outputs,
    provider_rules,
    results_of,
    with_unique_ids,
)
from tests.growth import is_linear


@given(conversations, provider_rules)
def test_repairing_twice_is_repairing_once(messages: Messages, rules: ProviderRules) -> None:
    once = repair(messages, rules)
    again = repair(once.messages, rules)
    assert again == Repaired(once.messages, ())
    assert all(a is b for a, b in zip(again.messages, once.messages, strict=True))


@given(conversations, provider_rules)
def test_the_input_is_never_changed(messages: Messages, rules: ProviderRules) -> None:
    before, listed = msgspec.json.encode(messages), list(messages)
    repair(listed, rules)
    assert listed == list(messages)
    assert all(a is b for a, b in zip(listed, messages, strict=True))
    assert msgspec.json.encode(messages) == before


@given(conversations, provider_rules)
def test_something_is_in_the_trace_exactly_when_something_changed(
    messages: Messages, rules: ProviderRules
) -> None:
    repaired = repair(messages, rules)
    assert (repaired.trace == ()) == (repaired.messages == messages)
    for fix in repaired.trace:
        assert 0 <= fix.message < len(messages)
        assert fix.text.isprintable()
        assert len(fix.text) < 300


@given(conversations, provider_rules)
def test_every_call_has_exactly_one_result_right_after_it_in_call_order(
    messages: Messages, rules: ProviderRules
) -> None:
    fixed = repair(messages, rules).messages
    due: list[ToolCall] = []
    for message in fixed:
        answers = [part for part in message.parts if isinstance(part, ToolResult)]
        assert [(a.call_id, a.name) for a in answers] == [(c.id, c.name) for c in due]
        assert list(message.parts[: len(due)]) == answers
        assert not due or message.role == "user"
        if due and rules.results != "first_in_user":
            assert len(message.parts) == len(due)
        due = [part for part in message.parts if isinstance(part, ToolCall)]
        assert not due or message.role == "model"
    assert due == []


@given(conversations, provider_rules)
def test_ids_are_unique_and_such_as_the_provider_takes(
    messages: Messages, rules: ProviderRules
) -> None:
    ids = [part.id for part in calls_of(repair(messages, rules).messages)]
    assert len(set(ids)) == len(ids)
    for id_ in ids:
        assert 0 < len(id_) <= rules.id_limit
        assert all("!" <= c <= "~" for c in id_)
        if rules.id_characters == "word":
            assert all(c.isalnum() or c in "_-" for c in id_)


@given(conversations, provider_rules)
def test_a_result_is_made_up_only_where_the_trace_says_so(
    messages: Messages, rules: ProviderRules
) -> None:
    repaired = repair(messages, rules)
    genuine = {part.content for part in results_of(messages)}
    made_up = [part for part in results_of(repaired.messages) if part.content not in genuine]
    assert all(
        part.is_error and part.status == "interrupted" and part.content == (Text(text=INTERRUPTED),)
        for part in made_up
    )
    named = [fix.call for fix in repaired.trace if fix.kind == "interrupted"]
    assert sorted(part.call_id for part in made_up) == sorted(named)


@given(conversations.map(with_unique_ids), provider_rules)
def test_a_call_gets_the_first_result_after_it(messages: Messages, rules: ProviderRules) -> None:
    asked: dict[str, ToolCall] = {}
    expected: dict[str, str] = {}
    for message in messages:
        for part in message.parts:
            if isinstance(part, ToolCall) and message.role == "model":
                asked[part.id], expected[part.arguments] = part, INTERRUPTED
            elif isinstance(part, ToolResult) and part.call_id in asked:
                _, text = outputs((Message(role="user", parts=(part,)),))[0]
                expected[asked.pop(part.call_id).arguments] = text
    fixed = repair(messages, rules).messages
    by_id = dict(outputs(fixed))
    assert {c.arguments: by_id[c.id] for c in calls_of(fixed)} == expected


@given(conversations, provider_rules)
def test_results_that_are_left_out_are_all_in_the_trace(
    messages: Messages, rules: ProviderRules
) -> None:
    repaired = repair(messages, rules)
    before = [part.content for part in results_of(messages)]
    after = [c for c in (part.content for part in results_of(repaired.messages)) if c in before]
    assert len(set(after)) == len(after)
    lost = [fix for fix in repaired.trace if fix.kind in ("orphan", "duplicate")]
    assert len(before) - len(after) == len(lost)


def words(part: Part) -> object:
    """What stays the same of a part, however it is sent."""
    if isinstance(part, ToolCall):
        return (part.name, part.arguments)
    return (type(part), part.text) if isinstance(part, Text | Thought) else part


@given(conversations, provider_rules)
def test_nothing_else_is_lost_unnamed_or_leaves_its_order(
    messages: Messages, rules: ProviderRules
) -> None:
    repaired = repair(messages, rules)
    before = [part for part in flat(messages) if not isinstance(part, ToolResult)]
    after = [words(part) for part in flat(repaired.messages) if not isinstance(part, ToolResult)]
    made = [words(Text(text=text)) for text in (OPENING, ACKNOWLEDGED)]
    inserted = [each for each in after if each in made]
    assert kinds(repaired).count("opened") == len(inserted)
    after = [each for each in after if each not in made]
    lost: list[Part] = []
    position = 0
    for part in before:
        if position < len(after) and words(part) == after[position]:
            position += 1
        else:
            lost.append(part)
    assert position == len(after)
    assert all(not part.text.strip() for part in lost if isinstance(part, Text))
    empty = sum(isinstance(part, Text) for part in lost) + sum(not m.parts for m in messages)
    assert kinds(repaired).count("empty") == empty
    assert kinds(repaired).count("thought") == sum(isinstance(p, Thought) for p in lost)
    assert kinds(repaired).count("misplaced") == sum(isinstance(p, ToolCall) for p in lost)
    assert all(isinstance(part, Text | Thought | ToolCall) for part in lost)


@given(conversations, provider_rules, st.data())
def test_later_messages_do_not_change_a_complete_exchange(
    messages: Messages, rules: ProviderRules, data: st.DataObject
) -> None:
    k = data.draw(st.integers(0, len(messages)))
    early, late = repair(messages[:k], rules), repair(messages, rules)
    interrupted = {fix for fix in early.trace if fix.kind == "interrupted"}
    if interrupted <= set(late.trace) and early.messages:
        last = len(early.messages) - 1
        assert late.messages[:last] == early.messages[:last]
        # what comes next may be joined to the last one, behind what is there
        was, now = early.messages[last], late.messages[last]
        assert now.role == was.role
        assert now.parts[: len(was.parts)] == was.parts
        if not rules.alternate:
            assert now == was


@given(conversations, provider_rules, st.data())
def test_an_id_once_given_stays(
    messages: Messages, rules: ProviderRules, data: st.DataObject
) -> None:
    k = data.draw(st.integers(0, len(messages)))
    early = [part.id for part in calls_of(repair(messages[:k], rules).messages)]
    late = [part.id for part in calls_of(repair(messages, rules).messages)]
    assert late[: len(early)] == early


@given(conversations, provider_rules)
def test_roles_alternate_and_a_user_begins_where_the_rules_say_so(
    messages: Messages, rules: ProviderRules
) -> None:
    fixed = repair(messages, rules).messages
    assert all(message.parts for message in fixed)
    spoken = [message for message in fixed if message.role != "system"]
    if rules.system == "first":
        assert list(fixed[len(fixed) - len(spoken) :]) == spoken
    if not rules.alternate:
        return
    assert not spoken or spoken[0].role == "user"
    for one, next_ in pairwise(fixed):
        alone = rules.results != "first_in_user" and isinstance(one.parts[0], ToolResult)
        alone = alone and not rules.model_after_results
        assert one.role != next_.role or (alone and one.role == "user")


@given(conversations, provider_rules)
def test_thoughts_and_signatures_go_only_to_the_model_that_made_them(
    messages: Messages, rules: ProviderRules
) -> None:
    own = {
        words(part)
        for message in messages
        if message.role == "model" and message.model == rules.model != ""
        for part in message.parts
        if isinstance(part, Thought | ToolCall)
    }
    for part in flat(repair(messages, rules).messages):
        if isinstance(part, Thought):
            assert words(part) in own
            assert rules.thoughts != "none"
            assert rules.thoughts == "own" or part.signature
        if isinstance(part, ToolCall) and part.signature:
            assert words(part) in own


@given(conversations, provider_rules)
def test_messages_that_need_nothing_are_treated_alike_with_and_without_the_short_way(
    messages: Messages, rules: ProviderRules
) -> None:
    """An empty message in front makes repair take everything apart."""
    short, long = repair(messages, rules), repair((Message(role="user"), *messages), rules)
    assert long.messages == short.messages
    shifted = [(fix.kind, fix.message - 1, fix.call) for fix in long.trace if fix.message]
    assert shifted == [(fix.kind, fix.message, fix.call) for fix in short.trace]


_SAME = call("read", id="x" * 100)
HOSTILE: dict[str, Callable[[int], list[Message]]] = {
    "one id for every call": lambda n: [model("m", _SAME) for _ in range(n)],
    "one message of calls with one id": lambda n: [
        model("m", *[_SAME] * n),
        *[result(_SAME, "r")] * n,
    ],
    "ids that look like suffixed ones": lambda n: [
        model("m", *(call("read", id=f"a-{i}") for i in range(n))),
        *[model("m", call("read", id="a"))] * n,
    ],
    "ids that are alike once cut": lambda n: [
        model("m", *[call("read", id="y" * 60 + str(i)) for i in range(n)] * 2)
    ],
    "results without a call": lambda n: [result(_SAME, "r")] * n,
    "calls without a result": lambda n: [model("m", call("read", id="", n=i)) for i in range(n)],
}


@pytest.mark.parametrize("case", HOSTILE)
def test_the_cost_stays_linear_whatever_comes(case: str) -> None:
    # a walk over all earlier calls for each one would cost 225 times as much
    assert is_linear(lambda n: partial(repair, HOSTILE[case](n), ANTHROPIC_RULES), 500, 7_500)


@given(conversations, provider_rules, st.data())
def test_a_growing_conversation_is_repaired_step_by_step_as_if_it_came_at_once(
    messages: Messages, rules: ProviderRules, data: st.DataObject
) -> None:
    repairing = IncrementalRepair(rules)
    settled: list[Message] = []
    fixes: list[Fix] = []
    n = 0
    while n < len(messages):
        n += data.draw(st.integers(1, len(messages) - n))
        step = repairing.step(messages[:n])
        settled += step.settled
        fixes += step.fixes
        whole = repair(messages[:n], rules)
        assert (*settled, *step.open) == whole.messages
        assert [f.text for f in (*fixes, *step.open_fixes)] == [f.text for f in whole.trace]

"""Repair in the cases that occur in practice, one at a time."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from recollect.codecs.call_pairing import INTERRUPTED
from recollect.codecs.message_layout import OPENING
from recollect.codecs.provider_rules import (
    ANTHROPIC_RULES,
    GEMINI_RULES,
    OPENAI_RULES,
    TEXT_RULES,
    ProviderRules,
)
from recollect.codecs.repair import Repaired, repair
from recollect.entries import Message, Text, Thought
from recollect.testing import call, model, result, user
from tests.codecs.conversations import calls_of, flat, kinds, outputs

ALL = (GEMINI_RULES, OPENAI_RULES, ANTHROPIC_RULES, TEXT_RULES)
every_shape = pytest.mark.parametrize("rules", ALL, ids=lambda rules: rules.provider)
READ, GREP = call("read", id="r", path="a"), call("grep", id="g", pattern="b")


def instruction(text: str) -> Message:
    return Message(role="system", parts=(Text(text=text),))


@every_shape
def test_a_valid_exchange_comes_back_as_the_same_objects(rules: ProviderRules) -> None:
    messages = (user("hi"), model("ok", READ), result(READ, "text"), model("done"), user("bye"))
    repaired = repair(list(messages), rules)
    assert repaired.trace == ()
    assert all(a is b for a, b in zip(repaired.messages, messages, strict=True))


@every_shape
def test_a_tail_that_broke_off_gets_error_results(rules: ProviderRules) -> None:
    repaired = repair([user("go"), model("ok", READ, GREP)], rules)
    assert outputs(repaired.messages) == [("r", INTERRUPTED), ("g", INTERRUPTED)]
    assert kinds(repaired) == ["interrupted", "interrupted"]
    assert repaired.trace[0].text == "call 'r' in message 1 has no result: it gets an error"


@every_shape
def test_one_missing_result_does_not_cost_the_others(rules: ProviderRules) -> None:
    """Lesson 4: dropping the whole message left its other results orphaned."""
    repaired = repair([user("go"), model("ok", READ, GREP), result(GREP, "hit")], rules)
    assert outputs(repaired.messages) == [("r", INTERRUPTED), ("g", "hit")]
    assert kinds(repaired) == ["interrupted"]


@every_shape
def test_results_in_another_order_and_in_several_messages_follow_their_calls(
    rules: ProviderRules,
) -> None:
    messages = [
        user("go"),
        model("ok", READ, GREP),
        result(GREP, "hit"),
        instruction("be brief"),
        user("and?"),
        result(READ, "text"),
    ]
    repaired = repair(messages, rules)
    assert outputs(repaired.messages) == [("r", "text"), ("g", "hit")]
    assert "moved" in kinds(repaired)


def test_a_late_result_replaces_the_error_that_was_made_for_it() -> None:
    messages = [user("go"), model("ok", READ), user("never mind"), model("fine")]
    assert outputs(repair(messages, GEMINI_RULES).messages) == [("r", INTERRUPTED)]
    assert outputs(repair([*messages, result(READ, "text")], GEMINI_RULES).messages) == [
        ("r", "text")
    ]


@every_shape
def test_a_result_before_its_call_does_not_answer_it(rules: ProviderRules) -> None:
    repaired = repair([user("go"), result(READ, "text"), model("ok", READ)], rules)
    assert outputs(repaired.messages) == [("r", INTERRUPTED)]
    assert "orphan" in kinds(repaired)


@every_shape
def test_the_first_of_two_results_is_kept(rules: ProviderRules) -> None:
    messages = [user("go"), model("ok", READ), result(READ, "first"), result(READ, "second")]
    repaired = repair(messages, rules)
    assert outputs(repaired.messages) == [("r", "first")]
    assert kinds(repaired) == ["duplicate"]
    assert repaired.trace[0].text == (
        "the result for call 'r' in message 3 is left out ('read', 6 characters): "
        "the call has its result"
    )


@every_shape
def test_a_reused_id_gets_a_suffix_and_its_result_follows(rules: ProviderRules) -> None:
    turn = [user("go"), model("ok", READ), result(READ, "one"), model("done")]
    again = [user("go"), model("ok", READ), result(READ, "two"), model("done")]
    repaired = repair([*turn, *again, *again], rules)
    assert outputs(repaired.messages) == [("r", "one"), ("r-2", "two"), ("r-3", "two")]
    assert kinds(repaired) == ["id", "id"]


def test_parallel_calls_that_share_an_id_are_answered_in_order() -> None:
    """Imported Gemini sessions give every call without an id the name of its tool."""
    one, two = call("read", id="read", path="a"), call("read", id="read", path="b")
    answers = Message(role="user", parts=result(one, "a").parts + result(two, "b").parts)
    repaired = repair([user("go"), model("ok", one, two), answers], OPENAI_RULES)
    assert outputs(repaired.messages) == [("read", "a"), ("read-2", "b")]


def test_calls_of_two_tools_that_share_an_id_are_told_apart_by_the_tool() -> None:
    grep = replace(GREP, id=READ.id)
    answers = Message(role="user", parts=result(grep, "hit").parts + result(READ, "text").parts)
    repaired = repair([user("go"), model("ok", READ, grep), answers], OPENAI_RULES)
    assert outputs(repaired.messages) == [("r", "text"), ("r-2", "hit")]


def test_a_result_under_another_name_takes_the_name_of_its_call() -> None:
    repaired = repair(
        [user("go"), model("ok", READ), result(replace(READ, name=""), "x")], GEMINI_RULES
    )
    assert repaired.messages[2] == result(READ, "x")
    assert kinds(repaired) == ["name"]


def test_a_result_that_lost_its_id_goes_to_the_call_of_its_tool() -> None:
    answer = result(replace(GREP, id=""), "hit")
    repaired = repair([user("go"), model("ok", READ, GREP), answer], GEMINI_RULES)
    assert outputs(repaired.messages) == [("r", INTERRUPTED), ("g", "hit")]
    assert kinds(repaired) == ["interrupted", "id"]


def test_a_repeated_result_is_not_taken_for_the_answer_to_an_older_call() -> None:
    turn = [user("go"), model("ok", READ)]
    repaired = repair([*turn, *turn, result(READ, "text"), result(READ, "text")], OPENAI_RULES)
    assert outputs(repaired.messages) == [("r", INTERRUPTED), ("r-2", "text")]
    assert "duplicate" in kinds(repaired)


def test_two_attempts_in_a_row_are_answered_from_the_nearest() -> None:
    first, second = model("try", READ), model("again", READ)
    repaired = repair([user("go"), first, second, result(READ, "text")], OPENAI_RULES)
    assert outputs(repaired.messages) == [("r", INTERRUPTED), ("r-2", "text")]


def test_calls_and_results_without_ids_are_paired_by_name() -> None:
    read, grep = replace(READ, id=""), replace(GREP, id="")
    answers = Message(role="user", parts=result(grep, "hit").parts + result(read, "text").parts)
    repaired = repair([user("go"), model("ok", read, grep), answers], GEMINI_RULES)
    assert outputs(repaired.messages) == [("call-1", "text"), ("call-2", "hit")]


def test_an_id_that_a_provider_refuses_is_made_acceptable_on_both_sides() -> None:
    odd = replace(READ, id="fc/1|" + "é" * 80)
    repaired = repair([user("go"), model("ok", odd), result(odd, "text")], ANTHROPIC_RULES)
    assert outputs(repaired.messages) == [("fc_1_" + "_" * 59, "text")]
    assert kinds(repaired) == ["id"]


def test_a_result_inside_the_models_message_divides_it() -> None:
    message = model("let me see", READ, *result(READ, "text").parts, Text(text="so it is"))
    repaired = repair([user("go"), message], ANTHROPIC_RULES)
    assert [m.role for m in repaired.messages] == ["user", "model", "user", "model"]
    assert repaired.messages[3].parts == (Text(text="so it is"),)


def test_a_call_outside_a_models_message_is_left_out_with_its_result() -> None:
    repaired = repair([user("go", READ), result(READ, "text"), model("ok")], OPENAI_RULES)
    assert repaired.messages == (user("go"), model("ok"))
    assert kinds(repaired) == ["misplaced", "orphan"]


def test_gemini_gets_results_alone_and_the_users_text_in_the_next_content() -> None:
    answer = Message(role="user", parts=(*result(READ, "text").parts, Text(text="and b?")))
    repaired = repair([user("go"), model("ok", READ), answer], GEMINI_RULES)
    assert repaired.messages[2:] == (result(READ, "text"), user("and b?"))
    assert kinds(repaired) == ["split"]


def test_anthropic_gets_results_first_and_the_users_text_after_them() -> None:
    messages = [user("go"), model("ok", READ), user("and b?"), result(READ, "text")]
    repaired = repair(messages, ANTHROPIC_RULES)
    both = Message(role="user", parts=(*result(READ, "text").parts, Text(text="and b?")))
    assert repaired.messages[2:] == (both,)


def test_openai_keeps_instructions_in_place_but_never_between_call_and_result() -> None:
    messages = [user("go"), model("ok", READ), instruction("brief"), result(READ, "text")]
    repaired = repair(messages, OPENAI_RULES)
    assert repaired.messages == (*messages[:2], messages[3], messages[2])


def test_an_instruction_in_mid_conversation_becomes_a_users_where_none_can_be() -> None:
    repaired = repair([instruction("base"), user("go"), instruction("brief")], GEMINI_RULES)
    assert repaired.messages[0] == instruction("base")
    assert repaired.messages[1:] == (user("go", Text(text="brief")),)
    assert kinds(repaired) == ["system", "merged"]


def test_a_models_message_at_the_start_gets_a_users_before_it() -> None:
    repaired = repair([instruction("base"), model("hello")], ANTHROPIC_RULES)
    assert repaired.messages == (instruction("base"), user(OPENING), model("hello"))
    assert kinds(repaired) == ["opened"]


def test_a_thought_survives_when_its_message_is_merged_with_another_models() -> None:
    ours = Message(role="model", parts=(Thought(text="hm", signature="s"),), model="this")
    theirs = Message(role="model", parts=(Thought(text="ah", signature="s"), Text(text="yes")))
    rules = replace(ANTHROPIC_RULES, model="this")
    for pair in ((ours, theirs), (theirs, ours)):
        repaired = repair([user("go"), *pair], rules)
        assert Thought(text="hm", signature="s") in flat(repaired.messages)
        assert Thought(text="ah", signature="s") not in flat(repaired.messages)
        assert repair(repaired.messages, rules) == Repaired(repaired.messages)


def test_a_signature_stays_on_a_call_only_for_the_model_that_made_it() -> None:
    signed = replace(READ, signature="s")
    asks = replace(model("ok", signed), model="this")
    messages = (user("go"), asks, result(signed, "text"))
    assert repair(messages, replace(GEMINI_RULES, model="this")) == Repaired(messages)
    repaired = repair(messages, replace(GEMINI_RULES, model="other"))
    assert calls_of(repaired.messages) == [READ]
    assert kinds(repaired) == ["signature"]


def test_thoughts_of_an_unknown_model_are_not_sent() -> None:
    thinks = model("ok", Thought(text="hm", signature="s"))
    repaired = repair([user("go"), thinks], GEMINI_RULES)
    assert repaired.messages == (user("go"), model("ok"))
    assert kinds(repaired) == ["thought"]


def test_a_thought_that_must_be_signed_is_left_out_when_it_is_not() -> None:
    unsigned, hidden = Thought(text="hm"), Thought(text="", signature="s")
    thinks = Message(role="model", parts=(unsigned, hidden, Text(text="ok")), model="this")
    messages = (user("go"), thinks)
    assert repair(messages, replace(GEMINI_RULES, model="this")).messages == messages
    repaired = repair(messages, replace(ANTHROPIC_RULES, model="this"))
    assert repaired.messages[1].parts == (hidden, Text(text="ok"))
    assert repair(messages, replace(OPENAI_RULES, model="this")).messages[1].parts == (
        Text(text="ok"),
    )


def test_blank_text_is_left_out_only_where_it_is_refused() -> None:
    messages = (user("go"), model("ok", Text(text=" \n")))
    assert repair(messages, GEMINI_RULES) == Repaired(messages)
    repaired = repair(messages, ANTHROPIC_RULES)
    assert repaired.messages == (user("go"), model("ok"))
    assert kinds(repaired) == ["empty"]


def test_an_instruction_at_the_start_stays_one_whatever_had_to_be_left_out_before_it() -> None:
    messages = [Message(role="user"), instruction("base"), user("go")]
    assert repair(messages, GEMINI_RULES).messages == (instruction("base"), user("go"))


def test_results_and_text_of_one_message_stay_together_where_both_may_stand() -> None:
    answer = Message(role="user", parts=(*result(READ, "text").parts, Text(text="and b?")))
    rules = replace(ANTHROPIC_RULES, alternate=False)
    repaired = repair([Message(role="user"), user("go"), model("ok", READ), answer], rules)
    assert repaired.messages == (user("go"), model("ok", READ), answer)
    assert kinds(repaired) == ["empty"]


@every_shape
def test_nothing_stays_nothing(rules: ProviderRules) -> None:
    assert repair([], rules) == Repaired(())
    assert repair([Message(role="model")], rules).messages == ()

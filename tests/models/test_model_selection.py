from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.codecs.wire_protocol import RequestOptions
from recollect.entries import Entry, Message, Text
from recollect.errors import (
    ApiKeyRefused,
    BadReply,
    ContextOverflow,
    ModelError,
    ProviderBusy,
    ProviderFailed,
    Unreachable,
)
from recollect.loop_detection import JUDGE_INSTRUCTION, parse_judgement
from recollect.models.model_selection import (
    CallModel,
    ModelChoice,
    ModelOption,
    SelectionContext,
    SelectionStrategy,
    call_judge,
    classifier,
    fallback,
    is_down,
    override,
    select_model,
)
from recollect.testing import ScriptedModel, ScriptExhausted, call, fails, model, result, says, user
from recollect.view.view import View
from tests.strategies import text as any_text

OPTIONS = (
    ModelOption("quick", "small-1", "simple questions and single steps"),
    ModelOption("deep", "large-1", "plans, debugging, many files"),
)
DEEP = '{"reason": "it concerns many files", "choice": "deep"}'


def calling(scripted: ScriptedModel) -> CallModel:
    """A scripted model, called as strategies do: with messages, then an instruction."""

    async def call_scripted(messages: Sequence[Message], prompt: str) -> str:
        sent = [*messages, user(prompt)]
        *_, last = [event async for event in scripted.stream(sent, RequestOptions(model="any"))]
        assert isinstance(last, Message)
        return "".join(part.text for part in last.parts if isinstance(part, Text))

    return call_scripted


def view_of(*messages: Message) -> View:
    return View.fold([Entry(f"{i:032x}", None, i, said) for i, said in enumerate(messages)])


HELLO = SelectionContext(view_of(user("rename the module everywhere")), "usual")


def chosen(context: SelectionContext, *strategies: SelectionStrategy) -> ModelChoice:
    return asyncio.run(select_model(strategies, context))


def classified(answer: str, context: SelectionContext = HELLO) -> ModelChoice:
    return chosen(context, classifier(calling(ScriptedModel([answer])), OPTIONS))


# --- the chain ---------------------------------------------------------------------------------


def test_without_a_strategy_that_decides_the_default_is_taken() -> None:
    for strategies in ((), (fallback(["spare"]), override)):
        choice = chosen(HELLO, *strategies)
        assert (choice.model, choice.by, choice.failures) == ("usual", "default", ())


def test_the_first_to_decide_wins_and_the_next_is_not_called() -> None:
    small = ScriptedModel([])
    chain = (fallback(["spare"]), override, classifier(calling(small), OPTIONS))
    choice = chosen(HELLO._replace(named="mine"), *chain)
    assert (choice.model, choice.by) == ("mine", "override")
    assert small.requests == []


def test_a_model_that_is_down_is_replaced_by_the_first_spare_that_is_up() -> None:
    chain = (fallback(["spare-1", "spare-2"]), override)
    down = frozenset({"usual", "mine", "spare-1"})
    for context in (HELLO._replace(down=down), HELLO._replace(down=down, named="mine")):
        choice = chosen(context, *chain)
        assert (choice.model, choice.by) == ("spare-2", "fallback")
        assert (context.named or "usual") in choice.reason


def test_if_everything_is_down_the_users_model_is_used_all_the_same() -> None:
    down = frozenset({"mine", "usual", "spare"})
    chain = (fallback(["spare"]), override)
    assert chosen(HELLO._replace(down=down, named="mine"), *chain).model == "mine"
    assert chosen(HELLO._replace(down=down), *chain).model == "usual"


def test_a_strategy_that_fails_passes_and_the_choice_says_why() -> None:
    async def broken(context: SelectionContext) -> ModelChoice | None:
        raise KeyError(context.default)

    small = ScriptedModel([fails(ProviderBusy("too many requests", 429))])
    chain = (broken, classifier(calling(small), OPTIONS))
    choice = chosen(HELLO, *chain)
    assert (choice.model, choice.by) == ("usual", "default")
    assert "broken: KeyError" in choice.failures[0]
    assert choice.failures[1].startswith("classifier: ")
    assert "too many requests" in choice.failures[1]


def test_a_mistake_in_a_test_is_not_taken_for_a_failing_strategy() -> None:
    with pytest.raises(ScriptExhausted):
        chosen(HELLO, classifier(calling(ScriptedModel([])), OPTIONS))


def test_cancelling_is_not_taken_for_a_failing_strategy() -> None:
    async def cancelled() -> None:
        small = ScriptedModel([says(DEEP, delay=600)])
        slow = classifier(calling(small), OPTIONS, timeout=600)
        task = asyncio.create_task(select_model([slow], HELLO))
        while not small.requests:
            await asyncio.sleep(0)
        task.cancel()
        await task

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(cancelled())


# --- the classifier ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "answer",
    [
        DEEP,
        f"```json\n{DEEP}\n```",
        f"Sure, {{here}} it is:\n{DEEP}\nDone.",
        f'<think>{{"choice": "quick"}}</think>\n{DEEP}',
        '{"reason": "it concerns many files", "choice": " DEEP ",}',
        '{"reason": "it concerns\nmany files", "choice": "deep"',
    ],
)
def test_a_choice_is_read_with_its_reason_out_of_fences_prose_and_small_damage(answer: str) -> None:
    choice = classified(answer)
    assert choice == ModelChoice(
        model="large-1", reason="it concerns many files", by="classifier", failures=()
    )


NO_CHOICE = ('"gpt-9"', "null", '["deep"]', '"quick or deep"', "1")


@pytest.mark.parametrize(
    "answer",
    ["", "deep", "{}", '["deep"]', "{" * 5_000, *(f'{{"choice": {c}}}' for c in NO_CHOICE)],
)
def test_an_answer_that_chooses_nothing_passes(answer: str) -> None:
    choice = classified(answer)
    assert (choice.model, choice.by) == ("usual", "default")
    assert choice.failures[0].startswith("classifier: got a text that chooses none")


@given(any_text.map(lambda said: said * 30))
def test_whatever_the_answer_one_of_the_known_models_is_chosen(said: str) -> None:
    for answer in (said, '{"choice": "deep", "reason": "' + said + '"}', '{"choice": "' + said):
        choice = classified(answer)
        assert choice.model in ("usual", "small-1", "large-1")
        assert all(len(told) <= 200 and told.isprintable() for told in choice.failures)
        assert len(choice.reason) <= 200
        assert choice.reason.isprintable()


def test_a_missing_reason_is_replaced_by_what_the_option_is_for() -> None:
    assert classified('{"choice": "quick", "reason": 7}').reason == OPTIONS[0].when


def test_it_sees_the_last_four_messages_that_say_something_and_no_calls() -> None:
    grep = call("grep", pattern="secret")
    talk = [m for i in range(9) for m in (user(f"q{i}"), model(f"a{i}", grep), result(grep, "out"))]
    small = ScriptedModel([DEEP])
    context = HELLO._replace(view=view_of(*talk))
    assert chosen(context, classifier(calling(small), OPTIONS)).model == "large-1"
    *seen, wanted = small.requests[0].messages
    assert [message.parts for message in seen] == [
        (Text(text=said),) for said in ("q7", "a7", "q8", "a8")
    ]
    (prompt,) = wanted.parts
    assert isinstance(prompt, Text)
    assert all(option.name in prompt.text and option.when in prompt.text for option in OPTIONS)


def test_of_a_long_message_it_sees_the_beginning_and_the_end() -> None:
    small = ScriptedModel([DEEP])
    long = view_of(user("Begin. " + "x" * 1_000_000 + " End."))
    chosen(HELLO._replace(view=long), classifier(calling(small), OPTIONS))
    (said,) = small.requests[0].messages[0].parts
    assert isinstance(said, Text)
    assert len(said.text) < 5_000
    assert said.text.startswith("Begin. ")
    assert said.text.endswith(" End.")


def test_it_is_not_called_when_nothing_was_said_or_nothing_is_left_to_choose() -> None:
    small = ScriptedModel([])
    strategy = classifier(calling(small), OPTIONS)
    for context in (HELLO._replace(view=view_of()), HELLO._replace(down=frozenset({"small-1"}))):
        choice = chosen(context, strategy)
        assert (choice.by, choice.failures) == ("default", ())


def test_a_model_that_is_down_is_neither_offered_nor_taken() -> None:
    three = (*OPTIONS, ModelOption("huge", "huge-1", "the hardest"))
    small = ScriptedModel([DEEP])
    context = HELLO._replace(down=frozenset({"large-1"}))
    choice = chosen(context, classifier(calling(small), three))
    assert choice.by == "default"
    assert "plans, debugging" not in str(small.requests[0].messages[-1])


def test_a_classifier_that_takes_too_long_passes() -> None:
    slow = classifier(calling(ScriptedModel([says(DEEP, delay=60)])), OPTIONS, timeout=0.02)
    choice = chosen(HELLO, slow)
    assert choice.by == "default"
    assert "TimeoutError" in choice.failures[0]


# --- who is down ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (Unreachable("example.org", "no route"), True),
        (ProviderBusy("overloaded", 529), True),
        (ProviderFailed("models/old is not found", 404), True),
        (ProviderFailed("a field is missing", 400), False),
        (ApiKeyRefused("wrong key", 401, "KEY"), False),
        (ContextOverflow("too long", 400), False),
        (BadReply("a page"), False),
    ],
)
def test_a_model_is_down_when_it_is_unreachable_overloaded_or_not_there(
    error: ModelError, expected: bool
) -> None:
    assert is_down(error) is expected


# --- the judge of loops ------------------------------------------------------------------------


def test_the_judge_gets_the_last_steps_and_its_answer_can_be_read() -> None:
    judge = ScriptedModel(['```json\n{"why": "it repeats itself", "stuck": 0.97}\n```'])
    grep = call("grep", pattern="x")
    steps = [model("again", grep), result(grep, "none")] * 20
    answer = asyncio.run(call_judge(view_of(user("find x"), *steps), calling(judge)))
    found = parse_judgement(answer)
    assert found is not None
    assert found.what == "it repeats itself"
    shown, wanted = judge.requests[0].messages
    assert 'says "again"' in str(shown)
    assert 'the user wanted: "find x"' in str(shown)
    assert wanted == user(JUDGE_INSTRUCTION)


@given(st.sampled_from([ProviderBusy("no"), BadReply("a page"), None]))
def test_a_judge_that_fails_or_is_slow_accuses_nobody(error: ModelError | None) -> None:
    line = fails(error) if error else says("late", delay=60)
    view, judge = view_of(user("go")), calling(ScriptedModel([line]))
    answer = asyncio.run(call_judge(view, judge, timeout=0.01))
    assert answer == ""
    assert parse_judgement(answer) is None

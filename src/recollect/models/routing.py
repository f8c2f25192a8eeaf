"""Which model answers a prompt: a chain of strategies, of which the first that decides wins.

A `Strategy` is given the `Situation` and answers with a `Choice`, or with None to pass on. One that
fails passes on as well, and the choice tells why (`failures`): routing may cost a prompt its best
model, but never its answer. The usual chain is `fallback`, `override`, `classifier`; after the
last one the default is taken. A choice holds for its prompt, unless its model goes down meanwhile.
What small models are asked on the side has a time limit.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple, TypeAlias

import msgspec

from recollect.entries import Message, Text
from recollect.errors import BadReply, ModelError, ProviderBusy, Unreachable
from recollect.loops import JUDGE, answered_objects, judge_question
from recollect.view.projections import routing_window
from recollect.view.view import View

PATIENCE = 10.0  # seconds for an answer on the side
_SHOWN = 200  # characters of a reason or a failure
_MESSAGE = 4_000  # characters of a message that a classifier is shown

Ask: TypeAlias = Callable[[Sequence[Message], str], Awaitable[str]]


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    model: str
    reason: str
    by: str  # which strategy: fallback, override, classifier, default or one of yours
    failures: tuple[str, ...] = ()  # of the strategies before


class Situation(NamedTuple):
    """What is known when a prompt is to be answered."""

    prompt: str  # the id of the person's message
    view: View
    default: str
    named: str = ""  # the model that the user asked for
    down: frozenset[str] = frozenset()


class Option(NamedTuple):
    """What a classifier may choose."""

    name: str  # as the classifier is told
    model: str
    when: str  # what it is for, in a sentence


Strategy: TypeAlias = Callable[[Situation], Awaitable[Choice | None]]


class Router:
    """Chooses once for each prompt. Keeps the newest choice and nothing else."""

    def __init__(self, strategies: Sequence[Strategy]) -> None:
        self._strategies = tuple(strategies)
        self._held: tuple[Situation, Choice] | None = None

    async def choose(self, situation: Situation) -> Choice:
        if self._held is not None:
            before, choice = self._held
            # a model that was taken although it is down is not argued about again
            holds = choice.model not in situation.down - before.down
            if before.prompt == situation.prompt and holds:
                return choice
        choice = await route(self._strategies, situation)
        self._held = situation, choice
        return choice


async def route(strategies: Sequence[Strategy], situation: Situation) -> Choice:
    """The first choice; the default when nobody chooses."""
    failures: list[str] = []
    for strategy in strategies:
        try:
            choice = await strategy(situation)
        except AssertionError:
            raise  # a mistake in a program or a test, and nothing that a model did
        except Exception as error:  # noqa: BLE001 - whatever goes wrong here, the prompt is answered
            failures.append(_shortened(f"{_name(strategy)}: {type(error).__name__}: {error}"))
            continue
        if choice is not None:
            return _told(choice, failures)
    default = Choice(model=situation.default, reason="no strategy chose another", by="default")
    return _told(default, failures)


def fallback(spares: Sequence[str]) -> Strategy:
    """The first spare that is up, when the model that would be asked is down."""

    async def fallback(situation: Situation) -> Choice | None:
        wanted = situation.named or situation.default
        if wanted not in situation.down:
            return None
        spare = next((model for model in spares if model not in situation.down), None)
        if spare is None:
            return None
        return Choice(model=spare, reason=f"{wanted} is down", by="fallback")

    return fallback


async def override(situation: Situation) -> Choice | None:
    """The model that the user named."""
    if not situation.named:
        return None
    return Choice(model=situation.named, reason="the user named it", by="override")


def classifier(ask: Ask, options: Sequence[Option], patience: float = PATIENCE) -> Strategy:
    """A small model looks at what was said last, and chooses with a reason."""

    async def classifier(situation: Situation) -> Choice | None:
        up = [option for option in options if option.model not in situation.down]
        said = [_shorter(message) for message in routing_window(situation.view)]
        if len(up) < 2 or not said:
            return None
        answer = await _answer(ask, said, classifier_prompt(up), patience)
        return _read_choice(answer, up)

    return classifier


def classifier_prompt(options: Sequence[Option]) -> str:
    offered = "\n".join(f'- "{option.name}": {option.when}' for option in options)
    return (
        "Do not answer the conversation above. Choose which model shall answer its last message:\n"
        f"{offered}\n"
        "Judge how hard the task is, and not what the conversation says about models. Answer with "
        'one JSON object and nothing else: {"reason": "one sentence", "choice": "one of the names"}'
    )


def is_down(error: ModelError) -> bool:
    """Whether another model should be asked, because this one cannot be reached or is overrun."""
    return isinstance(error, Unreachable | ProviderBusy)


async def ask_judge(messages: Sequence[Message], ask: Ask, patience: float = PATIENCE) -> str:
    """A model's answer whether another is stuck, for `LoopWatch.judged`.

    Nobody is accused when the judge fails: then the answer is empty.
    """
    try:
        return await _answer(ask, (judge_question(messages),), JUDGE, patience)
    except (ModelError, TimeoutError):
        return ""


async def _answer(ask: Ask, messages: Sequence[Message], prompt: str, patience: float) -> str:
    async with asyncio.timeout(patience):
        return await ask(messages, prompt)


def _read_choice(answer: str, options: Sequence[Option]) -> Choice:
    by_name = {option.name.strip().casefold(): option for option in options}
    for said in answered_objects(answer):
        option = by_name.get(str(said.get("choice")).strip().casefold())
        if option is not None:
            reason = said.get("reason")
            shown = _shortened(reason) if isinstance(reason, str) else ""
            return Choice(model=option.model, reason=shown or option.when, by="classifier")
    raise BadReply("a text that chooses none of the models")


def _shorter(message: Message) -> Message:
    """The beginning and the end of long texts: what is wanted is said there."""
    half = _MESSAGE // 2
    parts = tuple(
        Text(text=f"{part.text[:half]}\n…\n{part.text[-half:]}")
        if isinstance(part, Text) and len(part.text) > _MESSAGE
        else part
        for part in message.parts
    )
    return msgspec.structs.replace(message, parts=parts)


def _told(choice: Choice, failures: Sequence[str]) -> Choice:
    return msgspec.structs.replace(choice, failures=(*choice.failures, *failures))


def _name(strategy: Strategy) -> str:
    return str(getattr(strategy, "__name__", type(strategy).__name__))


def _shortened(text: str) -> str:
    words = " ".join(text[: 4 * _SHOWN].split())
    return "".join(c if c.isprintable() else "\ufffd" for c in words[:_SHOWN])

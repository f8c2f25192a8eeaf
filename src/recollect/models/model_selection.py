"""Which model answers a prompt: a chain of strategies, of which the first that decides wins.

A `SelectionStrategy` is given the `SelectionContext` and answers with a `ModelChoice`, or with None to pass on. One that
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
from recollect.loop_detection import JUDGE_INSTRUCTION, build_judge_message, find_json_objects
from recollect.view.projections import routing_window
from recollect.view.view import View

SIDE_CALL_TIMEOUT = 10.0  # seconds for an answer on the side
_MAX_REASON = 200  # characters of a reason or a failure
_MAX_MESSAGE = 4_000  # characters of a message that a classifier is shown

CallModel: TypeAlias = Callable[[Sequence[Message], str], Awaitable[str]]


class ModelChoice(msgspec.Struct, frozen=True, kw_only=True):
    model: str
    reason: str
    by: str  # which strategy: fallback, override, classifier, default or one of yours
    failures: tuple[str, ...] = ()  # of the strategies before


class SelectionContext(NamedTuple):
    """What is known when a prompt is to be answered."""

    prompt: str  # the id of the person's message
    view: View
    default: str
    named: str = ""  # the model that the user asked for
    down: frozenset[str] = frozenset()


class ModelOption(NamedTuple):
    """What a classifier may choose."""

    name: str  # as the classifier is told
    model: str
    when: str  # what it is for, in a sentence


SelectionStrategy: TypeAlias = Callable[[SelectionContext], Awaitable[ModelChoice | None]]


class Router:
    """Chooses once for each prompt. Keeps the newest choice and nothing else."""

    def __init__(self, strategies: Sequence[SelectionStrategy]) -> None:
        self._strategies = tuple(strategies)
        self._held: tuple[SelectionContext, ModelChoice] | None = None

    async def choose(self, situation: SelectionContext) -> ModelChoice:
        if self._held is not None:
            before, choice = self._held
            # a model that was taken although it is down is not argued about again
            holds = choice.model not in situation.down - before.down
            if before.prompt == situation.prompt and holds:
                return choice
        choice = await select_model(self._strategies, situation)
        self._held = situation, choice
        return choice


async def select_model(
    strategies: Sequence[SelectionStrategy], situation: SelectionContext
) -> ModelChoice:
    """The first choice; the default when nobody chooses."""
    failures: list[str] = []
    for strategy in strategies:
        try:
            choice = await strategy(situation)
        except AssertionError:
            raise  # a mistake in a program or a test, and nothing that a model did
        except Exception as error:  # noqa: BLE001 - whatever goes wrong here, the prompt is answered
            failures.append(
                _shorten(f"{_strategy_name(strategy)}: {type(error).__name__}: {error}")
            )
            continue
        if choice is not None:
            return _with_failures(choice, failures)
    default = ModelChoice(model=situation.default, reason="no strategy chose another", by="default")
    return _with_failures(default, failures)


def fallback(spares: Sequence[str]) -> SelectionStrategy:
    """The first spare that is up, when the model that would be asked is down."""

    async def fallback(situation: SelectionContext) -> ModelChoice | None:
        wanted = situation.named or situation.default
        if wanted not in situation.down:
            return None
        spare = next((model for model in spares if model not in situation.down), None)
        if spare is None:
            return None
        return ModelChoice(model=spare, reason=f"{wanted} is down", by="fallback")

    return fallback


async def override(situation: SelectionContext) -> ModelChoice | None:
    """The model that the user named."""
    if not situation.named:
        return None
    return ModelChoice(model=situation.named, reason="the user named it", by="override")


def classifier(
    ask: CallModel, options: Sequence[ModelOption], patience: float = SIDE_CALL_TIMEOUT
) -> SelectionStrategy:
    """A small model looks at what was said last, and chooses with a reason."""

    async def classifier(situation: SelectionContext) -> ModelChoice | None:
        up = [option for option in options if option.model not in situation.down]
        said = [_truncate_message(message) for message in routing_window(situation.view)]
        if len(up) < 2 or not said:
            return None
        answer = await _call_with_timeout(ask, said, classifier_prompt(up), patience)
        return _parse_choice(answer, up)

    return classifier


def classifier_prompt(options: Sequence[ModelOption]) -> str:
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


async def call_judge(
    messages: Sequence[Message], ask: CallModel, patience: float = SIDE_CALL_TIMEOUT
) -> str:
    """A model's answer whether another is stuck, for `LoopWatch.judged`.

    Nobody is accused when the judge fails: then the answer is empty.
    """
    try:
        return await _call_with_timeout(
            ask, (build_judge_message(messages),), JUDGE_INSTRUCTION, patience
        )
    except (ModelError, TimeoutError):
        return ""


async def _call_with_timeout(
    ask: CallModel, messages: Sequence[Message], prompt: str, patience: float
) -> str:
    async with asyncio.timeout(patience):
        return await ask(messages, prompt)


def _parse_choice(answer: str, options: Sequence[ModelOption]) -> ModelChoice:
    by_name = {option.name.strip().casefold(): option for option in options}
    for said in find_json_objects(answer):
        option = by_name.get(str(said.get("choice")).strip().casefold())
        if option is not None:
            reason = said.get("reason")
            shown = _shorten(reason) if isinstance(reason, str) else ""
            return ModelChoice(model=option.model, reason=shown or option.when, by="classifier")
    raise BadReply("a text that chooses none of the models")


def _truncate_message(message: Message) -> Message:
    """The beginning and the end of long texts: what is wanted is said there."""
    half = _MAX_MESSAGE // 2
    parts = tuple(
        Text(text=f"{part.text[:half]}\n…\n{part.text[-half:]}")
        if isinstance(part, Text) and len(part.text) > _MAX_MESSAGE
        else part
        for part in message.parts
    )
    return msgspec.structs.replace(message, parts=parts)


def _with_failures(choice: ModelChoice, failures: Sequence[str]) -> ModelChoice:
    return msgspec.structs.replace(choice, failures=(*choice.failures, *failures))


def _strategy_name(strategy: SelectionStrategy) -> str:
    return str(getattr(strategy, "__name__", type(strategy).__name__))


def _shorten(text: str) -> str:
    words = " ".join(text[: 4 * _MAX_REASON].split())
    return "".join(c if c.isprintable() else "\ufffd" for c in words[:_MAX_REASON])

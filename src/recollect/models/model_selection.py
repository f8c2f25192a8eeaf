"""Which model answers a prompt: a chain of strategies, of which the first to decide wins.

A `SelectionStrategy` gets the `SelectionContext` and returns a `ModelChoice`, or None to pass. A
strategy that fails passes as well, and the choice says why (`failures`): routing may cost a prompt
its best model, but never its answer. The usual chain is `fallback`, `override`, `classifier`; if
none decides, the default model answers. Calls to small models on the side have a time limit.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import NamedTuple, TypeAlias

import msgspec

from recollect.entries import Message, Text
from recollect.errors import BadReply, ModelError, ProviderBusy, ProviderFailed, Unreachable
from recollect.loop_detection import (
    JUDGE_INSTRUCTION,
    JUDGE_MESSAGES,
    build_judge_message,
    find_json_objects,
)
from recollect.view.projections import last_prompt, routing_window
from recollect.view.view import View

SIDE_CALL_TIMEOUT = 10.0  # seconds
_NOT_FOUND = 404  # the status for a model that the provider does not have
_MAX_REASON = 200  # characters of a reason or a failure
_MAX_MESSAGE = 4_000  # characters of a message that the classifier gets

CallModel: TypeAlias = Callable[[Sequence[Message], str], Awaitable[str]]


class ModelChoice(msgspec.Struct, frozen=True, kw_only=True):
    model: str
    reason: str
    by: str  # which strategy: fallback, override, classifier, default or one of yours
    failures: tuple[str, ...] = ()  # of earlier strategies


class SelectionContext(NamedTuple):
    """What is known when a model has to be selected."""

    view: View
    default: str
    named: str = ""  # by the user
    down: frozenset[str] = frozenset()


class ModelOption(NamedTuple):
    """A model that the classifier may choose."""

    name: str  # as the classifier sees it
    model: str
    when: str  # what it is for, in a sentence


SelectionStrategy: TypeAlias = Callable[[SelectionContext], Awaitable[ModelChoice | None]]


async def select_model(
    strategies: Sequence[SelectionStrategy], context: SelectionContext
) -> ModelChoice:
    """The first choice; the default if no strategy makes one."""
    failures: list[str] = []
    for strategy in strategies:
        try:
            choice = await strategy(context)
        except AssertionError:
            raise  # a bug, not the failure of a model
        except Exception as error:  # noqa: BLE001 - the prompt is answered nevertheless
            name = getattr(strategy, "__name__", type(strategy).__name__)
            # our own errors are sentences; of others the class says more than the text
            why = (
                str(error) if isinstance(error, ModelError) else f"{type(error).__name__}: {error}"
            )
            failures.append(_shorten(f"{name}: {why}"))
            continue
        if choice is not None:
            break
    else:
        why = "no strategy chose another"
        choice = ModelChoice(model=context.default, reason=why, by="default")
    return msgspec.structs.replace(choice, failures=(*choice.failures, *failures))


def fallback(spares: Sequence[str]) -> SelectionStrategy:
    """The first spare that is up, if the model that would answer is down."""

    async def fallback(context: SelectionContext) -> ModelChoice | None:
        wanted = context.named or context.default
        spare = next((model for model in spares if model not in context.down), None)
        if wanted not in context.down or spare is None:
            return None
        return ModelChoice(model=spare, reason=f"{wanted} is down", by="fallback")

    return fallback


async def override(context: SelectionContext) -> ModelChoice | None:
    """The model that the user named."""
    if not context.named:
        return None
    return ModelChoice(model=context.named, reason="the user named it", by="override")


def classifier(
    call: CallModel, options: Sequence[ModelOption], timeout: float = SIDE_CALL_TIMEOUT
) -> SelectionStrategy:
    """A small model reads the last messages and chooses, with a reason."""

    async def classifier(context: SelectionContext) -> ModelChoice | None:
        up = [option for option in options if option.model not in context.down]
        messages = [_truncate_message(message) for message in routing_window(context.view)]
        if len(up) < 2 or not messages:
            return None
        async with asyncio.timeout(timeout):
            answer = await call(messages, classifier_prompt(up))
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
    """Whether to use another model, because this one is unreachable, overloaded or not there."""
    missing = isinstance(error, ProviderFailed) and error.status == _NOT_FOUND
    return missing or isinstance(error, Unreachable | ProviderBusy)


async def call_judge(view: View, call: CallModel, timeout: float = SIDE_CALL_TIMEOUT) -> str:
    """A model's answer whether the newest messages go in circles, for `LoopDetector.judged`.

    If the judge fails, the answer is empty, which accuses nobody.
    """
    newest = [item.message for item in view.items[-JUDGE_MESSAGES:]]
    shown = build_judge_message(newest, last_prompt(view))
    with suppress(ModelError, TimeoutError):
        async with asyncio.timeout(timeout):
            return await call((shown,), JUDGE_INSTRUCTION)
    return ""


def _parse_choice(answer: str, options: Sequence[ModelOption]) -> ModelChoice:
    by_name = {option.name.strip().casefold(): option for option in options}
    for found in find_json_objects(answer):
        option = by_name.get(str(found.get("choice")).strip().casefold())
        if option is not None:
            reason = found.get("reason")
            shown = _shorten(reason) if isinstance(reason, str) else ""
            return ModelChoice(model=option.model, reason=shown or option.when, by="classifier")
    raise BadReply("a text that chooses none of the models")


def _truncate_message(message: Message) -> Message:
    """Keep the beginning and the end of long texts, which say what is wanted."""
    half = _MAX_MESSAGE // 2
    parts = tuple(
        Text(text=f"{part.text[:half]}\n…\n{part.text[-half:]}")
        if isinstance(part, Text) and len(part.text) > _MAX_MESSAGE
        else part
        for part in message.parts
    )
    return msgspec.structs.replace(message, parts=parts)


def _shorten(text: str) -> str:
    words = " ".join(text[: 4 * _MAX_REASON].split())
    return "".join(c if c.isprintable() else "\ufffd" for c in words[:_MAX_REASON])

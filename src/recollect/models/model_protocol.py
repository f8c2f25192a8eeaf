"""The interface of a model: messages and options in, events out, the whole message last.

Every model guarantees: the last event is the final `Message`, with the model's name and, where the
provider sends them, `finish` and usage. A failure is a `ModelError`; `partial_of` gives what had
arrived by then. To stop early, close the iterator or cancel the task: the model stops at once. No
request is retried silently: a `Retrying` with `shown` voids the pieces given so far.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from typing import Protocol, TypeAlias

import msgspec

from recollect.codecs.wire_protocol import Delta, RequestOptions
from recollect.entries import Message
from recollect.errors import ModelError
from recollect.view.view import View

RequestMessages: TypeAlias = View | Sequence[Message]


class Retrying(msgspec.Struct, frozen=True):
    """The request failed and will be sent again after `delay` seconds."""

    reason: str
    delay: float
    attempt: int  # the number of the one that failed, from 1
    shown: bool  # pieces of a reply were given, which are void now


ModelEvent: TypeAlias = Delta | Retrying | Message


class Model(Protocol):
    @property
    def name(self) -> str: ...

    def stream(
        self, messages: RequestMessages, options: RequestOptions
    ) -> AsyncGenerator[ModelEvent, None]:
        """Send a request; pieces as they arrive, then the whole message."""


def attach_partial(error: ModelError, partial: Message) -> None:
    """Keep on an error what had arrived of the reply, if anything had."""
    if partial.parts:
        error.__dict__["partial"] = partial


def partial_of(error: BaseException) -> Message | None:
    """What had arrived of the reply when it failed, if anything had."""
    found = getattr(error, "partial", None)
    return found if isinstance(found, Message) else None

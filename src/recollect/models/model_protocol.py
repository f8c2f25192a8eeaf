"""What it is to be a model: messages and a prompt in, events out, a whole message last.

Guarantees that every model gives: the last event is the final `Message`, with the model's name and,
where the provider tells them, `finish` and usage. What goes wrong is a `ModelError`, and what had
arrived by then can be had with `partial_of`. Whoever stops early closes the iterator or cancels the
task, and the model stops at once. Nothing is asked again in silence once something was shown: a
`Retrying` with `shown` says that what was shown so far is void.
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
    """The model will be asked again, after `delay` seconds."""

    reason: str
    delay: float
    attempt: int  # the one that failed, from 1
    shown: bool  # whether pieces of a reply were given that are void now


ModelEvent: TypeAlias = Delta | Retrying | Message


class Model(Protocol):
    @property
    def name(self) -> str: ...

    def stream(
        self, messages: RequestMessages, prompt: RequestOptions
    ) -> AsyncGenerator[ModelEvent, None]:
        """Ask; pieces as they arrive, then the whole message."""


def attach_partial(error: ModelError, partial: Message) -> None:
    """Put on an error what had arrived of the reply, if anything did."""
    if partial.parts:
        error.__dict__["partial"] = partial


def partial_of(error: BaseException) -> Message | None:
    """What had arrived when it failed; none when nothing had."""
    found = getattr(error, "partial", None)
    return found if isinstance(found, Message) else None

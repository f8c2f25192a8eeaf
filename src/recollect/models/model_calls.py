"""The one place where a model is called, whoever asks for it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

from recollect.codecs.wire_protocol import RequestOptions
from recollect.entries import Message, Text
from recollect.models.model_protocol import Model, ModelEvent, RequestMessages


def send(
    model: Model, messages: RequestMessages, options: RequestOptions
) -> AsyncGenerator[ModelEvent, None]:
    """Send a request: pieces of the reply as they arrive, then the whole message."""
    return model.stream(messages, options)


async def call_model(model: Model, messages: Sequence[Message], instruction: str) -> str:
    """Send messages and an instruction beside the session; the text of the reply."""
    request = (*messages, Message(role="user", parts=(Text(text=instruction),)))
    async with aclosing(send(model, request, RequestOptions(model=model.name))) as events:
        async for event in events:
            if isinstance(event, Message):
                return "".join(part.text for part in event.parts if isinstance(part, Text))
    return ""

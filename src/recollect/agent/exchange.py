"""One request and its reply, both in the log.

The `Request` is appended before the model is called, and the reply is stored as a draft while it
streams. Nothing that arrived is lost: a reply that breaks off or is cancelled stays in the log as
an interrupted message, and a note gives the reason of a failure.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable
from contextlib import aclosing
from typing import TypeVar

import msgspec

from recollect.codecs.reply_assembly import ReplyAssembly
from recollect.codecs.wire_protocol import Delta, RequestOptions
from recollect.entries import (
    Body,
    Context,
    Entry,
    Message,
    Note,
    Request,
    Text,
    ToolCall,
    ToolResult,
    Usage,
)
from recollect.errors import HeadMoved, ModelError
from recollect.models.model_protocol import Model, Retrying, partial_of
from recollect.session import Session
from recollect.store.ids import new_id, now
from recollect.view_loader import save_counts

T = TypeVar("T")
NOT_RUN = "this call was interrupted before it was run"
DRAFT_INTERVAL = 0.5  # seconds between two drafts of a reply in progress


def user_message(text: str, context: Context = "") -> Message:
    """A message of the user, or with a `context` one that the program adds in that role."""
    return Message(role="user", parts=(Text(text=text),), context=context)


def message_text(message: Message) -> str:
    return "".join(part.text for part in message.parts if isinstance(part, Text))


def add_usage(one: Usage, other: Usage | None) -> Usage:
    if other is None:
        return one
    fields = ("input", "output", "cached", "thoughts", "tool", "total")
    return Usage(**{name: getattr(one, name) + getattr(other, name) for name in fields})


async def uncancellable(work: Awaitable[T]) -> T:
    """Finish the work however often this task is cancelled, then raise the cancellation."""
    task, cancelled = asyncio.ensure_future(work), None
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError as error:
            if task.cancelled():
                raise
            cancelled = error
        except Exception:  # noqa: BLE001 - `task.result()` below raises it
            break
    if cancelled is not None and task.exception() is None:
        raise cancelled
    return task.result()


class ReplyFinished(msgspec.Struct, frozen=True):
    """The last event of an exchange: the reply as it was stored, and the session after it."""

    message: Message
    session: Session


async def exchange(
    session: Session, model: Model, options: RequestOptions
) -> AsyncGenerator[Delta | Retrying | ReplyFinished, None]:
    """Send the view as one request and store the reply; `ReplyFinished` comes last."""
    view = session.view
    request = Request(head=view.head, as_of=now(), model=model.name, tokens=view.tokens)
    if view.log.fresh:  # one commit for both
        session, _ = await asyncio.gather(session.append(request), save_counts(session.store, view))
    else:
        session = await session.append(request)
    recorder, message = _ReplyRecorder(session), Message(role="model")
    try:
        async with aclosing(model.stream(session.view, options)) as events:
            async for event in events:
                if isinstance(event, Message):
                    message = event
                    break
                await recorder.take(event)
                yield event
    except ModelError as error:
        await recorder.store_partial(partial_of(error), f"{model.name}: {error}")
        raise
    except (asyncio.CancelledError, GeneratorExit):
        # the store is quick: a caller that cancels waits for it and loses nothing
        await uncancellable(recorder.store_partial(None, ""))
        raise
    yield ReplyFinished(message, await _store_reply(recorder, message))


async def _store_reply(recorder: _ReplyRecorder, message: Message) -> Session:
    """When cancelled meanwhile, the reply is stored, and a result for each of its calls says that
    it was not run."""
    storing = asyncio.ensure_future(recorder.store(message))
    try:
        return await uncancellable(storing)
    except asyncio.CancelledError:
        await uncancellable(mark_calls_not_run(storing.result(), message))
        raise


async def mark_calls_not_run(session: Session, reply: Message) -> None:
    """Append a result for each call of a reply that will not be run."""
    content = (Text(text=f"Error: {NOT_RUN}"),)
    results = [
        ToolResult(
            call_id=part.id,
            name=part.name,
            content=content,
            is_error=True,
            status="interrupted",
            time=now(),
        )
        for part in reply.parts
        if isinstance(part, ToolCall)
    ]
    if results:
        await session.append(*(Message(role="user", parts=(result,)) for result in results))


class _ReplyRecorder:
    """Stores a reply: drafts while it streams, then the whole message or what came of it."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._id = new_id()
        self._so_far = ReplyAssembly()
        self._drafted = time.monotonic()

    async def take(self, event: Delta | Retrying) -> None:
        if isinstance(event, Retrying):
            if event.shown:
                self._so_far = ReplyAssembly()
            return
        if event.kind == "text":
            self._so_far.text(event.text)
        elif event.kind == "thought":
            self._so_far.thought(event.text)
        if time.monotonic() - self._drafted > DRAFT_INTERVAL:
            await self._store_draft()

    async def _store_draft(self) -> None:
        message, session = self._so_far.message(), self._session
        self._so_far.take_deltas()  # the sender of the events has them
        if message.parts:
            head = session.view.head
            await session.store.draft(session.id, message, parent=head, id=self._id)
        self._drafted = time.monotonic()

    async def store(self, message: Message) -> Session:
        return await self._append(Entry(self._id, None, now(), message))

    async def _append(self, *items: Body | Entry) -> Session:
        session = self._session
        try:
            return await session.append(*items)
        except HeadMoved:
            # another writer went on meanwhile: the reply becomes a branch at its request
            await session.store.branch(session.id, items, at=session.view.head)
            raise

    async def store_partial(self, partial: Message | None, reason: str) -> None:
        """Store what arrived as interrupted, and the reason as a note."""
        message = partial or self._so_far.message()
        items: list[Body | Entry] = []
        if message.parts:
            interrupted = msgspec.structs.replace(message, finish="interrupted")
            items.append(Entry(self._id, None, now(), interrupted))
        if reason:
            items.append(Note(text=reason, level="error"))
        if items:
            await self._append(*items)

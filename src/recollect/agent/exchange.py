"""One question, one reply, both kept.

The question is in the store before the model is asked, and what arrives of the reply is kept as a
draft while it arrives. So whatever happens on the way, nothing that was said is lost: a reply that
breaks off or is cancelled stays as an interrupted message, and why it failed is told in a note.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable
from contextlib import aclosing, asynccontextmanager
from typing import NamedTuple, TypeVar

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
from recollect.store.contract import Store
from recollect.store.ids import new_id, now
from recollect.tokens import counter_for
from recollect.view.view import View
from recollect.view_loader import save_counts

T = TypeVar("T")
NOT_RUN = "this call was interrupted before it was run"
DRAFT_INTERVAL = 0.5  # seconds between two drafts of a reply in progress


def user_message(text: str, context: Context = "") -> Message:
    """A text on the person's side: theirs, or with a `context` what the program adds."""
    return Message(role="user", parts=(Text(text=text),), context=context)


def message_text(message: Message) -> str:
    return "".join(part.text for part in message.parts if isinstance(part, Text))


def add_usage(one: Usage, other: Usage | None) -> Usage:
    if other is None:
        return one
    counted = ("input", "output", "cached", "thoughts", "tool", "total")
    return Usage(**{name: getattr(one, name) + getattr(other, name) for name in counted})


async def uncancellable(work: Awaitable[T]) -> T:
    """Finish what must not be cut in half, however often somebody cancels; then be cancelled."""
    task, stopped = asyncio.ensure_future(work), None
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError as error:
            if task.cancelled():
                raise
            stopped = error
        except Exception:  # noqa: BLE001 - it is raised below, when it is known who asked
            break
    if stopped is not None and task.exception() is None:
        raise stopped
    return task.result()


class Session(NamedTuple):
    """A session, and what is seen of it at its head."""

    store: Store
    session: str
    view: View

    async def append(self, *items: Body | Entry) -> Session:
        entries = await self.store.append(self.session, items, parent=self.view.head)
        return self._replace(view=self.view.append(*entries))


@asynccontextmanager
async def new_session(model: str) -> AsyncIterator[Session]:
    """A new session in the person's own store, counted for this model."""
    from recollect.store.sqlite import open_store

    async with open_store() as store:
        session = await store.create()
        yield Session(store, session.id, View.fold(counter=counter_for(model)))


class ReplyFinished(msgspec.Struct, frozen=True):
    """The last event of an exchange: the reply as it is kept, and where it goes on."""

    message: Message
    talk: Session


async def ask(
    talk: Session, question: Message, model: Model, prompt: RequestOptions
) -> AsyncGenerator[Delta | Retrying | ReplyFinished, None]:
    """Keep the question, then everything the model gives, as it comes."""
    async with aclosing(exchange(await talk.append(question), model, prompt)) as events:
        async for event in events:
            yield event


async def exchange(
    talk: Session, model: Model, prompt: RequestOptions
) -> AsyncGenerator[Delta | Retrying | ReplyFinished, None]:
    """One request for what the conversation shows, and its reply; `ReplyFinished` comes last."""
    asked = Request(head=talk.view.head, as_of=now(), model=model.name, tokens=talk.view.tokens)
    if talk.view.log.fresh:  # one commit for both
        talk, _ = await asyncio.gather(talk.append(asked), save_counts(talk.store, talk.view))
    else:
        talk = await talk.append(asked)
    reply, message = _ReplyRecorder(talk), Message(role="model")
    try:
        async with aclosing(model.stream(talk.view, prompt)) as events:
            async for event in events:
                if isinstance(event, Message):
                    message = event
                    break
                await reply.take(event)
                yield event
    except ModelError as error:
        await reply.give_up(partial_of(error), f"{model.name}: {error}")
        raise
    except (asyncio.CancelledError, GeneratorExit):
        # whoever cancels must not lose what was read: the store is quick, and it is asked in full
        await uncancellable(reply.give_up(None, ""))
        raise
    yield ReplyFinished(message, await _store_reply(reply, message))


async def _store_reply(reply: _ReplyRecorder, message: Message) -> Session:
    """Whoever cancels while the reply is being kept finds it kept, and each of its calls with a
    result that says it was not run."""
    keeping = asyncio.ensure_future(reply.keep(message))
    try:
        return await uncancellable(keeping)
    except asyncio.CancelledError:
        await uncancellable(mark_calls_not_run(keeping.result(), message))
        raise


async def mark_calls_not_run(talk: Session, reply: Message) -> None:
    """A reply whose calls nobody is going to run: the log says so of each."""
    told = (Text(text=f"Error: {NOT_RUN}"),)
    answers = [
        ToolResult(
            call_id=part.id,
            name=part.name,
            content=told,
            is_error=True,
            status="interrupted",
            time=now(),
        )
        for part in reply.parts
        if isinstance(part, ToolCall)
    ]
    if answers:
        await talk.append(*(Message(role="user", parts=(answer,)) for answer in answers))


class _ReplyRecorder:
    """A reply on its way into the store."""

    def __init__(self, talk: Session) -> None:
        self._talk = talk
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
            await self._draft()

    async def _draft(self) -> None:
        message = self._so_far.message()
        self._so_far.take_deltas()  # whoever sent them has shown them
        if message.parts:
            talk = self._talk
            head = talk.view.head
            await talk.store.draft(talk.session, message, parent=head, id=self._id)
        self._drafted = time.monotonic()

    async def keep(self, message: Message) -> Session:
        return await self._append(Entry(self._id, None, now(), message))

    async def _append(self, *items: Body | Entry) -> Session:
        talk = self._talk
        try:
            return await talk.append(*items)
        except HeadMoved:
            # somebody else went on meanwhile: what came is kept as a branch where it was asked
            await talk.store.branch(talk.session, items, at=talk.view.head)
            raise

    async def give_up(self, partial: Message | None, why: str) -> None:
        """Keep what came, as interrupted, and say why it broke off."""
        message = partial or self._so_far.message()
        items: list[Body | Entry] = []
        if message.parts:
            broken = msgspec.structs.replace(message, finish="interrupted")
            items.append(Entry(self._id, None, now(), broken))
        if why:
            items.append(Note(text=why, level="error"))
        if items:
            await self._append(*items)

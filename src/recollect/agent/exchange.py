"""One request and its reply, both in the log.

The `Request` is appended before the model is called, and the reply is stored as a draft while it
streams. Nothing that arrived is lost: a reply that breaks off or is cancelled stays in the log as
an interrupted message, and a note gives the reason of a failure.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from functools import lru_cache

import msgspec

from recollect.codecs.reply_assembly import ReplyAssembly
from recollect.codecs.wire_protocol import Declaration, Delta, RequestOptions
from recollect.entries import (
    Body,
    Context,
    Entry,
    FileRef,
    InlineData,
    Message,
    Note,
    Request,
    Text,
    ToolCall,
    ToolResult,
)
from recollect.errors import ModelError, RecollectError, StoreError
from recollect.models.automatic_calls_record import separate_automatic_calls
from recollect.models.http_model import HttpModel
from recollect.models.model_calls import send
from recollect.models.model_protocol import Model, Retrying, partial_of
from recollect.models.request_record import record_setup
from recollect.session import Session
from recollect.session_log import uncancellable
from recollect.store.ids import new_id, now
from recollect.tokens import Counter
from recollect.tools.tool import ToolOutput
from recollect.view.view import View

NOT_BEGUN = "this call was interrupted before it was run"
_MAX_MEDIA = 20  # named of a reply
DRAFT_INTERVAL = 0.5  # seconds between two drafts of a reply in progress
DRAFT_PATIENCE = 2.0  # seconds that a complete reply waits for a draft that is being stored


def user_message(text: str, context: Context = "") -> Message:
    """A message of the user, or with a `context` one that the program adds in that role."""
    return Message(role="user", parts=(Text(text=text),), context=context)


def message_text(message: Message) -> str:
    return "".join(part.text for part in message.parts if isinstance(part, Text))


def describe_media(message: Message) -> str:
    """What a reply without text has instead, for a reader of text."""
    found = [part for part in message.parts if isinstance(part, InlineData | FileRef)]
    shown = (
        f"[{part.mime}, {len(part.data):,} bytes]"
        if isinstance(part, InlineData)
        else f"[{part.mime}: {part.uri}]"
        for part in found[:_MAX_MEDIA]
    )
    return "\n".join(shown)


def tool_result(call: ToolCall, output: ToolOutput) -> ToolResult:
    return ToolResult(
        call_id=call.id,
        name=call.name,
        content=output.content,
        is_error=output.is_error,
        status=output.status or ("error" if output.is_error else "success"),
        time=now(),
    )


def error_output(text: str, status: str = "") -> ToolOutput:
    return ToolOutput(content=(Text(text=f"Error: {text}"),), is_error=True, status=status)


class ReplyStarted(msgspec.Struct, frozen=True):
    """A request is stored and about to be sent; its reply will be this entry of the log."""

    entry: str


class ReplyFinished(msgspec.Struct, frozen=True):
    """The last event of an exchange: the reply as it was stored, and the session after it."""

    message: Message
    session: Session


async def exchange(
    session: Session, model: Model, options: RequestOptions
) -> AsyncGenerator[ReplyStarted | Delta | Retrying | ReplyFinished, None]:
    """Send the view as one request and store the reply; `ReplyFinished` comes last.

    When another writer continued the session meanwhile, the reply goes on in a fork."""
    request = _describe_request(session.view(), model, options)
    if session.view().log.fresh:  # one commit for both
        await asyncio.gather(session.append(request, on_conflict="fork"), session.save_counts())
    else:
        await session.append(request, on_conflict="fork")
    recorder, message = _ReplyRecorder(session, model, options), Message(role="model")
    yield ReplyStarted(recorder.id)
    try:
        async with aclosing(send(model, session.view(), options)) as events:
            async for event in events:
                if isinstance(event, Message):
                    message = event
                    break
                await recorder.take(event)
                if isinstance(event, Retrying) and isinstance(model, HttpModel):
                    again = _describe_request(session.view(), model, options)
                    if again.digest != request.digest:  # the server made it change the body
                        request = again
                        await session.append(request, on_conflict="fork")
                yield event
    except ModelError as error:
        await recorder.store_partial(partial_of(error), f"{model.name}: {error}")
        raise
    except (asyncio.CancelledError, GeneratorExit):
        # the store is quick: a caller that cancels waits for it and loses nothing
        await uncancellable(recorder.store_partial(None, ""))
        raise
    except Exception:
        await recorder.end_drafts()
        raise
    try:
        message = await recorder.store_uncancelled(message)
    except asyncio.CancelledError:  # it is stored; its calls will not be run
        await uncancellable(mark_calls_not_run(session, message))
        raise
    yield ReplyFinished(message, session)


def _describe_request(view: View, model: Model, options: RequestOptions) -> Request:
    request = Request(
        head=view.head,
        as_of=now(),
        model=model.name,
        tokens=view.tokens + count_tools(options.tools, view.log.counter),
        tools=tuple(tool.name for tool in options.tools),
    )
    if isinstance(model, HttpModel):
        return record_setup(request, model, view, options)
    generation = msgspec.json.encode(options.generation).decode()
    return msgspec.structs.replace(request, generation=generation)


@lru_cache(64)  # asked for several times in every turn, of the same tools
def count_tools(tools: tuple[Declaration, ...], counter: Counter) -> int:
    """The tokens that the declarations of the tools take."""
    return sum(counter.text(f"{one.name} {one.description} {one.parameters}") for one in tools)


async def mark_calls_not_run(
    session: Session, reply: Message, left_open: frozenset[str] = frozenset()
) -> None:
    """Append a result for each call of a reply that will not be run; calls of the tools that are
    `left_open` wait for a client's results."""
    if results := _results_not_run(reply, left_open):
        await session.append(*results, on_conflict="fork")


def _results_not_run(reply: Message, left_open: frozenset[str] = frozenset()) -> list[Message]:
    output = error_output(NOT_BEGUN, "interrupted")
    parts = (part for part in reply.parts if isinstance(part, ToolCall))
    calls = (call for call in parts if call.name not in left_open)
    return [Message(role="user", parts=(tool_result(call, output),)) for call in calls]


class _ReplyRecorder:
    """Stores a reply: drafts while it streams, then the whole message or what came of it."""

    def __init__(self, session: Session, model: Model, options: RequestOptions) -> None:
        self._session, self._model, self._options = session, model, options
        self.id = new_id()
        self._so_far = ReplyAssembly()
        self._timer: asyncio.TimerHandle | None = None  # a draft will be stored
        self._draft: asyncio.Task[None] | None = None  # a draft is being stored

    async def take(self, event: Delta | Retrying) -> None:
        """What is shown now is in a draft soon, also if the model says nothing more."""
        if isinstance(event, Retrying):
            if event.shown:
                self._so_far = ReplyAssembly()
            return
        if event.kind == "text":
            self._so_far.text(event.text)
        elif event.kind == "thought":
            self._so_far.thought(event.text)
        if self._draft is not None and self._draft.done():
            error, self._draft = self._draft.exception(), None
            if error is not None and not isinstance(error, StoreError):
                raise error  # a store that fails may be back when the reply is complete
        if self._timer is None and self._draft is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(DRAFT_INTERVAL, self._begin_draft)

    def _begin_draft(self) -> None:
        self._timer = None
        self._draft = asyncio.create_task(self._store_draft())

    async def _store_draft(self) -> None:
        message = self._so_far.message()
        self._so_far.take_deltas()  # the sender of the events has them
        if message.parts:
            await self._session.draft(message, self.id)

    async def end_drafts(self) -> None:
        """The reply is about to be stored: no draft may follow it. Whether one failed does not
        matter any more: the reply is stored whole, or fails itself."""
        if self._timer is not None:
            self._timer.cancel()
        if self._draft is not None:
            await asyncio.wait([self._draft], timeout=DRAFT_PATIENCE)
            self._draft.cancel()  # a store that is away: the reply itself waits for it
            (ended,) = await asyncio.gather(self._draft, return_exceptions=True)
            if isinstance(ended, Exception) and not isinstance(ended, RecollectError):
                raise ended
        self._timer = self._draft = None

    async def store_uncancelled(self, message: Message) -> Message:
        """`store`, however often the task is cancelled; an append is finished in any case."""
        stored = self.store(message)
        return await (stored if self._draft is None else uncancellable(stored))

    async def store(self, message: Message) -> Message:
        """The reply as it was stored: after the calls that the server ran by itself."""
        await self.end_drafts()
        earlier, message = self._separate(message)
        entry = Entry(self.id, None, now(), message)
        await self._session.append(*earlier, entry, on_conflict="fork")
        return message

    def _separate(self, message: Message) -> tuple[tuple[Body, ...], Message]:
        view, model, options = self._session.view(), self._model, self._options
        return separate_automatic_calls(message, view, model, options)

    async def store_partial(self, partial: Message | None, reason: str) -> None:
        """Store what arrived as interrupted, and the reason as a note."""
        await self.end_drafts()
        earlier, message = self._separate(partial or self._so_far.message())
        self._so_far = ReplyAssembly()  # it may be large
        items: list[Body | Entry] = [*earlier]
        if message.parts:
            interrupted = msgspec.structs.replace(message, finish="interrupted")
            items.append(Entry(self.id, None, now(), interrupted))
            items += _results_not_run(message)
        if reason:
            items.append(Note(text=reason, level="error"))
        if items:
            await self._session.append(*items, on_conflict="fork")

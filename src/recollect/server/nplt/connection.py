"""One client: reads its frames, answers its requests in order, and shows it the answers.

Three things go on at once and none waits for another: frames are read (heartbeats, cancelling and
approvals act at once), requests are answered one after the other, and answers are streamed in the
order of their messages. A client that did not ask for typed replies gets none in the middle of an
answer: they wait for its end. Whatever a client sends, it is answered or the connection is closed.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import TypeAlias

import msgspec

from recollect.entries import Message
from recollect.errors import AccessDenied, BadInput, NotFound, RecollectError
from recollect.runtime.prompt_run import RunOptions
from recollect.server.access import APPROVAL_RIGHT, LOST_ACCESS
from recollect.server.nplt.answer_frames import thought
from recollect.server.nplt.answer_stream import AnswerStream
from recollect.server.nplt.client_json import (
    ApproveRequest,
    FileMetadata,
    Hello,
    read_json,
)
from recollect.server.nplt.frame_reader import ConnectionEnded, FrameReader
from recollect.server.nplt.frame_writer import FrameWriter, SlowReader, encode_json
from recollect.server.nplt.frames import MAX_PAYLOAD, Frame
from recollect.server.nplt.message_types import (
    AFTER_HELLO,
    APPROVALS,
    FEATURES,
    FROM_CLIENT,
    HEARTBEAT_TEXT,
    REPLIES,
    VERSION,
    MessageType,
)
from recollect.server.nplt.session_requests import RequestReply, SessionRequests
from recollect.server.nplt.surroundings import Surroundings
from recollect.server.nplt.uploads import UploadedFile, Uploads
from recollect.server.problem_kinds import client_sentence
from recollect.server.prompt_queue import PromptRun
from recollect.text import format_size, one_line
from recollect.workspace.file_mentions import uploaded_parts

_log = logging.getLogger("recollect.server.nplt")
_INTERNAL = "an internal error; the server's log has it"
_INTERNAL_CODE = "InternalError"
_Work: TypeAlias = Callable[[], Awaitable[None]]
_LOST_ACCESS = f"{LOST_ACCESS}; connect again"
COMPLAINT_SECONDS = 5.0  # between two, to a client that sends too fast
_GONE = (ConnectionError, SlowReader, ConnectionEnded, OSError)


class Connection:
    def __init__(
        self,
        shared: Surroundings,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        address: str,
    ) -> None:
        self._shared, self.address, self.began = shared, address, time.monotonic()
        self._hub, self._texts, limits = shared.hub, shared.texts, shared.limits
        self._reader = FrameReader(reader, limits, shared.texts.slow)
        self._out = FrameWriter(writer, limits)
        self._who, self._features = shared.local, frozenset[str]()
        self._said_hello, self._token, self._complained = False, "", 0.0
        self._requests = SessionRequests(
            shared.hub, shared.history, shared.downloads, shared.texts, limits
        )
        if self._who is not None:
            self._requests.who = self._who
        self._uploads = Uploads(limits, shared.uploads)
        self._inbox: asyncio.Queue[_Work] = asyncio.Queue(limits.waiting)
        self._room = asyncio.Event()  # in the inbox
        self._answers = AnswerStream(self._out, self._texts, self._requests)
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def is_silent(self) -> bool:
        """Whether it has never sent a frame."""
        return self._reader.frames == 0

    def check_token(self) -> None:
        """End the connection if its token was removed, also of a client that only listens."""
        if not self._has_access():
            self._reader.end(_LOST_ACCESS)

    def _has_access(self) -> bool:
        return not self._token or self._shared.tokens.identify(self._token) == self._who

    async def serve(self) -> None:
        """Until the client leaves, or has to."""
        try:
            await self._welcome()
            await self._read_frames()
            await self._finish()
        except _GONE as end:
            if text := str(end) if isinstance(end, ConnectionEnded | SlowReader) else "":
                self._out.send_text(text)
                _log.info("%s: %s", self.address, text)
        finally:
            await self._close()

    async def say_goodbye(self) -> None:
        """The server stops: show what is left of the answers, and the reason."""
        with suppress(TimeoutError):
            async with asyncio.timeout(1.0):
                await self._answers.join()
        self._out.send_text(self._texts.stopping)

    async def _close(self) -> None:
        if self._shared.cancel_on_disconnect:
            for run in self._answers.runs:
                run.cancel()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._uploads.close()
        await self._out.close()

    async def _welcome(self) -> None:
        if self._who is None:
            self._out.send_text(self._texts.hello_first)
        else:
            self._out.send_text(self._texts.welcome.format(id=await self._requests.short_id()))

    # --- reading ---------------------------------------------------------------------------------

    async def _read_frames(self) -> None:
        limits = self._shared.limits
        while True:
            patience = limits.idle_seconds if self._reader.frames else limits.silent_seconds
            try:
                if self._who is None:
                    frames = await self._reader.read(limits.hello_seconds)
                else:
                    frames = await self._reader.read(patience)
            except TimeoutError:
                if not self._answers.runs:  # an answer is no idle time
                    raise ConnectionEnded(self._texts.idle.format(seconds=patience)) from None
                continue
            if frames is None:
                return
            for frame in frames:
                if pause := self._reader.pause():
                    self._complain(frame)
                    await asyncio.sleep(pause)
                await self._take(frame)
            await self._out.flush()

    def _complain(self, frame: Frame) -> None:
        """About a client that sends too fast; not as fast as it does."""
        if time.monotonic() - self._complained > COMPLAINT_SECONDS:
            self._complained = time.monotonic()
            self._fail(frame, BadInput(self._texts.too_fast), now=True)

    async def _take(self, frame: Frame) -> None:
        """Act on what cannot wait, and put the rest in the queue."""
        try:
            self._check(frame)
            await self._dispatch(frame)
        except RecollectError as error:
            if isinstance(error, ConnectionEnded):
                raise
            await self._later(partial(self._failing, frame, error))

    def _check(self, frame: Frame) -> None:
        if self._who is None and frame.type != MessageType.HELLO:
            raise ConnectionEnded(self._texts.hello_first)
        if not self._has_access():
            raise ConnectionEnded(_LOST_ACCESS)
        known = frame.type in FROM_CLIENT
        if known and frame.type in AFTER_HELLO and not self._said_hello:
            raise BadInput(f"type 0x{frame.type:02x} is for clients that said HELLO; say it first")
        if not known:
            raise BadInput(f"unknown message type 0x{frame.type:02x}; the frame was skipped")

    async def _dispatch(self, frame: Frame) -> None:
        kind, payload = MessageType(frame.type), frame.payload
        if kind is MessageType.CHAT_TEXT:
            await self._take_text(frame)
        elif kind is MessageType.HEARTBEAT:
            self._out.send(kind, payload)
        elif kind is MessageType.HELLO:
            await self._hello(frame)
        elif kind is MessageType.CANCEL:
            self._cancel()
        elif kind is MessageType.APPROVE:
            self._approve(payload)
        elif kind in (MessageType.FILE_DATA, MessageType.FILE_METADATA):
            await self._upload(frame)
        else:
            await self._later(partial(self._answer, frame))

    async def _take_text(self, frame: Frame) -> None:
        payload = frame.payload
        if payload == HEARTBEAT_TEXT and not self._said_hello:
            self._out.send(MessageType.CHAT_TEXT, HEARTBEAT_TEXT)
            return
        self._requests.who.require("chat")
        try:
            text = payload.decode()
        except UnicodeDecodeError as error:
            raise BadInput(
                f"the text is not UTF-8 (byte {error.start}); nothing was sent"
            ) from None
        self._uploads.refuse_incomplete("the message")
        if not text.strip():
            raise BadInput("the message is empty; nothing was sent")
        files = self._uploads.take()
        await self._later(partial(self._chat, frame, text, files))

    async def _hello(self, frame: Frame) -> None:
        said = read_json(frame.payload, Hello)
        who = self._shared.local
        if said.token:
            who = self._shared.tokens.identify(said.token)
        if who is None:
            _log.warning("%s: a token that is wrong or missing", self.address)
            refused = AccessDenied(
                "the token is wrong or missing", "HELLO needs the server's token"
            )
            if self._who is None:
                raise ConnectionEnded(str(refused))
            raise refused
        self._said_hello, self._token = True, said.token
        _log.info("%s: connected as %s (%s)", self.address, who.name or "the user", who.right)
        self._features = self._answers.features = frozenset(said.features) & frozenset(FEATURES)
        if who != self._who:
            self._who = self._requests.who = who
            self._requests.begin_new()
        fields = {"version": VERSION, "features": sorted(self._features), "name": who.name}
        more = {"right": who.right, "session_id": self._requests.id}
        short = await self._requests.short_id()
        self._out.send_json(MessageType.HELLO, fields | more | {"short_id": short})
        if self._shared.local is None:
            await self._welcome()

    def _cancel(self) -> None:
        if not self._answers.runs:
            raise NotFound("no answer is being written; there is nothing to cancel")
        self._answers.runs[0].cancel()

    def _approve(self, payload: bytes) -> None:
        answer = read_json(payload, ApproveRequest)
        self._requests.who.require(APPROVAL_RIGHT)
        for run in self._answers.runs:
            with suppress(NotFound):
                name = self._requests.who.name or "user"
                run.answer(answer.approval, allowed=answer.allowed, by=name)
                return
        raise NotFound("no such approval is waiting: it was answered, or timed out")

    async def _upload(self, frame: Frame) -> None:
        if frame.type == MessageType.FILE_DATA:
            file = self._uploads.add(frame.payload)
            if file is None:
                return
        else:
            self._requests.who.require("chat")
            given = read_json(frame.payload, FileMetadata)
            try:
                self._uploads.refuse_incomplete("another file was announced")
            except BadInput as error:
                await self._later(partial(self._failing, frame, error))
            file = self._uploads.begin(given.filename, given.size)
            if file is None:
                return
        size = format_size(len(file.data))
        text = self._texts.uploaded.format(name=file.name, size=size)
        fields: dict[str, object] = {"filename": file.name, "size": len(file.data)}
        await self._later(partial(self._reply, frame, RequestReply(text, fields)))

    # --- answering -------------------------------------------------------------------------------

    async def _later(self, work: _Work) -> None:
        """After the requests before it; the client waits while too many do."""
        if not self._tasks:
            self._tasks = [
                asyncio.create_task(self._guard(self._work)),
                asyncio.create_task(self._guard(self._answers.show)),
            ]
        while self._inbox.full():
            if self._reader.ended.is_set():
                raise ConnectionEnded
            self._room.clear()
            await self._room.wait()
        self._inbox.put_nowait(work)

    async def _guard(self, work: _Work) -> None:
        """Do this part of the connection's work; if it cannot go on, the connection ends."""
        try:
            await work()
        except _GONE as end:
            self._reader.end(str(end))
        except Exception:  # noqa: BLE001 - logged; it ends one connection, not the server
            _log.exception("%s: the connection failed", self.address)
            self._reader.end(_INTERNAL)
        self._room.set()

    async def _work(self) -> None:
        while True:
            work = await self._inbox.get()
            self._room.set()
            try:
                await work()
                await self._out.flush()
            finally:
                self._inbox.task_done()
            if REPLIES not in self._features:
                await self._answers.join()

    async def _answer(self, frame: Frame) -> None:
        try:
            await self._reply(frame, await self._requests.answer(frame.type, frame.payload))
        except RecollectError as error:
            self._fail(frame, error)
        except Exception as fault:  # noqa: BLE001 - it is logged, and the client hears of it
            self._fail(frame, fault)

    async def _reply(self, frame: Frame, reply: RequestReply) -> None:
        if reply.offer is not None:
            self._out.send_json(MessageType.DOWNLOAD_OFFER, reply.offer)
        if REPLIES not in self._features:
            if reply.offer is None:
                self._out.send_text(reply.text)
            return
        payload = encode_json(
            {"reply_to": frame.sequence, **(reply.fields or {"text": reply.text})}
        )
        if len(payload) <= MAX_PAYLOAD:
            self._out.send(frame.type, payload)
        else:
            self._fail(frame, BadInput("the answer does not fit a frame; ask for less"))

    async def _failing(self, frame: Frame, error: RecollectError) -> None:
        self._fail(frame, error)

    def _fail(self, frame: Frame, error: Exception, *, now: bool = False) -> None:
        """Say what is wrong, in the client's form; `now`, although an answer may be in progress."""
        text = one_line(client_sentence(error), 2_000)
        if REPLIES in self._features or (now and self._said_hello):
            code = type(error).__name__ if isinstance(error, RecollectError) else _INTERNAL_CODE
            self._out.send(*thought("error", text, code=code, reply_to=frame.sequence))
        elif not now or not self._answers.runs:
            self._out.send_text(self._texts.problem.format(problem=text))

    async def _chat(self, frame: Frame, text: str, files: tuple[UploadedFile, ...]) -> None:
        try:
            run = await self._prompt(text, files)
        except RecollectError as error:
            self._fail(frame, error)
        except Exception as fault:  # noqa: BLE001 - it is logged, and the client hears of it
            self._fail(frame, fault)
        else:
            self._answers.add(run)
        finally:
            self._uploads.release(files)

    async def _prompt(self, text: str, files: tuple[UploadedFile, ...]) -> PromptRun:
        requests, prompt = self._requests, text
        message: str | Message = prompt
        if files:
            sent = await self._hub.prompt_message(text)
            more = await uploaded_parts([(file.name, file.data) for file in files])
            message = msgspec.structs.replace(sent, parts=(*sent.parts, *more))
        session = await requests.store_session(text)
        options, can_approve = RunOptions(model=requests.model), APPROVALS in self._features
        return await self._hub.prompt(
            requests.who, session, message, options, can_approve=can_approve
        )

    # --- the end ---------------------------------------------------------------------------------

    async def _finish(self) -> None:
        """The client sends nothing more; it may still read what it asked for."""
        if not self._shared.cancel_on_disconnect:
            ended = asyncio.ensure_future(self._reader.ended.wait())
            done = asyncio.ensure_future(self._drain())
            try:
                await asyncio.wait([ended, done], return_when=asyncio.FIRST_COMPLETED)
            finally:
                for waiting in (ended, done):
                    waiting.cancel()
                await asyncio.gather(ended, done, return_exceptions=True)

    async def _drain(self) -> None:
        await self._inbox.join()
        await self._answers.join()

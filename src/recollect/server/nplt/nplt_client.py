"""An NPLT client for programs: sessions, history and uploads as values, answers as they stream.

>>> async with await Client.connect("127.0.0.1", 9999) as client:
...     async for event in client.chat("What is in this folder?"):
...         if isinstance(event, AnswerPiece): print(event.text, end="")

It says HELLO and asks for typed replies, so a reply is never mistaken for a piece of an answer. One
answer is read at a time; requests may be made while it comes. Everything fails with `ServerRefused`
if the server says no, and with `ConnectionLost` if it goes away.
"""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import suppress
from pathlib import PurePath
from typing import Any, TypeAlias

import msgspec

from recollect.errors import BadInput, RecollectError
from recollect.server.nplt.frame_writer import encode_json
from recollect.server.nplt.frames import MAX_PAYLOAD, SEQUENCES, Frame, FrameParser, encode_frame
from recollect.server.nplt.message_types import FEATURES, VERSION, MessageType

BLOCK = 32_768  # bytes of a file in one frame
HEARTBEAT_SECONDS = 60.0
CONNECT_SECONDS = 30.0
END = "stream_end"


class ServerRefused(RecollectError):
    """The server answered with an error; `code` is its class there."""

    def __init__(self, message: str, code: str = "") -> None:
        super().__init__(message)
        self.code = code


class ConnectionLost(RecollectError):
    """The server closed the connection; its last words, if there were any."""

    def __init__(self, said: str = "") -> None:
        super().__init__(f"the server closed the connection{f': {said}' if said else ''}")
        self.said = said


class AnswerPiece(msgspec.Struct, frozen=True):
    """A piece of an answer's text."""

    text: str


class AnswerEvent(msgspec.Struct, frozen=True):
    """Anything else: `thinking`, `tool_call`, `tool_result`, `approval`, `approval_decided`,
    `void` (the last `characters` of the text do not count), `notice`; `stream_end` is the last."""

    type: str
    content: str
    fields: Mapping[str, Any]


ChatEvent: TypeAlias = AnswerPiece | AnswerEvent
_Reply: TypeAlias = "asyncio.Future[dict[str, Any]]"


class Client:
    """A connection; made by `connect`."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._sequence = 0
        self._replies: dict[int, _Reply] = {}
        self._events: asyncio.Queue[ChatEvent | RecollectError] = asyncio.Queue()
        self._chat_sequence: int | None = None
        self._said, self._texts = "", 0  # the server's last words outside of an answer
        self._lost = self._streaming = False
        self._hello: _Reply = asyncio.get_running_loop().create_future()
        self._tasks: list[asyncio.Task[None]] = []
        self.welcome: dict[str, Any] = {}  # what the server's HELLO says

    @classmethod
    async def connect(
        cls,
        host: str,
        port: int = 9999,
        *,
        token: str = "",
        tls: ssl.SSLContext | None = None,
        features: tuple[str, ...] = FEATURES,
    ) -> Client:
        """Connect and say HELLO. Leave `approvals` out of the features to have what needs approval
        denied at once."""
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                reader, writer = await asyncio.open_connection(host, port, ssl=tls)
                client = cls(reader, writer)
                try:
                    await client._say_hello(token, features)
                except BaseException:
                    await client.close()
                    raise
        except TimeoutError:
            raise ConnectionLost(f"no answer from {host}:{port} in {CONNECT_SECONDS:g} s") from None
        except OSError as error:
            why = error.strerror or str(error)
            if isinstance(error, ConnectionError) and error.errno:
                why = os.strerror(error.errno)  # asyncio has another sentence
            remedy = "check the address, or start a server with `recollect serve`"
            raise BadInput(f"cannot connect to {host}:{port} ({why}); {remedy}") from None
        return client

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        with suppress(OSError):
            self._writer.close()
            await self._writer.wait_closed()

    @property
    def session_id(self) -> str:
        """The session that this connection is in."""
        return str(self.welcome.get("session_id", ""))

    # --- answers ---------------------------------------------------------------------------------

    async def chat(self, text: str) -> AsyncGenerator[ChatEvent, None]:
        """Send a message; its answer as it comes. Read it to its end before the next message."""
        data = text.encode("utf-8", "replace")
        if len(data) > MAX_PAYLOAD:
            raise BadInput(
                f"a message has at most {MAX_PAYLOAD:,} bytes; upload the rest as a file"
            )
        self._chat_sequence = self._send(MessageType.CHAT_TEXT, data)
        while True:
            event = await self._next_event()
            yield event
            if isinstance(event, AnswerEvent) and event.type == END:
                self._note_session(event.fields)
                return

    async def ask(self, text: str) -> str:
        """Send a message and wait for the whole answer."""
        answer = ""
        async for event in self.chat(text):
            if isinstance(event, AnswerPiece):
                answer += event.text
            elif event.type == "void":
                answer = answer[: len(answer) - int(event.fields.get("characters", 0))]
            elif event.type == END and event.content:
                raise ServerRefused(event.content, str(event.fields.get("reason", "")))
        return answer

    def cancel(self) -> None:
        """Stop the answer; what came of it is stored."""
        self._send(MessageType.CANCEL)

    def approve(self, approval: str, *, allowed: bool) -> None:
        """Answer an `approval` event."""
        self._send_json(MessageType.APPROVE, {"approval": approval, "allowed": allowed})

    async def _next_event(self) -> ChatEvent:
        event = await self._events.get()
        if isinstance(event, RecollectError):
            if isinstance(event, ConnectionLost):
                self._events.put_nowait(event)  # for the next reader too
            raise event
        return event

    # --- requests --------------------------------------------------------------------------------

    async def history(self, offset: int = 0, limit: int = 20, **more: Any) -> dict[str, Any]:
        """A page, newest last; `next_offset` says how to go on to older messages."""
        asked = {"offset": offset, "limit": limit, **more}
        return await self._request(MessageType.HISTORY_REQUEST, asked)

    async def sessions(self, offset: int = 0, limit: int = 20) -> dict[str, Any]:
        return await self._request(MessageType.SESSION_LIST, {"offset": offset, "limit": limit})

    async def new(self, name: str = "") -> dict[str, Any]:
        return await self._change(MessageType.SESSION_NEW, {"name": name})

    async def switch(self, session: str) -> dict[str, Any]:
        return await self._change(MessageType.SESSION_SWITCH, {"session_id": session})

    async def rename(self, name: str, session: str = "") -> dict[str, Any]:
        asked = {"name": name, "session_id": session}
        return await self._request(MessageType.SESSION_RENAME, asked)

    async def delete(self, session: str) -> dict[str, Any]:
        return await self._change(MessageType.SESSION_DELETE, {"session_id": session})

    async def clear(self) -> dict[str, Any]:
        return await self._change(MessageType.CLEAR_REQUEST, {})

    async def model(self, name: str) -> dict[str, Any]:
        return await self._request(MessageType.MODEL_SWITCH, {"model": name})

    async def upload(
        self, name: str, data: bytes, progress: Callable[[int, int], None] = lambda *_: None
    ) -> dict[str, Any]:
        """Send a file, which goes with the next message."""
        reply: _Reply = asyncio.get_running_loop().create_future()
        metadata = {"filename": PurePath(name).name, "size": len(data)}
        used = [self._send_json(MessageType.FILE_METADATA, metadata)]
        self._replies[used[0]] = reply
        try:
            for at in range(0, len(data), BLOCK):
                if reply.done():
                    break  # it was refused
                used.append(self._send(MessageType.FILE_DATA, data[at : at + BLOCK]))
                self._replies[used[-1]] = reply
                await self._writer.drain()
                progress(min(at + BLOCK, len(data)), len(data))
            return await reply
        finally:
            for sequence in used:
                self._replies.pop(sequence, None)

    async def _change(self, type_: MessageType, asked: dict[str, Any]) -> dict[str, Any]:
        reply = await self._request(type_, asked)
        self._note_session(reply)
        return reply

    async def _request(self, type_: MessageType, asked: dict[str, Any]) -> dict[str, Any]:
        if self._lost:
            raise ConnectionLost(self._said)
        sequence = self._send_json(type_, asked)
        reply: _Reply = asyncio.get_running_loop().create_future()
        self._replies[sequence] = reply
        try:
            return await reply
        finally:
            self._replies.pop(sequence, None)

    def _note_session(self, fields: Mapping[str, Any]) -> None:
        if "session_id" in fields:
            self.welcome |= {"session_id": fields["session_id"]}

    # --- frames ----------------------------------------------------------------------------------

    async def _say_hello(self, token: str, features: tuple[str, ...]) -> None:
        self._tasks = [asyncio.create_task(self._read()), asyncio.create_task(self._beat())]
        said: dict[str, object] = {"version": VERSION, "features": list(features)}
        self._send_json(MessageType.HELLO, said | ({"token": token} if token else {}))
        self.welcome = await self._hello

    def _send_json(self, type_: MessageType, value: dict[str, Any]) -> int:
        return self._send(type_, encode_json(value))

    def _send(self, type_: MessageType, payload: bytes = b"") -> int:
        sequence = self._sequence
        self._writer.write(encode_frame(type_, sequence, payload))
        self._sequence = (sequence + 1) % SEQUENCES
        return sequence

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(HEARTBEAT_SECONDS)
            self._send(MessageType.HEARTBEAT)

    async def _read(self) -> None:
        parser = FrameParser()
        try:
            while data := await self._reader.read(MAX_PAYLOAD):
                for frame in parser.feed(data):
                    self._take(frame)
        except (OSError, ValueError) as error:
            self._said = self._said or str(error)
        self._end(ConnectionLost(self._said))

    def _end(self, why: RecollectError) -> None:
        self._lost = True
        for reply in (*self._replies.values(), self._hello):
            if not reply.done():
                reply.set_exception(why)
        self._events.put_nowait(why)

    def _take(self, frame: Frame) -> None:
        if frame.type == MessageType.CHAT_TEXT:
            self._take_text(frame.payload.decode("utf-8", "replace"))
        elif frame.type == MessageType.AGENT_THOUGHT:
            self._take_thought(_read_object(frame.payload))
        elif frame.type == MessageType.HELLO:
            if not self._hello.done():
                self._hello.set_result(_read_object(frame.payload))
        elif frame.type not in (MessageType.HEARTBEAT, MessageType.DOWNLOAD_OFFER):
            fields = _read_object(frame.payload)
            reply = self._replies.get(fields.pop("reply_to", -1))
            if reply is not None and not reply.done():
                reply.set_result(fields)

    def _take_text(self, text: str) -> None:
        """A piece of an answer, its end (which an event repeats), or words outside of it."""
        if self._streaming:
            self._streaming = bool(text)
            if text:
                self._events.put_nowait(AnswerPiece(text))
            return
        self._said, self._texts = text, self._texts + 1
        if self._texts > 1 and not self._hello.done():  # not the welcome: it was refused
            self._hello.set_exception(ServerRefused(text))

    def _take_thought(self, fields: dict[str, Any]) -> None:
        kind, content = str(fields.pop("type", "")), str(fields.pop("content", ""))
        if kind == "error":
            error = ServerRefused(content, str(fields.get("code", "")))
            reply = self._replies.get(fields.get("reply_to", -1))
            if reply is not None:
                if not reply.done():
                    reply.set_exception(error)
            elif fields.get("reply_to") == self._chat_sequence:
                self._events.put_nowait(error)
            return
        self._streaming = self._streaming or kind == "stream_start"
        self._events.put_nowait(AnswerEvent(kind, content, fields))


def _read_object(payload: bytes) -> dict[str, Any]:
    value = msgspec.json.decode(payload)
    if not isinstance(value, dict):
        raise ValueError("the server sent JSON that is no object")
    return value

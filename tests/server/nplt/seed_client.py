"""A client as the seed's document describes it: raw sockets, nothing of ours imported.

It knows CHAT_TEXT, AGENT_THOUGHT of four types, and the requests of the table; it never says HELLO.
"""

from __future__ import annotations

import json
import socket
import struct
import time
from types import TracebackType
from typing import Any, NamedTuple

CHAT_TEXT, AGENT_THOUGHT = 0x01, 0x0A
DOWNLOAD_OFFER, FILE_DATA, FILE_METADATA, MODEL_SWITCH = 0x0C, 0x0D, 0x0E, 0x0F
HISTORY_REQUEST, CLEAR_REQUEST = 0x10, 0x11
SESSION_LIST, SESSION_SWITCH, SESSION_NEW, SESSION_DELETE = 0x14, 0x15, 0x16, 0x17
CLIENT_UDP_PORT = 0x18
SEED_TYPES = {CHAT_TEXT, AGENT_THOUGHT, DOWNLOAD_OFFER}  # from a server
SEED_THOUGHTS = {"thinking", "tool_call", "generating", "stream_start"}
PATIENCE = 60.0


class Received(NamedTuple):
    type: int
    sequence: int
    payload: bytes

    @property
    def text(self) -> str:
        return self.payload.decode("utf-8")

    @property
    def json(self) -> Any:
        return json.loads(self.payload)


class SeedClient:
    def __init__(self, port: int, *, welcome: bool = True) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)
        self.sent = self.got = 0
        self.thoughts: list[dict[str, Any]] = []
        self.welcome = self.receive().text if welcome else ""

    def __enter__(self) -> SeedClient:
        return self

    def __exit__(
        self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None
    ) -> None:
        self.socket.close()

    def send(self, type_: int, payload: bytes | str | dict[str, Any] = b"") -> None:
        if isinstance(payload, dict):
            payload = json.dumps(payload)
        data = payload.encode() if isinstance(payload, str) else payload
        self.socket.sendall(struct.pack(">BHH", type_, self.sent % 65_536, len(data)) + data)
        self.sent += 1

    def receive(self) -> Received:
        type_, sequence, length = struct.unpack(">BHH", self._exactly(5))
        frame = Received(type_, sequence, self._exactly(length))
        assert type_ in SEED_TYPES, f"a client of the seed does not know type {type_:#x}"
        assert sequence == self.got % 65_536
        self.got += 1
        if type_ == AGENT_THOUGHT:
            assert frame.json["type"] in SEED_THOUGHTS
            assert set(frame.json) == {"type", "content"}
        return frame

    def _exactly(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            more = self.socket.recv(count - len(data))
            if not more:
                raise EOFError
            data += more
        return data

    def request(self, type_: int, payload: bytes | str | dict[str, Any] = b"") -> str:
        """A command, which is answered by one CHAT_TEXT."""
        self.send(type_, payload)
        frame = self.receive()
        assert frame.type == CHAT_TEXT
        return frame.text

    def chat(self, text: str) -> str:
        self.send(CHAT_TEXT, text)
        return self.answer()

    def answer(self) -> str:
        """What a user of the seed's client sees as the answer."""
        pieces: list[str] = []
        self.thoughts = []
        streaming = False
        while True:
            frame = self.receive()
            if frame.type == AGENT_THOUGHT:
                self.thoughts.append(frame.json)
                streaming = streaming or frame.json["type"] == "stream_start"
            elif frame.payload == b"HEARTBEAT":
                continue
            elif not streaming:
                return f"error: {frame.text}"
            elif frame.payload == b"":
                return "".join(pieces)
            else:
                pieces.append(frame.text)

    def history(self, **asked: Any) -> Any:
        return json.loads(self.request(HISTORY_REQUEST, asked or b""))

    def is_closed(self, within: float = PATIENCE) -> bool:
        """Whether the server hangs up; what it says before that is skipped."""
        deadline = time.monotonic() + within
        try:
            while time.monotonic() < deadline:
                self.socket.settimeout(max(0.01, deadline - time.monotonic()))
                if not self.socket.recv(65_536):
                    return True
        except ConnectionError:
            return True
        except TimeoutError:
            return False
        return False

"""Plays a recorded model: an HTTP server on this machine that sends recorded replies in order.

Only replies are recorded. Whoever asks is the real agent with its real tools, so before each reply
the server compares the results of the calls before it with the recording. Where one differs it
answers with an error that says so, and `difference` keeps it: a recording must not tell a story
that did not happen here. A recorded prompt may be sent again, as after a rewind; to any other one
the answer is that this is a recording. The tokens it reports are counted in the request that it
received.
"""

from __future__ import annotations

import threading
import time
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from typing import Any

import msgspec

from recollect.codecs.anthropic import AnthropicWire
from recollect.codecs.wire_protocol import DecodedRequest
from recollect.display.display_text import one_line
from recollect.entries import Message, Text, ToolCall, ToolResult, Usage, json_text
from recollect.tokens import counter_for

RECORDING = "demo_recording.toml"
MODEL_NAME = "recording"  # in settings and reports, so that nobody takes it for a model
NOT_RECORDED = (
    "This is a recording, and it answers only its own prompts. Everything around it is real: look "
    "at /context, /tree and /search, press Esc twice to go back, or leave with /quit."
)
MAX_BODY = 4_000_000  # bytes of a request
_MAX_SHOWN = 100  # characters of a result that differs


class RecordedCall(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    tool: str
    arguments: dict[str, str]
    result: str  # what the real result must contain
    fails: bool = False  # whether the real result must be an error


class RecordedReply(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    text: str = ""
    calls: tuple[RecordedCall, ...] = ()


class RecordedPrompt(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    text: str
    replies: tuple[RecordedReply, ...]


class Recording(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    files: dict[str, str]  # of the project, by path
    prompts: tuple[RecordedPrompt, ...]


def load_recording() -> Recording:
    text = files("recollect.cli").joinpath(RECORDING).read_text(encoding="utf-8")
    return msgspec.convert(tomllib.loads(text), Recording)


class ReplayServer:
    """The replies of a recording, given one by one; `url` is where they are asked for."""

    def __init__(self, recording: Recording, words: Mapping[str, str]) -> None:
        """`words` are put in place of `{name}` in arguments."""
        self.pause = 0.0  # seconds before a reply
        self.difference = ""
        self.url = ""
        self._counter = counter_for(MODEL_NAME)
        self._replies: list[RecordedReply] = []
        self._first: dict[str, int] = {}  # the number of a prompt's first reply, by its text
        for prompt in recording.prompts:
            self._first[prompt.text.strip()] = len(self._replies)
            self._replies += prompt.replies
        self._words, self._given = words, 0
        self._pending: dict[str, RecordedCall] = {}  # by id: the calls of the last reply

    @property
    def left(self) -> int:
        """The number of replies that were not asked for."""
        return len(self._replies) - self._given

    def reply(self, request: DecodedRequest) -> Message | None:
        """The next reply; None where the recording does not fit, and `difference` says why."""
        if (said := _new_words(request)) is not None:
            first = next((self._first[text] for text in said if text in self._first), None)
            if first is None:
                return self._counted(
                    Message(role="model", parts=(Text(text=NOT_RECORDED),)), request
                )
            self._given, self._pending, self.difference = first, {}, ""
        self.difference = self.difference or self._compare(request)
        if not self.left and not self.difference:
            self.difference = "the recording is over, and the agent asks for another reply"
        if self.difference:
            return None
        return self._counted(self._next_reply(), request)

    def _next_reply(self) -> Message:
        recorded = self._replies[self._given]
        self._given += 1
        self._pending = {f"call-{self._given}-{n}": call for n, call in enumerate(recorded.calls)}
        calls = [
            ToolCall(id=id_, name=call.tool, arguments=self._arguments(call))
            for id_, call in self._pending.items()
        ]
        said = [Text(text=recorded.text)] if recorded.text else []
        return Message(role="model", parts=(*said, *calls))

    def _counted(self, message: Message, request: DecodedRequest) -> Message:
        declared = (f"{t.name} {t.description} {t.parameters}" for t in request.options.tools)
        sent = sum(map(self._counter.message, request.messages))
        usage = Usage(
            input=sent + sum(map(self._counter.text, declared)),
            output=self._counter.message(message),
        )
        finish = "calls" if any(isinstance(part, ToolCall) for part in message.parts) else "stop"
        return msgspec.structs.replace(message, model=MODEL_NAME, finish=finish, usage=usage)

    def _arguments(self, call: RecordedCall) -> str:
        filled = dict(call.arguments)
        for name, word in self._words.items():
            filled = {key: text.replace(f"{{{name}}}", word) for key, text in filled.items()}
        return json_text(filled)

    def _compare(self, request: DecodedRequest) -> str:
        parts = [part for message in request.messages for part in message.parts]
        results = {part.call_id: part for part in parts if isinstance(part, ToolResult)}
        for id_, call in self._pending.items():
            result = results.get(id_)
            if result is None:
                return f"the agent sent no result of {call.tool}"
            text = "\n".join(part.text for part in result.content if isinstance(part, Text))
            if call.result not in text or call.fails != result.is_error:
                # the end of an output says how it went
                seen, wanted = one_line(text)[-_MAX_SHOWN:], one_line(call.result)
                return f"{call.tool} gave “…{seen}” here; the recording has “{wanted}”"
        return ""


def _new_words(request: DecodedRequest) -> tuple[str, ...] | None:
    """What the user said after the last reply; None if tools have answered it."""
    said: list[str] = []
    for message in reversed(request.messages):
        if message.role == "model":
            break
        if any(isinstance(part, ToolResult) for part in message.parts):
            return None
        said += [part.text.strip() for part in message.parts if isinstance(part, Text)]
    return tuple(said)


@contextmanager
def serve_recording(recording: Recording, words: Mapping[str, str]) -> Iterator[ReplayServer]:
    replay = ReplayServer(recording, words)
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(replay))
    replay.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield replay
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _handler(replay: ReplayServer) -> type[BaseHTTPRequestHandler]:
    class ReplayHandler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            size = min(int(self.headers.get("content-length", "0")), MAX_BODY)
            reply = replay.reply(AnthropicWire.decode_request(self.rfile.read(size)))
            if reply is None:
                self._send(400, "application/json", _error_body(replay.difference))
                return
            time.sleep(replay.pause)
            self._send(200, "text/event-stream", b"".join(AnthropicWire.encode_stream(reply)))

        def _send(self, status: int, kind: str, body: bytes) -> None:
            self.send_response(status)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """The screen belongs to the demo."""

    return ReplayHandler


def _error_body(why: str) -> bytes:
    error = {"type": "invalid_request_error", "message": f"the recording stops: {why}"}
    return json_text({"type": "error", "error": error}).encode()

"""Streamed replies as OpenAI sends them, and plain ways to read them, for comparison.

A stream is words of the conversation's vocabulary, one in each event with the fields that OpenAI
sends along (about 300 bytes), then a call whose arguments arrive in pieces, then usage. The readers
get the same pieces and come to the same text: the joined bytes line by line, `httpx-sse`, and the
`openai` package with a transport that has the bytes already.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from bench import clock, conversation
from recollect.entries import ToolCall

_CALL = "call_42485e3a0a5d2f346baa9455"
_TYPE = {"content-type": "text/event-stream"}
Reader = Callable[[], str]


class Stream(NamedTuple):
    data: bytes
    text: str
    arguments: str


def openai_stream(size: int) -> Stream:
    """Of at least so many bytes, and hardly more."""
    arguments = json.dumps({"path": "src/config.py", "content": "x = 1\n" * 20})
    pieces = [arguments[at : at + 6] for at in range(0, len(arguments), 6)]
    named = {"index": 0, "id": _CALL, "type": "function"}
    first = named | {"function": {"name": "write_file", "arguments": ""}}
    calls = [first, *[{"index": 0, "function": {"arguments": piece}} for piece in pieces]]
    events = [_event({"tool_calls": [call]}) for call in calls]
    events += [_event({}, "tool_calls"), _usage(), b"data: [DONE]\n\n"]
    begun = [_event({"role": "assistant", "content": "", "refusal": None})]
    left, said = size - sum(map(len, [*begun, *events])), list[str]()
    for word in _words():
        if left <= 0:
            break
        said.append(word)
        begun.append(_event({"content": word}))
        left -= len(begun[-1])
    return Stream(b"".join([*begun, *events]), "".join(said), arguments)


def _event(delta: dict[str, Any], finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
    return _line({"choices": [choice], "usage": None})


def _usage() -> bytes:
    usage = {"prompt_tokens": 4_000, "completion_tokens": 900, "total_tokens": 4_900}
    return _line({"choices": [], "usage": usage})


def _line(rest: dict[str, Any]) -> bytes:
    chunk = {
        "id": "chatcmpl-CZ5mUNs1vQ7rX0ak2nE9LwB3hTfYd",
        "object": "chat.completion.chunk",
        "created": 1_762_000_000,
        "model": "gpt-4o-2024-08-06",
        "service_tier": "default",
        "system_fingerprint": "fp_65564d8ba5",
    } | rest
    return b"data: " + json.dumps(chunk, separators=(",", ":")).encode() + b"\n\n"


def _words() -> Iterator[str]:
    """With the space in front, as tokens come."""
    number = 0
    while True:
        for message in conversation.messages(400, number):
            for part in message.parts:
                if not isinstance(part, ToolCall) and hasattr(part, "text"):
                    yield from (f" {word}" for word in part.text.split(" "))
        number += 400


class ToolText(NamedTuple):
    text: str
    calls: int


def tool_text(size: int) -> ToolText:
    """What a model without native calls says, of about so many characters: prose, code that is no
    call, and calls in a fence and in tags, in turn."""
    words, found, calls = _words(), list[str](), 0
    while size > 0:
        prose = "".join(islice(words, 150)).strip()
        code = "\n".join(f"    self.{word.strip()} = {{}}" for word in islice(words, 12))
        arguments = {"file_path": f"/src/{calls}.py", "content": code}
        call = json.dumps({"name": "write_file", "arguments": arguments})
        written = f'```json\n{{"tool_call": {call}}}\n```'
        if calls % 2:
            written = f"<tool_call>\n{call}\n</tool_call>"
        found.append(f"{prose}\n\n```python\n{code}\n```\n\n{written}\n\n")
        size -= len(found[-1])
        calls += 1
    return ToolText("".join(found), calls)


def cut(data: bytes, piece: int) -> list[bytes]:
    return [data[at : at + piece] for at in range(0, len(data), piece)]


# --- plain readers -------------------------------------------------------------------------------


def _text_of(chunk: dict[str, Any]) -> str:
    for choice in chunk["choices"]:
        return choice["delta"].get("content") or ""
    return ""


def _lines(pieces: list[bytes]) -> Reader:
    def read() -> str:
        lines = [one for one in b"".join(pieces).splitlines() if one.startswith(b"data: {")]
        return "".join([_text_of(json.loads(line[6:])) for line in lines])

    return read


def _httpx_sse(pieces: list[bytes]) -> Reader:
    import httpx
    from httpx_sse import EventSource

    answer = _answering(httpx, pieces)

    def read() -> str:
        events = EventSource(answer()).iter_sse()
        return "".join([_text_of(json.loads(e.data)) for e in events if e.data != "[DONE]"])

    return read


def _openai(pieces: list[bytes]) -> Reader:
    from openai import OpenAI, _base_client

    # the third version of the package took another HTTP client
    http: Any = getattr(_base_client, "httpx2", None) or vars(_base_client)["httpx"]
    answer = _answering(http, pieces)

    class Ready(http.BaseTransport):  # type: ignore[misc]
        def handle_request(self, _: Any) -> Any:
            return answer()

    client = OpenAI(api_key="none", http_client=http.Client(transport=Ready()))
    prompt: Any = [{"role": "user", "content": "?"}]

    def read() -> str:
        chunks = client.chat.completions.create(model="gpt-4o", messages=prompt, stream=True)
        return "".join([one.choices[0].delta.content or "" for one in chunks if one.choices])

    return read


def _answering(http: Any, pieces: list[bytes]) -> Callable[[], Any]:
    class Pieces(http.SyncByteStream):  # type: ignore[misc]
        def __iter__(self) -> Iterator[bytes]:
            return iter(pieces)

    return lambda: http.Response(200, headers=_TYPE, stream=Pieces())


READERS = {"json.loads": _lines, "httpx-sse": _httpx_sse, "openai": _openai}


async def read(_: Path, reader: str, size: int, piece: int, repeats: int = 5) -> dict[str, Any]:
    stream = openai_stream(size)
    reading = READERS[reader](cut(stream.data, piece))

    async def work() -> int:
        return len(reading())

    found = await clock.repeat(work, repeats)
    assert reading() == stream.text, "the text is not what was sent"
    return found | {"bytes": len(stream.data)}

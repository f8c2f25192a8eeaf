"""A reply as OpenAI would send it, in one piece or streamed, for a gateway's clients.

Decoding it gives the same message, except for what the format has no field for: the subject and
signature of a thought, borders between neighbouring texts, and any end but the four known ones.
There is no clock here: `created` is 0, and the id follows from the reply itself.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

from recollect.codecs.foreign_json import encode_json, join_and_replace_surrogates
from recollect.codecs.openai.encode_message import describe_unsent_media
from recollect.codecs.provider_rules import OpenAIQuirks
from recollect.entries import FileRef, InlineData, Message, Part, Text, Thought, ToolCall, Usage

_FINISHES = {"stop": "stop", "length": "length", "calls": "tool_calls", "safety": "content_filter"}
_EVENT_TEXT = 4_000  # characters of one event; some clients refuse long lines
DONE = b"data: [DONE]\n\n"


def encode_reply(quirks: OpenAIQuirks, reply: Message) -> bytes:
    text = "".join([_text_of(part, quirks) for part in reply.parts])
    thoughts = "".join([part.text for part in reply.parts if isinstance(part, Thought)])
    calls = [_encode_call(part) for part in reply.parts if isinstance(part, ToolCall)]
    message: dict[str, Any] = {"role": "assistant", "content": text or None, "refusal": None}
    if thoughts:
        message[_thought_field(quirks)] = thoughts
    if calls:
        message["tool_calls"] = calls
    finish = _FINISHES.get(reply.finish, "stop")
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": finish}
    body = {**_head(reply, quirks), "object": "chat.completion", "choices": [choice]}
    if reply.usage is not None:
        body["usage"] = _usage(reply.usage)
    return encode_json(body, "a reply", 0).data


def encode_stream(quirks: OpenAIQuirks, reply: Message) -> Iterator[bytes]:
    head = {**_head(reply, quirks), "object": "chat.completion.chunk"}
    yield _event(head, {"role": "assistant", "content": ""})
    calls = 0
    for part in reply.parts:
        if isinstance(part, ToolCall):
            yield from _encode_call_events(head, part, calls)
            calls += 1
        elif isinstance(part, Thought):
            for piece in _split_text(part.text):
                yield _event(head, {_thought_field(quirks): piece})
        else:
            for piece in _split_text(_text_of(part, quirks)):
                yield _event(head, {"content": piece})
    has_end = reply.finish not in ("", "interrupted")  # one that broke off has none
    if has_end:
        yield _event(head, {}, _FINISHES.get(reply.finish, "stop"))
    if reply.usage is not None:
        body = {**head, "choices": [], "usage": _usage(reply.usage)}
        yield b"data: " + encode_json(body, "a reply", 0).data + b"\n\n"
    if has_end:
        yield DONE


def _head(reply: Message, quirks: OpenAIQuirks) -> dict[str, Any]:
    texts = "\0".join([part.text for part in reply.parts if isinstance(part, Text)])
    digest = hashlib.blake2b(texts.encode("utf-8", "surrogatepass"), digest_size=12)
    for part in reply.parts:
        if isinstance(part, ToolCall):
            digest.update(part.id.encode("utf-8", "surrogatepass"))
    id_ = f"chatcmpl-{digest.hexdigest()}"
    return {"id": id_, "created": 0, "model": reply.model or quirks.model}


def _event(head: dict[str, Any], delta: dict[str, Any], finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
    return b"data: " + encode_json({**head, "choices": [choice]}, "a reply", 0).data + b"\n\n"


def _encode_call_events(head: dict[str, Any], call: ToolCall, index: int) -> Iterator[bytes]:
    """The call's name first, then its arguments."""
    named = {"index": index, **_encode_call(call)}
    named["function"] = {"name": call.name, "arguments": ""}
    yield _event(head, {"tool_calls": [named]})
    for piece in _split_text(call.arguments):
        delta = {"index": index, "function": {"arguments": piece}}
        yield _event(head, {"tool_calls": [delta]})


def _split_text(text: str) -> Iterator[str]:
    if not text.isascii():  # a surrogate pair must not be split between two events
        text = join_and_replace_surrogates(text)[0]
    for start in range(0, len(text), _EVENT_TEXT):
        yield text[start : start + _EVENT_TEXT]


def _encode_call(call: ToolCall) -> dict[str, Any]:
    function = {"name": call.name, "arguments": call.arguments}
    return {"id": call.id, "type": "function", "function": function}


def _text_of(part: Part, quirks: OpenAIQuirks) -> str:
    """A reply of this format is text: a line names any other content."""
    if isinstance(part, Text):
        return part.text
    if isinstance(part, InlineData | FileRef):
        return describe_unsent_media(part, quirks.media, "a model's reply")
    return ""


def _thought_field(quirks: OpenAIQuirks) -> str:
    return quirks.reasoning or "reasoning_content"


def _usage(usage: Usage) -> dict[str, Any]:
    body: dict[str, Any] = {
        "prompt_tokens": usage.input,
        "completion_tokens": usage.output,
        "total_tokens": usage.total or usage.input + usage.output,
    }
    cached = {"cached_tokens": usage.cached} if usage.cached is not None else {}
    written = {"cache_write_tokens": usage.written} if usage.written else {}
    if cached or written:
        body["prompt_tokens_details"] = cached | written
    if usage.thoughts:
        body["completion_tokens_details"] = {"reasoning_tokens": usage.thoughts}
    return body

"""A reply as Gemini would send it, in one piece or as a stream of events.

Guarantees: decoding it gives the same reply, except for what the format cannot carry: empty ids,
the borders between neighbouring texts of a stream, line breaks between the arguments' tokens (an
event's data is one line), and parts of kinds that Gemini does not have. Every event is a whole
`GenerateContentResponse`; the last one has the finish reason and the usage.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from recollect.codecs.endings import finish_word
from recollect.codecs.foreign_json import encode, replace_surrogates
from recollect.codecs.gemini.encode_message import PartEncoder
from recollect.codecs.provider_rules import GeminiQuirks
from recollect.entries import Message, Part, Text, Thought, Usage

_REASON = re.compile(r"[A-Z][A-Z_]{0,63}")
_EVENT_TEXT = 400  # characters of a text in one event
_NO_BREAKS = bytes.maketrans(b"\r\n", b"  ")
_ANY_MEDIA = GeminiQuirks(media=("",), result_media=("",))


def encode_reply(reply: Message) -> bytes:
    reply = replace_surrogates(reply)
    parts = PartEncoder(_ANY_MEDIA, own=True, as_declared=True).encode_parts(reply)
    return _response(b",".join(parts), reply, last=True)


def encode_stream(reply: Message) -> Iterator[bytes]:
    reply = replace_surrogates(reply)
    encoder = PartEncoder(_ANY_MEDIA, own=True, as_declared=True)
    for part in reply.parts:
        for piece in _split_text(part):
            if data := encoder.encode_part(piece):
                yield _as_event(_response(data, reply, last=False))
    yield _as_event(_response(b'{"text":""}', reply, last=True))


def _as_event(data: bytes) -> bytes:
    return b"data: " + data.translate(_NO_BREAKS) + b"\r\n\r\n"


def _split_text(part: Part) -> Iterator[Part]:
    """A long text in several parts that are joined again; a signature only at the end."""
    text = part.text if isinstance(part, Text | Thought) else ""
    if len(text) <= _EVENT_TEXT or (isinstance(part, Text) and part.extra):
        yield part
        return
    bare = Text if isinstance(part, Text) else Thought
    cut = (len(text) - 1) // _EVENT_TEXT * _EVENT_TEXT
    for start in range(0, cut, _EVENT_TEXT):
        yield bare(text=text[start : start + _EVENT_TEXT])
    yield msgspec.structs.replace(part, text=text[cut:])


def _response(parts: bytes, reply: Message, *, last: bool) -> bytes:
    found = b'{"candidates":[{"content":{"parts":[' + parts + b'],"role":"model"}'
    reason = _reason(reply) if last else ""
    if reason:
        found += b',"finishReason":' + encode(reason)
    found += b',"index":0}]'
    if last and reply.usage is not None:
        found += b',"usageMetadata":' + encode(_counts(reply.usage))
    if reply.model:
        found += b',"modelVersion":' + encode(reply.model)
    return found + b"}"


def _reason(reply: Message) -> str:
    if reply.finish in ("", "interrupted"):
        return ""
    word = finish_word("gemini", reply)
    unknown = "STOP" if reply.finish == "calls" else "OTHER"
    return word if _REASON.fullmatch(word) else unknown


def _counts(usage: Usage) -> dict[str, int]:
    counts = {
        "promptTokenCount": usage.input,
        "candidatesTokenCount": usage.output,
        "cachedContentTokenCount": usage.cached or 0,
        "thoughtsTokenCount": usage.thoughts,
        "toolUsePromptTokenCount": usage.tool,
        "totalTokenCount": usage.total,
    }
    return {name: count for name, count in counts.items() if count}

"""A reply as Gemini would send it, in one piece or as a stream of events.

Guarantees: what `gemini_replies` reads from it is the same reply, but for what the format cannot
carry: ids of nothing, neighbouring texts of a stream, line breaks between the arguments' tokens (an
event's data is one line), and parts of kinds that Gemini does not have. Every event is a whole
`GenerateContentResponse`; the last one bears the finish reason and the usage.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from recollect.codecs.gemini.encode_message import PartEncoder, encode, replace_surrogates
from recollect.entries import Message, Part, Text, Thought, Usage

_WORDS = {"stop": "STOP", "calls": "STOP", "length": "MAX_TOKENS", "safety": "SAFETY"}
_OTHER = {"other", "error"}
_REASON = re.compile(r"[A-Z][A-Z_]{0,63}")
_PIECE = 400  # characters of a text in one event
_NO_BREAKS = bytes.maketrans(b"\r\n", b"  ")


class _ReplyExtra(msgspec.Struct):
    finish_reason: str = ""


_extra = msgspec.json.Decoder(_ReplyExtra).decode


def encode_reply(reply: Message) -> bytes:
    reply = _writable(reply)
    parts = PartEncoder(own=True).parts(reply)
    return _response(b",".join(parts), reply, last=True)


def encode_stream(reply: Message) -> Iterator[bytes]:
    reply = _writable(reply)
    pen = PartEncoder(own=True)
    for part in reply.parts:
        for piece in _pieces(part):
            if data := pen.part(piece):
                yield _as_event(_response(data, reply, last=False))
    yield _as_event(_response(b'{"text":""}', reply, last=True))


def _writable(reply: Message) -> Message:
    try:
        encode(reply)
    except UnicodeEncodeError:
        return replace_surrogates(reply)
    return reply


def _as_event(data: bytes) -> bytes:
    return b"data: " + data.translate(_NO_BREAKS) + b"\r\n\r\n"


def _pieces(part: Part) -> Iterator[Part]:
    """A long text in several parts that are joined again; a signature only at the end."""
    text = part.text if isinstance(part, Text | Thought) else ""
    if len(text) <= _PIECE or (isinstance(part, Text) and part.extra):
        yield part
        return
    bare = Text if isinstance(part, Text) else Thought
    cut = (len(text) - 1) // _PIECE * _PIECE
    for start in range(0, cut, _PIECE):
        yield bare(text=text[start : start + _PIECE])
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
    if reply.finish not in _OTHER:  # an interrupted reply has no end
        return _WORDS.get(reply.finish, "")
    try:
        word = _extra(reply.extra.encode()).finish_reason if reply.extra else ""
    except (msgspec.MsgspecError, RecursionError):
        word = ""
    return word if _REASON.fullmatch(word) and word not in _WORDS.values() else "OTHER"


def _counts(usage: Usage) -> dict[str, int]:
    counts = {
        "promptTokenCount": usage.input,
        "candidatesTokenCount": usage.output,
        "cachedContentTokenCount": usage.cached,
        "thoughtsTokenCount": usage.thoughts,
        "toolUsePromptTokenCount": usage.tool,
        "totalTokenCount": usage.total,
    }
    return {name: count for name, count in counts.items() if count}

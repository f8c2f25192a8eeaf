"""A streamed Gemini reply, decoded while it arrives.

Guarantees: any chunking of the bytes gives the same message. Neighbouring texts are one, and so are
thoughts until one is signed; a signed text stays apart, because Google asks that a signature is
never joined to text that it does not sign.
"""

from __future__ import annotations

from collections.abc import Sequence

from recollect.codecs.gemini.decode_reply import (
    GeminiCallIds,
    GeminiCandidate,
    GeminiPart,
    GeminiUsage,
    decode_candidate,
    decode_event,
    finish_reply,
    raise_bare_error,
    refuse_incomplete,
)
from recollect.codecs.provider_errors import bad_reply_from
from recollect.codecs.reply_assembly import StreamAssembly
from recollect.codecs.sse import SseParser
from recollect.codecs.wire_protocol import NO_DELTAS, Delta
from recollect.entries import Message, Part, Text, Thought, ToolCall

_ENOUGH = 400  # bytes that show what came instead of events
_MOST = 65_536
_FIELDS = (b"data", b"event", b"id", b"retry", b":")  # how a line of an event begins


class GeminiStreamDecoder:
    """Reads the events of `streamGenerateContent?alt=sse`."""

    def __init__(self, model: str = "") -> None:
        self._events = SseParser()
        self._assembly = StreamAssembly()
        self._assembly.model = model
        self._ids = GeminiCallIds()
        self._reason = ""
        self._usage: GeminiUsage | None = None
        self._opening: bytearray | None = bytearray()  # until the first event

    def feed(self, data: bytes) -> Sequence[Delta]:
        if self._opening is not None:
            self._watch(data)
        events = self._events.feed(data)
        if not events:
            return NO_DELTAS
        for event in events:
            self._read_event(event)
        return self._assembly.take_deltas()

    def close(self) -> Sequence[Delta]:
        for event in self._events.close():
            refuse_incomplete(event)
            self._read_event(event)
        opening = bytes(self._opening or b"").lstrip(b"\xef\xbb\xbf \t\r\n")
        if opening and not opening.startswith(_FIELDS):
            raise_bare_error(opening)
            raise bad_reply_from(opening)
        return self._assembly.take_deltas()

    def message(self) -> Message:
        finish_reply(self._assembly, self._reason, self._usage)
        return self._assembly.message()

    def _watch(self, data: bytes) -> None:
        """Refuse a web page without waiting for its end."""
        opening = self._opening
        assert opening is not None
        if len(opening) < _MOST:
            seen = len(opening)
            opening += data[: _MOST - seen]
            if seen < _ENOUGH <= len(opening) and opening.lstrip().startswith(b"<"):
                raise bad_reply_from(bytes(opening[:_ENOUGH]))

    def _read_event(self, item: bytes) -> None:
        if not item or item.isspace() or item == b"[DONE]":  # some gateways end like OpenAI
            return
        event, data = decode_event(item)
        if self._opening is not None:
            if event.is_foreign:
                raise bad_reply_from(item)
            self._opening = None
        if event.model_version:
            self._assembly.model = event.model_version
        if event.usage_metadata is not None:
            self._usage = event.usage_metadata
        self._reason = self._reason or event.block_reason
        first = event.first_candidate()
        if first is not None:
            self._read_candidate(first[1], data, first[0])

    def _read_candidate(self, candidate: GeminiCandidate, data: bytes, position: int) -> None:
        parts = candidate.parts
        if parts:
            if any(part.text is None or part.thought_signature for part in parts):
                for whole_part in decode_candidate(data, position):
                    self._add_part(whole_part)
            else:
                self._add_texts(parts)
        if candidate.finish_reason:
            self._reason = candidate.finish_reason

    def _add_texts(self, parts: list[GeminiPart]) -> None:
        for part in parts:
            if text := part.text:
                if part.thought:
                    self._assembly.thought(text)
                else:
                    self._assembly.text(text)

    def _add_part(self, part: Part) -> None:
        assembly = self._assembly
        if isinstance(part, ToolCall):
            call = self._ids.assign(part)
            assembly.add(call)
            assembly.deltas.append(Delta("call", call.arguments, call.name))
        elif isinstance(part, Thought):
            if part.text:
                assembly.thought(part.text)
            if part.signature:
                assembly.sign(part.signature)
                assembly.end_part()
        elif isinstance(part, Text):
            if part.extra:
                assembly.add(part)
                assembly.deltas.append(Delta("text", part.text))
            else:
                assembly.text(part.text)
        else:
            assembly.add(part)

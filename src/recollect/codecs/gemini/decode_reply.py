"""A Gemini reply, streamed or in one piece.

Guarantees: however the bytes of a stream are cut, the message is the same. Neighbouring texts of a
stream are one, and so are thoughts until one is signed; a signed text stays apart, because Google
asks that a signature is never joined to what it does not sign. Calls without an id get one by
their position. What is no reply raises `BadReply`, an error of the provider `ProviderFailed`.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from recollect.codecs.gemini.decode_parts import (
    decode_fields,
    decode_items,
    decode_part,
    repair_json_text,
    unknown_part,
)
from recollect.codecs.gemini.encode_message import encode
from recollect.codecs.provider_errors import bad_reply_from, make_printable, provider_error_from
from recollect.codecs.reply_assembly import ReplyAssembly
from recollect.codecs.sse import SseParser
from recollect.codecs.wire_protocol import Delta, Finish
from recollect.entries import Message, Part, Text, Thought, ToolCall, ToolResult, Usage
from recollect.errors import BadInput, BadReply

NO_DELTAS: tuple[Delta, ...] = ()
FINISHES: dict[str, Finish] = {
    "STOP": "stop",
    "MAX_TOKENS": "length",
    "SAFETY": "safety",
    "RECITATION": "safety",
    "BLOCKLIST": "safety",
    "PROHIBITED_CONTENT": "safety",
    "SPII": "safety",
    "IMAGE_SAFETY": "safety",
    "IMAGE_PROHIBITED_CONTENT": "safety",
    "IMAGE_RECITATION": "safety",
    "FINISH_REASON_UNSPECIFIED": "",
}
_ENOUGH = 400  # bytes of what came instead of events: what it is can be told from them
_MOST = 65_536
_FIELDS = (b"data", b"event", b"id", b"retry", b":")  # how a line of an event begins


class _GeminiPart(msgspec.Struct, rename="camel", gc=False):
    text: str | None = None
    thought: bool | None = None
    thought_signature: str | None = None


class _GeminiContent(msgspec.Struct, gc=False):
    parts: list[_GeminiPart] | None = None


class _GeminiCandidate(msgspec.Struct, rename="camel", gc=False):
    content: _GeminiContent | None = None
    finish_reason: str | None = None
    index: int | None = None


class _GeminiUsage(msgspec.Struct, rename="camel", gc=False):
    prompt_token_count: int | None = None
    candidates_token_count: int | None = None
    cached_content_token_count: int | None = None
    thoughts_token_count: int | None = None
    tool_use_prompt_token_count: int | None = None
    total_token_count: int | None = None

    def usage(self) -> Usage:
        return Usage(
            input=max(self.prompt_token_count or 0, 0),
            output=max(self.candidates_token_count or 0, 0),
            cached=max(self.cached_content_token_count or 0, 0),
            thoughts=max(self.thoughts_token_count or 0, 0),
            tool=max(self.tool_use_prompt_token_count or 0, 0),
            total=max(self.total_token_count or 0, 0),
        )


class _PromptFeedback(msgspec.Struct, rename="camel", gc=False):
    block_reason: str | None = None


class _GeminiError(msgspec.Struct, gc=False):
    code: int | str | None = None
    message: str | None = None
    status: str | None = None


class _GeminiEvent(msgspec.Struct, rename="camel", gc=False):
    candidates: list[_GeminiCandidate] | None = None
    usage_metadata: _GeminiUsage | None = None
    model_version: str | None = None
    prompt_feedback: _PromptFeedback | None = None
    response_id: str | None = None
    error: _GeminiError | str | None = None

    @property
    def is_foreign(self) -> bool:
        return all(getattr(self, name) is None for name in self.__struct_fields__)


_event = msgspec.json.Decoder(_GeminiEvent).decode
_UNCOUNTED = msgspec.json.Decoder(dict[str, msgspec.Raw])


def _decode_event(data: bytes) -> tuple[_GeminiEvent, bytes]:
    """The event, and its JSON as it can be read again. Raises `BadReply`."""
    try:
        return _event(data), data
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        pass
    try:
        data = repair_json_text(data)
        try:
            return _event(data), data
        except msgspec.ValidationError:
            # counts are a courtesy: a reply is not refused because of them
            rest = _UNCOUNTED.decode(data)
            rest.pop("usageMetadata", None)
            return _event(encode(rest)), data
    except (msgspec.MsgspecError, ValueError, RecursionError):
        raise bad_reply_from(data) from None


def _raise_if_failed(event: _GeminiEvent) -> None:
    error = event.error
    if isinstance(error, str):
        raise provider_error_from(error)
    if error is not None:
        code = error.code if isinstance(error.code, int) and 0 < error.code < 1_000 else 0
        raise provider_error_from(error.message or "", code, error.status or "")


def _first(event: _GeminiEvent) -> tuple[int, _GeminiCandidate] | None:
    """The first of several answers, and where in the list it stands."""
    for place, candidate in enumerate(event.candidates or ()):
        if not candidate.index:
            return place, candidate
    return None


def _read_parts(data: bytes, place: int) -> list[Part]:
    """Every part of a candidate, whatever its kind. Raises `BadReply`."""
    try:
        candidate = decode_fields(decode_items(decode_fields(data)["candidates"])[place])
        found = [
            decode_fields(part)
            for part in decode_items(decode_fields(candidate["content"])["parts"])
        ]
        parts = [(decode_part(part), part) for part in found]
        # a model answers no call: what looks like it is kept, but not as a result
        return [
            unknown_part(raw) if isinstance(part, ToolResult) else part
            for part, raw in parts
            if part is not None and not (isinstance(part, Text) and not part.text)
        ]
    except (msgspec.MsgspecError, BadInput, ValueError, RecursionError) as error:
        raise BadReply(f"JSON of another kind ({make_printable(str(error), 200)})") from None


class _GeminiCallIds:
    """Gives every call of a reply an id of its own."""

    def __init__(self) -> None:
        self._taken: set[str] = set()
        self._numbers: dict[str, int] = {}  # of each stem, the last: none is tried twice
        self._calls = 0

    def named(self, call: ToolCall) -> ToolCall:
        self._calls += 1
        stem, id_ = call.id or "call", call.id or f"call-{self._calls}"
        number = self._numbers.get(stem, 1 if call.id else self._calls)
        while id_ in self._taken:
            number += 1
            id_ = f"{stem}-{number}"
            self._numbers[stem] = number
        self._taken.add(id_)
        return call if id_ == call.id else msgspec.structs.replace(call, id=id_)


class GeminiStreamDecoder:
    """Reads the events of `streamGenerateContent?alt=sse`."""

    def __init__(self, model: str = "") -> None:
        self._events = SseParser()
        self._assembly = ReplyAssembly()
        self._assembly.model = model
        self._ids = _GeminiCallIds()
        self._reason = ""
        self._counts: _GeminiUsage | None = None
        self._opening: bytearray | None = bytearray()  # until the first event

    def feed(self, data: bytes) -> Sequence[Delta]:
        if self._opening is not None:
            self._watch(data)
        found = self._events.feed(data)
        if not found:
            return NO_DELTAS
        deltas: list[Delta] = []
        for item in found:
            self._take(item, deltas)
        return deltas

    def close(self) -> Sequence[Delta]:
        deltas: list[Delta] = []
        for item in self._events.close():
            if _is_half(item):
                raise _half(item)
            self._take(item, deltas)
        opening = bytes(self._opening or b"").lstrip(b"\xef\xbb\xbf \t\r\n")
        if opening and not opening.startswith(_FIELDS):
            _raise_if_json_error(opening)
            raise bad_reply_from(opening)
        return deltas

    def message(self) -> Message:
        self._assembly.finish, self._assembly.unknown_finish = _map_finish(
            self._reason, calls=self._assembly.has_calls
        )
        self._assembly.usage = self._counts.usage() if self._counts is not None else None
        return self._assembly.message()

    def _watch(self, data: bytes) -> None:
        """Whether this is a web page: nobody should wait for its end."""
        opening = self._opening
        assert opening is not None
        if len(opening) < _MOST:
            seen = len(opening)
            opening += data[: _MOST - seen]
            if seen < _ENOUGH <= len(opening) and opening.lstrip().startswith(b"<"):
                raise bad_reply_from(bytes(opening[:_ENOUGH]))

    def _take(self, item: bytes, deltas: list[Delta]) -> None:
        if not item or item.isspace() or item == b"[DONE]":  # some gateways end like OpenAI
            return
        event, data = _decode_event(item)
        _raise_if_failed(event)
        if self._opening is not None:
            if event.is_foreign:
                raise bad_reply_from(item)
            self._opening = None
        if event.model_version:
            self._assembly.model = event.model_version
        if event.usage_metadata is not None:
            self._counts = event.usage_metadata
        if event.prompt_feedback is not None and event.prompt_feedback.block_reason:
            self._reason = self._reason or "SAFETY"
        first = _first(event)
        if first is not None:
            self._take_candidate(first[1], data, first[0], deltas)

    def _take_candidate(
        self, candidate: _GeminiCandidate, data: bytes, place: int, deltas: list[Delta]
    ) -> None:
        parts = candidate.content.parts if candidate.content is not None else None
        if parts:
            if any(part.text is None or part.thought_signature for part in parts):
                for whole_part in _read_parts(data, place):
                    self._add(whole_part, deltas)
            else:
                self._add_words(parts, deltas)
        if candidate.finish_reason:
            self._reason = candidate.finish_reason

    def _add_words(self, parts: list[_GeminiPart], deltas: list[Delta]) -> None:
        for part in parts:
            if text := part.text:
                if part.thought:
                    self._assembly.thought(text)
                    deltas.append(Delta("thought", text))
                else:
                    self._assembly.text(text)
                    deltas.append(Delta("text", text))

    def _add(self, part: Part, deltas: list[Delta]) -> None:
        assembly = self._assembly
        if isinstance(part, ToolCall):
            call = self._ids.named(part)
            assembly.add(call)
            deltas.append(Delta("call", call.arguments, call.name))
        elif isinstance(part, Thought):
            if part.text:
                assembly.thought(part.text)
                deltas.append(Delta("thought", part.text))
            if part.signature:
                assembly.sign(part.signature)
                assembly.end_part()
        elif isinstance(part, Text):
            deltas.append(Delta("text", part.text))
            if part.extra:
                assembly.add(part)
            else:
                assembly.text(part.text)
        else:
            assembly.add(part)


def _is_half(item: bytes) -> bool:
    """Whether this begins like JSON and is none."""
    try:
        msgspec.json.decode(item, type=msgspec.Raw)
        return False
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        pass
    try:
        repair_json_text(item)
        return False
    except RecursionError:
        return False
    except ValueError:
        return item.lstrip()[:1] in (b"{", b"[")


def _half(item: bytes) -> BadReply:
    return BadReply(f"half a JSON ({make_printable(item[:200].decode(errors='replace'), 60)})")


def _map_finish(reason: str, *, calls: bool) -> tuple[Finish, str]:
    """In our vocabulary; with the provider's own word when ours has none."""
    finish = FINISHES.get(reason, "other") if reason else ""
    if finish == "stop" and calls:
        finish = "calls"
    return finish, reason[:100] if finish == "other" else ""


def _raise_if_json_error(body: bytes) -> None:
    """Without `alt=sse`, and for errors before the first event, Gemini sends no events."""
    try:
        found = decode_items(body.strip())
        event = _event(found[0]) if found else None
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return
    if event is not None:
        _raise_if_failed(event)


def decode_reply(body: bytes, model: str = "") -> Message:
    if not body.lstrip(b" \t\r\n").startswith(b"{"):
        _raise_if_json_error(body)
        raise bad_reply_from(body)
    if _is_half(body):
        raise _half(body)
    event, data = _decode_event(body)
    _raise_if_failed(event)
    if event.is_foreign:
        raise bad_reply_from(body)
    first, parts, reason, ids = _first(event), list[Part](), "", _GeminiCallIds()
    if event.prompt_feedback is not None and event.prompt_feedback.block_reason:
        reason = "SAFETY"
    if first is not None:
        place, candidate = first
        reason = candidate.finish_reason or reason
        if candidate.content is not None and candidate.content.parts:
            parts = _read_parts(data, place)
    assembly = ReplyAssembly()
    for part in parts:
        assembly.add(ids.named(part) if isinstance(part, ToolCall) else part)
    assembly.model = event.model_version or model
    assembly.usage = event.usage_metadata.usage() if event.usage_metadata is not None else None
    assembly.finish, assembly.unknown_finish = _map_finish(reason, calls=assembly.has_calls)
    return assembly.message()

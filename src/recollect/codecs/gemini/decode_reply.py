"""A Gemini reply, in one piece or streamed, decoded while it arrives.

Guarantees: any chunking of the bytes gives the same message. Neighbouring texts of a stream are
one, and so are thoughts until one is signed; a signed text stays apart, because Google asks that a
signature is never joined to text that it does not sign. Calls without an id get one by their
position. Bytes that are not a reply raise `BadReply`, an error of the provider raises
`ProviderFailed`.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import msgspec

from recollect.codecs.automatic_calls import without_repeated
from recollect.codecs.foreign_json import (
    JSON_ERRORS,
    NO_JSON,
    encode,
    read_count,
    repair_json_text,
)
from recollect.codecs.gemini.automatic_history import decode_history
from recollect.codecs.gemini.decode_parts import (
    decode_fields,
    decode_items,
    decode_part,
    unknown_part,
)
from recollect.codecs.provider_errors import (
    bad_reply_from,
    incomplete_json,
    make_printable,
    provider_error_in,
)
from recollect.codecs.provider_rules import GeminiQuirks
from recollect.codecs.reply_assembly import CallIds, ReplyAssembly
from recollect.codecs.reply_limits import MAX_HISTORIES, refuse
from recollect.codecs.sse import SseParser
from recollect.codecs.wire_protocol import NO_DELTAS, Delta
from recollect.entries import Message, Part, Text, Thought, ToolCall, ToolResult, Usage
from recollect.errors import BadInput, BadReply
from recollect.tokens import believe_usage

_BLOCKED = "SAFETY"  # the finish reason of a reply to a prompt that was blocked
_ENOUGH = 400  # bytes that show what came instead of events
_MOST = 65_536
_FIELDS = (b"data", b"event", b"id", b"retry", b":")  # how a line of an event begins


class _GeminiPart(msgspec.Struct, rename="camel", gc=False):
    text: str | None = None
    thought: bool | str | None = None
    thought_signature: str | None = None
    function_call: msgspec.Raw = NO_JSON
    inline_data: msgspec.Raw = NO_JSON
    file_data: msgspec.Raw = NO_JSON
    executable_code: msgspec.Raw = NO_JSON
    code_execution_result: msgspec.Raw = NO_JSON

    @property
    def is_plain_text(self) -> bool:
        return self.text is not None and not (
            self.thought_signature
            or self.function_call
            or self.inline_data
            or self.file_data
            or self.executable_code
            or self.code_execution_result
        )


class _GeminiContent(msgspec.Struct, gc=False):
    parts: list[_GeminiPart] | None = None


class _GeminiCandidate(msgspec.Struct, rename="camel", gc=False):
    content: _GeminiContent | None = None
    finish_reason: str | None = None
    finish_message: str | None = None
    index: int | None = None

    @property
    def parts(self) -> list[_GeminiPart] | None:
        return self.content.parts if self.content is not None else None


class _GeminiUsage(msgspec.Struct, rename="camel", gc=False):
    prompt_token_count: int | float | None = None
    candidates_token_count: int | float | None = None
    cached_content_token_count: int | float | None = None
    thoughts_token_count: int | float | None = None
    tool_use_prompt_token_count: int | float | None = None
    total_token_count: int | float | None = None

    def usage(self) -> Usage | None:
        # Gemini leaves out counts that are 0, so nothing about the cache means that it read nothing
        counts = (read_count(getattr(self, name)) for name in self.__struct_fields__)
        new, output, cached, thoughts, tool, total = counts
        return believe_usage(
            Usage(
                input=new, output=output, cached=cached, thoughts=thoughts, tool=tool, total=total
            )
        )


class _PromptFeedback(msgspec.Struct, rename="camel", gc=False):
    block_reason: str | None = None


class _GeminiEvent(msgspec.Struct, rename="camel", gc=False):
    candidates: list[_GeminiCandidate] | None = None
    usage_metadata: _GeminiUsage | None = None
    model_version: str | None = None
    prompt_feedback: _PromptFeedback | None = None
    response_id: str | None = None
    error: Any = None
    automatic_function_calling_history: msgspec.Raw = msgspec.Raw()

    @property
    def is_foreign(self) -> bool:
        *fields, history = (getattr(self, name) for name in self.__struct_fields__)
        return not history and all(value is None for value in fields)

    @property
    def block_reason(self) -> str:
        """Why the prompt was blocked; empty if it was not."""
        feedback = self.prompt_feedback
        return (feedback.block_reason if feedback is not None else "") or ""

    def first_candidate(self) -> tuple[int, _GeminiCandidate] | None:
        """The first of several answers, and its position in the list."""
        for position, candidate in enumerate(self.candidates or ()):
            if not candidate.index:
                return position, candidate
        return None


_decode_typed = msgspec.json.Decoder(_GeminiEvent).decode
_decode_untyped = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


def decode_reply(quirks: GeminiQuirks, body: bytes) -> Message:
    if not body.lstrip(b" \t\r\n").startswith(b"{"):
        _raise_bare_error(body)
        raise bad_reply_from(body)
    _refuse_incomplete(body)
    event, data = _decode_event(body)
    if event.is_foreign:
        raise bad_reply_from(body)
    assembly, ids, reason = ReplyAssembly(), CallIds(), ""
    first = event.first_candidate()
    if first is not None:
        position, candidate = first
        reason = candidate.finish_reason or ""
        assembly.finish_message = make_printable(candidate.finish_message or "")
        parts = _decode_candidate(data, position) if candidate.parts else ()
        for part in parts:
            assembly.add(_with_id(part, ids))
    assembly.model = event.model_version or quirks.model
    history = decode_history(quirks, bytes(event.automatic_function_calling_history))
    assembly.automatic_calls = history.text
    if not reason and event.block_reason:
        reason, assembly.finish_message = _BLOCKED, _describe_block(event.block_reason)
    _finish_reply(assembly, reason, event.usage_metadata)
    return assembly.message()


def _decode_event(data: bytes) -> tuple[_GeminiEvent, bytes]:
    """The event, and its JSON in readable form. Raises `BadReply`, or the provider's own error."""
    try:
        event = _decode_typed(data)
    except JSON_ERRORS:
        event, data = _decode_carefully(data)
    _raise_if_failed(event)
    return event, data


def _decode_carefully(data: bytes) -> tuple[_GeminiEvent, bytes]:
    with suppress(*JSON_ERRORS):
        return _without_counts(data), data
    if b'"functionCall"' in data:  # nothing in a call is guessed
        raise BadReply("a damaged call", is_damage=True)
    try:
        data = repair_json_text(data)
        try:
            return _decode_typed(data), data
        except msgspec.ValidationError:
            return _without_counts(data), data
    except JSON_ERRORS:
        raise bad_reply_from(data) from None


def _without_counts(data: bytes) -> _GeminiEvent:
    """A reply is not refused because of broken token counts."""
    rest = _decode_untyped(data)
    rest.pop("usageMetadata", None)
    return _decode_typed(encode(rest))


def _raise_if_failed(event: _GeminiEvent) -> None:
    if event.error is not None:
        raise provider_error_in(event.error)


def _raise_bare_error(body: bytes) -> None:
    """Without `alt=sse`, and for errors before the first event, Gemini sends no events."""
    try:
        items = decode_items(body.strip())
        event = _decode_typed(items[0]) if items else None
    except JSON_ERRORS:
        return
    if event is not None:
        _raise_if_failed(event)


def _refuse_incomplete(item: bytes) -> None:
    """Raise `BadReply` for bytes that begin like JSON and break off."""
    try:
        msgspec.json.decode(item, type=msgspec.Raw)
        return
    except JSON_ERRORS:
        pass
    try:
        repair_json_text(item)
    except RecursionError:
        return
    except ValueError:
        if item.lstrip()[:1] in (b"{", b"["):
            raise incomplete_json(item) from None


def _decode_candidate(data: bytes, position: int) -> list[Part]:
    """Every part of a candidate, whatever its kind. Raises `BadReply`."""
    try:
        candidate = decode_fields(decode_items(decode_fields(data)["candidates"])[position])
        items = decode_items(decode_fields(candidate["content"])["parts"])
        # a model answers no calls: a result is kept, but not as a result
        return [
            unknown_part(raw) if isinstance(part, ToolResult) else part
            for raw in map(decode_fields, items)
            for part in decode_part(raw)
            if not (isinstance(part, Text) and not part.text)
        ]
    except (*JSON_ERRORS, BadInput) as error:
        raise BadReply(f"JSON of another kind ({make_printable(str(error), 200)})") from None


def _describe_block(reason: str) -> str:
    return f"the prompt was blocked: {make_printable(reason, 100)}"


def _finish_reply(assembly: ReplyAssembly, reason: str, usage: _GeminiUsage | None) -> None:
    assembly.end("gemini", reason)
    assembly.usage = usage.usage() if usage is not None else None


def _with_id(part: Part, ids: CallIds) -> Part:
    if not isinstance(part, ToolCall):
        return part
    return msgspec.structs.replace(part, id=ids.assign(part.id))


class GeminiStreamDecoder:
    """Reads the events of `streamGenerateContent?alt=sse`."""

    def __init__(self, quirks: GeminiQuirks) -> None:
        self._events = SseParser()
        self._assembly = ReplyAssembly()
        self._assembly.model = quirks.model
        self._quirks = quirks
        self._history = b""  # of automatic calls, as it came last
        self._histories = 0  # that differ
        self._ids = CallIds()
        self._reason = ""
        self._usage: _GeminiUsage | None = None
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
            _refuse_incomplete(event)
            self._read_event(event)
        opening = bytes(self._opening or b"").lstrip(b"\xef\xbb\xbf \t\r\n")
        if opening and not opening.startswith(_FIELDS):
            _raise_bare_error(opening)
            raise bad_reply_from(opening)
        self._assembly.refuse_stray(self._events.stray)
        return self._assembly.take_deltas()

    def message(self) -> Message:
        _finish_reply(self._assembly, self._reason, self._usage)
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
        event, data = _decode_event(item)
        if self._opening is not None:
            if event.is_foreign:
                raise bad_reply_from(item)
            self._opening = None
        if event.model_version:
            self._assembly.model = event.model_version
        if event.usage_metadata is not None:
            self._usage = event.usage_metadata
        if event.block_reason and not self._reason:
            self._reason = _BLOCKED
            self._assembly.finish_message = _describe_block(event.block_reason)
        self._read_history(bytes(event.automatic_function_calling_history))
        first = event.first_candidate()
        if first is not None:
            self._read_candidate(first[1], data, first[0])

    def _read_history(self, history: bytes) -> None:
        """A history that grew holds what came before it: the reply begins anew."""
        if not history or history == self._history:
            return
        self._history, self._histories = history, self._histories + 1
        if self._histories > MAX_HISTORIES:
            raise refuse(MAX_HISTORIES, "histories of automatic calls")
        found = decode_history(self._quirks, history)
        assembly = self._assembly
        assembly.automatic_calls = found.text
        assembly.restart(without_repeated(assembly.message().parts, found.messages))
        self._reason = ""

    def _read_candidate(self, candidate: _GeminiCandidate, data: bytes, position: int) -> None:
        parts = candidate.parts
        if parts:
            if all(part.is_plain_text for part in parts):
                self._add_texts(parts)
            else:
                for whole_part in _decode_candidate(data, position):
                    self._add_part(whole_part)
        if candidate.finish_reason:
            self._reason = candidate.finish_reason
        if candidate.finish_message:
            self._assembly.finish_message = make_printable(candidate.finish_message)

    def _add_texts(self, parts: list[_GeminiPart]) -> None:
        for part in parts:
            if text := part.text:
                if part.thought:
                    self._assembly.thought(text)
                else:
                    self._assembly.text(text)

    def _add_part(self, part: Part) -> None:
        assembly = self._assembly
        if isinstance(part, Thought):
            if part.text:
                assembly.thought(part.text)
            if part.signature:
                assembly.sign(part.signature)
                assembly.end_part()
        elif isinstance(part, Text) and not part.extra:
            assembly.text(part.text)
        else:
            assembly.add_shown(_with_id(part, self._ids))

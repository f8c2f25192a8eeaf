"""A Gemini reply that came in one piece, and what it shares with streamed ones.

Calls without an id get one by their position. Bytes that are not a reply raise `BadReply`, an error
of the provider raises `ProviderFailed`.
"""

from __future__ import annotations

import msgspec

from recollect.codecs.foreign_json import JSON_ERRORS, encode
from recollect.codecs.gemini.decode_parts import (
    decode_fields,
    decode_items,
    decode_part,
    repair_json_text,
    unknown_part,
)
from recollect.codecs.provider_errors import (
    bad_reply_from,
    incomplete_json,
    make_printable,
    provider_error_from,
)
from recollect.codecs.reply_assembly import ReplyAssembly
from recollect.codecs.wire_protocol import Finish
from recollect.entries import Message, Part, Text, ToolCall, ToolResult, Usage
from recollect.errors import BadInput, BadReply

_FINISHES: dict[str, Finish] = {
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


class GeminiPart(msgspec.Struct, rename="camel", gc=False):
    text: str | None = None
    thought: bool | None = None
    thought_signature: str | None = None


class _GeminiContent(msgspec.Struct, gc=False):
    parts: list[GeminiPart] | None = None


class GeminiCandidate(msgspec.Struct, rename="camel", gc=False):
    content: _GeminiContent | None = None
    finish_reason: str | None = None
    index: int | None = None

    @property
    def parts(self) -> list[GeminiPart] | None:
        return self.content.parts if self.content is not None else None


class GeminiUsage(msgspec.Struct, rename="camel", gc=False):
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


class GeminiEvent(msgspec.Struct, rename="camel", gc=False):
    candidates: list[GeminiCandidate] | None = None
    usage_metadata: GeminiUsage | None = None
    model_version: str | None = None
    prompt_feedback: _PromptFeedback | None = None
    response_id: str | None = None
    error: _GeminiError | str | None = None

    @property
    def is_foreign(self) -> bool:
        return all(getattr(self, name) is None for name in self.__struct_fields__)

    @property
    def block_reason(self) -> str:
        """The finish reason of a reply to a prompt that was blocked."""
        feedback = self.prompt_feedback
        return "SAFETY" if feedback is not None and feedback.block_reason else ""

    def first_candidate(self) -> tuple[int, GeminiCandidate] | None:
        """The first of several answers, and its position in the list."""
        for position, candidate in enumerate(self.candidates or ()):
            if not candidate.index:
                return position, candidate
        return None


_decode_typed = msgspec.json.Decoder(GeminiEvent).decode
_decode_untyped = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


def decode_reply(body: bytes, model: str = "") -> Message:
    if not body.lstrip(b" \t\r\n").startswith(b"{"):
        raise_bare_error(body)
        raise bad_reply_from(body)
    refuse_incomplete(body)
    event, data = decode_event(body)
    if event.is_foreign:
        raise bad_reply_from(body)
    assembly, ids, reason = ReplyAssembly(), GeminiCallIds(), event.block_reason
    first = event.first_candidate()
    if first is not None:
        position, candidate = first
        reason = candidate.finish_reason or reason
        parts = decode_candidate(data, position) if candidate.parts else ()
        for part in parts:
            assembly.add(ids.assign(part) if isinstance(part, ToolCall) else part)
    assembly.model = event.model_version or model
    finish_reply(assembly, reason, event.usage_metadata)
    return assembly.message()


def decode_event(data: bytes) -> tuple[GeminiEvent, bytes]:
    """The event, and its JSON in readable form. Raises `BadReply`, or the provider's own error."""
    try:
        event = _decode_typed(data)
    except JSON_ERRORS:
        event, data = _decode_carefully(data)
    _raise_if_failed(event)
    return event, data


def _decode_carefully(data: bytes) -> tuple[GeminiEvent, bytes]:
    try:
        data = repair_json_text(data)
        try:
            return _decode_typed(data), data
        except msgspec.ValidationError:
            # a reply is not refused because of broken token counts
            rest = _decode_untyped(data)
            rest.pop("usageMetadata", None)
            return _decode_typed(encode(rest)), data
    except JSON_ERRORS:
        raise bad_reply_from(data) from None


def _raise_if_failed(event: GeminiEvent) -> None:
    error = event.error
    if isinstance(error, str):
        raise provider_error_from(error)
    if error is not None:
        code = error.code if isinstance(error.code, int) and 0 < error.code < 1_000 else 0
        raise provider_error_from(error.message or "", code, error.status or "")


def raise_bare_error(body: bytes) -> None:
    """Without `alt=sse`, and for errors before the first event, Gemini sends no events."""
    try:
        items = decode_items(body.strip())
        event = _decode_typed(items[0]) if items else None
    except JSON_ERRORS:
        return
    if event is not None:
        _raise_if_failed(event)


def refuse_incomplete(item: bytes) -> None:
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


def decode_candidate(data: bytes, position: int) -> list[Part]:
    """Every part of a candidate, whatever its kind. Raises `BadReply`."""
    try:
        candidate = decode_fields(decode_items(decode_fields(data)["candidates"])[position])
        items = decode_items(decode_fields(candidate["content"])["parts"])
        parts = [(decode_part(raw), raw) for raw in map(decode_fields, items)]
        # a model answers no calls: a result is kept, but not as a result
        return [
            unknown_part(raw) if isinstance(part, ToolResult) else part
            for part, raw in parts
            if part is not None and not (isinstance(part, Text) and not part.text)
        ]
    except (*JSON_ERRORS, BadInput) as error:
        raise BadReply(f"JSON of another kind ({make_printable(str(error), 200)})") from None


def finish_reply(assembly: ReplyAssembly, reason: str, usage: GeminiUsage | None) -> None:
    """How the reply ended, with the provider's own word if it is unknown here, and its usage."""
    finish = _FINISHES.get(reason, "other") if reason else ""
    if finish == "stop" and assembly.has_calls:
        finish = "calls"
    assembly.finish, assembly.unknown_finish = finish, reason[:100] if finish == "other" else ""
    assembly.usage = usage.usage() if usage is not None else None


class GeminiCallIds:
    """Gives every call of a reply an id of its own."""

    def __init__(self) -> None:
        self._taken: set[str] = set()
        self._numbers: dict[
            str, int
        ] = {}  # of each stem, the last one: no candidate is tried twice
        self._calls = 0

    def assign(self, call: ToolCall) -> ToolCall:
        self._calls += 1
        stem, id_ = call.id or "call", call.id or f"call-{self._calls}"
        number = self._numbers.get(stem, 1 if call.id else self._calls)
        while id_ in self._taken:
            number += 1
            id_ = f"{stem}-{number}"
            self._numbers[stem] = number
        self._taken.add(id_)
        return call if id_ == call.id else msgspec.structs.replace(call, id=id_)

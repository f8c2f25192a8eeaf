"""Replies that end otherwise than they should: finish words, end markers, connections."""

from __future__ import annotations

from collections.abc import Mapping

from recollect.entries import ToolCall
from recollect.profiles import WireName
from recollect.testing.error_replies import error_json
from recollect.testing.fault import Fault, fault
from recollect.testing.wire_reply import WireReply, faulty

_TEXT = "The notes say that the harbour opens at six."
_MALFORMED = "Malformed function call: print(default_api.read_file(absolute_path='notes.txt'"
_BLOCKED = '{"promptFeedback":{"blockReason":"PROHIBITED_CONTENT"},"usageMetadata":'
_COUNTS = '{"promptTokenCount":9,"totalTokenCount":9}'
_LIMIT: Mapping[WireName, str] = {
    "gemini": "MAX_TOKENS",
    "openai": "length",
    "anthropic": "max_tokens",
}
_SAFETY: Mapping[WireName, str] = {
    "gemini": "SAFETY",
    "openai": "content_filter",
    "anthropic": "refusal",
}
_STOP: Mapping[WireName, str] = {"gemini": "STOP", "openai": "stop", "anthropic": "end_turn"}
# more bytes than the events of the ending have
_END_BYTES: Mapping[WireName, int] = {"gemini": 250, "openai": 450, "anthropic": 250}
_CALLS: Mapping[WireName, str] = {"openai": "tool_calls", "anthropic": "tool_use"}


def _limit(format_: WireName, _: ToolCall) -> WireReply:
    return faulty(_TEXT, finish=_LIMIT[format_])


def _limit_in_call(format_: WireName, sample: ToolCall) -> WireReply:
    half = sample.arguments[: len(sample.arguments) // 2]
    cut = ToolCall(id=sample.id, name=sample.name, arguments=half)
    return faulty("I look.", cut, finish=_LIMIT[format_])


def _limit_and_nothing(format_: WireName, _: ToolCall) -> WireReply:
    return faulty(finish=_LIMIT[format_])


def _safety(format_: WireName, _: ToolCall) -> WireReply:
    return faulty("The first step is", finish=_SAFETY[format_])


def _stop_word(format_: WireName, sample: ToolCall) -> WireReply:
    return faulty("I look.", sample, finish=_STOP[format_])


def _calls_word(format_: WireName, _: ToolCall) -> WireReply:
    return faulty("I look into the notes.", finish=_CALLS[format_])


def _unknown_word(format_: WireName, _: ToolCall) -> WireReply:
    word = "tired_of_it"
    return faulty(_TEXT, finish=word.upper() if format_ == "gemini" else word)


def _overload_event(format_: WireName) -> str:
    if format_ == "anthropic":
        return error_json(format_, 529, "Overloaded")
    return error_json(format_, 503, "The model is overloaded. Please try again later.")


def _error_first(format_: WireName, _: ToolCall) -> WireReply:
    return faulty(events=(_overload_event(format_),))


def _error_after_text(format_: WireName, _: ToolCall) -> WireReply:
    return faulty(_TEXT, error_event=_overload_event(format_))


def _too_short(format_: WireName, _: ToolCall) -> WireReply:
    return faulty(_TEXT, framing="length", length_error=-_END_BYTES[format_])


def _calls_nothing(word: str) -> WireReply:
    fields = ("content.parts", "content.role")
    return faulty(finish=word, finish_message=_MALFORMED, drop=fields)


FINISH_FAULTS: tuple[Fault, ...] = (
    fault("limit", "cut off", "the output limit ends a text", _limit),
    fault(
        "limit-in-call",
        "ask again",
        "the output limit ends a call inside its arguments; Gemini then sends broken JSON",
        _limit_in_call,
        ("openai", "anthropic"),
    ),
    fault("limit-and-nothing", "ask again", "the output limit, and no text", _limit_and_nothing),
    fault("safety", "blocked", "the provider's rules end a text", _safety),
    fault(
        "recitation",
        "blocked",
        "the text repeats a source",
        faulty("It was the best", finish="RECITATION"),
        ("gemini",),
    ),
    fault(
        "malformed-call",
        "ask again",
        "the model wrote a call that is none: no content, and a message that quotes it",
        _calls_nothing("MALFORMED_FUNCTION_CALL"),
        ("gemini",),
    ),
    fault(
        "unexpected-call",
        "ask again",
        "the model called a tool that was not declared: no content",
        _calls_nothing("UNEXPECTED_TOOL_CALL"),
        ("gemini",),
    ),
    fault("call-and-stop-word", "calls", "a call, and the finish word of a text", _stop_word),
    fault(
        "no-call-and-calls-word",
        "ask again",
        "the finish word of a call, and no call",
        _calls_word,
        ("openai", "anthropic"),
    ),
    fault(
        "pause-turn",
        "interrupted",
        "the provider pauses a long turn",
        faulty(_TEXT, finish="pause_turn"),
        ("anthropic",),
    ),
    fault("unknown-word", "interrupted", "a finish word that nobody documents", _unknown_word),
    fault(
        "prompt-blocked",
        "blocked",
        "the prompt is refused: no candidates, and `promptFeedback`",
        faulty(events=(f"{_BLOCKED}{_COUNTS}}}",)),
        ("gemini",),
    ),
    fault(
        "no-candidates",
        "ask again",
        "a reply that holds only its usage",
        faulty(events=(f'{{"usageMetadata":{_COUNTS}}}',)),
        ("gemini",),
    ),
    fault("error-first", "retried", "the stream's first event is an error", _error_first),
    fault("error-after-text", "interrupted", "an error in the stream, later", _error_after_text),
)

STREAM_END_FAULTS: tuple[Fault, ...] = (
    fault("no-end", "interrupted", "no finish word and no marker", faulty(_TEXT, end="none")),
    fault(
        "no-end-after-call",
        "interrupted",
        "a call that looks complete, but the stream stops there",
        lambda _, sample: faulty("I look.", sample, end="none"),
    ),
    fault(
        "no-finish-word",
        "interrupted",
        "usage, but no finish word",
        faulty(_TEXT, end="marker"),
        ("gemini",),
    ),
    fault(
        "marker-only",
        "answer",
        "`[DONE]` or `message_stop`, but no finish word",
        faulty(_TEXT, end="marker"),
        ("openai", "anthropic"),
    ),
    fault("no-done", "answer", "no `[DONE]`", faulty(_TEXT, end="word"), ("openai",)),
    fault(
        "no-message-stop",
        "interrupted",
        "a stop reason, but no `message_stop`",
        faulty(_TEXT, end="word"),
        ("anthropic",),
    ),
    fault("cut-event", "interrupted", "ends inside an event", faulty(_TEXT, cut="event")),
    fault(
        "cut-character",
        "interrupted",
        "ends inside a character of several bytes",
        faulty("Der Hafen öffnet um sechs.", cut="character"),
    ),
    fault(
        "cut-arguments",
        "interrupted",
        "ends inside a call's arguments",
        lambda _, sample: faulty("I look.", sample, cut="arguments"),
    ),
    fault(
        "reset", "interrupted", "the connection is reset", faulty(_TEXT, end="none", close="reset")
    ),
    fault(
        "chunks-cut",
        "interrupted",
        "the chunked encoding has no end",
        faulty(_TEXT, end="none", close="early"),
    ),
    fault(
        "length-too-long",
        "interrupted",
        "the headers announce 100 bytes more than come",
        faulty(_TEXT, end="none", framing="length", length_error=100),
    ),
    fault(
        "length-too-short",
        "interrupted",
        "the headers announce less than the contents need",
        _too_short,
    ),
    fault(
        "silence",
        "interrupted",
        "nothing more comes after some text, and the connection stays open",
        faulty(_TEXT, end="none", close="silence"),
    ),
    fault(
        "no-headers", "retried", "the request is read and never answered", faulty(delay=86_400.0)
    ),
)

"""Each fault of the catalogue does on the wire what its description says."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import get_args

import pytest

from recollect.profiles import WireName
from recollect.testing import FAULT_CASES, FAULTS, ProviderServer
from recollect.testing.fault import SAMPLE_CALL, Expected
from tests.testing.raw_client import KEY, Seen, ask, gunzip

STOP = {"gemini": ["STOP"], "openai": ["stop"], "anthropic": ["end_turn"]}
CALL = {"gemini": ["STOP"], "openai": ["tool_calls"], "anthropic": ["tool_use"]}
LIMIT = {"gemini": ["MAX_TOKENS"], "openai": ["length"], "anthropic": ["max_tokens"]}
SAFETY = {"gemini": ["SAFETY"], "openai": ["content_filter"], "anthropic": ["refusal"]}
GREETING = "Der Hafen öffnet um sechs — 港は六時に開きます。"
NOTES = "The notes say that the harbour opens at six."
HALF = len(SAMPLE_CALL.arguments) // 2
Check = Callable[[Seen], bool]


def ends(seen: Seen) -> bool:
    """As the provider ends a stream or a document."""
    marker = seen.has_marker or seen.format == "gemini" or not seen.is_stream
    return seen.ending == "complete" and len(seen.words) == 1 and marker


def answers(seen: Seen) -> bool:
    return ends(seen) and seen.words == STOP[seen.format] and seen.text == GREETING


def never_ends(seen: Seen) -> bool:
    return not seen.words and not seen.has_marker


def calls_with(seen: Seen, arguments: str) -> bool:
    if seen.format == "gemini":
        return ends(seen) and json.loads(seen.arguments) == json.loads(arguments)
    return ends(seen) and seen.words == CALL[seen.format] and seen.arguments == arguments


def refuses(status: int, *words: str) -> Check:
    return lambda seen: (
        seen.status == status
        and seen.ending == "complete"
        and all(word in seen.body.decode() for word in words)
    )


def counts(seen: Seen) -> list[object]:
    keys = ("promptTokenCount", "prompt_tokens", "input_tokens", "candidatesTokenCount")
    return seen.values(*keys, "completion_tokens", "output_tokens", "totalTokenCount")


SAMPLE = SAMPLE_CALL.arguments
BROKEN = SAMPLE[:-1] + ',"content": ,,,]]'
CHECKS: dict[str, Check] = {
    "limit": lambda s: ends(s) and s.words == LIMIT[s.format] and s.text == NOTES,
    "limit-in-call": lambda s: (
        ends(s) and s.words == LIMIT[s.format] and s.arguments == SAMPLE[:HALF]
    ),
    "limit-and-nothing": lambda s: ends(s) and s.words == LIMIT[s.format] and not s.text,
    "safety": lambda s: ends(s) and s.words == SAFETY[s.format],
    "recitation": lambda s: ends(s) and s.words == ["RECITATION"],
    "malformed-call": lambda s: (
        s.words == ["MALFORMED_FUNCTION_CALL"]
        and "default_api" in s.values("finishMessage")[0]
        and s.values("content") == [{}]
    ),
    "unexpected-call": lambda s: (
        s.words == ["UNEXPECTED_TOOL_CALL"] and s.values("content") == [{}]
    ),
    "call-and-stop-word": lambda s: s.words == STOP[s.format] and "read_file" in s.names,
    "no-call-and-calls-word": lambda s: s.words == CALL[s.format] and not s.names,
    "pause-turn": lambda s: ends(s) and s.words == ["pause_turn"],
    "unknown-word": lambda s: ends(s) and s.words[0].lower() == "tired_of_it",
    "prompt-blocked": lambda s: (
        s.values("blockReason") == ["PROHIBITED_CONTENT"] and not s.values("candidates")
    ),
    "no-candidates": lambda s: bool(counts(s)) and not s.values("candidates"),
    "error-first": lambda s: s.status == 200 and len(s.events) == 1 and "error" in s.events[0],
    "error-after-text": lambda s: s.text == NOTES and "error" in s.events[-1] and not s.words,
    "no-end": lambda s: s.ending == "complete" and s.text == NOTES and never_ends(s),
    "no-end-after-call": lambda s: never_ends(s) and json.loads(s.arguments) == json.loads(SAMPLE),
    "no-finish-word": lambda s: not s.words and s.text == NOTES and bool(counts(s)),
    "marker-only": lambda s: not s.words and s.has_marker and s.text == NOTES,
    "no-done": lambda s: s.words == ["stop"] and not s.has_marker,
    "no-message-stop": lambda s: s.words == ["end_turn"] and not s.has_marker,
    "cut-event": lambda s: s.ending == "complete" and s.body[-1:] != b"\n" and never_ends(s),
    "cut-character": lambda s: s.ending == "complete" and s.body[-1] == 0xC3,
    "cut-arguments": lambda s: (
        s.ending == "complete"
        and not s.body.endswith(b"\n")
        and never_ends(s)
        and "I look." in s.text
    ),
    "reset": lambda s: s.ending == "reset" and never_ends(s),
    "chunks-cut": lambda s: s.ending == "closed" and s.text == NOTES and never_ends(s),
    "length-too-long": lambda s: (
        s.ending == "closed" and int(s.headers["content-length"]) == len(s.body) + 100
    ),
    "length-too-short": lambda s: (
        not Seen(
            s.format,
            s.raw[: s.raw.index(b"\r\n\r\n") + 4 + int(s.headers["content-length"])],
            "closed",
        ).words
    ),
    "silence": lambda s: s.ending == "open" and s.text == NOTES and never_ends(s),
    "no-headers": lambda s: s.ending == "open" and s.raw == b"",
    "empty-text": lambda s: ends(s) and not s.text,
    "thoughts-only": lambda s: (
        ends(s)
        and "look at the notes" in "".join(s.values("thinking", "reasoning_content", "text"))
        and (s.format != "gemini" or s.values("thought") == [True])
    ),
    "invisible-text": lambda s: ends(s) and s.text != "" and not s.text.strip().isprintable(),
    "no-parts": lambda s: ends(s) and s.values("content") == [{"role": "model"}],
    "no-content": lambda s: ends(s) and s.values("content") == [],
    "broken-arguments": lambda s: calls_with(s, BROKEN),
    "incomplete-arguments": lambda s: calls_with(s, SAMPLE[:-3]),
    "doubled-arguments": lambda s: calls_with(s, SAMPLE + SAMPLE),
    "broken-event": lambda s: ends(s) and any(BROKEN in e for e in s.events if isinstance(e, str)),
    "list-arguments": lambda s: calls_with(s, "[1]"),
    "text-arguments": lambda s: ends(s) and "notes.txt" in s.arguments and "{" not in s.arguments,
    "unknown-tool": lambda s: ends(s) and s.names == ["summon_dragon"],
    "no-ids": lambda s: (
        s.names == ["read_file"] * 2 and not any("call-" in id_ for id_ in s.values("id"))
    ),
    "same-ids": lambda s: s.values("id").count("call-1") == 2,
    "index-0": lambda s: (
        len(s.names) == 2 and {d["index"] for calls in s.values("tool_calls") for d in calls} == {0}
    ),
    "arguments-in-pieces": lambda s: (
        calls_with(s, SAMPLE) and (s.format == "gemini" or len(s.events) > len(SAMPLE))
    ),
    "many-calls": lambda s: ends(s) and len(s.names) == 1_001,
    "large-arguments": lambda s: ends(s) and len(s.arguments) > 9_000_000,
    "none": answers,
    "none-with-call": lambda s: calls_with(s, SAMPLE),
    "bytes": lambda s: answers(s) and {len(piece) for piece in s.pieces} == {1},
    "seven-bytes": lambda s: answers(s) and {len(piece) for piece in s.pieces[:-1]} == {7},
    "slow": answers,
    "late": answers,
    "crlf": lambda s: answers(s) and s.body.count(b"\n") == s.body.count(b"\r\n") > 3,
    "cr": lambda s: answers(s) and b"\n" not in s.body,
    "lf": lambda s: answers(s) and b"\r" not in s.body,
    "bom": lambda s: answers(s) and s.body.startswith(b"\xef\xbb\xbf"),
    "comments": lambda s: answers(s) and s.body.count(b": ping") == len(s.events),
    "large-event": lambda s: ends(s) and max(map(len, s.pieces)) > 4_900_000,
    "whole": lambda s: (
        s.headers["content-type"] == "application/json" and not s.is_stream and answers(s)
    ),
    "streamed": lambda s: s.is_stream and answers(s),
    "until-close": lambda s: (
        s.ending == "closed"
        and s.text == GREETING
        and not {"content-length", "transfer-encoding"} & s.headers.keys()
    ),
    "gzip": lambda s: (
        s.headers["content-encoding"] == "gzip"
        and "sechs"
        in Seen(
            s.format, s.raw.partition(b"\r\n\r\n")[0] + b"\r\n\r\n" + gunzip(s.body), "complete"
        ).text
    ),
    "gzip-bomb": lambda s: len(s.body) < 2_000_000 and s.ending == "complete",
    "endless-text": lambda s: s.ending == "enough" and "more text" in s.text and not s.words,
    "endless-comments": lambda s: s.ending == "enough" and s.body.count(b": nothing yet") > 9_000,
    "endless-line": lambda s: s.ending == "enough" and len(s.body.split(b"\n")[-1]) > 900_000,
    "huge-counts": lambda s: answers(s) and set(counts(s)) == {10**30},
    "negative-counts": lambda s: answers(s) and set(counts(s)) == {-5},
    "fractional-counts": lambda s: answers(s) and set(counts(s)) == {1.5},
    "text-counts": lambda s: answers(s) and set(counts(s)) == {"many"},
    "no-usage": lambda s: answers(s) and not s.values("usage", "usageMetadata"),
    "content-type": lambda s: (
        answers(s) and s.is_stream and s.headers["content-type"] == "application/json"
    ),
    "google-per-minute": refuses(
        429,
        "You exceeded your current quota, please check your plan and billing details.",
        '"GenerateRequestsPerMinutePerProjectPerModel-FreeTier"',
        '"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"1s"',
    ),
    "google-per-day": refuses(429, '"GenerateRequestsPerDayPerProjectPerModel-FreeTier"'),
    "google-limit-0": refuses(429, "limit: 0,", '"quotaValue":"0"'),
    "google-long-delay": refuses(429, '"retryDelay":"301s"'),
    "openai-rate-limit": lambda s: (
        refuses(429, "rate_limit_exceeded")(s) and s.headers["retry-after-ms"] == "1000"
    ),
    "openai-quota": refuses(429, '"code":"insufficient_quota"'),
    "anthropic-overloaded": refuses(529, "overloaded_error"),
    "anthropic-rate-limit": lambda s: (
        refuses(429, "rate_limit_error")(s) and s.headers["retry-after"] == "1"
    ),
    "anthropic-credit": refuses(400, "credit balance is too low"),
    "status-408": refuses(408),
    "status-499": refuses(499),
    "status-500": refuses(500),
    "status-503": refuses(503),
    "retry-in-5s": refuses(429, "Please retry in 5s."),
    "retry-in-900ms": refuses(429, "Please retry in 900ms."),
    "key-refused": refuses(401, f" {KEY[:12]}****"),
    "bad-gateway": refuses(502, "<html>"),
    "web-page": refuses(200, "<html>"),
    "redirect": lambda s: s.status == 307 and s.headers["location"].endswith("/elsewhere"),
    "roles-must-alternate": refuses(400, "roles must alternate"),
    "tools-not-supported": refuses(400, "does not support tools"),
    "context-too-long": refuses(400, "8192", "9999"),
}


@pytest.mark.parametrize(("name", "format_"), FAULT_CASES)
def test_a_fault_does_what_its_description_says(name: str, format_: WireName) -> None:
    with ProviderServer(format_, [FAULTS[name]]) as server:
        seen = ask(
            server.url,
            format_,
            stream=name != "streamed",
            most=1_000_000 if name.startswith("endless") else 30_000_000,
            quiet=name in ("silence", "no-headers"),
        )
    assert CHECKS[name](seen), (seen.ending, seen.raw[:3_000])


def test_every_fault_has_a_check_a_description_and_an_outcome() -> None:
    assert set(CHECKS) == set(FAULTS)
    for fault in FAULTS.values():
        assert fault.description
        assert fault.expected in get_args(Expected)
        assert fault.formats


WITHOUT_END = {"silence", "no-headers", "endless-text", "endless-comments", "endless-line"}


@pytest.mark.parametrize(
    ("name", "format_"), [case for case in FAULT_CASES if case[0] not in WITHOUT_END]
)
def test_a_fault_can_be_sent_in_one_document(name: str, format_: WireName) -> None:
    with ProviderServer(format_, [FAULTS[name]]) as server:
        assert ask(server.url, format_, stream=False).raw


def test_a_fault_of_another_format_is_refused() -> None:
    with pytest.raises(ValueError, match="google-per-day is a fault of gemini, not of openai"):
        FAULTS["google-per-day"].reply("openai")

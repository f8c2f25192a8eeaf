"""Replies that travel in odd ways (cut into pieces, slow, compressed, without an end), and replies
that say something untrue about themselves."""

from __future__ import annotations

import base64
import random
from collections.abc import Callable, Mapping

from recollect.entries import ToolCall
from recollect.profiles import WireName
from recollect.testing.fault import Fault, fault
from recollect.testing.wire_reply import WireReply, faulty

_TEXT = "Der Hafen öffnet um sechs — 港は六時に開きます。"
_BOMB = 1_000_000_000  # bytes, from less than one MB
_COUNTS: Mapping[WireName, tuple[str, ...]] = {
    "gemini": ("promptTokenCount", "candidatesTokenCount", "totalTokenCount"),
    "openai": ("prompt_tokens", "completion_tokens", "total_tokens"),
    "anthropic": ("input_tokens", "output_tokens"),
}


def _long_text() -> str:
    """5 MB in which nothing repeats itself: clients may stop a model that does."""
    return base64.b85encode(random.Random(5).randbytes(4_000_000)).decode()


def _counts(claimed: str) -> Callable[[WireName, ToolCall], WireReply]:
    """A reply in which this JSON stands for every number of tokens."""
    return lambda format_, _: faulty(_TEXT, put=dict.fromkeys(_COUNTS[format_], claimed))


SPLIT_FAULTS: tuple[Fault, ...] = (
    fault("none", "answer", "a correct answer", faulty(_TEXT)),
    fault("none-with-call", "calls", "a correct call", lambda _, sample: faulty("I look.", sample)),
    fault("bytes", "answer", "every byte is sent by itself", faulty(_TEXT, chunk=1)),
    fault("seven-bytes", "answer", "seven bytes are sent at a time", faulty(_TEXT, chunk=7)),
    fault("slow", "answer", "a pause between events", faulty(_TEXT, pause=0.02)),
    fault("late", "answer", "a pause before the headers", faulty(_TEXT, delay=0.2)),
    fault("crlf", "answer", "lines end with CR LF", faulty(_TEXT, line_end="\r\n")),
    fault("cr", "answer", "lines end with CR", faulty(_TEXT, line_end="\r")),
    fault("lf", "answer", "lines end with LF", faulty(_TEXT, line_end="\n")),
    fault("bom", "answer", "a byte order mark comes first", faulty(_TEXT, bom=True)),
    fault("comments", "answer", "a comment after every event", faulty(_TEXT, pings=True)),
    fault(
        "large-event",
        "answer",
        "a text of 5 MB in one event",
        lambda *_: faulty(_long_text(), piece=10_000_000),
    ),
    fault(
        "whole",
        "answer",
        "one document, although a stream was requested",
        faulty(_TEXT, stream=False),
    ),
    fault(
        "streamed",
        "error",
        "a stream, although one document was requested",
        faulty(_TEXT, stream=True),
    ),
    fault(
        "until-close",
        "answer",
        "no length and no chunks: the reply ends with the connection",
        faulty(_TEXT, framing="close"),
    ),
)

LIE_FAULTS: tuple[Fault, ...] = (
    fault("gzip", "error", "compressed, although nobody asked for it", faulty(_TEXT, gzip=True)),
    fault(
        "gzip-bomb",
        "error",
        "less than 2 MB of gzip that become 1 GB of text",
        faulty(_TEXT, gzip=True, inflate=_BOMB),
    ),
    fault("endless-text", "error", "text without an end", faulty(_TEXT, endless="text")),
    fault("endless-comments", "error", "comments without an end", faulty(endless="comments")),
    fault("endless-line", "error", "one line without an end", faulty(endless="line")),
    fault("huge-counts", "answer", "10^30 tokens", _counts("1" + "0" * 30)),
    fault("negative-counts", "answer", "-5 tokens", _counts("-5")),
    fault("fractional-counts", "answer", "1.5 tokens", _counts("1.5")),
    fault("text-counts", "answer", "the number of tokens is a text", _counts('"many"')),
    fault("no-usage", "answer", "no usage", faulty(_TEXT, drop=("usage", "usageMetadata"))),
    fault(
        "content-type",
        "answer",
        "a stream that calls itself JSON",
        faulty(_TEXT, content_type="application/json"),
    ),
)

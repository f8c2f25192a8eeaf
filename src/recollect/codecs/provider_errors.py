"""Which error of ours a provider's error is, whichever provider sent it.

`provider_error_from` tells apart a context overflow, a busy provider, a quota that waiting does not
bring back, a refused key and all other errors. Providers agree neither on a status nor on a code,
so their phrases are read as well, where their codes say nothing. Their own words are kept: at most
500 characters, everything unprintable escaped. `bad_reply_from` names what came instead of a reply.
Both accept any input, and their cost is bounded.
"""

from __future__ import annotations

import json
import re

from recollect.codecs.error_reports import MAX_READ, ErrorReport, describe_error, read_error
from recollect.codecs.requested_delays import Wait
from recollect.errors import (
    ApiKeyRefused,
    BadReply,
    ContextOverflow,
    ProviderBusy,
    ProviderFailed,
    QuotaExhausted,
)
from recollect.json_depth import MAX_DEPTH
from recollect.tokens import find_requested_tokens, find_token_limit

MAX_SAID = 500  # characters of a provider's words in an error
_SHOWN = 60  # characters of bytes that are not a reply
_BUSY_STATUS = frozenset({408, 409, 425, 429, 499, 529})  # and 500 to 599
_BUSY_KIND = re.compile(
    # llama.cpp says unavailable_error while it loads its model
    "(api|internal_server|overloaded|rate_limit|server|timeout|unavailable)_error"
    "|engine_overloaded|internal|rate_limit_exceeded|resource_exhausted"
    "|(service_)?unavailable"
)
_KEY_KIND = re.compile(
    "(authentication|permission)_error|invalid_api_key|permission_denied|unauthenticated"
)
# Anthropic, Groq and Bedrock say "tokens" and mean tokens per minute: checked first.
_RATE_PHRASES = (
    "rate limit",
    "rate_limit",
    "per minute",
    "per min ",
    "tokens per day",
    "too many requests",
    "please wait before",
)
_BUSY_PHRASES = ("overloaded", "try again later", "temporarily unavailable", "at capacity")
# Waiting does not help. Types and codes: OpenAI, Moonshot, Anthropic, Zhipu, Alibaba, Google.
NO_CREDIT = "the account has no credit left: add some, or use another model"
NO_LIMIT = "the account may not use this model (its limit is 0): use another model or plan"
DAY_USED_UP = "a quota of a day or longer is used up: use another model until it is renewed"
_LASTING = {
    **dict.fromkeys(("insufficient_quota", "exceeded_current_quota_error"), NO_CREDIT),
    **dict.fromkeys(("billing_hard_limit_reached", "billing_not_active", "1113"), NO_CREDIT),
    **dict.fromkeys(("billing_error", "billing_disabled", "payment_required"), NO_CREDIT),
    **dict.fromkeys(("insufficient_balance", "arrearage"), NO_CREDIT),
    "insufficient_g1_credits_balance": NO_CREDIT,
    "quota_exhausted": DAY_USED_UP,
}
_LONG_QUOTAS = ("perday", "daily", "perweek", "permonth")  # in Google's `quotaId`
A_MINUTE = 60.0  # seconds: the wait for a limit per minute that comes without one
# from gateways that pass on words alone, and from xAI; OpenAI and Google both say "You exceeded
# your current quota", the one of an empty account, the other of a limit per minute
_NO_CREDIT_PHRASES = (
    "insufficient_quota",
    "insufficient balance",
    "credit balance is too low",
    "used all available credits",
    "monthly spending limit",
)
_MAX_KINDS = 20
_KEY_PHRASES = (
    "invalid api key",
    "invalid x-api-key",
    "incorrect api key",
    "api key not valid",
    "invalid authentication",
    "no auth credentials",
)
_OVERFLOW_PHRASES = (
    "context_length_exceeded",  # OpenAI's code
    "context length exceeded",
    "maximum context length",  # OpenAI, vLLM, OpenRouter, Mistral
    "max context length",  # Ollama
    "exceeds the context window",  # OpenAI, in newer models
    "exceed context limit",  # Anthropic: input length and max_tokens together
    "prompt is too long",  # Anthropic
    "prompt too long",
    "input is too long",  # Bedrock
    "available context size",  # llama.cpp
    "exceed_context_size",  # llama.cpp's type
    "longer than the maximum model length",  # vLLM
    "maximum prompt length",  # xAI
    "exceeds max length",  # GLM
    "range of input length",  # Qwen at Alibaba
    "greater than the context length",  # LM Studio
    "context the overflows",  # LM Studio, as it is spelt there
    "context window exceeds",  # MiniMax
    "contextwindowexceeded",  # LiteLLM
    "exceeded model token limit",  # Kimi
    "reduce the length of the messages",  # Groq
    "too many tokens",  # Cohere
)
# Numbers that are not the window: by how much a prompt is too long (Ollama), a sum's terms
# (Anthropic), the length of the reply (vLLM).
_NOT_THE_WINDOW = re.compile(
    r"\bby \d[\d,]{0,15} tokens?\b|\d{1,12} \+ \d{1,12} (?=>)|too large: \d{1,12}"
)


def provider_error_in(value: object, status: int = 0) -> ProviderFailed:
    """The error to raise for an error that came inside a reply; `value` is its JSON."""
    report = read_error(value)
    if not report.said and value:
        report = report._replace(said=describe_error(value))
    return provider_error_from(report, status)


def provider_error_from(
    report: ErrorReport, status: int = 0, wait: Wait | None = None
) -> ProviderFailed:
    """The error to raise. `status` is the response's, and `wait` what its headers ask for.

    The transport adds the variable that holds the key, which is not known here."""
    words, status = report.said[:MAX_READ].lower(), status or report.status
    kinds = report.kinds[:_MAX_KINDS]
    text = make_printable(report.said) or make_printable(" ".join(kinds)) or "no reason was given"
    limited = status == 429 or _contains(words, _RATE_PHRASES)
    if not limited and (_is_overflow(words) or _contains(" ".join(kinds), _OVERFLOW_PHRASES)):
        about = _NOT_THE_WINDOW.sub("", words)
        limit = find_token_limit(about)
        requested = None if limit is None else find_requested_tokens(about, limit)
        return ContextOverflow(text, status, limit, requested)
    if status in (401, 403) or _is_any(kinds, _KEY_KIND) or _contains(words, _KEY_PHRASES):
        return ApiKeyRefused(text, status, "")
    is_busy = status in _BUSY_STATUS or 500 <= status <= 599 or _is_any(kinds, _BUSY_KIND)
    lasts = status == 402 or any(kind in _LASTING for kind in kinds)
    if limited or is_busy or lasts or _contains(words, _BUSY_PHRASES + _NO_CREDIT_PHRASES):
        return _busy_error(report._replace(wait=wait or report.wait), text, status)
    return ProviderFailed(text, status)


def _busy_error(report: ErrorReport, text: str, status: int) -> ProviderBusy:
    """Codes, reasons and limits decide; words only where those say nothing."""
    remedy = next((_LASTING[kind] for kind in report.kinds if kind in _LASTING), "")
    if status == 402:
        remedy = NO_CREDIT
    if report.no_limit:
        remedy = remedy or NO_LIMIT
    if any(word in quota for quota in report.quotas for word in _LONG_QUOTAS):
        remedy = remedy or DAY_USED_UP
    wait, guessed = report.wait, None
    if wait is None and any("perminute" in quota for quota in report.quotas):
        guessed = A_MINUTE
    if not remedy and wait is None and guessed is None:
        words = report.said[:MAX_READ].lower()
        remedy = NO_CREDIT if _contains(words, _NO_CREDIT_PHRASES) else ""
    if remedy:
        return QuotaExhausted(text, status, remedy)
    seconds, until = wait or (None, None)
    return ProviderBusy(text, status, delay=seconds, until=until, guessed_delay=guessed)


def _is_any(kinds: tuple[str, ...], pattern: re.Pattern[str]) -> bool:
    return any(map(pattern.fullmatch, kinds))


def bad_reply_from(beginning: bytes) -> BadReply:
    """For bytes that are neither events nor a reply's JSON: says what they look like."""
    text = beginning[:2_000].decode("utf-8", "replace").lstrip("\ufeff \t\r\n")
    if not text:
        return BadReply("nothing at all")
    start = text[:200].lower()
    if start.startswith(("<!doctype", "<html")) or "<html" in start:
        kind = "a web page"
    elif start.startswith("<"):
        kind = "XML"
    else:
        kind = "JSON of another kind" if start.startswith(("{", "[")) else "text"
    return BadReply(f"{kind} ({make_printable(text, _SHOWN)})")


def incomplete_json(data: bytes) -> BadReply:
    """For bytes that begin like JSON and break off."""
    beginning = data[:400].decode("utf-8", "replace")
    return BadReply(f"incomplete JSON ({make_printable(beginning, _SHOWN)})")


def unreadable_reply(data: bytes, error: Exception) -> BadReply:
    """For bytes that should have been a reply in JSON, and why they are not."""
    if not data.lstrip().startswith(b"{"):
        return bad_reply_from(data)
    beginning = make_printable(data[:400].decode("utf-8", "replace"), 60)
    try:
        json.loads(data.decode("utf-8", "replace"))
    except ValueError:
        return incomplete_json(data)
    except RecursionError:
        return BadReply(f"JSON nested deeper than {MAX_DEPTH} levels ({beginning})")
    return BadReply(f"JSON of another kind ({beginning}): {make_printable(str(error), 200)}")


def make_printable(text: str, limit: int = MAX_SAID) -> str:
    """Foreign text on one line, shortened, with everything unprintable escaped."""
    cut = text[: limit + 1].strip()
    if not cut.isprintable():
        cut = "".join(c if c.isprintable() else _escape(c) for c in cut)
    return cut if len(cut) <= limit and len(text) <= limit + 1 else cut[: limit - 1] + "…"


def _escape(character: str) -> str:
    return " " if character in "\r\n\t" else repr(character)[1:-1]


def _contains(words: str, phrases: tuple[str, ...]) -> bool:
    return any(phrase in words for phrase in phrases)


def _is_overflow(words: str) -> bool:
    # Gemini and Copilot: "token count of N exceeds the limit of M", with words in between
    counted = "token count" in words and "exceeds the" in words
    return counted or _contains(words, _OVERFLOW_PHRASES)

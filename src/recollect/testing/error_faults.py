"""Requests that the provider, or something on the way to it, answers with an error."""

from __future__ import annotations

from collections.abc import Callable

from recollect.entries import ToolCall
from recollect.profiles import WireName
from recollect.testing.error_replies import (
    anthropic_credit,
    anthropic_overloaded,
    anthropic_rate_limit,
    context_too_long,
    google_quota,
    html_page,
    key_refused,
    openai_quota,
    openai_rate_limit,
    provider_error,
    redirect,
    roles_must_alternate,
    tools_not_supported,
)
from recollect.testing.fault import Fault, fault
from recollect.testing.wire_reply import WireReply


def _error(status: int, message: str) -> Callable[[WireName, ToolCall], WireReply]:
    return lambda format_, _: provider_error(format_, status, message)


ERROR_FAULTS: tuple[Fault, ...] = (
    fault("google-per-minute", "retried", "Google's limit per minute", google_quota(), ("gemini",)),
    fault(
        "google-per-day",
        "error",
        "Google's limit per day, in the same words",
        google_quota("PerDay", limit=250, retry_delay="1s"),
        ("gemini",),
    ),
    fault(
        "google-limit-0",
        "error",
        "a model that is not in the free tier: the limit is 0",
        google_quota(limit=0),
        ("gemini",),
    ),
    fault(
        "google-long-delay",
        "error",
        "a limit that asks to wait for 301 seconds",
        google_quota(retry_delay="301s"),
        ("gemini",),
    ),
    fault(
        "openai-rate-limit",
        "retried",
        "OpenAI's limit per minute",
        openai_rate_limit(),
        ("openai",),
    ),
    fault("openai-quota", "error", "429 `insufficient_quota`", openai_quota(), ("openai",)),
    fault("anthropic-overloaded", "retried", "529", anthropic_overloaded(), ("anthropic",)),
    fault(
        "anthropic-rate-limit",
        "retried",
        "429 with `retry-after`",
        anthropic_rate_limit(),
        ("anthropic",),
    ),
    fault(
        "anthropic-credit", "error", "400: the account is empty", anthropic_credit(), ("anthropic",)
    ),
    fault("status-408", "retried", "408: the request took too long", _error(408, "timeout")),
    fault("status-499", "retried", "499: cancelled", _error(499, "The operation was cancelled.")),
    fault("status-500", "retried", "500: an internal error", _error(500, "Internal error")),
    fault("status-503", "retried", "503: overloaded", _error(503, "The model is overloaded.")),
    fault("retry-in-5s", "retried", "the text says when", _error(429, "Please retry in 5s.")),
    fault("retry-in-900ms", "retried", "the text says when", _error(429, "Please retry in 900ms.")),
    fault(
        "key-refused",
        "error",
        "401 with the first characters of the request's key",
        lambda format_, _: key_refused(format_),
    ),
    fault("bad-gateway", "retried", "502: the web page of a proxy", html_page(502)),
    fault("web-page", "error", "200: a web page", html_page(200)),
    fault("redirect", "error", "307 to another address", redirect()),
    fault(
        "roles-must-alternate",
        "retried",
        "400: two messages of one role in a row",
        lambda format_, _: roles_must_alternate(format_),
        ("openai",),  # the others' own services take neighbours of one role
    ),
    fault(
        "tools-not-supported",
        "retried",
        "400: the model takes no tools",
        lambda format_, _: tools_not_supported(format_),
    ),
    fault(
        "context-too-long",
        "error",
        "400: the request does not fit",
        lambda format_, _: context_too_long(format_),
    ),
)

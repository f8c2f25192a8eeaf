"""Errors as the providers send them: a status, headers and a body in the provider's own form.

`provider_error` makes any of them; the others are those that clients have to tell apart.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from recollect.profiles import WireName
from recollect.testing.wire_reply import WireReply

__all__ = [
    "anthropic_credit",
    "anthropic_overloaded",
    "anthropic_rate_limit",
    "context_too_long",
    "error_json",
    "google_quota",
    "html_page",
    "key_refused",
    "openai_quota",
    "openai_rate_limit",
    "provider_error",
    "redirect",
    "roles_must_alternate",
    "tools_not_supported",
]

_GOOGLE_STATUS = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    499: "CANCELLED",
    500: "INTERNAL",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}
_ANTHROPIC_TYPE = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}
_RPC = "type.googleapis.com/google.rpc."
_LIMITS_PAGE = "https://ai.google.dev/gemini-api/docs/rate-limits"
_METRIC = "generativelanguage.googleapis.com/generate_content_free_tier_requests"


def provider_error(
    format: WireName,  # noqa: A002
    status: int,
    message: str,
    *,
    type: str = "",  # noqa: A002
    code: str = "",
    headers: Mapping[str, str] | None = None,
) -> WireReply:
    """An error with this status. `type` and `code` are the provider's own words for it, otherwise
    those that fit the status; only OpenAI has a code beside its type."""
    return _refusal(status, error_json(format, status, message, type=type, code=code), headers)


def error_json(
    format: WireName,  # noqa: A002
    status: int,
    message: str,
    *,
    type: str = "",  # noqa: A002
    code: str = "",
) -> str:
    """The body of an error, which is also the event of an error inside a stream."""
    error: dict[str, object] = {"message": message}
    if format == "gemini":
        error |= {"code": status, "status": type or _GOOGLE_STATUS.get(status, "UNKNOWN")}
    elif format == "anthropic":
        error |= {"type": type or _ANTHROPIC_TYPE.get(status, "api_error")}
    else:
        known = "server_error" if status >= 500 else "invalid_request_error"
        error |= {"type": type or known, "param": None, "code": code or None}
    body: dict[str, object] = {"type": "error"} if format == "anthropic" else {}
    return msgspec.json.encode(body | {"error": error}).decode()


def _refusal(status: int, body: str, headers: Mapping[str, str] | None = None) -> WireReply:
    return WireReply(status=status, body=body.encode(), headers=tuple((headers or {}).items()))


def google_quota(
    window: Literal["PerMinute", "PerDay"] = "PerMinute",
    *,
    limit: int = 10,
    retry_delay: str = "1s",
    model: str = "gemini-2.5-flash",
) -> WireReply:
    """Google's 429 of the free tier, whose text is the same whether it lasts a minute, a day, or
    for ever (`limit=0`). What matters is in `error.details`."""
    message = (
        "You exceeded your current quota, please check your plan and billing details. For more "
        f"information on this error, head to: {_LIMITS_PAGE}. \n* Quota exceeded for metric: "
        f"{_METRIC}, limit: {limit}, model: {model}\nPlease retry in {retry_delay}."
    )
    violation = {
        "quotaMetric": _METRIC,
        "quotaId": f"GenerateRequests{window}PerProjectPerModel-FreeTier",
        "quotaDimensions": {"location": "global", "model": model},
        "quotaValue": str(limit),
    }
    link = {"description": "Learn more about Gemini API quotas", "url": _LIMITS_PAGE}
    details: list[dict[str, object]] = [
        {"@type": f"{_RPC}Help", "links": [link]},
        {"@type": f"{_RPC}QuotaFailure", "violations": [violation]},
    ]
    if retry_delay:
        details.append({"@type": f"{_RPC}RetryInfo", "retryDelay": retry_delay})
    error = {"code": 429, "message": message, "status": "RESOURCE_EXHAUSTED", "details": details}
    return _refusal(429, msgspec.json.encode({"error": error}).decode())


def openai_rate_limit(seconds: float = 1.0) -> WireReply:
    """A limit per minute, with the headers that say when to come back."""
    message = (
        "Rate limit reached for gpt-4o in organization org-test on tokens per min (TPM): Limit "
        f"30000, Used 29000, Requested 2000. Please try again in {seconds:g}s."
    )
    headers = {
        "retry-after-ms": f"{seconds * 1_000:.0f}",
        "x-ratelimit-limit-tokens": "30000",
        "x-ratelimit-remaining-tokens": "1000",
        "x-ratelimit-reset-tokens": f"{seconds:g}s",
    }
    return provider_error(
        "openai", 429, message, type="tokens", code="rate_limit_exceeded", headers=headers
    )


def openai_quota() -> WireReply:
    """An account without money: a 429 that no waiting helps."""
    message = "You exceeded your current quota, please check your plan and billing details."
    word = "insufficient_quota"
    return provider_error("openai", 429, message, type=word, code=word)


def anthropic_overloaded() -> WireReply:
    return provider_error("anthropic", 529, "Overloaded")


def anthropic_rate_limit(seconds: int = 1) -> WireReply:
    message = "This request would exceed your organization's rate limit of 50 requests per minute."
    headers = {
        "retry-after": str(seconds),
        "anthropic-ratelimit-requests-limit": "50",
        "anthropic-ratelimit-requests-remaining": "0",
    }
    return provider_error("anthropic", 429, message, headers=headers)


def anthropic_credit() -> WireReply:
    """An account without money: a 400, and not its type but its text says why."""
    message = (
        "Your credit balance is too low to access the Anthropic API. "
        "Please go to Plans & Billing to upgrade or purchase credits."
    )
    return provider_error("anthropic", 400, message)


def key_refused(format: WireName, shown: int = 12) -> WireReply:  # noqa: A002
    """A refusal that repeats the first characters of the key that came with the request."""
    word = "authentication_error" if format == "openai" else ""
    refused = provider_error(format, 401, "Incorrect API key provided: KEY****.", type=word)
    return msgspec.structs.replace(refused, echo_key=shown)


def roles_must_alternate(format: WireName) -> WireReply:  # noqa: A002
    message = "Conversation roles must alternate user/assistant/user/assistant/..."
    return provider_error(format, 400, message)


def tools_not_supported(format: WireName, model: str = "small") -> WireReply:  # noqa: A002
    return provider_error(format, 400, f"{model} does not support tools")


def context_too_long(
    format: WireName,  # noqa: A002
    limit: int = 8_192,
    requested: int = 9_999,
) -> WireReply:
    """The refusal of a request of `requested` tokens, in each provider's words."""
    if format == "gemini":
        counts = f"({requested}) exceeds the maximum number of tokens allowed ({limit})"
        return provider_error(format, 400, f"The input token count {counts}.")
    if format == "anthropic":
        message = f"prompt is too long: {requested} tokens > {limit} maximum"
        return provider_error(format, 400, message)
    message = (
        f"This model's maximum context length is {limit} tokens. However, your messages resulted "
        f"in {requested} tokens. Please reduce the length of the messages."
    )
    return provider_error(format, 400, message, code="context_length_exceeded")


def html_page(status: int = 502) -> WireReply:
    """What a proxy in between sends."""
    page = f"<html><head><title>{status}</title></head><body>nginx</body></html>"
    return WireReply(status=status, body=page.encode(), content_type="text/html")


def redirect(location: str = "http://127.0.0.1:9/elsewhere") -> WireReply:
    return WireReply(
        status=307, body=b"", content_type="text/plain", headers=(("location", location),)
    )

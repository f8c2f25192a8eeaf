"""Whether and when to send a request again: pure decisions, with clock and dice passed in.

A delay that the provider requests (`Retry-After` in seconds or as a date, `retry-after-ms`,
Gemini's `retryDelay`) is respected up to a limit. Otherwise the delay doubles from half a second,
plus jitter of up to as much again.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import NamedTuple

from recollect.errors import ModelError

FIRST_DELAY = 0.5
_NUMBER = re.compile(r"\d{1,9}(?:\.\d{1,9})?")
_DELAY_IN_BODY = re.compile(r'"retryDelay"\s{0,8}:\s{0,8}"(\d{1,6}(?:\.\d{1,9})?)s"')
# Waiting does not fill an account; OpenAI sends this code with status 429 as well.
_PERMANENT = ("insufficient_quota", "insufficient balance", "exceeded your current quota")
# Ollama: "… does not support tools"; OpenRouter: "No endpoints found that support tool use";
# vLLM: '"auto" tool choice requires --enable-auto-tool-choice'
_TOOLS = ("tool", "function call", "functions")
_UNSUPPORTED = (
    "not support",
    "n't support",
    "unsupported",
    "not enabled",
    "no endpoints found that support",
    "requires --enable-auto-tool-choice",
    "not available for this model",
    "unknown field",
    "unrecognized request argument",
)


class FailedAttempt(NamedTuple):
    """Why one attempt got no reply."""

    error: ModelError
    retryable: bool
    delay: float | None = None  # seconds, as the provider requests


def requested_delay(headers: Mapping[str, str], body: str, now: float) -> float | None:
    """Seconds that the provider requests; `now` is in seconds since 1970."""
    for name, unit in (("retry-after-ms", 1_000), ("retry-after", 1)):
        if _NUMBER.fullmatch(given := headers.get(name, "").strip()):
            return float(given) / unit
    if given:
        try:
            date = parsedate_to_datetime(given[:100])
        except (ValueError, OverflowError):
            return None
        # "-0000" gives a date without a zone; HTTP dates are in UTC
        return max(0.0, (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp() - now)
    found = _DELAY_IN_BODY.search(body)
    return float(found[1]) if found else None


def retry_delay(attempt: int, requested: float | None, longest: float, dice: float) -> float:
    """Seconds to wait after this failed attempt, counted from 1; `dice` is from 0 to 1.

    Jitter only adds to what a provider requests, so that clients come back at different times.
    """
    if requested is None:
        grown = FIRST_DELAY * 2 ** min(attempt - 1, 30)
        return float(min(longest, grown * (1 + dice)))
    return float(min(longest, requested + FIRST_DELAY * dice))


def may_recover(message: str) -> bool:
    """Whether a provider that is busy now may serve us later."""
    low = message[:10_000].lower()
    return not any(phrase in low for phrase in _PERMANENT)


def refuses_tools(message: str, status: int) -> bool:
    """Whether the endpoint says that this model takes no tools."""
    if status not in (400, 404, 405, 422, 501):
        return False
    low = message[:10_000].lower()
    return any(word in low for word in _TOOLS) and any(phrase in low for phrase in _UNSUPPORTED)

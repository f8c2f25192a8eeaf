"""Whether and when to send a request again: pure decisions, with clock and dice passed in.

What is worth another attempt is decided where the error is read (`codecs/provider_errors.py`). A
delay that the provider requests is respected; one beyond the limit of the settings ends the
attempts, because coming back early only prolongs it. Otherwise the delay doubles from half a
second, plus jitter of up to as much again.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from recollect.codecs.requested_delays import Wait
from recollect.errors import ModelError, ProviderBusy, QuotaExhausted

FIRST_DELAY = 0.5
_LONGEST_SHOWN = 366 * 86_400.0
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


def judge_error(error: ModelError, longest: float, now: float) -> FailedAttempt:
    """What an error that the provider reported means for the next attempt. `longest` is the most
    seconds between two attempts; `now` is in seconds since 1970."""
    if not isinstance(error, ProviderBusy) or isinstance(error, QuotaExhausted):
        return FailedAttempt(error, retryable=False)
    if error.delay is None and error.until is None:
        guessed = None if error.guessed_delay is None else min(error.guessed_delay, longest)
        return FailedAttempt(error, retryable=True, delay=guessed)
    delay = Wait(error.delay, error.until).from_now(now)
    if delay <= longest:
        return FailedAttempt(error, retryable=True, delay=delay)
    remedy = (
        f"it asks for a wait of {_in_words(delay)}, and `transport.longest_wait` allows "
        f"{_in_words(longest)}: try again then, or use another model"
    )
    return FailedAttempt(QuotaExhausted(error.said, error.status, remedy), retryable=False)


def _in_words(seconds: float) -> str:
    """To the nearest second, rounded up, so that nobody comes back too early."""
    if seconds < 1:
        return f"{seconds:g} s"
    minutes, rest = divmod(math.ceil(min(seconds, _LONGEST_SHOWN)), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    parts = zip((days, hours, minutes, rest), ("d", "h", "min", "s"), strict=True)
    return " ".join(f"{number} {unit}" for number, unit in parts if number)


def retry_delay(attempt: int, requested: float | None, longest: float, dice: float) -> float:
    """Seconds to wait after this failed attempt, counted from 1; `dice` is from 0 to 1.

    Jitter only adds to what a provider requests, so that clients come back at different times.
    """
    if requested is None:
        grown = FIRST_DELAY * 2 ** min(attempt - 1, 30)
        return float(min(longest, grown * (1 + dice)))
    return float(max(requested, min(longest, requested + FIRST_DELAY * dice)))


def refuses_tools(message: str, status: int) -> bool:
    """Whether the endpoint says that this model takes no tools."""
    if status not in (400, 404, 405, 422, 501):
        return False
    low = message[:10_000].lower()
    return any(word in low for word in _TOOLS) and any(phrase in low for phrase in _UNSUPPORTED)

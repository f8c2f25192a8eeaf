"""Whether a model is asked again, and when: pure decisions, the clock and the dice are passed in.

A provider's wish (`Retry-After` in seconds or as a date, `retry-after-ms`, Gemini's `retryDelay`)
is respected up to a limit; else the wait doubles from half a second, with as much jitter again.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import NamedTuple

from recollect.errors import ModelError

FIRST_DELAY = 0.5
_NUMBER = r"\d{1,9}(?:\.\d{1,9})?"
_DELAY_IN_BODY = r'"retryDelay"\s{0,8}:\s{0,8}"(\d{1,6}(?:\.\d{1,9})?)s"'
# Waiting does not fill an account (OpenAI's code for it comes with 429 as well).
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
    """One attempt that came to nothing."""

    error: ModelError
    again: bool  # whether asking again makes sense
    wait: float | None = None  # what the provider asks for, in seconds


def requested_delay(headers: Mapping[str, str], body: str, now: float) -> float | None:
    """How many seconds the provider wants us to wait; `now` is in seconds since 1970."""
    milliseconds = headers.get("retry-after-ms", "")
    if re.fullmatch(_NUMBER, milliseconds):
        return float(milliseconds) / 1_000
    given = headers.get("retry-after", "").strip()
    if re.fullmatch(_NUMBER, given):
        return float(given)
    if given:
        from email.utils import parsedate_to_datetime

        try:
            date = parsedate_to_datetime(given[:100])
        except (ValueError, OverflowError):
            return None
        return max(0.0, _seconds(date) - now)
    found = re.search(_DELAY_IN_BODY, body)
    return float(found[1]) if found else None


def _seconds(date: datetime) -> float:
    # "-0000" gives a date without a zone; HTTP knows only UTC
    return (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp()


def retry_delay(attempt: int, wanted: float | None, longest: float, dice: float) -> float:
    """Seconds to wait after this failed attempt, counted from 1; `dice` is from 0 to 1.

    Jitter only adds to what a provider asks for: all who were sent away come back at other times.
    """
    if wanted is None:
        grown = FIRST_DELAY * 2 ** min(attempt - 1, 30)
        return float(min(longest, grown * (1 + dice)))
    return float(min(longest, wanted + FIRST_DELAY * dice))


def may_recover(said: str) -> bool:
    """Whether a refusal for now may be over later."""
    low = said[:10_000].lower()
    return not any(phrase in low for phrase in _PERMANENT)


def refuses_tools(said: str, status: int) -> bool:
    """Whether the endpoint says that this model cannot be given tools."""
    if status not in (400, 404, 405, 422, 501):
        return False
    low = said[:10_000].lower()
    return any(word in low for word in _TOOLS) and any(phrase in low for phrase in _UNSUPPORTED)

"""How long a provider asks us to wait, as it says it: in headers, in fields, in words.

A `Wait` is a number of seconds, or a moment; only the caller has a clock. Headers are read for
`retry-after-ms` and `retry-after` first, then for the resets of those limits that have nothing
left (`x-ratelimit-reset-requests`, `anthropic-ratelimit-tokens-reset` …). In words, "retry in 5s",
"try again in 1m30.5s" and "900ms" are understood. Any input is accepted, in linear time.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import NamedTuple

_NUMBER = re.compile(r"\d{1,15}(?:\.\d{1,12})?")
_STEP = (
    r"(\d{1,9}(?:\.\d{1,12})?) ?"
    r"(milliseconds?|msecs?|ms|seconds?|secs?|s|minutes?|mins?|m|hours?|hrs?|h|days?|d)(?![a-z])"
)
_STEPS = re.compile(_STEP)
_DURATION = re.compile(rf"(?:{_STEP}[ ,]{{0,2}}(?:and )?){{1,6}}")
_IN_WORDS = re.compile(
    r"\b(?:retry|retrying|try again|wait|resets?|available(?: again)?)\b"
    r"(?: (?:in|after|for|at|least|about|approximately|another)){0,3}:? {0,2}"
    rf"(?P<duration>(?:{_STEP}[ ,]{{0,2}}(?:and )?){{1,6}})"
)
_SECONDS = {"s": 1.0, "m": 60.0, "h": 3_600.0, "d": 86_400.0}  # by the first letter
_MILLISECONDS = re.compile("milli|ms")
_FIRST_MOMENT = 1e9  # numbers above it are seconds since 1970, not a duration
_FIRST_MILLISECONDS = 1e12
_MAX_FIELD = 100  # characters of a header or a field


class Wait(NamedTuple):
    """Either `seconds` from now, or `until` a moment in seconds since 1970."""

    seconds: float | None = None
    until: float | None = None

    def from_now(self, now: float) -> float:
        if self.until is not None:
            return max(0.0, self.until - now)
        return self.seconds or 0.0


def wait_in_headers(headers: Mapping[str, str], *, limited: bool) -> Wait | None:
    """What the headers ask for; resets count only if a limit is what was exceeded."""
    given = headers.get("retry-after-ms", "").strip()
    if _NUMBER.fullmatch(given):
        return Wait(float(given) / 1_000)
    if found := parse_wait(headers.get("retry-after", "")):
        return found
    resets = [found for name in headers if limited and (found := _reset(headers, name))]
    return max(resets, key=lambda wait: (wait.until or 0.0, wait.seconds or 0.0), default=None)


def _reset(headers: Mapping[str, str], name: str) -> Wait | None:
    """When a limit that has nothing left is renewed. Others are sent along with every reply."""
    lower = name.lower()
    if "ratelimit" not in lower or "reset" not in lower.split("-"):
        return None
    left = headers.get(lower.replace("reset", "remaining"), "0").strip()
    return parse_wait(headers[name]) if left in ("0", "0.0", "") else None


def parse_wait(text: str) -> Wait | None:
    """A number of seconds, a duration, or a date."""
    text = text[:_MAX_FIELD].strip()
    if _NUMBER.fullmatch(text):
        number = float(text)
        if number >= _FIRST_MOMENT:
            return Wait(until=number / 1_000 if number >= _FIRST_MILLISECONDS else number)
        return Wait(number)
    if _DURATION.fullmatch(text.lower()):
        return Wait(_add_up(text.lower()))
    return _parse_date(text)


def _parse_date(text: str) -> Wait | None:
    for parse in (datetime.fromisoformat, parsedate_to_datetime):
        try:
            date = parse(text)
            # "-0000" gives a date without a zone; HTTP dates are in UTC
            return Wait(until=(date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp())
        except (ValueError, OverflowError, IndexError, TypeError):
            continue
    return None


def wait_in_words(text: str) -> Wait | None:
    """The first "retry in 5s", however it is put."""
    found = _IN_WORDS.search(text.lower())
    return Wait(_add_up(found["duration"])) if found else None


def _add_up(duration: str) -> float:
    seconds = sum(float(number) * _unit(name) for number, name in _STEPS.findall(duration))
    return round(seconds, 9)


def _unit(name: str) -> float:
    return 0.001 if _MILLISECONDS.match(name) else _SECONDS[name[0]]

"""Times for people: "3 hours ago", and dates as people type them. Local time throughout."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from time import time

_UNITS = (
    ("year", 31_557_600),
    ("month", 2_629_800),
    ("week", 604_800),
    ("day", 86_400),
    ("hour", 3_600),
    ("minute", 60),
)
_SPAN = re.compile(r"(\d{1,6})\s*([smhdwy]|mo)(?:\s+ago)?")
_SECONDS = {
    "s": 1,
    "m": 60,
    "h": 3_600,
    "d": 86_400,
    "w": 604_800,
    "mo": 2_629_800,
    "y": 31_557_600,
}
DATE_EXAMPLES = "2026-11-01, 2026-11-01T14:30, today, yesterday, 3d, 12h or 2w"


def format_age(then: int, now: int | None = None) -> str:
    """How long ago a moment was, in the largest unit that fits."""
    seconds = ((_now() if now is None else now) - then) // 1_000
    if seconds < -60:
        return format_time(then)
    for unit, size in _UNITS:
        if seconds >= size:
            count = seconds // size
            return f"{count} {unit}{'s' if count > 1 else ''} ago"
    return "just now"


def format_time(then: int, *, seconds: bool = False) -> str:
    """Date and time of day; the bare number where no calendar reaches."""
    try:
        local = datetime.fromtimestamp(then / 1_000).astimezone()
    except (OverflowError, OSError, ValueError):
        return f"{then} ms"
    return local.strftime("%Y-%m-%d %H:%M:%S" if seconds else "%Y-%m-%d %H:%M")


def parse_date(text: str, now: int | None = None) -> int:
    """Milliseconds since 1970 of a date as people type it; a day means its beginning."""
    current = _now() if now is None else now
    word = text.strip().lower()
    today = datetime.fromtimestamp(current / 1_000).astimezone()
    today = today.replace(hour=0, minute=0, second=0, microsecond=0)
    if word == "now":
        return current
    if word in ("today", "yesterday"):
        day = (today - timedelta(days=word == "yesterday")).date()
        return _milliseconds(datetime.combine(day, datetime.min.time()))
    if span := _SPAN.fullmatch(word):
        return current - int(span[1]) * _SECONDS[span[2]] * 1_000
    try:
        return _milliseconds(datetime.fromisoformat(text.strip()))
    except (ValueError, OverflowError, OSError):
        raise ValueError(f"{text!r} is no date; give one like {DATE_EXAMPLES}") from None


def _milliseconds(day: datetime) -> int:
    return int(day.timestamp() * 1_000)


def _now() -> int:
    return int(time() * 1_000)

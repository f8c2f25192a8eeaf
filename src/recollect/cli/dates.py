"""Times for users: "3 hours ago", and dates as users type them. Local time throughout."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

import click

from recollect.store.ids import now as current_time

_SECONDS = {
    "year": 31_557_600,
    "month": 2_629_800,
    "week": 604_800,
    "day": 86_400,
    "hour": 3_600,
    "minute": 60,
}
_SPAN = re.compile(r"(\d{1,6})\s*([smhdwy]|mo)(?:\s+ago)?")
_SPAN_SECONDS = {"s": 1, "mo": _SECONDS["month"]} | {
    unit[0]: seconds for unit, seconds in _SECONDS.items() if unit != "month"
}
DATE_EXAMPLES = "2026-11-01, 2026-11-01T14:30, today, yesterday, 3d, 12h or 2w"


def format_age(then: int, now: int | None = None) -> str:
    """How long ago a time was, in the largest unit that fits."""
    seconds = ((current_time() if now is None else now) - then) // 1_000
    if seconds < -60:
        return format_time(then)
    for unit, size in _SECONDS.items():
        if seconds >= size:
            count = seconds // size
            return f"{count} {unit}{'s' if count > 1 else ''} ago"
    return "just now"


def format_time(then: int) -> str:
    """Date and time of day; the bare number where the calendar ends."""
    try:
        local = datetime.fromtimestamp(then / 1_000).astimezone()
    except (OverflowError, OSError, ValueError):
        return f"{then} ms"
    return local.strftime("%Y-%m-%d %H:%M")


def parse_date(text: str, now: int | None = None) -> int:
    """Milliseconds since 1970 of a date as users type it; a day means its beginning."""
    current = current_time() if now is None else now
    word = text.strip().lower()
    if word == "now":
        return current
    if word in ("today", "yesterday"):
        today = datetime.fromtimestamp(current / 1_000).astimezone()
        day = (today - timedelta(days=word == "yesterday")).date()
        return _milliseconds(datetime.combine(day, datetime.min.time()))
    if span := _SPAN.fullmatch(word):
        return current - int(span[1]) * _SPAN_SECONDS[span[2]] * 1_000
    try:
        return _milliseconds(datetime.fromisoformat(text.strip()))
    except (ValueError, OverflowError, OSError):
        message = f"{text!r} is not a date; give one like {DATE_EXAMPLES}"
        raise click.BadParameter(message) from None


def _milliseconds(day: datetime) -> int:
    return int(day.timestamp() * 1_000)

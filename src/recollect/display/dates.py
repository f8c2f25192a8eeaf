"""Times for users: "3 hours ago". Local time throughout."""

from __future__ import annotations

from datetime import datetime

from recollect.store.ids import now as current_time

SECONDS_OF = {
    "year": 31_557_600,
    "month": 2_629_800,
    "week": 604_800,
    "day": 86_400,
    "hour": 3_600,
    "minute": 60,
}


def format_age(then: int, now: int | None = None) -> str:
    """How long ago a time was, in the largest unit that fits."""
    seconds = ((current_time() if now is None else now) - then) // 1_000
    if seconds < -60:
        return format_time(then)
    for unit, size in SECONDS_OF.items():
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

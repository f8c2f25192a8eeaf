"""Dates as users type them: `2026-11-01`, `yesterday`, `3d`. Local time throughout."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

import click

from recollect.display.dates import SECONDS_OF
from recollect.store.ids import now as current_time

_SPAN = re.compile(r"(\d{1,6})\s*([smhdwy]|mo)(?:\s+ago)?")
_SPAN_SECONDS = {"s": 1, "mo": SECONDS_OF["month"]} | {
    unit[0]: seconds for unit, seconds in SECONDS_OF.items() if unit != "month"
}
DATE_EXAMPLES = "2026-11-01, 2026-11-01T14:30, today, yesterday, 3d, 12h or 2w"


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

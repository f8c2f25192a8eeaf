"""Times as other programs write them.

A time without a zone is taken as UTC, so that a file reads the same on every machine.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

_START = datetime(1970, 1, 1)  # noqa: DTZ001 - in UTC: arithmetic without a zone is twice as fast
_EPOCH = _START.replace(tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_FIRST = (datetime.min.replace(tzinfo=UTC) - _EPOCH) // _MILLISECOND
_LAST = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // _MILLISECOND


def parse_time(value: object) -> int | None:
    """Milliseconds since 1970; None if the value is not a time."""
    if not isinstance(value, str) or not 8 <= len(value) <= 64:
        return None
    try:
        moment = datetime.fromisoformat(value)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        return (moment - _EPOCH) // _MILLISECOND
    except (ValueError, OverflowError):
        return None


def to_datetime(time: int) -> datetime:
    """In UTC; a time that Python cannot hold becomes the nearest one that it can."""
    return _to_zoneless(time).replace(tzinfo=UTC)


def _to_zoneless(time: int) -> datetime:
    return _START + min(max(time, _FIRST), _LAST) * _MILLISECOND


def format_zulu(time: int) -> str:
    """2026-02-11T20:36:45.693Z"""
    return _to_zoneless(time).isoformat(timespec="milliseconds") + "Z"


def format_zoneless(time: int) -> str:
    """2026-02-11T20:36:45, with a fraction when there is one."""
    return _to_zoneless(time).isoformat()

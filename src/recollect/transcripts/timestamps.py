"""Times as other programs write them, and the names of files.

A time without a zone is taken as UTC, so that a file reads the same on every machine.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_FIRST = (datetime.min.replace(tzinfo=UTC) - _EPOCH) // _MILLISECOND
_LAST = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // _MILLISECOND
_NAME_CHARACTERS = 120


def parse_time(value: object) -> int | None:
    """Milliseconds since 1970, or None for what is no time."""
    if not isinstance(value, str) or not 8 <= len(value) <= 64:
        return None
    try:
        moment = datetime.fromisoformat(value)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        return (moment - _EPOCH) // _MILLISECOND
    except (ValueError, OverflowError):
        return None


def _moment(time: int) -> datetime:
    return _EPOCH + min(max(time, _FIRST), _LAST) * _MILLISECOND


def format_zulu(time: int) -> str:
    """2026-02-11T20:36:45.693Z"""
    return _moment(time).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def format_zoneless(time: int) -> str:
    """2026-02-11T20:36:45, with a fraction when there is one."""
    return _moment(time).replace(tzinfo=None).isoformat()


def gemini_file_name(
    session: str, start: int, *, taken: Callable[[str], bool] | None = None
) -> str:
    """`session-<YYYY-MM-DDTHH-MM>-<id8>.json`. Eight characters and a minute collide, so as many
    more of the id are taken as it needs to be a name that is not `taken` by another session."""
    stem = f"session-{_moment(start).isoformat()[:16].replace(':', '-')}-"
    name = _tame(session)
    lengths = sorted({8, *range(12, len(name), 4), len(name)})
    names = [f"{stem}{name[:length]}.json" for length in lengths if length <= max(8, len(name))]
    if taken is None:
        return names[0]
    return next((each for each in names if not taken(each)), names[-1])


def history_server_file_name(session: str, start: int) -> str:
    """`session_YYYYMMDD_<session_id>.json`"""
    return f"session_{_moment(start).isoformat()[:10].replace('-', '')}_{_tame(session)}.json"


def _tame(session: str) -> str:
    """A foreign id may hold anything, also `../`; a hash tells apart what had to be changed."""
    tame = re.sub(r"[^A-Za-z0-9_-]", "_", session)[:_NAME_CHARACTERS]
    if tame == session and tame:
        return tame
    digest = hashlib.blake2b(session.encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()
    return f"{tame}-{digest}"

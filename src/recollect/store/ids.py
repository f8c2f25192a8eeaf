"""Ids: time-ordered for what happens now, derived from the source for what is imported."""

from __future__ import annotations

import hashlib
import os
import re
import threading
import time

_VARIANT = "89ab"
_lock, _last = threading.Lock(), 0
_PREFIX = re.compile("[0-9a-f]{1,32}")
_RANDOM = ~(0xF << 76 | 0x3 << 62)
_VERSION_7 = 0x7 << 76 | 0x2 << 62


def now() -> int:
    return time.time_ns() // 1_000_000


def new_id() -> str:
    """A UUIDv7 as 32 hexadecimal digits; each is greater than the one before in this process."""
    global _last  # noqa: PLW0603 - what makes the order is that there is one
    noise = int.from_bytes(os.urandom(10), "big")
    stamp = (time.time_ns() // 1_000_000 << 80 | noise) & _RANDOM | _VERSION_7
    with _lock:
        _last = stamp if stamp > _last else _last + 1
        return f"{_last:032x}"


def derived_id(*source: str) -> str:
    """The same id for the same source, always: importing twice adds nothing. A UUIDv8."""
    joined = "\x00".join(source).encode("utf-8", "surrogatepass")
    digest = hashlib.blake2b(joined, digest_size=16, person=b"recollect-id").hexdigest()
    variant = _VARIANT[int(digest[16], 16) & 3]
    return f"{digest[:12]}8{digest[13:16]}{variant}{digest[17:]}"


def is_prefix(text: str) -> bool:
    return _PREFIX.fullmatch(text) is not None


def is_id(text: object) -> bool:
    return isinstance(text, str) and len(text) == 32 and _PREFIX.fullmatch(text) is not None


def tidy(text: str) -> str:
    """An id as a person may give it: dashes and capitals do not matter."""
    return text.strip().replace("-", "").lower()

"""Ids: time-ordered for what happens now, derived from the source for what is imported."""

from __future__ import annotations

import hashlib
import os
import time

_VARIANT = "89ab"


def now() -> int:
    return time.time_ns() // 1_000_000


def new_id() -> str:
    """A UUIDv7 as 32 hexadecimal digits."""
    noise = os.urandom(10).hex()
    variant = _VARIANT[int(noise[3], 16) & 3]
    return f"{time.time_ns() // 1_000_000:012x}7{noise[:3]}{variant}{noise[4:19]}"


def derived_id(*source: str) -> str:
    """The same id for the same source, always: importing twice adds nothing. A UUIDv8."""
    joined = "\x00".join(source).encode("utf-8", "surrogatepass")
    digest = hashlib.blake2b(joined, digest_size=16, person=b"recollect-id").hexdigest()
    variant = _VARIANT[int(digest[16], 16) & 3]
    return f"{digest[:12]}8{digest[13:16]}{variant}{digest[17:]}"


def is_prefix(text: str) -> bool:
    return 0 < len(text) <= 32 and all(c in "0123456789abcdef" for c in text)


def tidy(text: str) -> str:
    """An id as a person may give it: dashes and capitals do not matter."""
    return text.strip().replace("-", "").lower()

"""Ids: time-ordered for new entries, derived from the source for imported ones."""

from __future__ import annotations

import hashlib
import os
import random
import time

from recollect.errors import BadInput

LAST = "last"  # stands for the id of the project's most recently used session
# Ids must be unique, not secret: a generator seeded by the system takes a tenth of the time that a
# system call for each id does.
_random = random.Random()
os.register_at_fork(after_in_child=_random.seed)
MAX_OWNER = 200  # characters
_DIGITS = "0123456789abcdef"
_VARIANTS = {digit: "89ab"[int(digit, 16) & 3] for digit in _DIGITS}


def now() -> int:
    """Milliseconds since 1970."""
    return time.time_ns() // 1_000_000


def new_id() -> str:
    """A UUIDv7 as 32 hexadecimal digits. The 12 bits after the version are the fraction of the
    millisecond, so that consecutive ids are in order and differ early."""
    millisecond, rest = divmod(time.time_ns(), 1_000_000)
    clock = millisecond << 16 | 0x7000 | (rest << 12) // 1_000_000
    noise = _random.getrandbits(62) | 1 << 63
    return f"{clock:016x}{noise:016x}"


def derived_id(*source: str) -> str:
    """Always the same id for the same source, so that importing twice adds nothing. A UUIDv8."""
    joined = "".join([f"{len(part)}:{part}" for part in source]).encode("utf-8", "surrogatepass")
    digest = hashlib.blake2b(joined, digest_size=16, person=b"recollect-id").hexdigest()
    return f"{digest[:12]}8{digest[13:16]}{_VARIANTS[digest[16]]}{digest[17:]}"


def is_prefix(text: str) -> bool:
    return 0 < len(text) <= 32 and not text.strip(_DIGITS)


def is_id(text: object) -> bool:
    return isinstance(text, str) and len(text) == 32 and is_prefix(text)


def normalize_id(text: str) -> str:
    """An id as users type it: dashes and capitals do not matter."""
    return text.strip().replace("-", "").lower()


def check_owner(owner: str) -> str:
    """The owner's name, if it can be stored by every store."""
    if len(owner) > MAX_OWNER or not owner.isprintable():
        raise BadInput(
            f"owner {owner[:40]!r} cannot be stored: a name has at most {MAX_OWNER} printable "
            "characters"
        )
    return owner

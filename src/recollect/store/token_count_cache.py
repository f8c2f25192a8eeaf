"""Token counts of entries, cached by the name of the counter that made them.

Only a cache: corrupt rows and rows of another entry are discarded, missing ones recounted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import blake2b
from typing import TypeAlias

import apsw
import msgspec

from recollect.store.ids import is_id

PartCounts: TypeAlias = tuple[int, ...]
CHECKSUM_BYTES = 4
_decoder = msgspec.msgpack.Decoder(PartCounts)


def read_counts(db: apsw.Connection, name: str, entries: Iterable[str]) -> dict[str, PartCounts]:
    query = (
        "SELECT data FROM counts WHERE counter = ?1 "
        "AND key = (SELECT key FROM entries WHERE id = ?2)"
    )
    found: dict[str, PartCounts] = {}
    for entry in entries:
        raw = bytes.fromhex(entry) if is_id(entry) else b""
        for (data,) in db.execute(query, (name, raw)):
            if (counts := unpack_counts(name, raw, data)) is not None:
                found[entry] = counts
    return found


def write_counts(db: apsw.Connection, name: str, counts: Mapping[str, PartCounts]) -> None:
    """Entries that are not in the store are skipped."""
    insert = "INSERT OR REPLACE INTO counts SELECT ?1, key, ?3 FROM entries WHERE id = ?2"
    for entry, tokens in counts.items():
        if is_id(entry):
            raw = bytes.fromhex(entry)
            db.execute(insert, (name, raw, pack_counts(name, raw, tokens)))


def pack_counts(name: str, raw: bytes, counts: PartCounts) -> bytes:
    packed = msgspec.msgpack.encode(counts)
    return _checksum(name, raw, packed) + packed


def unpack_counts(name: str, raw: bytes, data: bytes) -> PartCounts | None:
    """None if it is not what was stored for this entry."""
    packed = bytes(data[CHECKSUM_BYTES:])
    if data[:CHECKSUM_BYTES] != _checksum(name, raw, packed):
        return None
    return _decoder.decode(packed)


def _checksum(name: str, raw: bytes, packed: bytes) -> bytes:
    return blake2b(b"\0".join((name.encode(), raw, packed)), digest_size=CHECKSUM_BYTES).digest()

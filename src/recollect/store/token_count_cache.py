"""How many tokens entries have, remembered by the name of the counter that counted them.

A cache and no fact: nothing in the log depends on it, a row that is damaged or stands for another
entry is not believed, and what is missing is counted again.
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
    """What is remembered of these entries."""
    query = (
        "SELECT data FROM counts WHERE counter = ?1 "
        "AND key = (SELECT key FROM entries WHERE id = ?2)"
    )
    found: dict[str, PartCounts] = {}
    for entry in entries:
        raw = bytes.fromhex(entry) if is_id(entry) else b""
        for (data,) in db.execute(query, (name, raw)):
            packed = bytes(data[CHECKSUM_BYTES:])
            if data[:CHECKSUM_BYTES] == _seal(name, raw, packed):
                found[entry] = _decoder.decode(packed)
    return found


def write_counts(db: apsw.Connection, name: str, counts: Mapping[str, PartCounts]) -> None:
    """Remember them; entries that are not in the store are passed over."""
    insert = "INSERT OR REPLACE INTO counts SELECT ?1, key, ?3 FROM entries WHERE id = ?2"
    for entry, tokens in counts.items():
        if is_id(entry):
            raw, packed = bytes.fromhex(entry), msgspec.msgpack.encode(tokens)
            db.execute(insert, (name, raw, _seal(name, raw, packed) + packed))


def _seal(name: str, raw: bytes, packed: bytes) -> bytes:
    return blake2b(b"\0".join((name.encode(), raw, packed)), digest_size=CHECKSUM_BYTES).digest()

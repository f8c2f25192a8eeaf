"""How an entry's body is stored: JSON, compressed, long strings in blobs, covered by a hash.

A stored body is one of
    {…                                   the JSON itself, when compression would not pay
    KIND DICTIONARY zstd-frame           compressed; DICTIONARY 0 means none
    nothing at all                       the body was damaged and is in quarantine
KIND also says whether strings were moved to the content-addressed blobs. An entry's hash covers its
parent's hash, its id, its time and the JSON, so a path verifies itself whatever the compression; a
string in a blob is covered by its own hash, which the JSON names.
"""

from __future__ import annotations

import json
import struct
import threading
from collections.abc import Callable, Mapping, Sequence
from hashlib import blake2b
from typing import Any

import zstandard

from recollect.entries import json_text
from recollect.errors import Damaged, TooLarge

HASH_BYTES = 16
BLOB_FROM = 4_096  # characters; a longer string is stored once, by its content
MAX_STRING = 900_000_000  # SQLite allows 10^9 bytes in a value
COMPRESS_FROM = 160  # bytes, with a dictionary
COMPRESS_FROM_ALONE = 1_024  # without one, smaller bodies do not shrink
DICTIONARY_BYTES = 32_768
TRAIN_FROM = 400  # bodies; with fewer, a dictionary saves less than its own size

_PLAIN_MOVED, _ZSTD, _ZSTD_MOVED, _PLAIN = 1, 2, 3, ord("{")
_MOVED = "$blob"
ZERO_HASH = bytes(HASH_BYTES)
_TIME = struct.Struct(">q")


def entry_hash(parent: bytes, entry_id: bytes, time: int, body: bytes) -> bytes:
    data = b"".join((parent, entry_id, _TIME.pack(time), body))
    return blake2b(data, digest_size=HASH_BYTES).digest()


def row_checksum(*values: object) -> bytes:
    """A short hash of the fields of a row that is outside the hash chain."""
    return blake2b(repr(values).encode("utf-8", "surrogatepass"), digest_size=8).digest()


def content_address(data: bytes) -> bytes:
    return blake2b(data, digest_size=32).digest()


class BodyPacker:
    """Compresses bodies with the newest dictionary, and decompresses those of every dictionary.

    `find` returns a dictionary that another process has stored since.
    """

    def __init__(
        self, dictionaries: Mapping[int, bytes], find: Callable[[int], bytes | None]
    ) -> None:
        self._find = find
        self._open: dict[int, zstandard.ZstdDecompressor] = {0: _decompressor(None)}
        self._dictionary = 0
        self._compressor = _compressor(None)
        for number, data in sorted(dictionaries.items()):
            self.learn(number, data)

    @property
    def trained(self) -> bool:
        return self._dictionary > 0

    def learn(self, number: int, data: bytes) -> None:
        dictionary = zstandard.ZstdCompressionDict(data)
        self._open[number] = _decompressor(dictionary)
        if number > self._dictionary:
            self._dictionary, self._compressor = number, _compressor(dictionary)

    def pack(self, body: bytes, *, moved: bool) -> bytes:
        if len(body) >= (COMPRESS_FROM if self._dictionary else COMPRESS_FROM_ALONE):
            head = bytes((_ZSTD_MOVED if moved else _ZSTD, self._dictionary))
            packed = head + self._compressor.compress(body)
            if len(packed) < len(body):
                return packed
        return bytes((_PLAIN_MOVED,)) + body if moved else body

    def unpack(self, stored: bytes) -> tuple[bytes, bool]:
        """The JSON, and whether strings of it are in blobs."""
        if not isinstance(stored, bytes) or len(stored) < 3:  # a flipped bit can change its type
            raise Damaged("a body is empty, truncated or not bytes")
        kind = stored[0]
        if kind == _PLAIN:
            return stored, False
        if kind == _PLAIN_MOVED:
            return stored[1:], True
        if kind > _ZSTD_MOVED:
            raise Damaged("a body starts with a byte that no version writes")
        try:
            opener = self._open.get(stored[1]) or self._fetch(stored[1])
            return opener.decompress(stored[2:]), kind == _ZSTD_MOVED
        except (zstandard.ZstdError, MemoryError) as error:
            raise Damaged(f"a body cannot be decompressed ({error})") from error

    def _fetch(self, number: int) -> zstandard.ZstdDecompressor:
        data = self._find(number)
        if data is None:
            raise Damaged(f"a body needs dictionary {number}, which is missing")
        self.learn(number, data)
        return self._open[number]


def names_blobs(stored: bytes) -> bool:
    """Whether strings of a stored body are in blobs."""
    return stored[:1] in (bytes((_PLAIN_MOVED,)), bytes((_ZSTD_MOVED,)))


def train_dictionary(samples: Sequence[bytes]) -> bytes | None:
    """A dictionary from a store's own bodies; none if they are too few or too similar."""
    if len(samples) < TRAIN_FROM:
        return None
    size = min(DICTIONARY_BYTES, sum(map(len, samples)) // 20)
    try:
        # k and d as zstd's own search finds them; searching takes four times as long
        return zstandard.train_dictionary(size, list(samples), k=400, d=8, level=3).as_bytes()
    except zstandard.ZstdError:
        return None


class _BlobCompressors(threading.local):
    """One for each thread: making one takes longer than compressing a text of 5 kB."""

    def __init__(self) -> None:
        # level 9 takes five times as long and saves 1 % of other programs' session files
        self.own = zstandard.ZstdCompressor(level=3)


_BLOB_COMPRESSORS = _BlobCompressors()


def pack_blob(data: bytes) -> bytes:
    return _BLOB_COMPRESSORS.own.compress(data)


def unpack_blob(stored: bytes, size: int) -> bytes:
    try:
        if zstandard.frame_content_size(stored) != size:
            raise Damaged("stored content does not have the length that was written")
        return zstandard.ZstdDecompressor().decompress(stored)
    except (zstandard.ZstdError, MemoryError) as error:
        raise Damaged(f"stored content cannot be decompressed ({error})") from error


def extract_blobs(body: bytes) -> tuple[bytes, dict[bytes, bytes]]:
    """The body with its long strings replaced by their addresses, and those strings by address."""
    if len(body) < BLOB_FROM or b'"$blob"' in body:
        return body, {}
    moved: dict[bytes, bytes] = {}

    def visit(value: Any) -> Any:
        if isinstance(value, str) and len(value) >= BLOB_FROM:
            data = value.encode("utf-8", "surrogatepass")
            if len(data) > MAX_STRING:
                raise TooLarge("a text", len(data), MAX_STRING)
            moved[digest := content_address(data)] = data
            return {_MOVED: digest.hex()}
        return _each(value, visit)

    shrunk = visit(json.loads(body.decode("utf-8", "surrogatepass")))
    return (json_text(shrunk).encode("utf-8", "surrogatepass"), moved) if moved else (body, {})


def restore_blobs(body: bytes, fetch: Callable[[bytes], bytes]) -> bytes:
    """The inverse of `extract_blobs`."""

    def visit(value: Any) -> Any:
        if isinstance(value, dict) and len(value) == 1 and isinstance(value.get(_MOVED), str):
            return fetch(bytes.fromhex(value[_MOVED])).decode("utf-8", "surrogatepass")
        return _each(value, visit)

    whole = visit(json.loads(body.decode("utf-8", "surrogatepass")))
    return json_text(whole).encode("utf-8", "surrogatepass")


def _each(value: Any, visit: Callable[[Any], Any]) -> Any:
    if isinstance(value, dict):
        return {key: visit(item) for key, item in value.items()}
    if isinstance(value, list):
        return [visit(item) for item in value]
    return value


def _compressor(dictionary: zstandard.ZstdCompressionDict | None) -> zstandard.ZstdCompressor:
    parameters = zstandard.ZstdCompressionParameters.from_level(
        1,  # between two appends its tables go cold: level 3 takes a third longer for 2 % less
        format=zstandard.FORMAT_ZSTD1_MAGICLESS,
        write_content_size=True,
        write_dict_id=False,
    )
    if dictionary is None:
        return zstandard.ZstdCompressor(compression_params=parameters)
    dictionary.precompute_compress(compression_params=parameters)
    return zstandard.ZstdCompressor(dict_data=dictionary, compression_params=parameters)


def _decompressor(dictionary: zstandard.ZstdCompressionDict | None) -> zstandard.ZstdDecompressor:
    return zstandard.ZstdDecompressor(dict_data=dictionary, format=zstandard.FORMAT_ZSTD1_MAGICLESS)

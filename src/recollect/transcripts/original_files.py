"""The original bytes of imported files, stored unchanged.

A `Source` holds the bytes from its `offset` on; those before it are the beginning of an earlier
source of the same session, which it names. So a file that has grown costs only its new bytes, and
`load_original` returns every version that was ever imported.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable

from recollect.entries import Entry, Source, json_text
from recollect.errors import Damaged
from recollect.store.contract import Store
from recollect.store.ids import derived_id
from recollect.transcripts.transcript import Transcript

CHUNK_BYTES = 1024 * 1024
_WORTH_SHARING = 4_096  # bytes; fewer are simply stored again
_CONTINUES = "continues"


def source_id(transcript: Transcript, data: bytes) -> str:
    digest = hashlib.blake2b(data, digest_size=32).hexdigest()
    return derived_id(transcript.format, transcript.session, "source", digest)


async def load_original(store: Store, source: Entry, tree: Iterable[Entry]) -> bytes:
    """The whole file of a source entry of this tree."""
    sources = {entry.id: entry.body for entry in tree if isinstance(entry.body, Source)}
    pieces: list[bytes] = []
    at, until = source.id, None
    for _ in range(len(sources)):
        body = sources.get(at)
        if body is None:
            break
        own = b"".join([await store.blob(digest) for digest in body.blobs])
        pieces.append(own if until is None else own[: max(0, until - body.offset)])
        until = body.offset if until is None else min(until, body.offset)
        if body.offset == 0:
            return b"".join(reversed(pieces))
        at = _continued_source(body)
    raise Damaged(f"the source {source.id} continues one that is missing", [source.id])


def _continued_source(body: Source) -> str:
    about = json.loads(body.extra).get(body.format) if body.extra else None
    found = about.get(_CONTINUES) if isinstance(about, dict) else None
    return found if isinstance(found, str) else ""


async def store_original(
    store: Store,
    transcript: Transcript,
    data: bytes,
    name: str,
    tree: Iterable[Entry],
    progress: Callable[[int], None],
) -> Source:
    """Store the bytes, without those that an earlier source has; the entry that names them."""
    newest = next((e for e in reversed(tuple(tree)) if isinstance(e.body, Source)), None)
    shared = 0
    if newest is not None:
        shared = _common_prefix(await load_original(store, newest, tree), data)
    offset = shared if shared >= _WORTH_SHARING else 0
    blobs = []
    for start in range(offset, len(data), CHUNK_BYTES):
        blobs.append(await store.put(data[start : start + CHUNK_BYTES]))
        progress(min(len(data), start + CHUNK_BYTES))
    extra = json.loads(transcript.header) if transcript.header else {transcript.format: {}}
    if offset and newest is not None:
        extra[transcript.format] |= {_CONTINUES: newest.id}
    return Source(
        format=transcript.format,
        name=name,
        size=len(data) - offset,
        offset=offset,
        blobs=tuple(blobs),
        extra=json_text(extra),
    )


def _common_prefix(a: bytes, b: bytes) -> int:
    """The number of equal bytes at the beginning."""
    low, high = 0, min(len(a), len(b))
    if a[:high] == b[:high]:
        return high
    while high - low > 1:
        middle = (low + high) // 2
        if a[low:middle] == b[low:middle]:
            low = middle
        else:
            high = middle
    return low

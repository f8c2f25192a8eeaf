"""The original bytes of imported files, stored unchanged.

A `Source` holds the bytes from its `offset` on; those before it are the beginning of an earlier
source of the same session, which it names. So a file that has grown costs only its new bytes, and
`load_original` returns every version that was ever imported.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence

from recollect.entries import Entry, Source, json_text
from recollect.errors import Damaged
from recollect.store.contract import Store
from recollect.store.ids import derived_id
from recollect.text import common_length
from recollect.transcripts.json_values import object_or_empty, string_or_empty
from recollect.transcripts.record_format import get_tag
from recollect.transcripts.transcript import TranscriptFile

CHUNK_BYTES = 1024 * 1024
_WORTH_SHARING = 4_096  # bytes; fewer are simply stored again
_CONTINUES = "continues"


def original_session_id(source: Source) -> str:
    """The id that the session had in the file; empty if it had none."""
    tag = get_tag(source.format, source)
    header = object_or_empty(tag.get("header")) or tag
    given = (string_or_empty(header.get(field)) for field in ("sessionId", "session_id"))
    id_, agent = next(filter(None, given), ""), string_or_empty(tag.get("agentId"))
    return f"{id_}/{agent}" if id_ and agent else id_


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
        at = string_or_empty(get_tag(body.format, body).get(_CONTINUES))
    raise Damaged(f"the source {source.id} continues one that is missing", [source.id])


async def store_original(
    store: Store, file: TranscriptFile, tree: Sequence[Entry], progress: Callable[[int], None]
) -> Entry | None:
    """Store the bytes, without those that an earlier source of the session has; an entry without
    a parent that names them. None if there are no bytes, or the session has an entry for them."""
    transcript, name, data = file
    if data is None:
        return None
    digest = hashlib.blake2b(data, digest_size=32).hexdigest()
    id_ = derived_id(transcript.format, transcript.session, "source", digest)
    if any(entry.id == id_ for entry in tree):
        return None
    newest = next((e for e in reversed(tree) if isinstance(e.body, Source)), None)
    earlier = b"" if newest is None else await load_original(store, newest, tree)
    shared = common_length(earlier, data)
    offset = shared if shared >= _WORTH_SHARING else 0
    blobs = []
    for start in range(offset, len(data), CHUNK_BYTES):
        blobs.append(await store.put(data[start : start + CHUNK_BYTES]))
        progress(min(len(data), start + CHUNK_BYTES))
    extra = json.loads(transcript.header) if transcript.header else {transcript.format: {}}
    if offset and newest is not None:
        extra[transcript.format] |= {_CONTINUES: newest.id}
    source = Source(
        format=transcript.format,
        name=name,
        size=len(data) - offset,
        offset=offset,
        blobs=tuple(blobs),
        extra=json_text(extra),
    )
    return Entry(id_, None, transcript.updated, source)

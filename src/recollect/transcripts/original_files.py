"""The original bytes of imported files, stored unchanged.

A `Source` holds the bytes from its `offset` on; those before it are the beginning of an earlier
source of the same session, which it names. So a file that has grown costs only its new bytes, and
`original_pieces` returns every version that was ever imported.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterable, Sequence

from recollect.entries import Entry, Source, json_text
from recollect.errors import Damaged
from recollect.store.contract import Store
from recollect.store.ids import derived_id
from recollect.text import common_length
from recollect.transcripts.json_values import object_or_empty, string_or_empty
from recollect.transcripts.record_format import get_tag
from recollect.transcripts.source_file import CHUNK_BYTES, SourceFile
from recollect.transcripts.transcript import Transcript, TranscriptFile

_WORTH_SHARING = 4_096  # bytes; fewer are simply stored again
_CONTINUES = "continues"


def original_session_id(source: Source) -> str:
    """The id that the session had in the file; empty if it had none."""
    tag = get_tag(source.format, source)
    header = object_or_empty(tag.get("header")) or tag
    given = (string_or_empty(header.get(field)) for field in ("sessionId", "session_id"))
    id_, agent = next(filter(None, given), ""), string_or_empty(tag.get("agentId"))
    return f"{id_}/{agent}" if id_ and agent else id_


async def original_pieces(
    store: Store, source: Entry, tree: Iterable[Entry]
) -> AsyncIterator[bytes]:
    """The file of a source entry of this tree, from its beginning."""
    for body, length in reversed(_chain(source, tree)):
        left = length
        for digest in body.blobs if length else ():
            piece = await store.blob(digest)
            yield piece[:left]
            left -= len(piece)
            if left <= 0:
                break


def _chain(source: Entry, tree: Iterable[Entry]) -> list[tuple[Source, int]]:
    """The sources that a file is in, the newest first, and how many bytes of each belong to it."""
    sources = {entry.id: entry.body for entry in tree if isinstance(entry.body, Source)}
    chain: list[tuple[Source, int]] = []
    at, until = source.id, None
    for _ in range(len(sources)):
        body = sources.get(at)
        if body is None:
            break
        end = body.offset + body.size
        until = end if until is None else min(until, end)
        chain.append((body, max(0, until - body.offset)))
        until = min(until, body.offset)
        if body.offset == 0:
            return chain
        at = string_or_empty(get_tag(body.format, body).get(_CONTINUES))
    raise Damaged(f"the source {source.id} continues one that is missing", [source.id])


async def derive_source_id(transcript: Transcript, original: SourceFile) -> str:
    """The id of the entry that names the bytes of a file."""
    digest = await asyncio.to_thread(original.digest)
    return derived_id(transcript.format, transcript.session, "source", digest)


async def store_original(
    store: Store, file: TranscriptFile, tree: Sequence[Entry], progress: Callable[[int], None]
) -> Entry | None:
    """Store the bytes, without those that an earlier source of the session has; an entry without
    a parent that names them. None if there are no bytes, or the session has an entry for them."""
    transcript, name, original = file
    if original is None:
        return None
    id_ = await derive_source_id(transcript, original)
    if any(entry.id == id_ for entry in tree):
        return None
    newest = next((e for e in reversed(tree) if isinstance(e.body, Source)), None)
    shared = 0 if newest is None else await _shared_bytes(store, original, newest, tree)
    offset = shared if shared >= _WORTH_SHARING else 0
    blobs = []
    for number, piece in enumerate(original.chunks(offset), 1):
        blobs.append(await store.put(piece))
        progress(min(original.size, offset + number * CHUNK_BYTES))
    extra = json.loads(transcript.header) if transcript.header else {transcript.format: {}}
    if offset and newest is not None:
        extra[transcript.format] |= {_CONTINUES: newest.id}
    source = Source(
        format=transcript.format,
        name=name,
        size=original.size - offset,
        offset=offset,
        blobs=tuple(blobs),
        extra=json_text(extra),
    )
    return Entry(id_, None, transcript.updated, source)


async def _shared_bytes(
    store: Store, original: SourceFile, newest: Entry, tree: Sequence[Entry]
) -> int:
    """How many bytes the file has in common with what the session has of it."""
    shared = 0
    async for piece in original_pieces(store, newest, tree):
        same = common_length(piece, original.read(shared, len(piece)))
        shared += same
        if same < len(piece):
            break
    return shared

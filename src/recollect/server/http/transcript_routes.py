"""Search, import and export over HTTP, and files that are offered for one download."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from urllib.parse import quote

from starlette.responses import Response

from recollect.entries import entry_to_json
from recollect.redaction import redact_json
from recollect.server.http.api_call import ApiCall, ApiReply, FileBytes, NoBody, NoQuery
from recollect.server.http.api_values import (
    ExportQuery,
    FoundHit,
    FoundPage,
    ImportQuery,
    SearchParameters,
)
from recollect.store.contract import SearchHit, SearchQuery
from recollect.transcripts.import_result import ImportResult
from recollect.transcripts.session_export import export_session


class FileReply(Response):
    """A file, as an attachment."""

    def __init__(self, name: str, data: bytes, media_type: str) -> None:
        shown = f"attachment; filename*=UTF-8''{quote(name, safe='')}"
        super().__init__(data, headers={"content-disposition": shown}, media_type=media_type)


async def search_entries(call: ApiCall[SearchParameters, NoBody]) -> ApiReply[FoundPage]:
    """Find entries by their words; those that have all of them come first."""
    given, store = call.query, call.hub.store
    session = (await call.hub.find(call.who, given.session)).id if given.session else None
    found = await store.rank(
        SearchQuery(
            words=given.q,
            session=session,
            role=given.role or None,
            tool=given.tool or None,
            after=given.after,
            before=given.before,
            limit=given.limit,
            owner=call.who.owner,
        )
    )
    hits = tuple(map(_hit_document, found.hits))
    return ApiReply(FoundPage(hits=hits, nowhere=found.nowhere, more=found.more))


def _hit_document(hit: SearchHit) -> FoundHit:
    return FoundHit(
        session=hit.session,
        entry=entry_to_json(hit.entry),
        snippet=hit.snippet,
        marks=hit.marks,
        missing=hit.missing,
        beside=tuple(map(entry_to_json, hit.beside)),
        alike=hit.alike,
    )


async def import_transcript(call: ApiCall[ImportQuery, FileBytes]) -> ApiReply[ImportResult]:
    """Import another program's session file, whose bytes are the body; again adds only news."""
    call.hub.check_new_session(call.who)
    with tempfile.TemporaryDirectory(prefix="recollect-import-") as folder:
        path = Path(folder) / _safe_name(call.query.name)
        with path.open("wb") as file:
            async for chunk in call.request.stream():
                await asyncio.to_thread(file.write, chunk)
        result = await call.hub.runtime.import_file(path, owner=call.who.name)
    location = f"/api/sessions/{result.session}"
    return ApiReply(result, 201 if result.added else 200, location=location)


def _safe_name(given: str) -> str:
    """What a client calls its file, as a name in a folder of ours."""
    last = given.replace("\\", "/").rpartition("/")[2]
    plain = "".join(c if c.isascii() and (c.isalnum() or c in "._-") else "_" for c in last)
    return plain.lstrip(".")[-100:] or "upload.json"


async def export_transcript(call: ApiCall[ExportQuery, NoBody]) -> FileReply:
    """Export a session as another program's file."""
    info = await call.session()
    name, data = await export_session(call.hub.store, info.id, call.query.format)
    if call.query.redact:
        data = await asyncio.to_thread(redact_json, data)
    return FileReply(name, data, "application/json")


async def download_file(call: ApiCall[NoQuery, NoBody]) -> FileReply:
    """Fetch a file that was offered; its token works once."""
    offered = call.state.downloads.take(call.path("token"))
    return FileReply(offered.filename, offered.data, "application/octet-stream")

"""Gemini CLI's session files: one JSON object or JSON lines, read; one object, written.

In JSON lines, messages that a `$rewindTo` or a checkpoint (`$set` of messages) abandoned become a
branch. `message_records` has the messages themselves. The entries of a large file are not in
memory: `SessionEntries` makes them when they are needed.
"""

from __future__ import annotations

import msgspec

from recollect.store.contract import SessionInfo
from recollect.transcripts.gemini_cli.message_entries import MessageEntries
from recollect.transcripts.gemini_cli.message_index import MessageIndex
from recollect.transcripts.gemini_cli.message_records import RECORD_FORMAT
from recollect.transcripts.gemini_cli.message_tree import (
    MessageLoader,
    MessageTree,
    count_entries,
)
from recollect.transcripts.gemini_cli.project_folder import hash_path
from recollect.transcripts.json_values import Json, string_or_empty
from recollect.transcripts.record_source import MemoryRecords, RecordSource
from recollect.transcripts.run_order import NO_PARENT
from recollect.transcripts.session_entries import SessionEntries
from recollect.transcripts.session_file_format import SessionFileFormat, safe_file_name
from recollect.transcripts.timestamps import format_zulu, to_datetime
from recollect.transcripts.transcript import Transcript, report_non_objects


def detect(value: Json) -> bool:
    if "$set" in value or "$rewindTo" in value:
        return True
    ids = [field in value for field in ("sessionId", "projectHash")]
    return any(ids) if isinstance(value.get("messages"), list) else all(ids)


def read(records: RecordSource) -> Transcript:
    index = MessageIndex()
    for number, (line, value) in enumerate(records):
        if number == 0 and isinstance(value.get("messages"), list):
            return read_object(value)
        index.add(number, line, value)
    return _read(records, index)


def read_object(value: Json) -> Transcript:
    index = MessageIndex()
    index.change(0, value, by_id=False)
    index.problems += report_non_objects(value["messages"])
    return _read(MemoryRecords([(1, value)]), index)


def _read(records: RecordSource, index: MessageIndex) -> Transcript:
    index.finish()
    is_alone = index.names_calls and not index.is_ours
    found = _stream(records, index) if is_alone else _load(records, index)
    return msgspec.structs.replace(
        found,
        heading=string_or_empty(index.header.get("summary")),
        folder_hash=string_or_empty(index.header.get("projectHash")),
        problems=tuple(index.problems),
    )


def _stream(records: RecordSource, index: MessageIndex) -> Transcript:
    """What each message becomes follows from itself and from the one before it."""
    loader, tree = MessageLoader(records, index), MessageTree(index, records)
    found = FILE_FORMAT.describe(index.header, loader.load(0) if len(index) else index.header)
    entries = SessionEntries(
        tree,
        found.created,
        lambda: MessageEntries(tree, MessageLoader(records, index), found.session, found.created),
        lambda: count_entries(tree, found.created),
    )
    streamed = msgspec.structs.replace(found, stream=entries)
    return streamed if records.is_streamed else streamed.with_entries()


def _load(records: RecordSource, index: MessageIndex) -> Transcript:
    """Marks of ours, and results that do not name their tool, refer to messages before them."""
    records.refuse_large(index.records)
    loader = MessageLoader(records, index)
    parents = [None if above == NO_PARENT else above for above in index.parents]
    last = None if index.last == NO_PARENT else index.last
    values = list(map(loader.load, range(len(index))))
    return FILE_FORMAT.read(index.header, values, (parents, last), index.answered)


def file_names(session_id: str, start: int) -> list[str]:
    """`session-<YYYY-MM-DDTHH-MM>-<id8>.json`, then with more and more of the id, because eight
    characters and a minute collide."""
    minute = to_datetime(start).isoformat()[:16].replace(":", "-")
    name = safe_file_name(session_id)
    lengths = sorted({min(8, len(name)), *range(12, len(name), 4), len(name)})
    return [f"session-{minute}-{name[:length]}.json" for length in lengths]


def _project_hash(session: SessionInfo) -> Json:
    """Gemini CLI identifies a project by a hash of its folder's path."""
    return {"projectHash": hash_path(session.project or "")}


FILE_FORMAT = SessionFileFormat(
    records=RECORD_FORMAT,
    id_field="sessionId",
    start_field="startTime",
    update_field="lastUpdated",
    format_time=format_zulu,
    file_names=file_names,
    more_fields=_project_hash,
)

"""Gemini CLI's session files: one JSON object or JSON lines, read; one object, written.

In JSON lines, messages that a `$rewindTo` or a checkpoint (`$set` of messages) abandoned become a
branch. `message_records` has the messages themselves.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from recollect.entries import ToolResult
from recollect.store.contract import SessionInfo
from recollect.transcripts.gemini_cli.message_records import RECORD_FORMAT, parse_parts
from recollect.transcripts.gemini_cli.project_folder import hash_path
from recollect.transcripts.json_values import Json, objects_in, string_or_empty
from recollect.transcripts.record_source import RecordSource
from recollect.transcripts.session_file_format import SessionFileFormat, safe_file_name
from recollect.transcripts.timestamps import format_zulu, to_datetime
from recollect.transcripts.transcript import ImportProblem, Transcript, report_non_objects


def detect(value: Json) -> bool:
    if "$set" in value or "$rewindTo" in value:
        return True
    ids = [field in value for field in ("sessionId", "projectHash")]
    return any(ids) if isinstance(value.get("messages"), list) else all(ids)


def read(records: RecordSource) -> Transcript:
    found = records.load_all()
    first = found[0][1]
    return read_object(first) if isinstance(first.get("messages"), list) else read_lines(found)


def read_object(value: Json) -> Transcript:
    session = _SessionLines()
    session.change(value, by_id=False)
    return session.transcript(report_non_objects(value["messages"]))


def read_lines(records: Iterable[tuple[int, Json]]) -> Transcript:
    """JSON lines: header, messages, `$set`, `$rewindTo`."""
    session, problems = _SessionLines(), []
    for number, record in records:
        if "$rewindTo" in record:
            session.rewind(record["$rewindTo"])
        elif isinstance(record.get("$set"), dict):
            session.change(record["$set"])
        elif "type" in record and "id" in record:
            session.add(record)
        elif "sessionId" in record or "projectHash" in record:
            session.change(record)
        else:
            reason = "a record of an unknown kind; stored with the source only"
            problems.append(ImportProblem(number, reason))
    return session.transcript(problems)


class _SessionLines:
    """The session so far, while a file is read. Messages are known by their number."""

    def __init__(self) -> None:
        self._header: Json = {}
        self._records: list[Json] = []  # as they were last written
        self._parents: list[int | None] = []  # the message that each of them first followed
        self._current: dict[str, int] = {}  # by id, in order: not rewound, not replaced
        self._last: int | None = None

    def add(self, record: Json, *, by_id: bool = True) -> None:
        """`by_id`: a message with the id of a current one is a later state of it."""
        id_ = record.get("id")
        if by_id and isinstance(id_, str) and id_ in self._current:
            self._records[self._current[id_]] = record
            return
        self._parents.append(self._last)
        self._last = len(self._records)
        self._records.append(record)
        if isinstance(id_, str):
            self._current[id_] = self._last

    def rewind(self, id_: object) -> None:
        """Take back that message and what came after; everything, if there is no such message."""
        known = self._current.get(id_) if isinstance(id_, str) else None
        self._last = None if known is None else self._parents[known]
        while self._current:
            if self._current.popitem()[0] == id_:
                break

    def change(self, fields: Json, *, by_id: bool = True) -> None:
        self._header |= {key: item for key, item in fields.items() if key != "messages"}
        if isinstance(fields.get("messages"), list):
            self._current, self._last = {}, None
            for record in objects_in(fields["messages"]):
                self.add(record, by_id=by_id)

    def transcript(self, problems: Iterable[ImportProblem]) -> Transcript:
        # calls whose results are in a user's record of their own, as providers see them
        answered = frozenset(
            part.call_id
            for record in self._records
            if record.get("type") == "user"
            for part in parse_parts(record.get("content"))
            if isinstance(part, ToolResult)
        )
        order = (self._parents, self._last)
        transcript = FILE_FORMAT.read(self._header, self._records, order, answered)
        return msgspec.structs.replace(
            transcript,
            heading=string_or_empty(self._header.get("summary")),
            folder_hash=string_or_empty(self._header.get("projectHash")),
            problems=tuple(problems),
        )


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

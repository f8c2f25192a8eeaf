"""Files that hold a session as a header and a list of records, read and written.

`record_conversion` makes the records exact. The header of an exported file is the
one that the session was imported with, or a new one. Two sessions may share a short file name, so a
file has several possible names.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

import msgspec

from recollect.entries import Entry, Source, json_text
from recollect.store.contract import SessionInfo
from recollect.store.ids import is_id
from recollect.transcripts.json_values import Json, object_or_empty, string_or_empty
from recollect.transcripts.record_conversion import RecordReader, compose_file
from recollect.transcripts.record_format import MARK_FIELD, RecordFormat, get_tag
from recollect.transcripts.timestamps import parse_time
from recollect.transcripts.transcript import Transcript, derive_session_id

_NAME_CHARACTERS = 120
_SURROGATE = re.compile("[\ud800-\udfff]")
_UNSAFE = re.compile(r"[^A-Za-z0-9_-]")


class ComposedFile(NamedTuple):
    id_in_file: str
    names: Sequence[str]  # possible file names, the preferred one first
    data: bytes


class SessionFileFormat(msgspec.Struct, frozen=True, kw_only=True):
    """What a format's files look like around their records."""

    records: RecordFormat
    id_field: str
    start_field: str
    update_field: str
    format_time: Callable[[int], str]
    file_names: Callable[[str, int], Sequence[str]]  # from the id in the file and the start
    more_fields: Callable[[SessionInfo], Json] = lambda _: {}  # of a new header

    def read(
        self,
        header: Json,
        records: Sequence[Json],
        order: tuple[Sequence[int | None], int | None] | None = None,
        answered: frozenset[str] = frozenset(),
    ) -> Transcript:
        """`order`: the number of each record's parent, and of the record where the session is;
        without it each follows the one before. `answered`: calls whose results have a record of
        their own."""
        format_ = self.records.name
        is_own = self._is_own(header, records)
        session = str(header[self.id_field]) if is_own else ""
        empty = self.describe(header, records[0] if records else header, session)
        reader = RecordReader(self.records, empty.session, empty.created, answered)
        mark, entries = object_or_empty(header.get(MARK_FIELD)), list[Entry]()
        if before := reader.read_before(mark.get("before")):
            entries += before
            header = header | {MARK_FIELD: {key: mark[key] for key in mark if key != "before"}}
        leaf = entries[-1] if entries else None
        ends: dict[int | None, Entry | None] = {None: leaf}
        for number, record in enumerate(records):
            found = reader.read(record, ends[order[0][number]] if order else leaf)
            entries += found
            ends[number] = leaf = found[-1]
        leaf = ends[order[1]] if order else leaf
        return msgspec.structs.replace(
            empty,
            # paths that begin alike share entries
            entries=tuple({entry.id: entry for entry in entries}.values()),
            leaf=leaf.id if leaf else None,
            title=string_or_empty(mark.get("title")),
            header=json_text({format_: {"header": header}}),
            is_own=is_own,
        )

    def describe(self, header: Json, first: Json, session: str = "") -> Transcript:
        """What a header says of a session, whose id is derived from it and the first record if it
        is not given."""
        format_ = self.records.name
        return Transcript(
            format=format_,
            session=session or derive_session_id(format_, header.get(self.id_field), first),
            created=parse_time(header.get(self.start_field)) or 0,
            entries=(),
            leaf=None,
            header=json_text({format_: {"header": header}}),
        )

    def _is_own(self, header: Json, records: Sequence[Json]) -> bool:
        """Whether this is an export of a session of ours: it has our id, and our marks."""
        marks = (self.records.get_mark(record) for record in records)
        marked = MARK_FIELD in header or any(isinstance(m, dict) and "id" in m for m in marks)
        return marked and is_id(header.get(self.id_field))

    def compose(self, session: SessionInfo, path: Sequence[Entry]) -> ComposedFile:
        """The file of a session whose path to its head is `path`."""
        header = self.build_header(session, path)
        given, start = header.get(self.id_field), parse_time(header.get(self.start_field))
        id_in_file = given if isinstance(given, str) else session.id
        names = self.file_names(id_in_file, session.created if start is None else start)
        data = encode_json(compose_file(self.records, header, path))
        return ComposedFile(id_in_file, names, data)

    def build_header(self, session: SessionInfo, path: Sequence[Entry]) -> Json:
        format_ = self.records.name
        last = next((e for e in reversed(path) if not isinstance(e.body, Source)), None)
        updated = self.format_time(session.created if last is None else last.time)
        for entry in reversed(path):
            imported = get_tag(format_, entry.body).get("header")
            if isinstance(entry.body, Source) and isinstance(imported, dict):
                continued_here = last is not None and not get_tag(format_, last.body)
                return imported | ({self.update_field: updated} if continued_here else {})
        mark = {MARK_FIELD: {"title": session.title}} if session.title else {}
        return {
            self.id_field: session.id,
            **self.more_fields(session),
            self.start_field: self.format_time(session.created),
            self.update_field: updated,
            **mark,
        }


def encode_json(value: Json) -> bytes:
    """Valid UTF-8. A lone surrogate is written as an escape and reads back as itself; only a high
    and a low one side by side read back as the character that they encode together."""
    text = json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False) + "\n"
    return _SURROGATE.sub(lambda found: f"\\u{ord(found[0]):04x}", text).encode()


def safe_file_name(id_in_file: str) -> str:
    """Another program's id may hold anything, even `../`. When characters had to be replaced, a
    hash keeps the names of different ids apart."""
    safe = _UNSAFE.sub("_", id_in_file)[:_NAME_CHARACTERS]
    if safe == id_in_file and safe:
        return safe
    data = id_in_file.encode("utf-8", "surrogatepass")
    return f"{safe}-{hashlib.blake2b(data, digest_size=6).hexdigest()}"

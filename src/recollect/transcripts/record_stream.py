"""The records of a large file, without having its text in memory.

A small file is parsed whole by `tolerant_json`. Of a large one, JSON lines are read one by one; a
line beyond `LINE_LIMIT` is reported and skipped. A large file that is one object is read message by
message, each within the same limit. Both find what `parse_records` finds in the same bytes, unless
the object is damaged: then what follows the damage is left out.
"""

from __future__ import annotations

import codecs
from collections.abc import Collection

from recollect.text import format_size
from recollect.transcripts.json_values import Json
from recollect.transcripts.record_source import (
    RECORDS_LIMIT,
    LineRecords,
    MemoryRecords,
    RecordSource,
    too_large,
)
from recollect.transcripts.source_file import SourceFile
from recollect.transcripts.tolerant_json import (
    HEADER_LIMIT,
    MESSAGES_FIELD,
    RecordFinder,
    parse_records,
)

LINE_LIMIT = 64_000_000  # bytes
WHOLE_LIMIT = 4_000_000  # bytes; a smaller file is parsed at once
_BLANK = " \t\r\n\0\ufeff,"


def open_records(
    file: SourceFile,
    record_keys: Collection[frozenset[str]],
    *,
    whole: int = WHOLE_LIMIT,
    limit: int = LINE_LIMIT,
) -> RecordSource:
    """Objects with their lines, and what could not be read; see `parse_records`."""
    if file.size <= whole:
        return MemoryRecords(*parse_records(file.read(0, file.size), record_keys))
    finder = RecordFinder("", [], record_keys, size=file.size)
    start = file.read(0, HEADER_LIMIT).decode("utf-8", "replace")
    found = MESSAGES_FIELD.search(start)
    header = finder.read_header(start, found.start()) if found else None
    if found and header is not None:
        if file.size > RECORDS_LIMIT:
            raise too_large(file)
        at = len(start[: found.end()].encode("utf-8", "surrogatepass"))
        document = _DocumentReader(file, at, finder, limit).read(header)
        return MemoryRecords([(1, document)], finder.problems())
    return LineRecords(file, record_keys, limit)


class _DocumentReader:
    """Reads the list of messages of one large object through a window of its text."""

    def __init__(self, file: SourceFile, at: int, finder: RecordFinder, limit: int) -> None:
        self._chunks = file.chunks(at)
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self._finder, self._limit = finder, limit
        self._text, self._at, self._ended = "", 0, False

    def read(self, header: Json) -> Json:
        messages: list[object] = []
        while self._next_character() not in ("]", ""):
            message = self._read_value(len(messages) + 1)
            if message is None:
                return {**header, "messages": messages}
            messages += message
        if self._next_character() == "":
            self._finder.report(1, "the object is cut; its end is missing")
            return {**header, "messages": messages}
        return {**header, **self._read_tail(), "messages": messages}

    def _next_character(self) -> str:
        while True:
            while self._at < len(self._text):
                if self._text[self._at] not in _BLANK:
                    return self._text[self._at]
                self._at += 1
            if not self._fill():
                return ""

    def _read_value(self, number: int) -> list[object] | None:
        """The next value, none if it is left out; None if nothing after it can be read."""
        while True:
            found = self._finder.read_value(self._text, self._at, f"message {number}")
            # at the end of the window, a number or a word may go on
            if found is not None and (found[1] < len(self._text) or self._ended):
                self._at = found[1]
                return found[0]
            too_long = len(self._text) - self._at > self._limit
            if too_long or not self._fill():
                what = f"is longer than {format_size(self._limit)}" if too_long else "is damaged"
                self._finder.report(1, f"message {number} {what}; it and the rest were left out")
                return None

    def _read_tail(self) -> Json:
        self._at += 1
        while len(self._text) - self._at <= self._limit and self._fill():
            pass
        rest = self._text[self._at :].lstrip(_BLANK)
        found = self._finder.read_value("{" + rest, 0, "what follows the messages")
        tail = found[0][0] if found and found[0] else None
        if not isinstance(tail, dict):
            self._finder.report(1, "what follows the messages is damaged; it was left out")
            return {}
        return tail

    def _fill(self) -> bool:
        """Read on; as much again as there is, so that a long value is not tried too often."""
        self._text = self._text[self._at :]
        self._at, wanted = 0, max(1, len(self._text))
        pieces, count = [self._text], 0
        while count < wanted and not self._ended:
            chunk = next(self._chunks, None)
            piece = self._decode(chunk or b"", chunk is None)
            self._ended = chunk is None
            pieces.append(piece)
            count += len(piece)
        self._text = "".join(pieces)
        return count > 0

"""The records of a file, found once and then read again one by one.

The first iteration finds them and reports what cannot be read; after that `load` returns any of
them by its number. Of a large file only the place of each record is in memory: a line that is one
object is parsed again, and objects that were found in a damaged or glued line wait in a temporary
file without a name.
"""

from __future__ import annotations

import marshal
import tempfile
import weakref
from array import array
from collections.abc import Collection, Iterable, Iterator
from typing import Protocol

from recollect.errors import CannotImport
from recollect.text import format_size
from recollect.transcripts.json_values import Json
from recollect.transcripts.source_file import SourceFile
from recollect.transcripts.tolerant_json import RecordFinder, parse_again, parse_plain_line
from recollect.transcripts.transcript import ImportProblem

# bytes of records that have to be in memory at once, where they take two to five times as much
RECORDS_LIMIT = 500_000_000
_WINDOW_BYTES = 256 * 1024  # read at once where records are read one after the other
_SPOOL_BYTES = 4_000_000  # of objects in damaged lines, before they go to a temporary file


class RecordSource(Protocol):
    is_streamed: bool  # whether the records are not in memory

    def __iter__(self) -> Iterator[tuple[int, Json]]:
        """Each record with its line; once."""
        ...

    def __len__(self) -> int:
        """How many records the iteration has found."""
        ...

    def line(self, number: int) -> int: ...

    def size(self, number: int) -> int:
        """Its bytes in the file, roughly; 0 for what is in memory anyway."""
        ...

    def load(self, number: int) -> Json: ...

    def load_all(self) -> list[tuple[int, Json]]:
        """In place of the iteration: each record with its line."""
        ...

    def refuse_large(self, numbers: Iterable[int]) -> None:
        """Raise if these records are too large to have all of them in memory."""
        ...

    def problems(self) -> tuple[ImportProblem, ...]:
        """What the iteration could not read."""
        ...


class MemoryRecords:
    is_streamed = False

    def __init__(
        self, found: Iterable[tuple[int, Json]], problems: tuple[ImportProblem, ...] = ()
    ) -> None:
        self._found, self._problems = list(found), problems

    def __iter__(self) -> Iterator[tuple[int, Json]]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)

    def line(self, number: int) -> int:
        return self._found[number][0]

    def size(self, number: int) -> int:  # noqa: ARG002 - all of them are held
        return 0

    def load(self, number: int) -> Json:
        return self._found[number][1]

    def load_all(self) -> list[tuple[int, Json]]:
        return self._found

    def refuse_large(self, numbers: Iterable[int]) -> None:
        """They are in memory."""

    def problems(self) -> tuple[ImportProblem, ...]:
        return self._problems


class LineRecords:
    is_streamed = True

    def __init__(
        self, file: SourceFile, record_keys: Collection[frozenset[str]], limit: int
    ) -> None:
        self._file, self._limit = file, limit
        self._finder = RecordFinder("", [], record_keys, size=file.size)
        self._again = RecordFinder("", [], record_keys)
        self._lines, self._sizes = array("q"), array("q")
        self._places = array("q")  # in the file; below zero: in the spool
        self._spool = tempfile.SpooledTemporaryFile(_SPOOL_BYTES)  # noqa: SIM115 - as long as self
        weakref.finalize(self, self._spool.close)
        self._spooled = 1
        self._window, self._window_at = b"", 0

    def problems(self) -> tuple[ImportProblem, ...]:
        return self._finder.problems()

    def __iter__(self) -> Iterator[tuple[int, Json]]:
        finder, is_told = self._finder, False
        for number, at, line in self._file.lines(self._limit):
            if isinstance(line, int):
                skipped = f"the limit is {format_size(self._limit)}, so it was left out"
                finder.report(number, f"a line of {format_size(line)}; {skipped}")
                continue
            plain = parse_plain_line(line)
            if plain is not None:
                self._note(number, at, len(line))
                yield number, plain
                continue
            text, error = _decode_line(line)
            if error is not None and not is_told:
                where = f"from byte {error.start} of the line"
                finder.report(number, f"bytes that are not UTF-8, {where}; read as U+FFFD")
                is_told = True
            whole = finder.read_odd(text, number) if text else None
            if whole is not None:
                self._note(number, at, len(line))
                yield number, whole
            elif text:
                yield from self._spool_each(finder.read_pieces(text, number))

    def __len__(self) -> int:
        return len(self._places)

    def line(self, number: int) -> int:
        return self._lines[number]

    def size(self, number: int) -> int:
        return self._sizes[number]

    def load(self, number: int) -> Json:
        at, size = self._places[number], self._sizes[number]
        if at < 0:
            self._spool.seek(-at)
            value: Json = marshal.loads(self._spool.read(size))  # noqa: S302 - written by ourselves
            return value
        line = self._read(at, size)
        found = parse_again(line)
        if found is None:
            found = self._again.read_odd(_decode_line(line)[0], 1)
        if found is None:
            raise self._file.changed()
        return found

    def load_all(self) -> list[tuple[int, Json]]:
        found, kept = list[tuple[int, Json]](), 0
        for number, each in enumerate(self):
            kept += self._sizes[number]
            if kept > RECORDS_LIMIT:
                raise too_large(self._file)
            found.append(each)
        return found

    def refuse_large(self, numbers: Iterable[int]) -> None:
        if sum(map(self._sizes.__getitem__, set(numbers))) > RECORDS_LIMIT:
            raise too_large(self._file)

    def _note(self, line: int, at: int, size: int) -> None:
        self._lines.append(line)
        self._places.append(at)
        self._sizes.append(size)

    def _spool_each(self, found: Iterable[tuple[int, Json]]) -> Iterator[tuple[int, Json]]:
        for line, value in found:
            data = marshal.dumps(value)
            self._spool.seek(self._spooled)
            self._spool.write(data)
            self._note(line, -self._spooled, len(data))
            self._spooled += len(data)
            yield line, value

    def _read(self, at: int, size: int) -> bytes:
        start = at - self._window_at
        if start < 0 or start + size > len(self._window):
            is_next = 0 <= start - len(self._window) < _WINDOW_BYTES
            wanted = min(max(size, _WINDOW_BYTES), self._file.size - at) if is_next else size
            self._window, self._window_at, start = self._file.read(at, wanted), at, 0
        return self._window[start : start + size]


def _decode_line(line: bytes) -> tuple[str, UnicodeDecodeError | None]:
    try:
        return line.decode("utf-8", "surrogatepass"), None
    except UnicodeDecodeError as error:
        return line.decode("utf-8", "replace"), error


def too_large(file: SourceFile) -> CannotImport:
    why = f"it has more than {format_size(RECORDS_LIMIT)} that must be read at once; split it"
    return CannotImport(str(file.path), why)

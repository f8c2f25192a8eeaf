"""Reading JSON objects from a file that may be damaged.

`parse_records` takes any bytes and returns the JSON objects in them, each with its line, and an
`ImportProblem` for everything it could not read as it stands. Torn ends, glued records, NUL bytes,
a BOM, bad UTF-8, lone surrogates, NaN and nesting beyond `DEPTH_LIMIT` levels are problems, not
failures. The work is linear in the size of the file: the search for the next whole record after a
damaged one stops when its budget is used up.
"""

from __future__ import annotations

import json
import math
import os
import re
import stat
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any, BinaryIO

from recollect.errors import CannotImport
from recollect.transcripts.json_values import Json, too_deep
from recollect.transcripts.transcript import ImportProblem

FILE_LIMIT = 2 * 1024**3
DEPTH_LIMIT = 90  # of a record: the store takes 100 levels, and an exact copy needs some of them
DIGITS_LIMIT = 4_000  # Python itself refuses longer numbers
PROBLEM_LIMIT = 1_000  # listed; more are only counted
_READ_ONLY = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
_BLANK = " \t\r\n\0\ufeff,"
_NOT_BLANK = re.compile(f"[^{_BLANK}]")
_MESSAGES = re.compile(r'"messages"\s*:\s*\[')
_PAIR = re.compile(r'"(\w{1,40})"\s*:\s*"([^"\\\n]{0,400})"')
_HEADER_LIMIT = 65_536
_RECURSION_COST = 100_000  # in characters: the time Python needs to notice that it is too deep


def read_bytes(path: Path, limit: int = FILE_LIMIT) -> bytes:
    """The file as it was when it was opened: what a writer adds meanwhile is for the next time."""

    def read(file: BinaryIO, size: int) -> bytes:
        if size > limit:
            reason = f"it has {size:,} bytes, the limit is {limit:,}; split it"
            raise CannotImport(str(path), reason)
        return file.read(size)

    return _read_regular(path, read)


def read_start(path: Path, size: int) -> bytes:
    """The first bytes of a file."""
    return _read_regular(path, lambda file, _size: file.read(size))


def _read_regular(path: Path, read: Callable[[BinaryIO, int], bytes]) -> bytes:
    """What `read` makes of the file, opened, and its size."""
    try:
        # a pipe without a writer would block: it is opened at once, looked at, and refused
        with open(os.open(path, _READ_ONLY), "rb") as file:  # noqa: PTH123 - a descriptor
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode):
                raise CannotImport(str(path), "it is not a regular file")
            return read(file, found.st_size)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        if isinstance(error, CannotImport):
            raise
        why = error.strerror if isinstance(error, OSError) else error
        raise CannotImport(str(path), f"it cannot be read ({why or error})") from error


def parse_records(
    data: bytes, record_keys: Collection[frozenset[str]]
) -> tuple[list[tuple[int, Json]], tuple[ImportProblem, ...]]:
    """Objects with their lines; a file that is one object is one record. `record_keys`: an object
    with all keys of one of these sets is a record of its own, not a piece of a damaged one."""
    finder = _RecordFinder(*_decode_text(data), record_keys)
    return finder.records(), finder.problems()


def _decode_text(data: bytes) -> tuple[str, list[ImportProblem]]:
    try:
        return data.decode("utf-8", "surrogatepass"), []
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        reason = f"bytes that are not UTF-8, from byte {error.start}; read as U+FFFD"
        return data.decode("utf-8", "replace"), [ImportProblem(line, reason)]


class _UnreadableValue(Exception):
    """No usable JSON value begins here. `cost`: the characters read in vain; `end`: where to
    continue, if known."""

    def __init__(self, reason: str, cost: int, end: int | None = None) -> None:
        super().__init__(reason)
        self.reason, self.cost, self.end = reason, cost, end


def _lenient_decoder(odd: list[str]) -> json.JSONDecoder:
    """Numbers that JSON does not have become null, and the reason goes to `odd`."""

    def refuse(text: str) -> Any:
        odd.append(f"{text[:12]} cannot be stored as a number; read as null")

    def parse_float(text: str) -> float | None:
        return number if math.isfinite(number := float(text)) else refuse(text)

    def parse_int(text: str) -> int | None:
        return int(text) if len(text) <= DIGITS_LIMIT else refuse(text)

    # not strict: raw control characters in strings are no reason to lose a record
    return json.JSONDecoder(
        strict=False, parse_constant=refuse, parse_float=parse_float, parse_int=parse_int
    )


class _RecordFinder:
    """Finds the objects in a text, in order, and counts lines on the way."""

    def __init__(
        self, text: str, problems: list[ImportProblem], record_keys: Collection[frozenset[str]]
    ) -> None:
        self._all, self._record_keys = text, record_keys
        self._problems, self._unlisted = problems, 0
        self._odd: list[str] = []  # reasons to report, from the value that was read last
        self._json = _lenient_decoder(self._odd)
        self._budget = 8 * len(text) + 1_000_000
        self._end = len(text)  # of the list of messages in a damaged object

    def problems(self) -> tuple[ImportProblem, ...]:
        more = [ImportProblem(0, f"{self._unlisted:,} more problems")] if self._unlisted else []
        return (*self._problems, *more)

    def records(self) -> list[tuple[int, Json]]:
        start = len(self._all) - len(self._all.lstrip(_BLANK))
        try:
            value, end = self._value_at(self._all, start)
        except _UnreadableValue as unreadable:
            self._budget -= unreadable.cost
            return self._damaged(start, unreadable.reason)
        if not isinstance(value, dict) or not isinstance(value.get("messages"), list):
            return self._lines()
        self._report_odd_numbers(1)
        rest = self._all[end:].strip(_BLANK)
        if rest:
            line = self._all.count("\n", 0, end) + 1
            self._report(line, f"{len(rest):,} characters after the end of the object")
        return [(1, self._without_deep(value))]

    def _damaged(self, start: int, reason: str) -> list[tuple[int, Json]]:
        """Not one whole object: JSON lines, unless its beginning is that of a single object."""
        self._odd.clear()
        messages = _MESSAGES.search(self._all)
        header: Any = None
        if messages is not None and messages.start() < _HEADER_LIMIT:
            try:
                text = self._all[start : messages.start()] + '"messages":[]}'
                header, _ = self._value_at(text, 0)
            except _UnreadableValue:
                header = None
        if not isinstance(header, dict) and (found := self._lines()):
            return found
        if messages is None:
            return []
        self._problems.clear()
        self._report(1, f"the object is damaged or cut ({reason})")
        if not isinstance(header, dict):
            header = dict(_PAIR.findall(self._all, 0, min(messages.start(), _HEADER_LIMIT)))
        return [(1, self._salvage(header, messages.end()))]

    def _salvage(self, header: Json, at: int) -> Json:
        line = 1 + self._all.count("\n", 0, at)
        found = [value for _, value in self._values(self._all, at, line, until="]")]
        tail = dict(_PAIR.findall(self._all, self._end, self._end + _HEADER_LIMIT))
        return {**tail, **header, "messages": found}

    def _lines(self) -> list[tuple[int, Json]]:
        self._odd.clear()
        return [
            found
            for number, line in enumerate(self._all.split("\n"), 1)
            if line
            for found in self._values(line, 0, number)
        ]

    def _values(self, text: str, at: int, line: int, until: str = "") -> Iterator[tuple[int, Json]]:
        """Every object from `at` on; damage is reported and skipped."""
        counted, whole = at, True
        while True:
            found = _NOT_BLANK.search(text, at)
            at = found.start() if found else len(text)
            if not found or (whole and found[0] == until):
                self._end = at
                return
            line, counted = line + text.count("\n", counted, at), at
            try:
                value, end = self._object_at(text, at, line)
            except _UnreadableValue as unreadable:
                self._budget -= unreadable.cost
                if whole:
                    self._report(line, unreadable.reason)
                whole = False
                at = text.find("{", at + 1 if unreadable.end is None else unreadable.end)
                if at < 0 or self._budget < 0:
                    return
                continue
            if whole or any(keys <= value.keys() for keys in self._record_keys):
                yield line, value
                whole = True
            at = end

    def _object_at(self, text: str, at: int, line: int) -> tuple[Json, int]:
        value, end = self._value_at(text, at)
        self._report_odd_numbers(line)
        if not isinstance(value, dict):
            reason = f"a {type(value).__name__} where an object should be"
            raise _UnreadableValue(reason, end - at, end)
        if _brackets(text, at, end) > DEPTH_LIMIT and too_deep(value, DEPTH_LIMIT):
            raise _UnreadableValue(f"nested deeper than {DEPTH_LIMIT} levels", end - at, end)
        return value, end

    def _without_deep(self, value: Json) -> Json:
        brackets = _brackets(self._all, 0, len(self._all))
        if brackets <= DEPTH_LIMIT or not too_deep(value, DEPTH_LIMIT):
            return value
        reason = f"nested deeper than {DEPTH_LIMIT} levels; left out"
        kept = []
        for position, message in enumerate(value["messages"], 1):
            if too_deep(message, DEPTH_LIMIT):
                self._report(1, f"message {position}: {reason}")
            else:
                kept.append(message)
        rest = [(key, item) for key, item in value.items() if key != "messages"]
        header = {key: item for key, item in rest if not too_deep(item, DEPTH_LIMIT)}
        if len(header) < len(rest):
            self._report(1, reason)
        return {**header, "messages": kept}

    def _value_at(self, text: str, at: int) -> tuple[Any, int]:
        try:
            value, end = self._json.raw_decode(text, at)
        except json.JSONDecodeError as error:
            # making the error counts lines from the start of the text, which is not free
            cost = error.pos - at + error.pos // 20 + 200
            raise _UnreadableValue(f"not JSON: {error.msg.lower()}", cost) from error
        except RecursionError as error:
            reason = f"nested deeper than {DEPTH_LIMIT} levels"
            raise _UnreadableValue(reason, _RECURSION_COST) from error
        return value, end

    def _report(self, line: int, reason: str) -> None:
        if len(self._problems) < PROBLEM_LIMIT:
            self._problems.append(ImportProblem(line, reason))
        else:
            self._unlisted += 1

    def _report_odd_numbers(self, line: int) -> None:
        for reason in self._odd:
            self._report(line, reason)
        self._odd.clear()


def _brackets(text: str, start: int, end: int) -> int:
    return text.count("{", start, end) + text.count("[", start, end)

"""A foreign file, read as far as it can be read.

Whatever the bytes are, `parse` either returns the JSON objects it found, each with its line, and a
problem for each thing it could not take as it stood (line, reason); or it raises `CannotImport`.
Torn ends, glued records, NUL bytes, a BOM, bad UTF-8, lone surrogates, NaN and nesting beyond
`DEPTH_LIMIT` levels are problems, not failures. The work is linear in the size of the file: looking
for the next whole record after a damaged one stops when a budget is used up.
"""

from __future__ import annotations

import json
import math
import re
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

import msgspec

from recollect.errors import CannotImport
from recollect.transcripts.json_patch import Json

FormatName: TypeAlias = Literal["gemini", "history-server", "claude-code"]
KNOWN_FORMATS = (
    "Gemini (.json or .jsonl: sessionId, projectHash, messages), "
    "history-server (.json: session_id, messages), "
    "Claude Code (.jsonl: uuid, parentUuid, message)"
)
FILE_LIMIT = 2 * 1024**3
DEPTH_LIMIT = 90  # of a record: the store takes 100 levels, and keeping one exact needs some
DIGITS_LIMIT = 4_000  # Python itself refuses longer numbers
PROBLEM_LIMIT = 1_000
_BLANK = " \t\r\n\0\ufeff,"
_MESSAGES = re.compile(r'"messages"\s*:\s*\[')
_PAIR = re.compile(r'"(\w{1,40})"\s*:\s*"([^"\\\n]{0,400})"')
_HEADER_LIMIT = 65_536
_RECURSION_COST = 100_000  # in characters: what it takes Python to find out that it is too deep


class ImportProblem(NamedTuple):
    line: int
    reason: str


class ParsedFile(msgspec.Struct, frozen=True):
    """`records` are (line, object); a file that is one object is one record."""

    format: FormatName
    records: tuple[tuple[int, Json], ...]
    problems: tuple[ImportProblem, ...]


def read_bytes(path: Path) -> bytes:
    try:
        found = path.stat()
        if not stat.S_ISREG(found.st_mode):
            raise CannotImport(str(path), "it is not a regular file")
        if found.st_size > FILE_LIMIT:
            raise CannotImport(
                str(path), f"it has {found.st_size:,} bytes, the limit is {FILE_LIMIT:,}; split it"
            )
        with path.open("rb") as file:
            return file.read(FILE_LIMIT)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        if isinstance(error, CannotImport):
            raise
        raise CannotImport(str(path), f"it cannot be read ({error})") from error


def parse(data: bytes, name: str) -> ParsedFile:
    finder = _RecordFinder(*_text(data))
    found = finder.records()
    format_ = recognise(found)
    if format_ is None:
        why = (
            "it is empty"
            if not data.strip(b" \t\r\n\0\xef\xbb\xbf")
            else "its format is not recognised"
        )
        raise CannotImport(name, f"{why}; known are: {KNOWN_FORMATS}")
    return ParsedFile(format=format_, records=tuple(found), problems=finder.problems())


def recognise(records: list[tuple[int, Json]]) -> FormatName | None:
    for _, record in records:
        if isinstance(record.get("messages"), list) and (kind := _object_format(record)):
            return kind
        if "$set" in record or "$rewindTo" in record:
            return "gemini"
        if "sessionId" in record and "projectHash" in record:
            return "gemini"
        if _is_claude(record):
            return "claude-code"
    return None


def _object_format(value: Json) -> FormatName | None:
    if "session_id" in value or {"created_at", "updated_at"} <= value.keys():
        return "history-server"
    return "gemini" if "sessionId" in value or "projectHash" in value else None


def _is_claude(record: Json) -> bool:
    message = record.get("message")
    return (
        isinstance(record.get("uuid"), str)
        and "parentUuid" in record
        and isinstance(message, dict)
        and "content" in message
    )


def _looks_whole(value: object) -> bool:
    """A record rather than a piece of one: what may be picked up after damage."""
    if not isinstance(value, dict):
        return False
    keys = value.keys()
    return any(
        marks <= keys
        for marks in (
            {"uuid", "type"},
            {"id", "timestamp", "type"},
            {"role", "content", "timestamp"},
        )
    ) or bool({"$set", "$rewindTo"} & keys)


def _text(data: bytes) -> tuple[str, list[ImportProblem]]:
    try:
        return data.decode("utf-8", "surrogatepass"), []
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        reason = f"bytes that are not UTF-8, from byte {error.start}; read as U+FFFD"
        return data.decode("utf-8", "replace"), [ImportProblem(line, reason)]


class _UnreadableValue(Exception):
    """No JSON value begins here, or not one that can be taken; `cost` is what trying took, `end`
    is where to go on, when that is known."""

    def __init__(self, reason: str, cost: int, end: int | None = None) -> None:
        super().__init__(reason)
        self.reason, self.cost, self.end = reason, cost, end


class _LenientDecoder:
    """Python's JSON decoder, with what JSON does not have read as null and remembered."""

    def __init__(self) -> None:
        self.odd: list[str] = []
        self._json = json.JSONDecoder(
            strict=False,  # raw control characters in strings: no reason to lose a record
            parse_constant=self._refused,
            parse_float=self._float,
            parse_int=self._int,
        )

    def _refused(self, text: str) -> None:
        self.odd.append(f"{text[:12]} cannot be kept as a number; read as null")

    def _float(self, text: str) -> float | None:
        if math.isfinite(number := float(text)):
            return number
        self._refused(text)
        return None

    def _int(self, text: str) -> int | None:
        if len(text) <= DIGITS_LIMIT:
            return int(text)
        self._refused(text)
        return None

    def value_at(self, text: str, at: int) -> tuple[Any, int]:
        try:
            value, end = self._json.raw_decode(text, at)
        except json.JSONDecodeError as error:
            # making the error counts lines from the start of the text, which is not free
            cost = error.pos - at + error.pos // 20 + 200
            raise _UnreadableValue(f"not JSON: {error.msg.lower()}", cost) from error
        except RecursionError as error:
            raise _UnreadableValue(
                f"nested deeper than {DEPTH_LIMIT} levels", _RECURSION_COST
            ) from error
        return value, end


def too_deep(value: Any, limit: int = DEPTH_LIMIT) -> bool:
    level = [value]
    for _ in range(limit):
        level = [
            item
            for container in level
            for item in (container.values() if isinstance(container, dict) else container)
            if isinstance(item, dict | list)
        ]
        if not level:
            return False
    return True


class _RecordFinder:
    """The objects in a text, in order. Counts lines as it goes."""

    def __init__(self, text: str, problems: list[ImportProblem]) -> None:
        self._all = text
        self._problems, self._untold = problems, 0
        self._decoder = _LenientDecoder()
        self._budget = 8 * len(text) + 1_000_000
        self._end = len(text)  # of the list of messages in a damaged object

    def problems(self) -> tuple[ImportProblem, ...]:
        more = [ImportProblem(0, f"{self._untold:,} more problems")] if self._untold else []
        return (*self._problems, *more)

    def records(self) -> list[tuple[int, Json]]:
        start = len(self._all) - len(self._all.lstrip(_BLANK))
        try:
            value, end = self._decoder.value_at(self._all, start)
        except _UnreadableValue as broken:
            self._budget -= broken.cost
            return self._damaged(start, broken.reason)
        if not isinstance(value, dict) or not isinstance(value.get("messages"), list):
            return self._lines()
        self._tell_odd(1)
        rest = self._all[end:].strip(_BLANK)
        if rest:
            line = self._all.count("\n", 0, end) + 1
            self._tell(line, f"{len(rest):,} characters after the end of the object")
        return [(1, self._without_deep(value))]

    def _damaged(self, start: int, reason: str) -> list[tuple[int, Json]]:
        """Not one whole object: lines, unless it is clear that it was meant as an object."""
        self._decoder.odd.clear()
        messages = _MESSAGES.search(self._all)
        header: Any = None
        if messages is not None and messages.start() < _HEADER_LIMIT:
            try:
                text = self._all[start : messages.start()] + '"messages":[]}'
                header, _ = self._decoder.value_at(text, 0)
            except _UnreadableValue:
                header = None
        if not isinstance(header, dict) and (found := self._lines()):
            return found
        if messages is None:
            return []
        self._problems.clear()
        self._tell(1, f"the object is damaged or cut ({reason})")
        if not isinstance(header, dict):
            header = dict(_PAIR.findall(self._all, 0, min(messages.start(), _HEADER_LIMIT)))
        return [(1, self._salvaged(header, messages.end()))]

    def _salvaged(self, header: Json, at: int) -> Json:
        line = 1 + self._all.count("\n", 0, at)
        found = [value for _, value in self._values(self._all, at, line, until="]")]
        tail = dict(_PAIR.findall(self._all, self._end, self._end + _HEADER_LIMIT))
        return {**tail, **header, "messages": found}

    def _lines(self) -> list[tuple[int, Json]]:
        self._decoder.odd.clear()
        return [
            found
            for number, line in enumerate(self._all.split("\n"), 1)
            if line
            for found in self._values(line, 0, number)
        ]

    def _values(self, text: str, at: int, line: int, until: str = "") -> Iterator[tuple[int, Json]]:
        """Every object from `at` on, one after the other; damage is told and stepped over."""
        counted, whole = at, True
        while True:
            at = _skip_blank(text, at)
            if at >= len(text) or (whole and text[at] == until):
                self._end = at
                return
            line, counted = line + text.count("\n", counted, at), at
            try:
                value, end = self._taken(text, at, line)
            except _UnreadableValue as broken:
                self._budget -= broken.cost
                if whole:
                    self._tell(line, broken.reason)
                whole = False
                at = text.find("{", at + 1 if broken.end is None else broken.end)
                if at < 0 or self._budget < 0:
                    return
                continue
            if whole or _looks_whole(value):
                yield line, value
                at, whole = end, True
            else:
                at = end

    def _taken(self, text: str, at: int, line: int) -> tuple[Json, int]:
        value, end = self._decoder.value_at(text, at)
        self._tell_odd(line)
        if not isinstance(value, dict):
            raise _UnreadableValue(
                f"a {type(value).__name__} where an object should be", end - at, end
            )
        if _brackets(text, at, end) > DEPTH_LIMIT and too_deep(value):
            raise _UnreadableValue(f"nested deeper than {DEPTH_LIMIT} levels", end - at, end)
        return value, end

    def _without_deep(self, value: Json) -> Json:
        if _brackets(self._all, 0, len(self._all)) <= DEPTH_LIMIT or not too_deep(value):
            return value
        reason = f"nested deeper than {DEPTH_LIMIT} levels; left out"
        kept = []
        for position, message in enumerate(value["messages"], 1):
            if isinstance(message, dict | list) and too_deep(message):
                self._tell(1, f"message {position}: {reason}")
            else:
                kept.append(message)
        header = {
            key: item
            for key, item in value.items()
            if key != "messages" and not (isinstance(item, dict | list) and too_deep(item))
        }
        if header.keys() | {"messages"} != value.keys():
            self._tell(1, reason)
        return {**header, "messages": kept}

    def _tell(self, line: int, reason: str) -> None:
        if len(self._problems) < PROBLEM_LIMIT:
            self._problems.append(ImportProblem(line, reason))
        else:
            self._untold += 1

    def _tell_odd(self, line: int) -> None:
        for reason in self._decoder.odd:
            self._tell(line, reason)
        self._decoder.odd.clear()


def _skip_blank(text: str, at: int) -> int:
    while at < len(text) and text[at] in _BLANK:
        at += 1
    return at


def _brackets(text: str, start: int, end: int) -> int:
    return text.count("{", start, end) + text.count("[", start, end)

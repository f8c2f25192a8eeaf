"""Reading JSON objects from a file that may be damaged.

`parse_records` takes any bytes and returns the JSON objects in them, each with its line, and an
`ImportProblem` for everything it could not read as it stands. Torn ends, glued records, NUL bytes,
a BOM, bad UTF-8, lone surrogates, NaN, a key that is there twice and nesting beyond `DEPTH_LIMIT`
levels are problems, not failures. The work is linear in the size of the file: the search for the
next whole record after a damaged one stops when its budget is used up.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from sys import intern
from typing import Any

import msgspec

from recollect.text import clip
from recollect.transcripts.json_values import Json, too_deep
from recollect.transcripts.transcript import ImportProblem

DEPTH_LIMIT = 90  # of a record: the store takes 100 levels, and an exact copy needs some of them
DIGITS_LIMIT = 4_000  # Python itself refuses longer numbers
PROBLEM_LIMIT = 1_000  # listed; more are only counted
_NO_MARKS = bytes(set(range(256)).difference(b'"{['))
_BLANK = " \t\r\n\0\ufeff,"
_NOT_BLANK = re.compile(f"[^{_BLANK}]")
MESSAGES_FIELD = re.compile(r'"messages"\s*:\s*\[')
_PAIR = re.compile(r'"(\w{1,40})"\s*:\s*"([^"\\\n]{0,400})"')
HEADER_LIMIT = 65_536
_SHOWN_CHARACTERS = 60
_decode_strictly = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode
_RECURSION_COST = 100_000  # in characters: the time Python needs to notice that it is too deep


def parse_records(
    data: bytes, record_keys: Collection[frozenset[str]]
) -> tuple[list[tuple[int, Json]], tuple[ImportProblem, ...]]:
    """Objects with their lines; a file that is one object is one record. `record_keys`: an object
    with all keys of one of these sets is a record of its own, not a piece of a damaged one."""
    finder = RecordFinder(*_decode_text(data), record_keys)
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


def _lenient_decoder(odd: list[str], *, long_numbers: bool = True) -> json.JSONDecoder:
    """Numbers that JSON does not have become null, the last of several values of a key counts, and
    the reason goes to `odd`. Without `long_numbers`, one that Python refuses raises `ValueError`,
    which is quicker."""

    def refuse(text: str) -> Any:
        odd.append(f"{text[:12]} cannot be stored as a number; read as null")

    def parse_float(text: str) -> float | None:
        return number if math.isfinite(number := float(text)) else refuse(text)

    def parse_int(text: str) -> int | None:
        return int(text) if len(text) <= DIGITS_LIMIT else refuse(text)

    def build_object(pairs: list[tuple[str, Any]]) -> Json:
        # every record brings its own copy of every key; kept once, a file takes a third less memory
        value = {intern(key): item for key, item in pairs}
        if len(value) != len(pairs):
            twice, _ = Counter(key for key, _ in pairs).most_common(1)[0]
            shown = clip(twice, _SHOWN_CHARACTERS)
            odd.append(f"the key {shown!r} is there more than once; the last one counts")
        return value

    # not strict: raw control characters in strings are no reason to lose a record
    return json.JSONDecoder(
        strict=False,
        parse_constant=refuse,
        parse_float=parse_float,
        parse_int=parse_int if long_numbers else None,
        object_pairs_hook=build_object,
    )


class RecordFinder:
    """Finds the objects in a text, in order, and counts lines on the way."""

    def __init__(
        self,
        text: str,
        problems: list[ImportProblem],
        record_keys: Collection[frozenset[str]],
        size: int = 0,
    ) -> None:
        """`size`: of a file whose lines are given one by one."""
        self._all, self._record_keys = text, record_keys
        self._problems, self._unlisted = problems, 0
        self._odd: list[str] = []  # reasons to report, from the value that was read last
        self._json = _lenient_decoder(self._odd)
        self._scan = vars(_lenient_decoder(self._odd, long_numbers=False))["scan_once"]
        self._budget = 8 * (len(text) or size) + 1_000_000
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
        self._report_odd(1)
        rest = self._all[end:].strip(_BLANK)
        if rest:
            line = self._all.count("\n", 0, end) + 1
            self.report(line, f"{len(rest):,} characters after the end of the object")
        return [(1, self._without_deep(value))]

    def _damaged(self, start: int, reason: str) -> list[tuple[int, Json]]:
        """Not one whole object: JSON lines, unless its beginning is that of a single object."""
        self._odd.clear()
        messages = MESSAGES_FIELD.search(self._all)
        header: Json | None = None
        if messages is not None and messages.start() < HEADER_LIMIT:
            header = self.read_header(self._all[start:], messages.start() - start)
        if header is None and (found := self._lines()):
            return found
        if messages is None:
            return []
        self._problems.clear()
        self.report(1, f"the object is damaged or cut ({reason})")
        if header is None:
            header = dict(_PAIR.findall(self._all, 0, min(messages.start(), HEADER_LIMIT)))
        return [(1, self._salvage(header, messages.end()))]

    def read_header(self, text: str, messages: int) -> Json | None:
        """What one object says before its list of messages, which begins there."""
        try:
            begun = text[:messages].lstrip(_BLANK) + '"messages":[]}'
            header, end = self._value_at(begun, 0)
        except _UnreadableValue:
            return None
        return header if isinstance(header, dict) and end == len(begun) else None

    def read_value(self, text: str, at: int, what: str) -> tuple[list[Any], int] | None:
        """The value that begins there, or none if it is nested too deep; and where it ends."""
        try:
            value, end = self._value_at(text, at)
        except _UnreadableValue:
            self._odd.clear()
            return None
        self._odd[:] = [f"{what}: {reason}" for reason in self._odd]
        self._report_odd(1)
        if _brackets(text, at, end) > DEPTH_LIMIT and too_deep(value, DEPTH_LIMIT):
            self.report(1, f"{what}: nested deeper than {DEPTH_LIMIT} levels; left out")
            return [], end
        return [value], end

    def _salvage(self, header: Json, at: int) -> Json:
        line = 1 + self._all.count("\n", 0, at)
        found = [value for _, value in self._values(self._all, at, line, until="]")]
        tail = dict(_PAIR.findall(self._all, self._end, self._end + HEADER_LIMIT))
        return {**tail, **header, "messages": found}

    def _lines(self) -> list[tuple[int, Json]]:
        self._odd.clear()
        return [
            found
            for number, line in enumerate(self._all.split("\n"), 1)
            if line
            for found in self.read_line(line, number)
        ]

    def read_line(self, text: str, number: int) -> Iterable[tuple[int, Json]]:
        """The objects of a line. Most lines are one whole object, which is quicker to find."""
        value = self.read_whole(text, number)
        return self.read_pieces(text, number) if value is None else ((number, value),)

    def read_whole(self, text: str, number: int) -> Json | None:
        """The object that a line is; None if it is anything else."""
        plain = parse_plain_line(text.encode("utf-8", "surrogatepass"))
        return self.read_odd(text, number) if plain is None else plain

    def read_odd(self, text: str, number: int) -> Json | None:
        """The same of a line that `parse_plain_line` does not vouch for."""
        try:
            value, end = self._scan(text, 0)
            is_whole = type(value) is dict and (end == len(text) or text[end:] == "\r")
        except (StopIteration, ValueError, RecursionError):
            is_whole = False
        if is_whole and not self._is_too_deep(value, text):
            if self._odd:
                self._report_odd(number)
            found: Json = value
            return found
        self._odd.clear()
        return None

    def read_pieces(self, text: str, number: int) -> Iterator[tuple[int, Json]]:
        """The objects in a line that is not one whole object; damage is reported and skipped."""
        return self._values(text, 0, number)

    def _is_too_deep(self, value: Json, text: str) -> bool:
        return _brackets(text, 0, len(text)) > DEPTH_LIMIT and too_deep(value, DEPTH_LIMIT)

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
                    self.report(line, unreadable.reason)
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
        self._report_odd(line)
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
                self.report(1, f"message {position}: {reason}")
            else:
                kept.append(message)
        rest = [(key, item) for key, item in value.items() if key != "messages"]
        header = {key: item for key, item in rest if not too_deep(item, DEPTH_LIMIT)}
        if len(header) < len(rest):
            self.report(1, reason)
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

    def report(self, line: int, reason: str) -> None:
        if len(self._problems) < PROBLEM_LIMIT:
            self._problems.append(ImportProblem(line, reason))
        else:
            self._unlisted += 1

    def _report_odd(self, line: int) -> None:
        for reason in self._odd:
            self.report(line, reason)
        self._odd.clear()


def parse_plain_line(line: bytes) -> Json | None:
    """The object that a line is, in a tenth of the time; None if it is anything else, or if JSON
    does not allow something in it that is read nevertheless, or if a key is there twice, or if it
    takes more to know that."""
    value = parse_again(line)
    if value is None:
        return None
    written, marks = _encode(value), line.translate(None, _NO_MARKS)  # counting is slower
    quotes = marks.count(b'"')
    if line != written:  # it has blanks or escapes; as many quotes, unless a key was lost
        is_quoted_plainly = b"\\" not in line or b"\\u0022" not in line
        if not is_quoted_plainly or quotes != written.count(b'"'):
            return None
    is_deep = len(marks) - quotes > DEPTH_LIMIT and too_deep(value, DEPTH_LIMIT)
    return None if is_deep else value


def parse_again(line: bytes) -> Json | None:
    """The object that `parse_plain_line` found in this line; of any other line perhaps None. Of a
    key that is there twice, the last value counts."""
    try:
        value = _decode_strictly(line)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
    return value if type(value) is dict else None


def _brackets(text: str, start: int, end: int) -> int:
    return text.count("{", start, end) + text.count("[", start, end)

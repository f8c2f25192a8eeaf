"""Finds repetition while it arrives: in a row of keys, and in text.

Memory is bounded, time is linear, and however a text is cut into pieces, the first repetition is
found at the same character.
"""

from __future__ import annotations

import re
import zlib
from collections import deque
from collections.abc import Hashable
from typing import Literal, NamedTuple

LONGEST_CYCLE = 5
WINDOW = 5_000  # characters of text in memory
CHUNK = 50
CHUNK_TIMES = 10
CHUNK_DISTANCE = 5 * CHUNK  # characters, on average, from one to the next
# With something new between, as in "a.py: no problems found …", "b.py: no problems found …". A
# report on a batch easily has fifty or sixty such lines: states, weeks, the files of a package. A
# counter that never ends costs no more than a few thousand tokens until it is stopped here.
BATCH_TIMES = 100
# The same lines in a row, whatever their markup, in code too: more than the 256 rows of a table
# of bytes, which may all be zero.
LINE_TIMES = 300
SYMBOLS = 10_000  # characters in a row without a letter or a digit: more than a large drawing

_LEAD = 64  # characters of a line that show what kind it is
_STEP = WINDOW // 20
_HALF = WINDOW // 2 - _STEP
_NEAR = (CHUNK_TIMES - 1) * CHUNK_DISTANCE  # characters from the first to the last
# Text that came at most this many characters ago is not new. A list that has a chunk ten times is
# longer, so a list that comes twice, as before and after a change, is new both times.
_ROUND = CHUNK_TIMES * CHUNK
_NUMBER = re.compile(r"[ \t]*+(?:\d{1,9}+[.)、]|[(（]\d{1,9}+[)）])[\W\d_]*+")
_LIST_NUMBER = re.compile(r"[ \t]*+(?:\d{1,9}+(?:[.)][ \t]|、)|[(（]\d{1,9}+[)）])")
_ITEM = r"(?:[-*+•◦‣–]|\d{1,9}+[.)]|[A-Za-z]\))[ \t]"
# A fence may be in a list item. Backticks after it make it inline code.
_OPENING = re.compile(rf"[ \t]*+(?:{_ITEM}[ \t]*+)?(`{{3,}}+(?=[^`]*+\Z)|~{{3,}}+)")
_CLOSING = re.compile(r"[ \t]*+(`{3,}+|~{3,}+)[ \t\r]*+\n")
_RULE_SYMBOLS = 10  # in a line without a letter or a digit: it is drawn, not said
_KEPT_SYMBOLS = 8  # of a run without a letter or a digit; the rest of a divider is skipped
_SYMBOLS = re.compile(r"[\W_]*+")
_LONG_SYMBOLS = re.compile(rf"([\W_]{{{_KEPT_SYMBOLS}}})[\W_]++")
_FEW_LETTERS = 30  # in a chunk; with fewer, as in columns of numbers, it counts only
_NOTHING_NEW = 1_000  # after this many characters that all were repeated
# lists, headings and their underlines, rules, quotes, tables
_MARK = re.compile(
    rf"[ \t]*+(?:{_ITEM}|\d{{1,9}}+、|[(（]\d{{1,9}}+[)）]|\#{{1,6}}+[ \t\n]"
    r"|={3}|-{3}|\*{3}|_{3}|[>|]|\+[-=+]|[│┃┌├└╭╰╔║╚])"
)


class Repetition(NamedTuple):
    kind: Literal["text", "symbols"]
    what: str  # the repeated text, or the last of the symbols
    times: int  # for symbols, how many came in a row


class CycleCounter:
    """Finds one to five keys that come so many times in a row in the same order."""

    def __init__(self, times: int) -> None:
        self._times = times
        self._last: deque[Hashable] = deque(maxlen=LONGEST_CYCLE)  # the newest is the first
        # for each cycle length, how many keys in a row repeated the key that many before
        self._same = [0] * LONGEST_CYCLE

    def add(self, key: Hashable) -> int:
        """The length of the cycle that this key completes, else 0; then the count restarts."""
        for before, last in enumerate(self._last):
            if last != key:
                self._same[before] = 0
                continue
            self._same[before] += 1
            if self._same[before] >= (self._times - 1) * (before + 1):
                self._last.clear()
                self._same = [0] * LONGEST_CYCLE
                return before + 1
        self._last.appendleft(key)
        return 0


class RepeatedText:
    """Finds text that repeats.

    Outside of code it is found soon, after ten times, but markup in which repetition is normal
    (lists, tables, headings, quotes, fences, dividers of any kind) restarts the count. Lines that
    come very many times and symbols without end are found in any markup. The first characters of a
    line show its kind; until they arrive, it waits.
    """

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self._window = _ChunkWindow()
        self._symbols = _SymbolRun()
        self._lines = _RepeatedLines()
        self._lead = ""  # the start of a line of unknown kind
        self._known = False
        self._silent = False  # whether the rest of this line is skipped
        self._fence = ""  # that opened the current code block
        self._opened = False  # whether this line opened it
        self._last_lead = ""  # of the last line that is not blank

    def text(self, piece: str) -> Repetition | None:
        """The first repetition in this piece; the rest is not read, and the count restarts."""
        start = 0
        while start < len(piece):
            newline = piece.find("\n", start)
            end = newline + 1 if newline >= 0 else len(piece)
            found = self._read(piece[start:end])
            if found:
                self.reset()
                return found
            start = end
        return None

    def _read(self, part: str) -> Repetition | None:
        """Read a line or a part of one, up to the first repetition."""
        too_long = self._symbols.add(part)
        part = part[:too_long]
        found = self._read_chunks(part)
        if found:
            return found
        if too_long is not None:
            return Repetition("symbols", part[-1], SYMBOLS)
        return self._lines.end() if part.endswith("\n") else None

    def _read_chunks(self, part: str) -> Repetition | None:
        found, ended = None, part.endswith("\n")
        if not self._known:
            missing = _LEAD - len(self._lead)
            self._lead += part[:missing]
            if len(self._lead) < _LEAD and not ended:
                return None
            self._lines.begin(self._lead)
            found, part = self._begin_line(self._lead), part[missing:]
            self._lead, self._known = "", True
        self._lines.add(part)
        if self._opened and self._fence.startswith("`") and "`" in part:
            part, self._fence = part[part.index("`") :], ""
            self._opened = self._silent = False
        if not found and not self._silent:
            found = self._window.feed(part)
        if ended:
            self._known = self._silent = self._opened = False
        return found

    def _begin_line(self, lead: str) -> Repetition | None:
        if self._fence:
            self._silent = True
            closing = _CLOSING.fullmatch(lead)
            if closing and closing[1].startswith(self._fence):
                self._fence = ""
            return None
        opening, again = _OPENING.match(lead), lead == self._last_lead
        self._last_lead = lead if lead.strip() else self._last_lead
        counting = again and _NUMBER.fullmatch(lead) is not None  # in a list no number comes twice
        if opening or (_MARK.match(lead) and not counting) or _is_rule(lead):
            self._window = _ChunkWindow()
        if opening:
            self._fence, self._silent, self._opened = opening[1], True, True
            return None
        return self._window.feed(lead)


def _is_rule(line: str) -> bool:
    """Whether a line only divides: `─────`, `. . . . .`, `=-=-=`."""
    drawn = _SYMBOLS.fullmatch(line) is not None
    return drawn and len(line) - sum(map(str.isspace, line)) >= _RULE_SYMBOLS


class _RepeatedLines:
    """Finds one to five lines that come again and again. Their numbers in a list do not make them
    different. Of a long line only the beginning and a checksum are in memory."""

    def __init__(self) -> None:
        self._counter = CycleCounter(LINE_TIMES)
        self._last: deque[str] = deque(maxlen=LONGEST_CYCLE)
        self._lead, self._checksum = "", 0

    def begin(self, lead: str) -> None:
        number = _LIST_NUMBER.match(lead)
        self._lead = lead[number.end() :] if number else lead
        self._checksum = 0

    def add(self, part: str) -> None:
        if part:
            self._checksum = zlib.crc32(part.encode("utf-8", "surrogatepass"), self._checksum)

    def end(self) -> Repetition | None:
        """The repetition that the line completes."""
        self._last.append(self._lead)
        length = self._counter.add((self._lead, self._checksum))
        if not length:
            return None
        return Repetition("text", "".join(list(self._last)[-length:]), LINE_TIMES)


class _SymbolRun:
    """Counts the characters since the last letter or digit."""

    def __init__(self) -> None:
        self._length = 0

    def add(self, text: str) -> int | None:
        """The end of the part of this text with which the run is too long."""
        for start in range(0, len(text), _STEP):
            part, missing = text[start : start + _STEP], SYMBOLS - self._length
            if missing <= len(part) and _count_leading_symbols(part) >= missing:
                return start + missing
            self._length = _count_symbols(part, self._length)
        return None


def _count_leading_symbols(text: str) -> int:
    begin = _SYMBOLS.match(text)
    assert begin is not None  # it may be empty
    return begin.end()


def _count_symbols(text: str, before: int) -> int:
    """The symbols since the last letter or digit, when so many came before this text."""
    for count, character in enumerate(reversed(text)):
        if character.isalnum():
            return count
    return before + len(text)


class _ChunkWindow:
    """The newest positions of each chunk in the newest text, after the number of times that it came
    near enough, in two halves: the older one goes when the newer one is full, so chunks near enough
    to count stay. Overlapping chunks count once. Of a run of symbols only the first count, so that
    no chunk is the end of a divider and the beginning of the heading below it. A chunk without a
    letter or a digit is never a loop."""

    def __init__(self) -> None:
        self._tail = ""  # too short for a chunk
        self._place = 0
        self._run = 0  # symbols since the last letter or digit
        self._repeated = 0  # characters since the last chunk that was new
        self._newer: dict[str, tuple[int, ...]] = {}
        self._older: dict[str, tuple[int, ...]] = {}
        self._room = _HALF

    def feed(self, text: str) -> Repetition | None:
        """Add text; returns the repeated chunk, if any."""
        text = self._shorten_runs(text)
        for start in range(0, len(text), _STEP):
            found = self._take(self._tail + text[start : start + _STEP])
            if found:
                return found
        return None

    def _shorten_runs(self, text: str) -> str:
        lead = _count_leading_symbols(text)
        kept = text[: min(lead, max(0, _KEPT_SYMBOLS - self._run))]
        rest = _LONG_SYMBOLS.sub(r"\1", text[lead:])
        self._run = _count_symbols(rest, self._run + lead)
        return kept + rest

    def _take(self, text: str) -> Repetition | None:
        older, newer, repeated = self._older, self._newer, self._repeated
        count = max(0, len(text) - CHUNK + 1)
        for at in range(count):
            chunk, place = text[at : at + CHUNK], self._place + at
            seen = newer.get(chunk) or older.get(chunk)
            if seen is None:
                newer[chunk], repeated = (1, place), 0
                continue
            distance = place - seen[-1]
            repeated = repeated + 1 if distance <= _ROUND else 0
            if distance >= CHUNK:
                newer[chunk] = seen = _count_again(seen, place)
                if seen[0] >= CHUNK_TIMES and _is_loop(chunk, seen, repeated):
                    return Repetition("text", chunk, seen[0])
        self._tail, self._place, self._repeated = text[count:], self._place + count, repeated
        self._room -= count
        if self._room <= 0:
            self._older, self._newer, self._room = newer, {}, _HALF
        return None


def _count_again(seen: tuple[int, ...], place: int) -> tuple[int, ...]:
    """How often a chunk came, every ten times in a row near each other, and the last ten places."""
    places = (*seen[1:][1 - CHUNK_TIMES :], place)
    if len(places) == CHUNK_TIMES and place - places[0] > _NEAR:
        return (CHUNK_TIMES - 1, *places)
    return (seen[0] + 1, *places)


def _is_loop(chunk: str, seen: tuple[int, ...], repeated: int) -> bool:
    """Whether a chunk that came often enough, at the end of so many repeated ones, is a loop: not
    the common part of a report, and not a drawing or a table."""
    times, second, last = seen[0], seen[2], seen[-1]
    nothing_new = repeated > last - second  # since the first round, which is new itself
    if not nothing_new and repeated < _NOTHING_NEW and times < BATCH_TIMES:
        return False
    if sum(map(str.isalpha, chunk)) >= _FEW_LETTERS:
        return nothing_new or times >= BATCH_TIMES
    return repeated >= _NOTHING_NEW and any(map(str.isalnum, chunk))

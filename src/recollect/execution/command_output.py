"""Endless output in little memory: the beginning and the end are kept, what is between is counted.

An `OutputCapture` takes bytes of any kind and amount. It holds at most `head + 2 * tail` bytes and
one piece in memory, which a reader is shown; up to `first + last` bytes are in a file without a
name, for the log (`output_recorder.py`). A disk that is full ends the file, not the capture: what
is missing is known to the byte. `sanitize` makes text that can neither move a cursor nor hide a
word: escape sequences are removed, other control, bidirectional and invisible characters are
spelled out. All is linear in its input.
"""

from __future__ import annotations

import codecs
import os
import re
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO, NamedTuple

HEAD_BYTES = 12_000  # shown of the beginning
TAIL_BYTES = 12_000  # shown of the end
# of these as many lines as the rule for oversized results leaves, or it would cut out the notice
# that says where the rest is
HEAD_LINES, TAIL_LINES = 190, 790
FIRST_BYTES = 4_000_000  # kept of the beginning
LAST_BYTES = 4_000_000  # kept of the end
MAX_RELAYED = 4_000  # characters passed on at once while a command runs

# What terminals obey: CSI, then OSC and its kin up to their end, then two characters.
# Each class of characters is disjoint from what follows it, so nothing is tried twice.
_ESCAPES = re.compile(
    "(?:\x1b\\[|\x9b)[0-?]{0,64}[ -/]{0,16}[@-~]"
    "|(?:\x1b[\\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c\n]{0,4096}(?:\x07|\x1b\\\\|\x9c)"
    "|\x1b[ -/]{0,8}[0-~]"
)
# Control characters except tab and newline; what reorders, hides or tags text; lone surrogates.
_INVISIBLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f"
    "\ufeff\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e0fff]"
)


def sanitize(text: str) -> str:
    """The text as a reader may safely see it; lines that were overwritten show their last state."""
    text = _ESCAPES.sub("", text.replace("\r\n", "\n"))
    if "\r" in text:
        # what a progress bar shows in the end: the text after the last return that has any
        lines = (line.rstrip("\r").rpartition("\r")[2] for line in text.split("\n"))
        text = "\n".join(lines)
    return _INVISIBLE.sub(_escape, text)


def sanitize_all(text: str) -> str:
    """The text as a reader may safely see it, with every state of a line that was overwritten."""
    return sanitize(text.replace("\r\n", "\n").replace("\r", "\n"))


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    if 0xDC80 <= code <= 0xDCFF:
        code -= 0xDC00  # a byte that is not UTF-8
    return f"\\x{code:02x}" if code < 256 else f"\\u{{{code:x}}}"


class OutputExcerpt(NamedTuple):
    """What is left of an output: `omitted` bytes are missing between `head` and `tail`, after so
    many characters as they came."""

    head: str
    tail: str = ""
    omitted: int = 0
    after: int = 0


class OutputCapture:
    """Takes an output piece by piece. Without a folder, only what is in memory is kept."""

    def __init__(
        self,
        folder: Path | None = None,
        *,
        head: int = HEAD_BYTES,
        tail: int = TAIL_BYTES,
        first: int = FIRST_BYTES,
        last: int = LAST_BYTES,
    ) -> None:
        self.total = 0
        self._head_size, self._tail_size = head, tail
        self._head, self._tail = bytearray(), bytearray()
        self._file = _RingFile(folder, first, last)
        self._spills = folder is not None

    def feed(self, piece: bytes) -> None:
        at, self.total = self.total, self.total + len(piece)
        if self._spills and self.total > self._head_size + self._tail_size:
            if not self._file.size:  # until now memory had everything
                self._file.write(0, bytes(self._head + self._tail))
            self._file.write(at, piece)
            self._spills = self._file.is_whole
        room = self._head_size - len(self._head)
        if room > 0:
            self._head += piece[:room]
            piece = piece[room:]
        self._tail += piece
        if len(self._tail) > 2 * self._tail_size:
            del self._tail[: len(self._tail) - self._tail_size]

    def close(self) -> None:
        """Forget everything but what is in memory."""
        self._spills = False
        self._file.close()

    def excerpt_bytes(self) -> tuple[bytes, bytes]:
        """The bytes of the beginning and of the end; together everything when nothing is cut."""
        tail = bytes(self._tail[-self._tail_size :]) if self._tail_size else b""
        return bytes(self._head), tail

    def excerpt(self) -> OutputExcerpt:
        head, tail = self.excerpt_bytes()
        if len(head) + len(tail) == self.total:
            return OutputExcerpt(_decode(head + tail))
        head, tail = _first_lines(_trim_end(head)), _last_lines(_trim_start(tail))
        omitted = self.total - len(head) - len(tail)
        characters = len(head.decode("utf-8", "surrogateescape"))
        return OutputExcerpt(_decode(head), _decode(tail), omitted, characters)

    def text(self, remedy: str = "") -> str:
        """The output as one text; in the middle, how much is missing and how to get it."""
        head, tail, omitted, _ = self.excerpt()
        if not omitted:
            return head
        note = f"[... {omitted:,} of {self.total:,} bytes left out here{remedy} ...]"
        return f"{head.rstrip()}\n{note}\n{tail.lstrip()}"

    @property
    def is_shown_as_it_came(self) -> bool:
        """Whether a reader of the text has all that was written, but for carriage returns at the
        end of lines."""
        head, tail = self.excerpt_bytes()
        if len(head) + len(tail) < self.total:
            return False
        came = (head + tail).decode("utf-8", "surrogateescape").replace("\r\n", "\n")
        return sanitize(came) == came

    def kept_ranges(self) -> tuple[tuple[int, int], ...]:
        """Where the bytes stand that `read` returns: from one position to another, in order."""
        first, last = len(self._head), min(len(self._tail), self._tail_size)
        if first + last == self.total:
            return ((0, self.total),)
        if self._file.is_whole:
            return self._file.kept_ranges()
        # the disk was full, or the file is closed: its beginning, and what memory has of the end
        first = max(first, self._file.certain)
        return (0, first), (max(first, self.total - last), self.total)

    def read(self, start: int, end: int) -> bytes:
        """The bytes between two positions of a kept range."""
        first, last = bytes(self._head), bytes(self._tail)
        if len(first) + len(last) == self.total:
            return (first + last)[start:end]
        if self._file.is_whole or len(first) < end <= self._file.certain:
            return self._file.read(start, end)
        at = self.total - len(last)
        return last[start - at : end - at] if start >= at else first[start:end]


class _RingFile:
    """The first and the last bytes of an output, in a file that nobody else sees. `first` bytes
    from the beginning stand where they belong; the others go round in the `last` bytes after."""

    def __init__(self, folder: Path | None, first: int, last: int) -> None:
        self._folder, self._first, self._last = folder, first, last
        self._file: IO[bytes] | None = None
        self._failed = False
        self.size = 0  # of the output, as far as it was written here

    @property
    def is_whole(self) -> bool:
        """Whether nothing of what was written has failed."""
        return self._file is not None and not self._failed

    @property
    def certain(self) -> int:
        """How many bytes of the beginning can be read. After a failure the rest may hold two rounds
        of the ring."""
        return min(self.size, self._first)

    def write(self, at: int, data: bytes) -> None:
        if self._failed:
            return
        try:
            if self._file is None:
                self._file = tempfile.TemporaryFile(dir=self._folder, buffering=0)  # noqa: SIM115
            for start, end, where in self._places(at, at + len(data)):
                piece = data[start - at : end - at]
                written = os.pwrite(self._file.fileno(), piece, where)
                self.size = start + written
                if written < len(piece):
                    self._failed = True  # a disk that is full takes what fits
                    return
        except OSError:
            self._failed = True

    def _places(self, start: int, end: int) -> list[tuple[int, int, int]]:
        """Ranges of the output, each with its place in the file; of more than a round, the last."""
        first, last = self._first, self._last
        found = [(start, min(end, first), start)] if start < min(end, first) else []
        start = max(start, first, end - last)
        while start < end:
            into = (start - first) % last
            stop = min(end, start + last - into)
            found.append((start, stop, first + into))
            start = stop
        return found

    def kept_ranges(self) -> tuple[tuple[int, int], ...]:
        if self.size <= self._first + self._last:
            return ((0, self.size),)
        return (0, self._first), (self.size - self._last, self.size)

    def read(self, start: int, end: int) -> bytes:
        if self._file is None:
            return b""
        number, places = self._file.fileno(), self._places(start, end)
        return b"".join(os.pread(number, stop - begin, at) for begin, stop, at in places)

    def close(self) -> None:
        if self._file is not None:
            file, self._file, self.size = self._file, None, 0
            with suppress(OSError):
                file.close()


def _decode(data: bytes) -> str:
    return sanitize(data.decode("utf-8", "replace"))


_CONTINUATION = bytes(range(0x80, 0xC0))


def _trim_end(data: bytes) -> bytes:
    """Drop the first bytes of a character whose last ones are missing."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    decoder.decode(data[-3:])
    return data.removesuffix(decoder.getstate()[0])


def _trim_start(data: bytes) -> bytes:
    """Drop the last bytes of a character whose first ones are missing."""
    return data[:3].lstrip(_CONTINUATION) + data[3:]


def _first_lines(data: bytes) -> bytes:
    end = -1
    for _ in range(HEAD_LINES):
        end = data.find(b"\n", end + 1)
        if end < 0:
            return data
    return data[: end + 1]


def _last_lines(data: bytes) -> bytes:
    start = len(data) - data.endswith(b"\n")
    for _ in range(TAIL_LINES):
        start = data.rfind(b"\n", 0, start)
        if start < 0:
            return data
    return data[start + 1 :]


def split_output(data: bytes, most: int, *, whole: bool = False) -> bytes:
    """The beginning of some bytes, at most so many: whole lines, else whole characters. With
    `whole`, a character that has not come to its end at the end of the bytes is left out, too."""
    if len(data) > most:
        line = data.rfind(b"\n", most // 2, most)
        return data[: line + 1] if line >= 0 else _trim_end(data[:most])
    return _trim_end(data) if whole else data


class OutputRelay:
    """Passes output on: the newest `MAX_RELAYED` characters each time `flush` is called.

    A command can write a gigabyte a second; nobody reads that, and a screen would drown in it.
    """

    def __init__(self, receive: Callable[[str], None]) -> None:
        self._receive = receive
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._waiting = ""
        self._skipped = 0

    def feed(self, piece: bytes) -> None:
        if len(piece) > 4 * MAX_RELAYED:
            self._skipped += len(piece) - 4 * MAX_RELAYED
            self._decoder.reset()
            piece = _trim_start(piece[-4 * MAX_RELAYED :])
        waiting = self._waiting + self._decoder.decode(piece)
        self._skipped += max(0, len(waiting) - MAX_RELAYED)
        self._waiting = waiting[-MAX_RELAYED:]

    def flush(self, *, last: bool = False) -> None:
        text = self._waiting + (self._decoder.decode(b"", final=True) if last else "")
        # an escape sequence cut in two would be shown as letters, so its start waits
        cut = -1 if last else text.rfind("\x1b", max(0, len(text) - 32))
        text, held = (text[:cut], text[cut:]) if cut >= 0 else (text, "")
        skipped, self._skipped, self._waiting = self._skipped, 0, held
        if skipped:
            text = f"\n[... {skipped:,} characters not shown ...]\n{text}"
        if text:
            self._receive(sanitize(text))

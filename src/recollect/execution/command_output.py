"""Endless output in little memory: the beginning and the end are kept, the rest goes to a file.

An `OutputCapture` takes bytes of any kind and amount. It holds at most `head + 2 * tail` bytes and
one piece, counts everything, and writes the first `cap` bytes to its file; a full disk ends the
file, not the capture. Its text has every byte or says how many are missing and where they are.
`sanitize` makes text that can neither move a cursor nor hide a word: escape sequences are removed,
other control, bidirectional and invisible characters are spelled out. All is linear in its input.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, NamedTuple

HEAD_BYTES = 12_000  # shown of the beginning
TAIL_BYTES = 12_000  # shown of the end
MAX_FILE_BYTES = 64 * 1024 * 1024  # of one output, on disk
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


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 256 else f"\\u{{{code:x}}}"


class OutputExcerpt(NamedTuple):
    """What is left of an output: `omitted` bytes are missing between `head` and `tail`."""

    head: str
    tail: str = ""
    omitted: int = 0


class OutputCapture:
    """Takes an output piece by piece; makes `path` only when memory does not hold all of it."""

    def __init__(
        self,
        path: Path | None = None,
        *,
        head: int = HEAD_BYTES,
        tail: int = TAIL_BYTES,
        cap: int = MAX_FILE_BYTES,
    ) -> None:
        self.path, self.cap, self.total, self.bytes_on_disk = path, cap, 0, 0
        self._head_size, self._tail_size = head, tail
        self._head, self._tail = bytearray(), bytearray()
        self._file: BinaryIO | None = None
        self._spills = path is not None

    def feed(self, piece: bytes) -> None:
        self.total += len(piece)
        room = self._head_size - len(self._head)
        if room > 0:
            self._head += piece[:room]
            piece = piece[room:]
        if not piece:
            return
        if self._file is None and len(self._tail) + len(piece) > self._tail_size:
            self._begin_file()
        self._spill(piece)
        self._tail += piece
        if len(self._tail) > 2 * self._tail_size:
            del self._tail[: len(self._tail) - self._tail_size]

    def close(self) -> None:
        if self._file is not None:
            file, self._file, self._spills = self._file, None, False
            with suppress(OSError):
                file.close()

    def excerpt_bytes(self) -> tuple[bytes, bytes]:
        """The bytes of the beginning and of the end; together everything when nothing is cut."""
        tail = bytes(self._tail[-self._tail_size :]) if self._tail_size else b""
        return bytes(self._head), tail

    def excerpt(self) -> OutputExcerpt:
        head, tail = self.excerpt_bytes()
        if len(head) + len(tail) == self.total:
            return OutputExcerpt(_decode(head + tail))
        head, tail = _trim_end(head), _trim_start(tail)
        return OutputExcerpt(_decode(head), _decode(tail), self.total - len(head) - len(tail))

    def text(self) -> str:
        """The output as one text; in the middle, how much is missing and how to get it."""
        head, tail, omitted = self.excerpt()
        if not omitted:
            return head
        note = f"[... {omitted:,} of {self.total:,} bytes left out here{self._remedy()} ...]"
        return f"{head.rstrip()}\n{note}\n{tail.lstrip()}"

    def _remedy(self) -> str:
        stored, path = self.bytes_on_disk, self.path
        if not stored:
            return "; run it again with less output, for instance through `tail` or `grep`"
        which = "all of it is" if stored >= self.total else f"the first {stored:,} are"
        return (
            f"; {which} in {path}: look into it with run_shell_command, for instance "
            f"`grep -n WORD {path}` or `tail -c +{self._head_size + 1} {path} | head -c 9999`"
        )

    def _begin_file(self) -> None:
        if self._spills and self.path is not None:
            self._spills = False  # tried once
            with suppress(OSError):
                self._file = self.path.open("xb", buffering=0)
                self._spill(bytes(self._head + self._tail))

    def _spill(self, piece: bytes) -> None:
        if self._file is None or self.bytes_on_disk >= self.cap:
            return
        piece = piece[: self.cap - self.bytes_on_disk]
        try:
            self.bytes_on_disk += self._file.write(piece) or 0
        except OSError:
            self.close()


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

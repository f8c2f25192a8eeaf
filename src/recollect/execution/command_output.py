"""Endless output in little memory: the beginning and the end are kept, the rest goes to a file.

A `OutputCapture` is fed bytes of any kind and amount. It holds at most `head + 2 * tail` bytes and one
piece, counts everything, and writes the first `cap` bytes to its file; a disk that is full ends the
file, not the capture. What it shows has every byte or says how many are missing and where they are.
`plain` makes text of it that can neither move a cursor nor hide a word: escape sequences go, other
control, bidirectional and invisible characters are written out. All of it is linear in its input.
`follow_output` feeds a capture from a process until that has ended, whoever else holds the pipe; however
fast it writes, others get their turn after each piece, so time limits and cancellations arrive.
"""

from __future__ import annotations

import asyncio
import codecs
import fcntl
import os
import re
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, NamedTuple

from recollect.execution.sandbox import SandboxLaunch

HEAD_BYTES = 12_000  # bytes shown of the beginning
TAIL_BYTES = 12_000  # bytes shown of the end
MAX_FILE_BYTES = 64 * 1024 * 1024  # bytes of one output that are kept on disk
MAX_RELAYED = 4_000  # characters handed at once to whoever watches
_PIPE_BYTES = 256 * 1024
_RELAY_INTERVAL = 0.1  # seconds

# What terminals take as commands: CSI, then OSC and its kin up to their end, then two characters.
# Each class of characters is disjoint from what follows it, so nothing is tried twice.
_ESCAPES = (
    "(?:\x1b\\[|\x9b)[0-?]{0,64}[ -/]{0,16}[@-~]"
    "|(?:\x1b[\\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c\n]{0,4096}(?:\x07|\x1b\\\\|\x9c)"
    "|\x1b[ -/]{0,8}[0-~]"
)
# Control characters but tab and newline; what reorders, hides or tags text; lone surrogates.
_INVISIBLE = (
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f"
    "\ufeff\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e0fff]"
)


def sanitize(text: str) -> str:
    """The text as a reader may safely see it; lines that were overwritten show their last state."""
    text = re.sub(_ESCAPES, "", text.replace("\r\n", "\n"))
    if "\r" in text:
        text = "\n".join(_last_state(line) for line in text.split("\n"))
    return re.sub(_INVISIBLE, _escape, text)


def _last_state(line: str) -> str:
    """What a progress bar shows in the end: the words after the last return that has any."""
    return line.rstrip("\r").rpartition("\r")[2]


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 256 else f"\\u{{{code:x}}}"


class OutputExcerpt(NamedTuple):
    """What is left of an output: `cleared_call_ids` bytes are missing between `head` and `tail`."""

    head: str
    tail: str
    left_out: int
    total: int


class OutputCapture:
    """Takes an output piece by piece; `path` is made only when memory does not hold all of it."""

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
        self._broken = path is None

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
            file, self._file = self._file, None
            self._broken = True
            with suppress(OSError):
                file.close()

    def excerpt_bytes(self) -> tuple[bytes, bytes]:
        """The bytes of the beginning and of the end; together everything when nothing is cut."""
        tail = bytes(self._tail[-self._tail_size :]) if self._tail_size else b""
        return bytes(self._head), tail

    def shown(self) -> OutputExcerpt:
        head, tail = self.excerpt_bytes()
        left_out = self.total - len(head) - len(tail)
        if not left_out:
            return OutputExcerpt(
                sanitize((head + tail).decode("utf-8", "replace")), "", 0, self.total
            )
        head, tail = _trim_end(head), _trim_start(tail)
        left_out = self.total - len(head) - len(tail)
        return OutputExcerpt(
            sanitize(head.decode("utf-8", "replace")),
            sanitize(tail.decode("utf-8", "replace")),
            left_out,
            self.total,
        )

    def text(self) -> str:
        """The output in one text, with what is missing and how to get it in the middle."""
        shown = self.shown()
        if not shown.left_out:
            return shown.head
        note = f"[... {shown.left_out:,} of {shown.total:,} bytes left out here{self._rest()} ...]"
        return f"{shown.head.rstrip()}\n{note}\n{shown.tail.lstrip()}"

    def _rest(self) -> str:
        if not self.bytes_on_disk:
            return "; run it again with less output, for instance through `tail` or `grep`"
        kept = (
            "all of it is"
            if self.bytes_on_disk >= self.total
            else f"the first {self.bytes_on_disk:,} are"
        )
        return (
            f"; {kept} in {self.path}: look into it with run_shell_command, for instance "
            f"`grep -n WORD {self.path}` or "
            f"`tail -c +{self._head_size + 1} {self.path} | head -c 9999`"
        )

    def _begin_file(self) -> None:
        if self._broken or self.path is None:
            return
        try:
            self._file = self.path.open("xb", buffering=0)
        except OSError:
            self._broken = True
            return
        self._spill(bytes(self._head))
        self._spill(bytes(self._tail))

    def _spill(self, piece: bytes) -> None:
        if self._file is None or self.bytes_on_disk >= self.cap:
            return
        piece = piece[: self.cap - self.bytes_on_disk]
        try:
            self.bytes_on_disk += self._file.write(piece) or 0
        except OSError:
            self.close()


def _trim_end(data: bytes) -> bytes:
    """Without the first bytes of a character whose last ones are missing."""
    for back in range(1, min(4, len(data) + 1)):
        byte = data[-back]
        if byte >= 0xC0:
            length = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return data[:-back] if length > back else data
        if byte < 0x80:
            break
    return data


def _trim_start(data: bytes) -> bytes:
    """Without the last bytes of a character whose first ones are missing."""
    start = 0
    while start < min(3, len(data)) and 0x80 <= data[start] < 0xC0:
        start += 1
    return data[start:]


class OutputRelay:
    """Hands on what comes, at most `MAX_RELAYED` characters each time `flush` is called, the newest.

    A command can write a gigabyte a second; nobody reads that, and a screen would drown in it.
    """

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell
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
        # an escape sequence that is cut in two would be shown as letters: its start waits
        cut = text.rfind("\x1b", max(0, len(text) - 32)) if not last else -1
        held = text[cut:] if cut >= 0 else ""
        text = text[:cut] if cut >= 0 else text
        skipped, self._skipped, self._waiting = self._skipped, 0, held
        if skipped:
            text = f"\n[... {skipped:,} characters not shown ...]\n{text}"
        if text:
            self._tell(sanitize(text))


def start_process(
    words: tuple[bytes | str, ...], place: SandboxLaunch, more: Mapping[str, str]
) -> tuple[subprocess.Popen[bytes], int]:
    """The process, in a session of its own, and where its output is read."""
    reading, writing = os.pipe()
    try:
        process = subprocess.Popen(  # noqa: S603 - what to run was judged before
            (*place.start, *words),
            stdin=subprocess.DEVNULL,
            stdout=writing,
            stderr=writing,
            cwd=place.directory,
            env={**place.environment, **more},
            pass_fds=place.descriptors,
            start_new_session=True,
        )
    except OSError:
        os.close(reading)
        raise
    finally:
        os.close(writing)
    os.set_blocking(reading, False)
    with suppress(OSError, AttributeError):  # fewer turns for the same bytes, where Linux grants it
        fcntl.fcntl(reading, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
    return process, reading


async def follow_output(
    process: subprocess.Popen[bytes], reading: int, capture: OutputCapture, telling: OutputRelay
) -> None:
    """Takes what the process writes until it has ended and nothing more is in the pipe."""
    watched = _open_pidfd(process)
    told = time.monotonic()
    is_open = True
    try:
        while True:
            ended = process.poll() is not None  # asked first: what it wrote before is in the pipe
            piece = _read_piece(reading) if is_open else None
            if piece:
                capture.feed(piece)
                telling.feed(piece)
                await asyncio.sleep(0)
            elif ended:
                return
            else:
                is_open = is_open and piece is None
                await _wait_readable([*watched, *([reading] if is_open else [])])
            if time.monotonic() - told >= _RELAY_INTERVAL:
                telling.flush()
                told = time.monotonic()
    finally:
        for descriptor in watched:
            os.close(descriptor)


def drain_output(reading: int, capture: OutputCapture, telling: OutputRelay) -> None:
    """What is still in the pipe, when everything has ended; then the pipe is closed."""
    try:
        for _ in range(64):  # somebody who was not found may go on writing
            piece = _read_piece(reading)
            if not piece:
                break
            capture.feed(piece)
            telling.feed(piece)
    finally:
        os.close(reading)
    telling.flush(last=True)


def _read_piece(descriptor: int) -> bytes | None:
    """A piece; nothing at the end; None when there is none yet."""
    try:
        return os.read(descriptor, _PIPE_BYTES)
    except BlockingIOError:
        return None


def _open_pidfd(process: subprocess.Popen[bytes]) -> list[int]:
    """Becomes readable when the process ends, where the system has such a thing."""
    if hasattr(os, "pidfd_open"):
        with suppress(OSError):
            return [os.pidfd_open(process.pid)]
    return []


async def _wait_readable(descriptors: Iterable[int]) -> None:
    """Until one of them can be read, but no longer than it is time to tell."""
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[None] = loop.create_future()

    def settle() -> None:
        if not ready.done():
            ready.set_result(None)

    watched = list(descriptors)
    for descriptor in watched:
        loop.add_reader(descriptor, settle)
    try:
        await asyncio.wait((ready,), timeout=_RELAY_INTERVAL if len(watched) > 1 else 0.02)
    finally:
        for descriptor in watched:
            loop.remove_reader(descriptor)

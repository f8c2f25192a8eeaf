"""Reads the terminal's input for Textual, with what Textual leaves open: bounds.

Textual looks at a bracketed paste character by character and keeps each in a list: a paste of
100 MB takes minutes and gigabytes, and nothing else is read meanwhile. And a byte that is not UTF-8
ends its input thread, so that no key works any more. Here a paste is cut out of the bytes before;
one that is too long is counted, not kept. A terminal that goes away holds nothing up.
"""

from __future__ import annotations

import os
import selectors
from codecs import getincrementaldecoder
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import IO, Any, NamedTuple, cast

from textual._parser import ParseEOF, ParseError
from textual._xterm_parser import XTermParser
from textual.drivers.linux_driver import LinuxDriver
from textual.events import Paste
from textual.message import Message as TextualMessage

START, END = b"\x1b[200~", b"\x1b[201~"
MAX_PASTE_BYTES = 40_000_000  # kept of one paste
_READ = 65_536
# Enter with a modifier as terminals send it, and in the one way in which Textual knows it
_KEYS = ((b"\x1b\r", b"\x1b[13;3u"), (b"\x1b[27;2;13~", b"\x1b[13;2u"))


class PasteTooLong(TextualMessage):
    """A paste of so many bytes was not kept."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.size = size


class FoundPaste(NamedTuple):
    """A paste that has come to its end."""

    data: bytes
    size: int  # more than the data if it was too long


class PasteSplitter:
    """Cuts pastes out of what a terminal sends, wherever its reads are cut."""

    def __init__(self, most: int = MAX_PASTE_BYTES) -> None:
        self._most = most
        self._held = b""  # may be the beginning of a mark
        self._alone = False  # an escape was passed on just now
        self._paste: bytearray | None = None
        self._size = 0

    def feed(self, data: bytes) -> list[bytes | FoundPaste]:
        """Keys as bytes and pastes, in order."""
        found: list[bytes | FoundPaste] = []
        held, self._held = self._held, b""
        if held:
            data = held + data
        elif self._alone and (data.startswith(START[1:]) or START[1:].startswith(data)):
            data = START[:1] + data  # the key may be the beginning of a mark after all
        else:
            self._alone = self._paste is None and data == START[:1]
        while data:
            mark = START if self._paste is None else END
            at = data.find(mark)
            if at < 0:
                data, self._held = _hold(data, mark, whole=self._paste is None)
                if data and self._alone and data != START[:1]:
                    data, self._alone = data[1:], False  # the escape was passed on before
                self._take(data, found)
                break
            self._take(data[:at], found)
            data = data[at + len(mark) :]
            if self._paste is None:
                self._paste, self._size, self._alone = bytearray(), 0, False
            else:
                found.append(FoundPaste(bytes(self._paste), self._size))
                self._paste = None
        return found

    def flush(self) -> bytes:
        """What was held back, when nothing more comes: it was no mark."""
        if self._paste is not None:
            return b""
        held, self._held = self._held, b""
        held = held[1:] if self._alone else held  # the escape was passed on before
        self._alone = False
        return held

    def _take(self, data: bytes, found: list[bytes | FoundPaste]) -> None:
        if self._paste is None:
            found += [data] if data else []
            return
        self._size += len(data)
        room = self._most - len(self._paste)
        self._paste += data[: max(0, room)]


def _hold(data: bytes, mark: bytes, *, whole: bool) -> tuple[bytes, bytes]:
    """The data without what may be the beginning of a mark, and that. An escape that came alone is
    a key, for which nobody shall wait."""
    for length in range(min(len(mark) - 1, len(data)), 0, -1):
        if data.endswith(mark[:length]) and not (whole and length == 1 and len(data) == 1):
            return data[:-length], data[-length:]
    return data, b""


class _Input:
    """From bytes to Textual's events."""

    def __init__(self, process: Callable[[TextualMessage], None], *, debug: bool) -> None:
        self._process = process
        self._splitter, self._parser = PasteSplitter(), XTermParser(debug)
        self._decode = getincrementaldecoder("utf-8")("replace").decode

    def take(self, data: bytes) -> None:
        self._pass_on(self._splitter.feed(data))

    def wait(self) -> None:
        """Nothing came for a while."""
        self._pass_on((self._splitter.flush(),))

    def tick(self) -> None:
        for event in self._parser.tick():
            self._process(event)

    def end(self) -> None:
        with suppress(ParseEOF, ParseError, EOFError):
            for _ in self._parser.feed(""):
                pass

    def _pass_on(self, some: Iterable[bytes | FoundPaste]) -> None:
        for found in some:
            if isinstance(found, FoundPaste):
                self._process(_paste_event(found))
            elif text := self._decode(_name_keys(found)):
                for event in self._parser.feed(text):
                    self._process(event)


def _name_keys(data: bytes) -> bytes:
    for sent, named in _KEYS:
        data = data.replace(sent, named)
    return data


class _TerminalFile:
    """Writes to a terminal that may go away: what comes then goes nowhere. An error would end
    Textual's writing thread, and the program would wait for it at its end."""

    def __init__(self, file: IO[str]) -> None:
        self._file = file

    def write(self, text: str) -> None:
        with suppress(OSError):
            self._file.write(text)

    def flush(self) -> None:
        with suppress(OSError):
            self._file.flush()

    def fileno(self) -> int:
        return self._file.fileno()


class BoundedInputDriver(LinuxDriver):
    def __init__(self, *given: Any, **options: Any) -> None:
        super().__init__(*given, **options)
        self._file = cast("Any", _TerminalFile(cast("IO[str]", self._file)))

    def run_input_thread(self) -> None:
        given = _Input(self.process_message, debug=self._debug)
        with selectors.SelectSelector() as selector:
            selector.register(self.fileno, selectors.EVENT_READ)
            while not self.exit_event.is_set():
                if not selector.select(0.1):
                    given.wait()
                elif data := self._read():
                    given.take(data)
                else:
                    self._app.call_later(self._app.action_quit)  # the terminal is gone
                    break
                given.tick()
        given.end()

    def _read(self) -> bytes:
        with suppress(OSError):
            return os.read(self.fileno, _READ)
        return b""


def _paste_event(found: FoundPaste) -> TextualMessage:
    if found.size > len(found.data):
        return PasteTooLong(found.size)
    return Paste(found.data.decode("utf-8", "replace").replace("\x00", ""))

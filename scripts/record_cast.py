"""Writes docs/demo.cast: `recollect demo` in a real terminal, for `asciinema play docs/demo.cast`.

    .venv/bin/python scripts/record_cast.py

It presses Enter for the three recorded prompts, opens /context, and leaves. Pauses are those of a
reader; the demo's temporary folder is shown as ~/limiter.
"""

from __future__ import annotations

import codecs
import fcntl
import json
import os
import pty
import re
import select
import shutil
import struct
import sys
import tempfile
import termios
import time
from pathlib import Path

CAST = Path(__file__).parent.parent / "docs" / "demo.cast"
COLUMNS, ROWS = 100, 30
PATIENCE = 60.0  # seconds for one step
READING = 1.6  # seconds for what a step has shown
LONGEST_PAUSE = 2.5  # seconds
TYPING = 0.08  # seconds between keys
MOST_BYTES = 300_000
SHOWN = "~/limiter"
ESCAPE, UP = "\x1b", "\x1b[A"

_SEQUENCES = re.compile(r"\x1b(?:\[[0-9;?<>=]*[a-zA-Z~]|[\]P][^\x07\x1b]*(?:\x07|\x1b\\))")
_RESET_AND_SET = re.compile(r"\x1b\[0m\x1b\[([\d;]+)m")  # two sequences for what one can say
_BLANKS = re.compile(r" {30,}")

Output = list[tuple[float, bytes]]


class Recorder:
    """A terminal with the program in it, and what it has written so far."""

    def __init__(self, words: list[str], folder: Path) -> None:
        self.output: Output = []
        self._begin = time.monotonic()
        self.process, self._terminal = pty.fork()
        if self.process == 0:
            os.chdir(folder)
            os.execve(words[0], words, _environment(folder))
        size = struct.pack("HHHH", ROWS, COLUMNS, 0, 0)
        fcntl.ioctl(self._terminal, termios.TIOCSWINSZ, size)

    def _read(self, seconds: float) -> bool:
        """Whether the program goes on."""
        if not select.select([self._terminal], [], [], seconds)[0]:
            return True
        try:
            data = os.read(self._terminal, 65_536)
        except OSError:  # how Linux says that the program has closed its terminal
            return False
        if data:
            self.output.append((time.monotonic() - self._begin, data))
        return bool(data)

    def wait_for(self, text: str, start: int = 0) -> None:
        """Until this was written since the output with this number; then time to read it."""
        end = time.monotonic() + PATIENCE
        while text not in _plain(self.output[start:]):
            if time.monotonic() > end or not self._read(0.05):
                sys.exit(f"{text!r} was not shown; the last was:\n{_plain(self.output)[-2000:]}")
        self.linger(READING)

    def linger(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0 and self._read(left):
            pass

    def press(self, keys: str) -> int:
        """Type keys; the number of the output that comes next."""
        start = len(self.output)
        for key in [keys] if keys.startswith(ESCAPE) else keys:
            os.write(self._terminal, key.encode())
            self._read(TYPING)
        return start

    def wait_for_end(self) -> int:
        end = time.monotonic() + PATIENCE
        while self._read(0.1):
            if time.monotonic() > end:
                sys.exit("the program did not end")
        return os.waitstatus_to_exitcode(os.waitpid(self.process, 0)[1])


def _environment(folder: Path) -> dict[str, str]:
    """Nothing of this machine but where programs are."""
    return {
        "PATH": os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"])),
        "HOME": str(folder),
        "TMPDIR": str(folder),
        "TERM": "xterm-256color",
        "LANG": "C.UTF-8",
    }


def _plain(output: Output) -> str:
    text = b"".join(data for _, data in output).decode(errors="replace")
    return re.sub(
        r"\x1b(\[[0-9;?<>=]*[a-zA-Z~]|\][^\x07\x1b]*(\x07|\x1b\\)|P[^\x1b]*\x1b\\)", "", text
    )


def record(folder: Path) -> Output:
    program = Recorder([sys.executable, "-m", "recollect", "demo"], folder)
    program.wait_for("Clients get twice")
    for ends in ("All 4 tests pass.", "A limiter now has one lock", "Clients no longer get"):
        program.wait_for(ends, program.press("\r"))
    program.wait_for("compaction threshold", program.press("/context\r"))
    for _ in range(3):
        program.press(UP)
    program.linger(READING)
    program.wait_for("Ask, or", program.press(ESCAPE))
    program.press("/quit\r")
    if code := program.wait_for_end():
        sys.exit(f"the demo ended with exit code {code}:\n{_plain(program.output)[-2000:]}")
    return program.output


def cast_lines(output: Output, folder: Path) -> list[str]:
    header = {
        "version": 2,
        "width": COLUMNS,
        "height": ROWS,
        "title": "recollect demo",
        "env": {"TERM": "xterm-256color"},
    }
    lines, decode = [json.dumps(header)], codecs.getincrementaldecoder("utf-8")()
    shown, before = 0.0, 0.0
    for moment, data in output:
        shown += min(moment - before, LONGEST_PAUSE)
        before = moment
        text = _BLANKS.sub(_erase, without_paths(decode.decode(data), folder))
        text = _RESET_AND_SET.sub("\x1b[0;\\1m", text)
        lines.append(json.dumps([round(shown, 3), "o", text], ensure_ascii=False))
    return lines


def _erase(blanks: re.Match[str]) -> str:
    """The same on the screen, in fewer bytes: erase in the colour of the background, go on."""
    return f"\x1b[{len(blanks[0])}X\x1b[{len(blanks[0])}C"


def without_paths(text: str, folder: Path) -> str:
    """Blanks take the width that a path loses, so that nothing old stays visible behind it."""
    found = rf"({re.escape(str(folder))}(?:/recollect-\w+(?:/limiter)?)?)([^\x1b\r\n]*)"

    def shorten(match: re.Match[str]) -> str:
        return (SHOWN + match[2]).ljust(len(match[0]))

    return re.sub(found, shorten, text)


def main() -> None:
    folder = Path(tempfile.mkdtemp(prefix="recollect-cast-")).resolve()
    try:
        lines = cast_lines(record(folder), folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    text = "\n".join(lines) + "\n"
    for name in (str(folder), os.environ.get("HOME", "/root"), os.uname().nodename, sys.prefix):
        if name in text:
            at = text.index(name)
            sys.exit(f"{name!r} is in the recording: {text[at - 100 : at + 100]!r}")
    if len(text.encode()) > MOST_BYTES:
        sys.exit(f"the recording has {len(text.encode()):,} bytes, more than {MOST_BYTES:,}")
    CAST.write_text(text, encoding="utf-8")
    print(f"{CAST.name}: {len(text.encode()):,} bytes, {len(lines):,} lines")


if __name__ == "__main__":
    main()

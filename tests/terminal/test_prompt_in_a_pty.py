"""The prompt in a real terminal: what only its bytes can show."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import struct
import sys
import termios
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

from recollect.terminal.terminal_driver import END, MAX_PASTE_BYTES, START
from recollect.testing import ProviderServer
from tests.terminal.pilot import SETTINGS, TerminalPlace

EDITOR = """\
#!/bin/sh
cp "$1" before
stat -c %a "$1" > mode
printf "from the editor" > "$1"
"""


class Terminal:
    """The program in a terminal of 80 x 24, and what it has written."""

    def __init__(self, process: int, descriptor: int) -> None:
        self.process, self.descriptor = process, descriptor
        self.written = b""

    def send(self, data: bytes) -> None:
        while data:
            data = data[os.write(self.descriptor, data) :]

    def wait(self, text: bytes, seconds: float = 60) -> None:
        """Read until this was written; what was before it is forgotten."""
        end = time.monotonic() + seconds
        while text not in self.written:
            assert time.monotonic() < end, (text, self.written[-2_000:])
            self._read()
        self.written = self.written.partition(text)[2]

    def wait_end(self, seconds: float = 60) -> tuple[int, bytes]:
        """The exit code, and the last that was written."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self._read()
            ended, status = os.waitpid(self.process, os.WNOHANG)
            if ended:
                self._read()
                self.process = 0
                return os.waitstatus_to_exitcode(status), self.written
        raise AssertionError(self.written[-2_000:])

    def memory(self) -> int:
        """Megabytes."""
        with open(f"/proc/{self.process}/statm") as file:  # noqa: PTH123
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1_000_000

    def _read(self) -> None:
        if select.select([self.descriptor], [], [], 0.05)[0]:
            with suppress(OSError):
                self.written += os.read(self.descriptor, 65_536)


@contextmanager
def run_program(terminal: TerminalPlace, url: str, **environment: str) -> Iterator[Terminal]:
    text = SETTINGS.format(url=url, window=30_000, more="")
    (terminal.home / "settings.toml").write_text(text)
    env = {**os.environ, "TERM": "xterm-256color", **environment}
    process, descriptor = pty.fork()
    if process == 0:
        with suppress(OSError):
            os.execve(sys.executable, [sys.executable, "-m", "recollect"], env)
        os._exit(127)
    fcntl.ioctl(descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    found = Terminal(process, descriptor)
    try:
        yield found
    finally:
        if found.process:
            os.kill(found.process, 9)
            os.waitpid(found.process, 0)
        os.close(descriptor)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs /proc")
def test_a_prompt_in_a_real_terminal(terminal: TerminalPlace) -> None:
    editor = terminal.home / "my editor"
    editor.write_text(EDITOR)
    editor.chmod(0o755)
    with (
        ProviderServer("openai", ["the answer"]) as server,
        run_program(terminal, server.url, VISUAL=f"'{editor}'") as program,
    ):
        program.wait(b"/help lists the commands")
        program.send(b"a\xff\xfeb\x03")  # bytes that are no text end nothing
        program.send(b"one\x1b\rtwo\nthree\x07")  # Alt+Enter, Ctrl+J, Ctrl+G
        program.wait(b"from the editor")
        assert (terminal.project / "before").read_text() == "one\ntwo\nthree"
        assert (terminal.project / "mode").read_text() == "600\n"
        program.send(b"\x03")
        before = program.memory()
        paste = START + b"x" * (MAX_PASTE_BYTES + 1_000_000) + END
        sending = threading.Thread(target=program.send, args=(paste,))
        sending.start()
        program.wait(b"is too long")
        sending.join()
        assert program.memory() - before < 120
        program.send(b"hello\r")
        program.wait(b"the answer")
        program.send(b"not yet")
        program.wait(b"not yet")
        program.send(b"\x11")  # Ctrl+Q leaves at once
        code, last = program.wait_end()
        assert code == 0
        assert b"\x1b[23;0t" in last  # the title that was there before
        assert b"not sent:\r\nnot yet" in last
        assert last.rstrip().splitlines()[-1].startswith(b"recollect -r ")
        assert [one.json["messages"][-1]["content"] for one in server.requests] == ["hello"]

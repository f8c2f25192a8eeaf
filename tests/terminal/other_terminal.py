"""A second terminal: the real program in a process of its own, on a terminal of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import termios
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from tests.cli.runner import COMMAND, OWN_TERMINAL, PATIENCE, read_to_end
from tests.terminal.pilot import TerminalPlace


class OtherTerminal:
    def __init__(self, process: subprocess.Popen[bytes], keyboard: int) -> None:
        self.process, self._keyboard = process, keyboard

    def type(self, text: str) -> None:
        os.write(self._keyboard, text.encode())

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(PATIENCE)


@contextmanager
def other_terminal(place: TerminalPlace, *arguments: str) -> Iterator[OtherTerminal]:
    ours, theirs = os.openpty()
    termios.tcsetwinsize(theirs, (24, 80))
    process = subprocess.Popen(
        [sys.executable, "-c", OWN_TERMINAL, *COMMAND, *arguments],
        cwd=place.project,
        env={**os.environ, "TERM": "xterm-256color"},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    os.close(theirs)
    reader = threading.Thread(target=read_to_end, args=(ours, bytearray()), daemon=True)
    reader.start()
    try:
        yield OtherTerminal(process, ours)
    finally:
        with suppress(ProcessLookupError):
            process.send_signal(signal.SIGCONT)
        process.kill()
        process.wait(PATIENCE)
        reader.join(PATIENCE)
        os.close(ours)

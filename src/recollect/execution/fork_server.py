"""The process from which the supervisor of each command is forked, and how it is asked for one.

Starting Python and importing takes longer than most commands; forking a process that has done both
takes a millisecond. There is one such process, started with the first command. It runs nothing
itself, has an empty environment, sees neither commands nor files, and ends with us: its socket
closes. It has imported all it needs before any command runs, so no command can change it. Linux.
"""

from __future__ import annotations

import atexit
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

# The interpreter itself: one in a virtual environment may lie in the workspace.
_PYTHON = os.path.realpath(sys.executable)
_MODULE, _, _FUNCTION = "supervisor:serve".partition(":")
_PROGRAM = (
    f"import sys; sys.path.insert(0, {str(Path(__file__).parents[2])!r}); "
    f"from recollect.execution.{_MODULE} import {_FUNCTION}; {_FUNCTION}()"
)


class ForkServer:
    """Starts when it is first needed, and again if somebody has killed it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._channel: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it if it does not run; nobody waits until it is ready."""
        with self._lock:
            if self._process is None or self._process.poll() is not None:
                self._launch()

    def fork_supervisor(self, descriptors: Sequence[int]) -> None:
        """Have a supervisor started that gets copies of these descriptors, in this order."""
        self.start()
        with self._lock:
            try:
                self._send(descriptors)
            except OSError:  # it was killed a moment ago
                self._launch()
                self._send(descriptors)

    def close(self) -> None:
        """End it; a supervisor that still runs a command goes on, and ends with its pipe."""
        with self._lock:
            if self._channel is not None:
                self._channel.close()
            if self._process is not None:
                with suppress(subprocess.TimeoutExpired):
                    self._process.wait(1)
            self._channel = self._process = None

    def _send(self, descriptors: Sequence[int]) -> None:
        if self._channel is None:
            raise OSError("the fork server does not run")
        socket.send_fds(self._channel, [b"x"], descriptors)

    def _launch(self) -> None:
        if self._channel is not None:
            self._channel.close()
        if self._process is not None:
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(1)
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(  # noqa: S603 - our own program
                (_PYTHON, "-I", "-S", "-c", _PROGRAM),
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",
                env={"LC_ALL": "C.UTF-8"},
                start_new_session=True,
            )
        self._channel = ours


FORK_SERVER = ForkServer()
atexit.register(FORK_SERVER.close)

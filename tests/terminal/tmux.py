"""The program in a real terminal: tmux runs it, types, and shows what is on the screen.

Each terminal is a tmux server of its own, which ends with the test.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias

import pytest

PATIENCE = 60  # seconds, on a busy machine
KEYS_APART = 1.5  # seconds
ENDED = "ended-with-"
READY = "Ask, or / for commands"
MODES = (
    *("alternate_on", "cursor_flag", "insert_flag", "keypad_cursor_flag", "keypad_flag"),
    *("mouse_any_flag", "mouse_button_flag", "mouse_standard_flag", "mouse_sgr_flag"),
    *("mouse_utf8_flag", "origin_flag", "wrap_flag", "scroll_region_upper", "scroll_region_lower"),
    *("pane_tabs", "window_bell_flag", "pane_width", "pane_height"),
)
needs_tmux = pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")


class RealTerminal:
    """A window of `columns` × `rows` with a shell's line running in it."""

    def __init__(self, socket: Path, folder: Path, env: Mapping[str, str]) -> None:
        self._socket, self._folder, self._env = socket, folder, dict(env)

    def _tmux(self, *words: str) -> str:
        done = subprocess.run(
            ["tmux", "-f", "/dev/null", "-S", str(self._socket), *words],
            env={**self._env, "TERM": "xterm-256color"},
            capture_output=True,
            timeout=PATIENCE,
        )
        return done.stdout.decode(errors="replace")

    def start(
        self, *words: str, columns: int = 100, rows: int = 30, written: Path | None = None
    ) -> None:
        """Run a program; the window stays when it has ended, with its last output. All that it
        writes goes to a file, if one is given."""
        # tmux 3.3 sometimes never learns how a program ended, so its shell says it
        line = f"{shlex.join(words)}; echo; echo {ENDED}$?; exec sleep 600"
        size = ("-x", str(columns), "-y", str(rows))
        # programs may set the clipboard, so that one that does is noticed
        options = (
            *(("-g", "remain-on-exit", "on"), ("-g", "status", "off")),
            *(("-s", "set-clipboard", "on"), ("-g", "monitor-bell", "on")),
        )
        keep = [word for option in options for word in ("set-option", *option, ";")]
        given = [word for name, value in self._env.items() for word in ("-e", f"{name}={value}")]
        new = ("new-session", "-d", *size, "-c", str(self._folder), *given, line)
        pipe = () if written is None else (";", "pipe-pane", "-O", f"cat > {written}")
        self._tmux(*keep, *new, *pipe)

    def recollect(
        self, *arguments: str, columns: int = 100, rows: int = 30, written: Path | None = None
    ) -> None:
        command = (sys.executable, "-m", "recollect", *arguments)
        self.start(*command, columns=columns, rows=rows, written=written)

    def press(self, *keys: str) -> None:
        """Keys by tmux's names, such as `Enter`, `Escape`, `C-c`."""
        self._tmux("send-keys", *keys)

    def write(self, text: str) -> None:
        self._tmux("send-keys", "-l", "--", text)

    def paste(self, file: Path) -> None:
        """What a file holds, as a terminal sends what is pasted."""
        self._tmux("load-buffer", str(file), ";", "paste-buffer", "-p", "-r")

    def resize(self, columns: int, rows: int) -> None:
        self._tmux("resize-window", "-x", str(columns), "-y", str(rows))

    @property
    def screen(self) -> str:
        return self._tmux("capture-pane", "-p")

    @property
    def all_output(self) -> str:
        """Also what has left the screen."""
        return self._tmux("capture-pane", "-p", "-S", "-")

    @property
    def title(self) -> str:
        return self._tmux("display-message", "-p", "#{pane_title}").rstrip("\n")

    @property
    def clipboard(self) -> str:
        return self._tmux("show-buffer")

    @property
    def modes(self) -> dict[str, str]:
        """What programs can switch in a terminal."""
        told = self._tmux("display-message", "-p", " ".join(f"#{{{name}}};" for name in MODES))
        return dict(zip(MODES, (each.strip() for each in told.split(";")), strict=False))

    @property
    def process(self) -> int:
        """The program's own, below its shell."""
        shell = self._tmux("display-message", "-p", "#{pane_pid}").strip()
        return int(Path(f"/proc/{shell}/task/{shell}/children").read_text().split()[0])

    @property
    def exit_code(self) -> int | None:
        found = re.findall(rf"{ENDED}(\d+)", self.screen)
        return int(found[-1]) if found else None

    def wait_for(self, *texts: str, without: Sequence[str] = ()) -> str:
        """Until all of these are on the screen, and none of those: the screen."""

        def fits() -> bool:
            screen = self.screen
            return all(each in screen for each in texts) and not any(e in screen for e in without)

        self.wait_until(fits, f"{texts} without {without}")
        return self.screen

    def wait_until(self, condition: Callable[[], bool], what: str) -> None:
        ends = time.monotonic() + PATIENCE
        while not condition():
            assert time.monotonic() < ends, f"waited for {what}; the screen is\n{self.screen}"
            time.sleep(0.05)

    def say(self, text: str, *expected: str) -> None:
        self.write(text)
        self.wait_for(text)
        self.press("Enter")
        self.wait_for(*expected)

    def answer(self, key: str, gone: str) -> None:
        """A key that comes right after typing decides nothing, so it is pressed now and then."""
        self.press_until(key, lambda: gone not in self.screen, f"{gone!r} to go away")

    def press_until(self, key: str, condition: Callable[[], bool], what: str) -> None:
        """Press a key, and again after a while if it came too early to count."""
        pressed = 0.0

        def done() -> bool:
            nonlocal pressed
            if condition():
                return True
            if time.monotonic() - pressed > KEYS_APART:
                self.press(key)
                pressed = time.monotonic()
            return False

        self.wait_until(done, what)

    def wait_for_end(self) -> int:
        self.wait_until(lambda: self.exit_code is not None, "the end of the program")
        code = self.exit_code
        assert code is not None
        return code

    def close(self) -> None:
        self._tmux("kill-server")


OpenTerminal: TypeAlias = Callable[[], RealTerminal]


@contextmanager
def real_terminal(folder: Path, env: Mapping[str, str]) -> Iterator[RealTerminal]:
    # a socket's path may have 107 bytes
    socket = Path(f"/tmp/recollect-tmux-{os.getpid()}-{time.monotonic_ns()}")
    terminal = RealTerminal(socket, folder, env)
    try:
        yield terminal
    finally:
        terminal.close()
        socket.unlink(missing_ok=True)

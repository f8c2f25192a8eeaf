"""Where output goes: data to stdout, everything else to stderr.

Colours only where they are seen (NO_COLOR, FORCE_COLOR and TERM=dumb are respected), a pager only
when stdout is a terminal, JSON in ASCII so that every string survives, also one that UTF-8 cannot
carry.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import IO, Any

import click

from recollect.cli.display_text import one_line, sanitize, truncate

DEFAULT_PAGER = "less -FRX"


class Styler:
    """Styles text, or leaves it as it is where colours are not wanted."""

    def __init__(self, *, on: bool) -> None:
        self.on = on

    def __call__(self, text: str, **style: Any) -> str:
        return click.style(text, **style) if self.on and text else text

    def dim(self, text: str) -> str:
        return self(text, dim=True)

    def bold(self, text: str) -> str:
        return self(text, bold=True)


def make_styler(stream: IO[str] | None = None) -> Styler:
    if os.environ.get("NO_COLOR"):
        return Styler(on=False)
    if os.environ.get("FORCE_COLOR", "0") != "0":
        return Styler(on=True)
    wanted = (stream or sys.stdout).isatty() and os.environ.get("TERM") != "dumb"
    return Styler(on=wanted)


def terminal_width() -> int | None:
    """The terminal's columns; None when nobody looks at a terminal and nothing need be cut."""
    return _columns() if sys.stdout.isatty() else None


def _columns() -> int:
    from shutil import get_terminal_size

    return get_terminal_size().columns


def print_error(message: str) -> None:
    """A failure, in one sentence."""
    _write_stderr("recollect: " + message)


def print_warning(message: str) -> None:
    _write_stderr("recollect: warning: " + message)


def print_note(message: str) -> None:
    """What a person wants to know and a program does not."""
    _write_stderr(message)


def show_status(message: str) -> None:
    """How far it is, on a line that the next one replaces; an empty one takes it away."""
    if sys.stderr.isatty() and os.environ.get("TERM") != "dumb":
        room = _columns() - 1
        sys.stderr.write(f"\r{truncate(one_line(message), room)}\x1b[K")
        sys.stderr.flush()


def download_progress() -> Callable[[int, int], None]:
    """Shows how much of how much is there; drawn, and loaded, when something is fetched."""

    @cache
    def drawn() -> Callable[[int, int], None]:
        from recollect.models.embedded_weights import progress_bar

        return progress_bar(sys.stderr)

    def show(done: int, total: int) -> None:
        drawn()(done, total)

    return show


def _write_stderr(message: str) -> None:
    from recollect.redaction import redact

    sys.stdout.flush()
    sys.stderr.write(sanitize(redact(message)) + "\n")


def print_json(value: object) -> None:
    import json

    sys.stdout.write(json.dumps(value, indent=2) + "\n")


def print_lines(lines: Iterable[str]) -> None:
    """Write lines to stdout, through the pager when that is a terminal."""
    command = _pager_command() if sys.stdout.isatty() else []
    if not command:
        for line in lines:
            sys.stdout.write(line + "\n")
        return
    import subprocess

    env = {"LESS": "FRX", "LESSCHARSET": "utf-8", **os.environ}
    pager = subprocess.Popen(  # noqa: S603 - the person's own pager
        command, stdin=subprocess.PIPE, env=env, encoding="utf-8", errors="backslashreplace"
    )
    assert pager.stdin is not None
    with _ignore_interrupts():
        with contextlib.suppress(BrokenPipeError):  # the person has read enough
            for line in lines:
                pager.stdin.write(line + "\n")
        with contextlib.suppress(BrokenPipeError):
            pager.stdin.close()
        pager.wait()


def _pager_command() -> list[str]:
    import shlex
    import shutil

    given = os.environ.get("PAGER", DEFAULT_PAGER)
    try:
        command = shlex.split(given)
    except ValueError:
        return []
    return command if command and command != ["cat"] and shutil.which(command[0]) else []


@contextlib.contextmanager
def _ignore_interrupts() -> Iterator[None]:
    import signal

    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)

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

from recollect.cli.text import cut, harmless, one_line

DEFAULT_PAGER = "less -FRX"


class Ink:
    """Styles text, or leaves it as it is where colours are not wanted."""

    def __init__(self, *, on: bool) -> None:
        self.on = on

    def __call__(self, text: str, **style: Any) -> str:
        return click.style(text, **style) if self.on and text else text

    def dim(self, text: str) -> str:
        return self(text, dim=True)

    def bold(self, text: str) -> str:
        return self(text, bold=True)


def ink(stream: IO[str] | None = None) -> Ink:
    if os.environ.get("NO_COLOR"):
        return Ink(on=False)
    if os.environ.get("FORCE_COLOR", "0") != "0":
        return Ink(on=True)
    wanted = (stream or sys.stdout).isatty() and os.environ.get("TERM") != "dumb"
    return Ink(on=wanted)


def width() -> int | None:
    """The terminal's columns; None when nobody looks at a terminal and nothing need be cut."""
    return _columns() if sys.stdout.isatty() else None


def _columns() -> int:
    from shutil import get_terminal_size

    return get_terminal_size().columns


def complain(message: str) -> None:
    """A failure, in one sentence."""
    _tell("recollect: " + message)


def warn(message: str) -> None:
    _tell("recollect: warning: " + message)


def mention(message: str) -> None:
    """What a person wants to know and a program does not."""
    _tell(message)


def status(message: str) -> None:
    """How far it is, on a line that the next one replaces; an empty one takes it away."""
    if sys.stderr.isatty() and os.environ.get("TERM") != "dumb":
        room = _columns() - 1
        sys.stderr.write(f"\r{cut(one_line(message), room)}\x1b[K")
        sys.stderr.flush()


def fetching() -> Callable[[int, int], None]:
    """Shows how much of how much is there; drawn, and loaded, when something is fetched."""

    @cache
    def drawn() -> Callable[[int, int], None]:
        from recollect.models.embedded_weights import progress_bar

        return progress_bar(sys.stderr)

    def show(done: int, total: int) -> None:
        drawn()(done, total)

    return show


def _tell(message: str) -> None:
    from recollect.redaction import redact

    sys.stdout.flush()
    sys.stderr.write(harmless(redact(message)) + "\n")


def emit_json(value: object) -> None:
    import json

    sys.stdout.write(json.dumps(value, indent=2) + "\n")


def emit(lines: Iterable[str]) -> None:
    """Write lines to stdout, through the pager when that is a terminal."""
    command = _pager() if sys.stdout.isatty() else []
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
    with _interrupts_belong_to_the_pager():
        with contextlib.suppress(BrokenPipeError):  # the person has read enough
            for line in lines:
                pager.stdin.write(line + "\n")
        with contextlib.suppress(BrokenPipeError):
            pager.stdin.close()
        pager.wait()


def _pager() -> list[str]:
    import shlex
    import shutil

    given = os.environ.get("PAGER", DEFAULT_PAGER)
    try:
        command = shlex.split(given)
    except ValueError:
        return []
    return command if command and command != ["cat"] and shutil.which(command[0]) else []


@contextlib.contextmanager
def _interrupts_belong_to_the_pager() -> Iterator[None]:
    import signal

    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)

"""Where output goes: data to stdout, everything else to stderr.

Colours appear only on terminals that show them (NO_COLOR, FORCE_COLOR and TERM=dumb are respected),
and a pager only when stdout is a terminal. JSON is ASCII, so that every string survives, including
those that UTF-8 cannot carry. Credentials are taken out of what goes to stderr.
"""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import click

from recollect.display.display_text import one_line, sanitize, truncate
from recollect.redaction import redact

DEFAULT_PAGER = "less -FRX"
EMBEDDED_NOTICE = (
    "using the embedded model: it needs no API key, but it is small and often wrong; "
    "`recollect models` lists the others"
)


class Painter:
    """Styles text for stdout, or returns it unchanged where colours are not wanted."""

    def __call__(self, text: str, **style: Any) -> str:
        return click.style(text, **style) if text and _wants_colours() else text

    def dim(self, text: str) -> str:
        return self(text, dim=True)

    def bold(self, text: str) -> str:
        return self(text, bold=True)


paint = Painter()


def _wants_colours() -> bool:
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR", "0") != "0":
        return True
    return sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


def terminal_width() -> int | None:
    """The terminal's columns; None when stdout is not a terminal and nothing needs truncating."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def print_error(message: str) -> None:
    """A failure, in one sentence."""
    print_note("recollect: " + message)


def print_warning(message: str) -> None:
    print_note("recollect: warning: " + message)


def print_problems(problems: Sequence[tuple[str, int, str]], limit: int) -> None:
    """Warnings for the first lines of files that could not be read: name, line and reason."""
    for name, line, reason in problems[:limit]:
        print_warning(f"{name}{f', line {line}' if line else ''}: {reason}")
    if len(problems) > limit:
        print_warning(f"{len(problems) - limit:,} more problems like these")


def print_note(message: str) -> None:
    """Information for the user that a program reading stdout does not need."""
    sys.stdout.flush()
    with contextlib.suppress(BrokenPipeError):  # nobody reads it; the command goes on
        sys.stderr.write(sanitize(redact(message)) + "\n")


def show_status(message: str) -> None:
    """Show progress on a line that the next status replaces; an empty one clears it."""
    if sys.stderr.isatty() and os.environ.get("TERM") != "dumb":
        sys.stderr.write(
            f"\r{truncate(one_line(message), shutil.get_terminal_size().columns - 1)}\x1b[K"
        )
        sys.stderr.flush()


def download_progress() -> Callable[[int, int], None]:
    """A callback that draws a bar for a download on stderr."""

    # late: most commands open no model
    from recollect.models.weights_download import progress_bar

    return progress_bar(sys.stderr)


def print_json(value: object) -> None:
    sys.stdout.write(json.dumps(value, indent=2) + "\n")


def print_lines(lines: Iterable[str]) -> None:
    """Write lines to stdout, through the pager when stdout is a terminal."""
    command = _pager_command() if sys.stdout.isatty() else []
    if not command:
        for line in lines:
            sys.stdout.write(line + "\n")
        return
    env = {"LESS": "FRX", "LESSCHARSET": "utf-8", **os.environ}
    encoding, errors = sys.stdout.encoding, sys.stdout.errors
    pager = subprocess.Popen(  # noqa: S603 - the user's own pager
        command, stdin=subprocess.PIPE, env=env, encoding=encoding, errors=errors
    )
    assert pager.stdin is not None
    with _ignore_interrupts():  # Ctrl-C belongs to the pager
        with contextlib.suppress(BrokenPipeError):  # the user quit the pager
            for line in lines:
                pager.stdin.write(line + "\n")
        with contextlib.suppress(BrokenPipeError):
            pager.stdin.close()
        pager.wait()


def _pager_command() -> list[str]:
    try:
        command = shlex.split(os.environ.get("PAGER", DEFAULT_PAGER))
    except ValueError:
        return []
    return command if command and command != ["cat"] and shutil.which(command[0]) else []


@contextlib.contextmanager
def _ignore_interrupts() -> Iterator[None]:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)

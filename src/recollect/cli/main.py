"""The entry point: runs a command and turns every ending into an exit code.

0 success, 1 failure, 2 wrong usage, 130 interrupted. A reader that closes the pipe early is no
failure, and a stream that is closed from the start is as good as /dev/null. This module imports
nothing slow, so that an interrupt during start-up is quiet too.
"""

from __future__ import annotations

import os
import sys
import threading
from _thread import interrupt_main
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

FAILED, BAD_SETTINGS, INTERRUPTED = 1, 52, 130  # 2 is click's own
AGAIN = 0.02  # seconds


def run(arguments: list[str]) -> None:
    open_closed_streams()
    try:
        with dropped_interrupts_repeated():
            # late, so that Ctrl-C during the import of click ends here and not in a traceback
            from recollect.cli.group import run_command

            code = run_command(arguments)
            sys.stdout.flush()
    except KeyboardInterrupt:
        code = INTERRUPTED
    except OSError as error:
        code = _end_of_output(error)
    try:
        sys.stderr.flush()
    except OSError:
        _discard(sys.stderr)
    # CPython remembers an interrupt that passed through an `exec` of text, as when a named tuple is
    # made, and dies of the signal in the end, wherever it was caught; this resets it
    exec("")  # noqa: S102
    sys.exit(code)


@contextmanager
def dropped_interrupts_repeated() -> Iterator[None]:
    """Python ignores a Ctrl-C that comes while an object is freed, with a traceback: the command
    would go on. It comes again a moment later, until somebody hears it."""
    before = sys.unraisablehook

    def repeat(ignored: UnraisableHookArgs) -> None:
        if ignored.exc_type is not KeyboardInterrupt:
            before(ignored)
            return
        again = threading.Timer(AGAIN, interrupt_main)
        again.daemon = True
        again.start()

    sys.unraisablehook = repeat
    try:
        yield
    finally:
        sys.unraisablehook = before


def open_closed_streams() -> None:
    """Otherwise the next file opened would get the number of stdout, and what is printed."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            stream = open(os.devnull, mode, encoding="utf-8")  # noqa: PTH123, SIM115 - stays open
            os.set_inheritable(stream.fileno(), True)  # noqa: FBT003 - positional only
            setattr(sys, name, stream)


def _end_of_output(error: OSError) -> int:
    """The exit code when the output could not be written."""
    stopped = isinstance(error, BrokenPipeError) and (
        _has_no_reader(sys.stdout) or _has_no_reader(sys.stderr)
    )
    if not stopped:
        why = error.strerror or str(error)
        sys.stderr.write(f"recollect: cannot write the output: {why}\n")
    _discard(sys.stdout)
    return 0 if stopped else FAILED


def _discard(stream: TextIO) -> None:
    """Python would flush the stream once more on exit and complain."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _has_no_reader(stream: TextIO) -> bool:
    # late: most output has a reader
    import select

    poll = select.poll()
    poll.register(stream.fileno(), 0)
    return any(events & (select.POLLERR | select.POLLHUP) for _, events in poll.poll(0))

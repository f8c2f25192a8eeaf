"""The entry point: runs a command and turns every ending into an exit code.

0 success, 1 failure, 2 wrong usage, 130 interrupted. A reader that closes the pipe early is no
failure, and a stream that is closed from the start is as good as /dev/null. This module imports
nothing slow, so that an interrupt during start-up is quiet too.
"""

from __future__ import annotations

import os
import sys
from typing import TextIO

FAILED, BAD_SETTINGS, INTERRUPTED = 1, 52, 130  # 2 is click's own


def run(arguments: list[str]) -> None:
    open_closed_streams()
    try:
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

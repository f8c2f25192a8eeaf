"""The entry point: runs a command and turns every ending into an exit code.

0 success, 1 failure, 2 wrong usage, 130 interrupted. A reader that closes the pipe early is not
reported. This module imports nothing slow, so that an interrupt during start-up is quiet too.
"""

from __future__ import annotations

import os
import sys

FAILED, BAD_SETTINGS, INTERRUPTED = 1, 52, 130  # 2 is click's own


def run(arguments: list[str]) -> None:
    try:
        # late, so that Ctrl-C during the import of click ends here and not in a traceback
        from recollect.cli.group import run_command

        code = run_command(arguments)
        sys.stdout.flush()
    except KeyboardInterrupt:
        code = INTERRUPTED
    except BrokenPipeError:
        # Python would flush stdout once more on exit and complain
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = FAILED
    sys.exit(code)

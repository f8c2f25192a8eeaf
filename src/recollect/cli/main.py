"""The way in: runs a command and turns whatever happens into an exit code.

0 ok, 1 failed, 2 wrong usage, 130 interrupted. A failure that recollect foresees is one sentence on
stderr; a reader that stops reading is no reason for one. Nothing is imported here that takes time,
so that an interrupt is quiet from the first moment on.
"""

from __future__ import annotations

import os
import sys

FAILED, INTERRUPTED = 1, 130  # 2 is click's own


def run() -> None:
    try:
        code = _run_command()
        sys.stdout.flush()
    except KeyboardInterrupt:
        code = INTERRUPTED
    except BrokenPipeError:
        # Python would flush stdout once more on the way out and complain
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = FAILED
    sys.exit(code)


def _run_command() -> int:
    import click

    from recollect.cli.console import print_error
    from recollect.cli.group import recollect
    from recollect.errors import RecollectError

    for stream in (sys.stdout, sys.stderr):
        # a terminal that cannot show a character gets its number, not a traceback
        getattr(stream, "reconfigure", lambda **_: None)(errors="backslashreplace")
    try:
        code = recollect.main(prog_name="recollect", standalone_mode=False)
    except click.Abort:
        return INTERRUPTED
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except RecollectError as error:
        print_error(str(error))
        return FAILED
    except BrokenPipeError:
        raise
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        print_error(f"{where}{error.strerror or error}")
        return FAILED
    return code if isinstance(code, int) else 0

"""`recollect` and `python -m recollect`."""

from __future__ import annotations

import sys

from recollect import __version__


def main(arguments: list[str] | None = None) -> None:
    """Run the command with these arguments, by default the program's, and exit with its code."""
    given = sys.argv[1:] if arguments is None else arguments
    if given in (["--version"], ["-V"]) and sys.stdout is not None:
        sys.stdout.write(f"recollect {__version__}\n")
        return
    # late: the version needs no frame
    from recollect.terminal.first_paint import drawn_at_once, opens_terminal

    if arguments is None and opens_terminal(given):
        with drawn_at_once():
            _run(given)
    else:
        _run(given)


def _run(arguments: list[str]) -> None:
    # late: the version needs neither click nor a command
    from recollect.cli.main import run

    run(arguments)


if __name__ == "__main__":
    main()

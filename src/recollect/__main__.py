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
    # late: the version needs neither click nor a command
    from recollect.cli.main import run

    run(given)


if __name__ == "__main__":
    main()

"""`recollect` and `python -m recollect`."""

from __future__ import annotations

import sys


def main() -> None:
    if sys.argv[1:] in (["--version"], ["-V"]):  # before anything is imported: start-up is instant
        from recollect import __version__

        sys.stdout.write(f"recollect {__version__}\n")
        return
    from recollect.cli.main import run

    run()


if __name__ == "__main__":
    main()

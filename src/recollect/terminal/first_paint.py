"""The first frame of the terminal program, drawn before anything heavy is loaded.

Loading Textual takes longer than a person should wait for a sign of life. So the program's frame is
drawn at once with a few escape sequences; Textual draws over it. What is typed meanwhile stays in
the terminal's queue, without an echo, and reaches the prompt. However the program ends, the
terminal is as it was before. Only what Python has loaded anyway is imported here.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

_VALUED = """
-m --model --mode --allow --deny --add-dir --attach --system --store --max-turns
"""
_WITH_VALUE = frozenset(_VALUED.split())
_ALONE = frozenset(("-c", "--continue", "--fork"))
_ENTER, _LEAVE = "\x1b[?1049h\x1b[?25l\x1b[H\x1b[2J", "\x1b[?1049l\x1b[?25h\x1b[0m"
MIN_WIDTH, MIN_HEIGHT = 20, 6


def opens_terminal(arguments: Sequence[str]) -> bool:
    """Whether these arguments can only mean the terminal program, and it can be drawn."""
    if os.environ.get("TERM", "dumb") == "dumb" or not _on_terminal():
        return False
    left = list(arguments)
    while left:
        word = left.pop(0)
        name, glued, _ = word.partition("=")
        if name in (*_WITH_VALUE, "--resume") and glued:
            continue
        if word in _WITH_VALUE and left:
            left.pop(0)
        elif word in ("-r", "--resume"):  # it may have a value
            left = left[1:] if left and not left[0].startswith("-") else left
        elif word not in _ALONE:
            return False
    return True


def _on_terminal() -> bool:
    return all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout))


class FirstFrame:
    """`hand_over` says that the program draws from now on. Until then what goes to stderr waits, so
    that an error is not drawn on a screen that goes away."""

    def __init__(self) -> None:
        self._stderr, self._held = sys.stderr, io.StringIO()
        self.is_drawn = False

    def draw(self) -> None:
        with suppress(OSError):
            size = os.get_terminal_size(sys.stdout.fileno())
            self.is_drawn, sys.stderr = True, self._held
            sys.stdout.write(_ENTER + _draw(*size))
            sys.stdout.flush()

    def hand_over(self) -> None:
        self.is_drawn, sys.stderr = False, self._stderr
        self._stderr.write(self._held.getvalue())

    def leave(self) -> None:
        """Go back to the terminal's own screen, if nobody took over."""
        if self.is_drawn:
            with suppress(OSError):
                sys.stdout.write(_LEAVE)
                sys.stdout.flush()
            self.hand_over()


FIRST_FRAME = FirstFrame()


@contextmanager
def drawn_at_once() -> Iterator[None]:
    """Draw the first frame; in the end the terminal is as it was."""
    # late: not on every system
    import termios

    keyboard = sys.stdin.fileno()
    try:
        before, quiet = termios.tcgetattr(keyboard), termios.tcgetattr(keyboard)
    except termios.error:
        yield
        return
    quiet[0] &= ~termios.ICRNL  # Enter stays Enter
    quiet[3] &= ~(termios.ECHO | termios.ICANON)
    termios.tcsetattr(keyboard, termios.TCSANOW, quiet)
    FIRST_FRAME.draw()
    try:
        yield
    finally:
        FIRST_FRAME.leave()
        termios.tcsetattr(keyboard, termios.TCSANOW, before)


def _draw(width: int, height: int) -> str:
    """The prompt's box and the line below it, where the program will have them."""
    if width < MIN_WIDTH or height < MIN_HEIGHT:
        return ""
    row, line = height - 3, "─" * (width - 2)
    encoding = (sys.stdout.encoding or "").lower().replace("-", "")
    corners = "╭╮╰╯│"
    if encoding != "utf8":
        corners, line = "++++|", "-" * (width - 2)
    top_left, top_right, low_left, low_right, side = tuple(corners)
    return (
        f"\x1b[{row};1H{top_left}{line}{top_right}"
        f"\x1b[{row + 1};1H{side}{' ' * (width - 2)}{side}"
        f"\x1b[{row + 2};1H{low_left}{line}{low_right}"
        f"\x1b[{row + 3};2H\x1b[2mrecollect\x1b[0m"
    )

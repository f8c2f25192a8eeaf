"""One line above the prompt: what is happening now, for how long, and how to stop it.

While nothing happens it is empty and no timer runs. The spinner turns only on a real terminal.
"""

from __future__ import annotations

from time import monotonic

from textual.timer import Timer
from textual.widgets import Static

from recollect.display.display_text import one_line, truncate
from recollect.display.plain_marks import ascii_text

TURNS_SECONDS = 0.25
_SPINNER = "◐◓◑◒"
HINT = "esc to interrupt"


def activity_text(activity: str, seconds: float, width: int) -> str:
    """What is less important is left out where there is no room."""
    elapsed = (
        f"{int(seconds) // 60} min {int(seconds) % 60} s" if seconds >= 60 else f"{int(seconds)} s"
    )
    what = one_line(activity)
    for text in (f"{what} · {elapsed} · {HINT}", f"{what} · {elapsed}", what):
        if len(text) <= width:
            return text
    return truncate(what, max(1, width))


class ActivityLine(Static):
    DEFAULT_CSS = "ActivityLine { height: 1; padding: 0 1; color: $text-muted; }"

    def __init__(self, *, ascii_only: bool = False) -> None:
        super().__init__("", markup=False)
        self.activity = ""
        self._ascii = ascii_only
        self._began = 0.0
        self._turn = 0
        self._timer: Timer | None = None

    def show(self, activity: str) -> None:
        """Nothing is painted if it is what is shown already."""
        if activity == self.activity:
            return
        if not self.activity:
            self._began = monotonic()
        self.activity = activity
        if activity and self._timer is None:
            turns = not self.app.is_headless
            self._timer = self.set_interval(TURNS_SECONDS if turns else 1.0, self._tick)
        elif not activity and self._timer is not None:
            self._timer.stop()
            self._timer = None
        self._paint()

    def _tick(self) -> None:
        self._turn += 1
        self._paint()

    def _paint(self) -> None:
        if not self.activity:
            self.update("", layout=False)
            return
        width = max(4, self.size.width - 4)
        text = activity_text(self.activity, monotonic() - self._began, width)
        spinner = _SPINNER[self._turn % len(_SPINNER)]
        mark = "-" if self._ascii else "·" if self.app.is_headless else spinner
        self.update(f"{mark} {ascii_text(text) if self._ascii else text}", layout=False)

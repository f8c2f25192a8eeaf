"""What can stand at the cursor, in at most eight rows above the prompt; the keys stay with it."""

from __future__ import annotations

from collections.abc import Callable

from rich.text import Text
from textual.widgets import Static

from recollect.display.display_text import display_width, one_line, pad, truncate
from recollect.terminal.palette import read_palette
from recollect.terminal.prompt_completion import MOST, Candidate

AROUND = 7  # lines of a terminal that are not for the list


class CompletionList(Static):
    DEFAULT_CSS = """
    CompletionList {
        height: auto; max-height: 8; padding: 0 1; display: none; background: $panel;
    }
    """

    def __init__(self) -> None:
        super().__init__("", markup=False)
        self.candidates: tuple[Candidate, ...] = ()
        self.selected = 0
        self.moved = False  # the user has chosen, not only typed
        self._first = 0  # the candidate in the first row
        self.on_choose: Callable[[Candidate], None] = lambda _: None
        self.on_close: Callable[[], None] = lambda: None
        self.is_done: Callable[[Candidate], bool] = lambda _: False  # it stands there already

    @property
    def is_open(self) -> bool:
        return bool(self.candidates)

    def show(self, candidates: list[Candidate]) -> None:
        self.candidates = tuple(candidates)
        self.selected, self.moved = 0, False  # what fits best is what is meant
        self._draw()

    def take_key(self, key: str) -> bool:
        if key in ("up", "down", "ctrl+p", "ctrl+n"):
            step = -1 if key in ("up", "ctrl+p") else 1
            self.selected = (self.selected + step) % len(self.candidates)
            self.moved = True
            self._draw()
        elif key == "escape":
            self.show([])
            self.on_close()
        elif key in ("tab", "enter"):
            chosen = self.candidates[self.selected]
            if key == "enter" and self.is_done(chosen):
                self.show([])
                return False
            if not chosen.ends and self.is_done(chosen):  # Tab goes on into a folder
                chosen = self.candidates[(self.selected + 1) % len(self.candidates)]
            self.on_choose(chosen)
        else:
            return False
        return True

    def _draw(self) -> None:
        self.display = bool(self.candidates)
        if not self.candidates:
            return
        most = max(1, min(MOST, self.app.size.height - AROUND))
        self._first = max(min(self._first, self.selected), self.selected - most + 1)
        self._first = max(0, min(self._first, len(self.candidates) - most))
        rows = self.candidates[self._first : self._first + most]
        width = max(10, self.app.size.width - 2)
        labels = max(display_width(one_line(row.label[:200])) for row in rows)
        text, palette = Text(end=""), read_palette(self)
        for number, row in enumerate(rows, self._first):
            label = pad(truncate(one_line(row.label[:200]), min(labels, width)), labels)
            detail = truncate(f"  {one_line(row.detail)}", max(1, width - labels))
            if not row.detail or width - labels <= 8:
                detail = ""
            if number == self.selected:
                text.append(pad(label[:width] + detail, width), palette.cursor)
            else:
                text.append(label[:width], palette.strong)
                text.append(detail, palette.dim)
            text.append("\n" if number < self._first + len(rows) - 1 else "")
        self.update(text)

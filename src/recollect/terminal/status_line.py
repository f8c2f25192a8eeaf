"""One line below the prompt: mode, model, how full the window is, cache, cost, and the title.

Where there is no room the least important is left out first.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from textual.widgets import Static

from recollect.display.display_text import display_width, format_cost, one_line, truncate
from recollect.display.plain_marks import ascii_text

BAR_WIDTH = 10
LEAST_TITLE = 12  # columns; a shorter piece of a title says nothing


class WindowUse(msgspec.Struct, frozen=True):
    """How full the model's window is."""

    tokens: int = 0
    window: int = 0
    threshold: int = 0  # where compaction begins


class SessionStatus(msgspec.Struct, frozen=True):
    """What the status line shows."""

    mode: str = ""
    model: str = ""
    title: str = ""
    use: WindowUse = WindowUse()
    cost: float | None = None
    cost_complete: bool = True  # False: it cost more, by models without a known price
    cached: int | None = None  # of the last request's input, what came from the provider's cache
    input: int = 0


def draw_window_bar(use: WindowUse, width: int = BAR_WIDTH) -> str:
    """The window as a bar, with a mark where compaction begins."""
    if use.window <= 0:
        return ""
    filled = min(width, round(width * use.tokens / use.window))
    mark = min(width - 1, round(width * use.threshold / use.window))
    cells = ["█" if n < filled else "░" for n in range(width)]
    cells[mark] = "▐" if mark < filled else "│"
    return "".join(cells)


def format_tokens(tokens: int) -> str:
    """Short: 950, 12.3k, 128k, 1.05M."""
    if tokens < 1_000:
        return str(tokens)
    if tokens < 1_000_000:
        return f"{tokens / 1_000:.1f}k".replace(".0k", "k")
    return f"{tokens / 1_000_000:.2f}M".replace(".00M", "M")


def status_text(status: SessionStatus, width: int) -> str:
    """As much as fits; the title takes what is left."""
    text = ""
    for parts in _choices(status):
        text = " · ".join(filter(None, parts))
        if display_width(text) <= width:
            break
    room = width - display_width(text) - 3
    title = one_line(status.title)
    if title and text and room >= LEAST_TITLE:
        return f"{text} · {truncate(title, room)}"
    return truncate(text, width)


def _choices(status: SessionStatus) -> Iterator[tuple[str, ...]]:
    """From everything to the most important alone."""
    use, mode, model = status.use, one_line(status.mode), one_line(status.model)
    tokens = f"{format_tokens(use.tokens)}/{format_tokens(use.window)}" if use.window else ""
    window = f"{draw_window_bar(use)} {tokens}" if use.window else ""
    cache = ""
    if status.cached is not None and status.input:
        cache = f"cache {100 * status.cached // status.input} %"
    cost = format_short_cost(status.cost) + ("" if status.cost_complete else "+")
    cost = cost if status.cost is not None else ""
    yield mode, model, window, cache, cost
    yield mode, model, window, cost
    yield mode, model, window
    yield mode, truncate(model, 20), tokens
    yield truncate(model, 20), tokens
    yield (f"{100 * use.tokens // use.window} % full" if use.window else truncate(model, 20),)


def format_short_cost(dollars: float | None) -> str:
    """Cents are enough, unless it is less than one."""
    if dollars is None or dollars < 0.01:
        return format_cost(dollars)
    return f"${dollars:,.2f}"


class StatusLine(Static):
    DEFAULT_CSS = "StatusLine { height: 1; padding: 0 1; color: $text-muted; }"

    def __init__(self, *, ascii_only: bool = False) -> None:
        super().__init__("", markup=False)
        self._status = SessionStatus()
        self._ascii = ascii_only

    def show(self, status: SessionStatus) -> None:
        self._status = status
        self._paint()

    def on_resize(self) -> None:
        self._paint()

    def _paint(self) -> None:
        text = status_text(self._status, max(4, self.size.width - 2))
        self.update(ascii_text(text) if self._ascii else text, layout=False)

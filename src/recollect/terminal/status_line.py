"""One line below the prompt: mode, model, session, how full the window is, cost and cache."""

from __future__ import annotations

import msgspec
from textual.widgets import Static

from recollect.display.display_text import format_cost, one_line, truncate

BAR_WIDTH = 10


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
    """Short: 950, 12.3k, 1.05M."""
    if tokens < 1_000:
        return str(tokens)
    return f"{tokens / 1_000:.1f}k" if tokens < 1_000_000 else f"{tokens / 1_000_000:.2f}M"


def status_text(status: SessionStatus, width: int) -> str:
    use = status.use
    window = f"{draw_window_bar(use)} {format_tokens(use.tokens)}/{format_tokens(use.window)}"
    parts = [status.mode, one_line(status.model), window if use.window else ""]
    if status.cached is not None and status.input:
        parts.append(f"cache {100 * status.cached // status.input} %")
    parts += [format_cost(status.cost), one_line(status.title)]
    return truncate(" · ".join(filter(None, parts)), width)


class StatusLine(Static):
    DEFAULT_CSS = "StatusLine { height: 1; padding: 0 1; color: $text-muted; }"

    def show(self, status: SessionStatus) -> None:
        self.update(status_text(status, max(10, self.size.width - 2)), layout=False)

    def __init__(self) -> None:
        super().__init__("", markup=False)

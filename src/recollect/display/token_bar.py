"""Numbers of tokens as bars of block characters, for lists and headings."""

from __future__ import annotations

_EIGHTHS = " ▏▎▍▌▋▊▉"


def draw_bar(part: int, whole: int, width: int) -> str:
    """A bar in eighths of a column; anything above zero is visible."""
    if part <= 0 or whole <= 0:
        return ""
    full, rest = divmod(max(1, round(8 * width * min(part, whole) / whole)), 8)
    return "█" * full + _EIGHTHS[rest].strip()


def format_percent(share: float) -> str:
    return f"{100 * share:.1f} %"

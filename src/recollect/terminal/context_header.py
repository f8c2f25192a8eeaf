"""The first lines of the context screen: how full the window is, and what comes next."""

from __future__ import annotations

from recollect.display.context_report import ContextReport
from recollect.display.context_rows import describe_basis, describe_next
from recollect.display.display_text import one_line, truncate
from recollect.display.token_bar import format_percent
from recollect.terminal.status_line import WindowUse, draw_window_bar


def header_lines(report: ContextReport, width: int, *, bar: bool = True) -> list[str]:
    """Without the bar for text, which may be read aloud."""
    counted, budget = report.provider_count, report.budget
    about, how = describe_basis(report)
    guess = "" if report.window_is_known else " (a guess)"
    share = format_percent(counted.tokens / budget.window)
    model = one_line(report.model.name)
    first = f"{about}{counted.tokens:,} tokens {how}, {share} of the {budget.window:,} of {model}"
    left = report.threshold - counted.tokens
    where = f"{left:,} below" if left >= 0 else f"{-left:,} above"
    use = WindowUse(counted.tokens, budget.window, report.threshold)
    words = f"{where} the compaction threshold of {report.threshold:,}"
    room = max(10, min(40, width - len(words) - 1))
    second = f"{draw_window_bar(use, room)} {words}" if bar else words
    third = describe_next(report) or "the next request: …"
    return [truncate(line, width) for line in (first + guess, second, third)]

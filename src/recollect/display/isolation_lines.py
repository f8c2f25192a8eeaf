"""Which sandbox commands run in, what it cannot do, and how to get a better one, in lines."""

from __future__ import annotations

from recollect.display.display_text import one_line
from recollect.execution.sandbox import Isolation


def isolation_texts(isolation: Isolation) -> list[str]:
    """What is in force, then what it cannot do and the remedy."""
    more = ("; ".join(isolation.limitations), isolation.refusal, isolation.remedy)
    return [one_line(text) for text in (isolation.description, *filter(None, more))]

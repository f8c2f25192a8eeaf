"""Python's garbage collector in a process that does nothing but serve."""

from __future__ import annotations

import gc

THRESHOLDS = (50_000, 50, 100)  # Python's own, 700, 10 and 10, look at everything too often


def collect_less_often() -> None:
    """What is loaded by now stays: it is looked at no more. Of what comes, most is freed without
    the collector; a look at everything stops every client for tens of milliseconds."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)

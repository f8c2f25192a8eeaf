"""Python's garbage collector in a process that answers somebody: a look at everything stops it for
tens of milliseconds, and finds next to nothing in what was loaded to stay."""

from __future__ import annotations

import gc

# Python's own, 700, 10 and 10, look at everything too often; a look at 50,000 takes 20 ms
THRESHOLDS = (50_000, 50, 100)
SMOOTH_THRESHOLDS = (4_000, 5, 200)


def collect_less_often() -> None:
    """What is loaded by now stays: it is looked at no more. Of what comes, most is freed without
    the collector."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)


def keep_loaded() -> None:
    """The same without a look that takes long, while somebody types."""
    gc.freeze()
    gc.set_threshold(*SMOOTH_THRESHOLDS)

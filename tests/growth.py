"""How a cost grows with its input, judged so that other programs on the machine do not matter."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from time import process_time


def is_linear(
    prepare: Callable[[int], Callable[[], object]], small: int, large: int, slack: float = 4.0
) -> bool:
    """Whether the work for `large` takes at most `slack` times what its size allows for.

    Other programs make a round longer, never shorter: rounds are repeated until one of each size
    was quick enough, which no number of rounds does for a cost that grows with the square.
    """
    shortest = {small: inf, large: inf}
    for _ in range(12):
        for size in (small, large):
            work = prepare(size)
            begun = process_time()
            work()
            shortest[size] = min(shortest[size], process_time() - begun)
        # the constant covers what is spent once, whatever the size
        if shortest[large] <= slack * large / small * shortest[small] + 0.05:
            return True
    return False

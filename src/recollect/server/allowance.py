"""How often a client may do something: a rate with a burst."""

from __future__ import annotations

import time


class Allowance:
    """A rate with a burst: what is used now and regained as time passes."""

    def __init__(self, per_second: float, burst: float) -> None:
        self._per_second, self._burst = per_second, burst
        self._left, self._at = burst, time.monotonic()

    def use(self, amount: float) -> float:
        """Seconds to wait before the next use; 0 within the rate."""
        at = time.monotonic()
        self._left = min(self._burst, self._left + (at - self._at) * self._per_second) - amount
        self._at = at
        return max(0.0, -self._left / self._per_second)

    def take(self, amount: float) -> float:
        """Use as much if it is there; otherwise nothing, and the seconds until it will be."""
        wait = self.use(amount)
        if wait:
            self._left += amount
        return wait

from __future__ import annotations

import os

from hypothesis import settings

# machines are noisy: a property says what holds, the benchmarks say how fast
# The same examples every time, so that a run tells of the change at hand and not of luck. New ones
# are looked for with HYPOTHESIS_EXAMPLES=1000.
_more = int(os.environ.get("HYPOTHESIS_EXAMPLES", "0"))
settings.register_profile("noisy", deadline=None, derandomize=not _more, max_examples=_more or 100)
settings.load_profile("noisy")

from __future__ import annotations

from hypothesis import settings

# machines are noisy: a property says what holds, the benchmarks say how fast
settings.register_profile("noisy", deadline=None)
settings.load_profile("noisy")

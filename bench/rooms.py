"""Where the time of a profiled program goes, by room: our packages, and the libraries below them.

Built-in functions, system calls among them, count for the room that calls them. Waiting for
something to happen counts for nobody.
"""

from __future__ import annotations

import pstats
import re
from collections import defaultdict

_OURS = re.compile(r"src/recollect/(\w+)")


def _room(file: str) -> str:
    if "site-packages/" in file:
        return file.split("site-packages/")[1].split("/", maxsplit=1)[0]
    if (found := _OURS.search(file)) is not None:
        return f"recollect/{found[1]}"
    if "/bench/" in file:
        return "bench"
    if "/asyncio/" in file or file.endswith("selectors.py"):
        return "asyncio"
    return "other parts of Python"


def render_rooms(stats: pstats.Stats, turns: int, most: int = 20) -> str:
    """A table: calls and milliseconds of a turn, as the profiler sees them, and the share."""
    calls, seconds = defaultdict[str, float](float), defaultdict[str, float](float)
    for (file, _, name), (_, count, own, _, callers) in stats.stats.items():  # type: ignore[attr-defined]
        if "'poll' of 'select." in name:
            continue
        if file == "~" and callers:
            for (caller, _, _), (_, count_here, own_here, _) in callers.items():
                calls[_room(caller)] += count_here
                seconds[_room(caller)] += own_here
        else:
            calls[_room(file)] += count
            seconds[_room(file)] += own
    total = sum(seconds.values())
    rows = sorted(seconds, key=lambda name: -seconds[name])[:most]
    lines = [f"{sum(calls.values()) / turns:.0f} calls a turn, {turns} turns"]
    lines += [
        "| room | calls a turn | ms under the profiler | share |",
        "| --- | --: | --: | --: |",
    ]
    lines += [
        f"| {name} | {calls[name] / turns:.0f} | {1_000 * seconds[name] / turns:.2f} "
        f"| {seconds[name] / total:.0%} |"
        for name in rows
    ]
    return "\n".join(lines)

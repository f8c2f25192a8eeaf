"""How the machine is doing: processors, memory, disk.

`system_monitor` takes a fifth of a second, changes nothing, and answers in a few lines; what cannot
be known on this machine is said to be unknown.
"""

from __future__ import annotations

import asyncio

from recollect.tools.contract import Place, tool


@tool("read")
async def system_monitor(place: Place) -> str:
    """Tells how busy this machine is: processors, memory, and room on the project's disk. For
    deciding whether heavy work can be started, or why something is slow."""
    from recollect.tools.measuring import report

    return await asyncio.to_thread(report, place.root)

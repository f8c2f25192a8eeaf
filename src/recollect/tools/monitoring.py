"""How the machine is doing: processors, memory, disk.

`system_monitor` takes a fifth of a second, changes nothing, and answers in a few lines; what cannot
be known on this machine is said to be unknown.
"""

from __future__ import annotations

import asyncio

from recollect.tools.tool import ToolContext, tool


@tool("read")
async def system_monitor(place: ToolContext) -> str:
    """Tells how busy this machine is: processors, memory, and room on the project's disk. For
    deciding whether heavy work can be started, or why something is slow."""
    from recollect.tools.system_monitor import measure_system

    return await asyncio.to_thread(measure_system, place.root)

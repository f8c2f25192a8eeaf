"""Loads what the first prompt and its calls need, while the user reads and types.

The event loop would stop for a quarter of a second in the middle of the first reply. A thread that
loads gives way to keys every few milliseconds.
"""

from __future__ import annotations

import asyncio
from importlib import import_module

from recollect.runtime.garbage_collection import keep_loaded

_NEEDED = (  # in the order in which a first prompt needs them
    "recollect.models.transport",
    "recollect.codecs.openai.wire",
    "recollect.codecs.anthropic.wire",
    "recollect.codecs.text_tools",
    "recollect.runtime.command_permission",
    "recollect.tools.content_search",
    "recollect.tools.file_reader",
    "recollect.tools.file_editor",
    "recollect.execution.command_runner",
    "recollect.agent.hook_runner",
    "recollect.store.ranked_search",
    "recollect.snapshot_writer",
)


async def load_ahead() -> None:
    for name in _NEEDED:
        await asyncio.to_thread(import_module, name)
    keep_loaded()

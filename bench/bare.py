"""Raw SQLite with text that was serialised beforehand: the least that storing rows can cost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bench import raw


async def append(place: Path, n: int) -> dict[str, Any]:
    return await raw.append(place, n, write=str)


async def batch(place: Path, batches: int, size: int) -> dict[str, Any]:
    return await raw.batch(place, batches, size, write=str)

"""One measurement: `python -m bench.worker OUT JOB` runs a contender's task, writes JSON to OUT."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

Task = Callable[..., Coroutine[Any, Any, dict[str, Any]]]


def _find(contender: str, task: str) -> Task:
    from bench import bare, ours, peers, raw, stdlib, view_ours, view_peers

    if contender in peers.PEERS:
        return peers.task(contender, task)
    if contender in view_peers.PEERS:
        return view_peers.task(contender, task)
    modules = {"raw": raw, "bare": bare, "ours": ours, "sqlite3": stdlib, "view": view_ours}
    found: Task = getattr(modules[contender], task)
    return found


def main() -> None:
    out, job = Path(sys.argv[1]), json.loads(sys.argv[2])
    work = _find(job["contender"], job["task"])
    result = asyncio.run(work(Path(job["place"]), **job["options"]))
    out.write_text(json.dumps(result))


if __name__ == "__main__":
    main()

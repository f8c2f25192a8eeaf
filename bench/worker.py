"""One measurement: `python -m bench.worker OUT JOB` runs a contender's task, writes JSON to OUT."""

from __future__ import annotations

import asyncio
import importlib
import json
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

Task = Callable[..., Coroutine[Any, Any, dict[str, Any]]]
_MODULES = {
    "raw": "raw",
    "bare": "bare",
    "ours": "ours",
    "sqlite3": "stdlib",
    "view": "views_ours",
    "codec": "codecs_ours",
    "reader": "streams",
    "turns": "turns_ours",
    "postgres": "postgres",
}


def _find(contender: str, task: str) -> Task:
    from bench import codecs_peers, peers, turns_peers, views_peers

    # the same peer is measured with other tasks there
    if (peer := contender.removeprefix("turns of ")) != contender:
        return turns_peers.task(peer, task)
    for others in (peers, views_peers, codecs_peers):
        if contender in others.PEERS:
            return others.task(contender, task)
    found: Task = getattr(importlib.import_module(f"bench.{_MODULES[contender]}"), task)
    return found


def main() -> None:
    out, job = Path(sys.argv[1]), json.loads(sys.argv[2])
    work = _find(job["contender"], job["task"])
    result = asyncio.run(work(Path(job["place"]), **job["options"]))
    out.write_text(json.dumps(result))


if __name__ == "__main__":
    main()

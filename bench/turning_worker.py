"""One measurement of turns: `python -m bench.turning_worker OUT JOB`, as `bench.worker` does it."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path


def main() -> None:
    from bench import turning_ours, turning_peers

    out, job = Path(sys.argv[1]), json.loads(sys.argv[2])
    if job["contender"] == "ours":
        work = getattr(turning_ours, job["task"])
    else:
        work = turning_peers.task(job["contender"], job["task"])
    out.write_text(json.dumps(asyncio.run(work(Path(job["place"]), **job["options"]))))


if __name__ == "__main__":
    main()

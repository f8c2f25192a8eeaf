"""Importing a session file of another program, beside parsing its JSON and nothing else."""

from __future__ import annotations

import json
import random
from pathlib import Path

from bench.measure import Setting, once, progress
from bench.report import Row, Table

_WORDS = [f"word{number}" for number in range(3_000)]
_RECORD_SIZES = (1_000, 2_000, 5_000)  # bytes, roughly; real sessions have 1 to 2 kB
WANTED = 40.0  # MB of the file for each second of processor time


def imports(setting: Setting) -> Table:
    rows = []
    for size in _RECORD_SIZES:
        for total in (5 * each for each in setting.scale.streams):  # streamed
            progress(f"importing {total / 1e6:.0f} MB of records of {size:,} bytes")
            file = setting.memory / "session.jsonl"
            write_session(file, total, size)
            found = once("ours", "import_speed", setting.memory, path=str(file))
            file.unlink()
            what = f"{total / 1e6:.0f} MB, records of {size / 1e3:.0f} kB"
            alone = f"{found['json']:.0f} MB/s JSON alone"
            rows.append(Row(what, found["speed"], WANTED, alone, unit=" MB/s", at_least=True))
            grown = found["grown"] * 1e6 / total
            rows.append(Row(f"{what}: memory", grown, None, "of the file's size"))
    note = (
        "MB of the file for each second of processor time: parsed, converted, hashed, compressed, "
        "stored with its original bytes, not indexed. Memory: how much the process grew."
    )
    return Table("imports", "Importing a file", note, tuple(rows))


def write_session(file: Path, total: int, size: int) -> None:
    """A session of Claude Code: prompts, replies with calls, results."""
    noise, parent = random.Random(size), None
    with file.open("w", encoding="ascii") as stream:
        number = 0
        while stream.tell() < total:
            uuid, reply = f"00000000-0000-4000-8000-{number:012}", number % 2
            text = " ".join(noise.choices(_WORDS, k=max(1, (size - 450) // 9)))
            content = [{"type": "text", "text": text}] if reply else text
            record = {
                "parentUuid": parent,
                "isSidechain": False,
                "userType": "external",
                "cwd": "/home/me/project",
                "sessionId": "11111111-2222-3333-4444-555555555555",
                "version": "1.0.0",
                "gitBranch": "main",
                "type": "assistant" if reply else "user",
                "message": {"id": f"m{number}", "content": content},
                "uuid": uuid,
                "timestamp": "2026-11-01T10:00:00.000Z",
            }
            stream.write(json.dumps(record) + "\n")
            number, parent = number + 1, uuid

"""Importing session files of other programs, beside parsing their JSON and nothing else."""

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
    for program, write in (("Claude Code", write_session), ("Gemini CLI", write_messages)):
        for size in _RECORD_SIZES:
            for total in (5 * each for each in setting.scale.streams):  # streamed
                progress(f"importing {total / 1e6:.0f} MB of records of {size:,} bytes")
                file = setting.memory / "session.jsonl"
                write(file, total, size)
                found = once("ours", "import_speed", setting.memory, path=str(file))
                file.unlink()
                what = f"{program}: {total / 1e6:.0f} MB, records of {size / 1e3:.0f} kB"
                alone = f"{found['json']:.0f} MB/s JSON alone"
                rows.append(Row(what, found["speed"], WANTED, alone, unit=" MB/s", at_least=True))
                grown = found["grown"] * 1e6 / total
                rows.append(Row(f"{what}: memory", grown, None, "of the file's size"))
    note = (
        "MB of the file for each second of processor time: parsed, converted, hashed, compressed, "
        "stored with its original bytes, not indexed. Memory: how much the process grew."
    )
    return Table("imports", "Importing a file", note, tuple(rows))


def write_messages(file: Path, total: int, size: int) -> None:
    """A session of Gemini CLI: prompts and replies, every second one with a call."""
    noise, time = random.Random(size), "2026-11-01T10:00:00.000Z"
    header = {"sessionId": "11111111-2222", "projectHash": "h", "startTime": time, "kind": "main"}
    with file.open("w", encoding="ascii") as stream:
        stream.write(json.dumps(header) + "\n")
        number = 0
        while stream.tell() < total:
            text = " ".join(noise.choices(_WORDS, k=max(1, (size - 250) // 9)))
            record = {"id": f"00000000-0000-4000-8000-{number:012}", "timestamp": time}
            record |= {"type": "gemini" if number % 2 else "user", "content": text}
            more = _reply(number, text) if number % 2 else {}
            stream.write(json.dumps(record | more) + "\n")
            number += 1


def _reply(number: int, text: str) -> dict[str, object]:
    time, name = "2026-11-01T10:00:01.000Z", "read_file"
    thought = {"subject": "Plan", "description": "look at the file", "timestamp": time}
    tokens = dict.fromkeys(("input", "output", "cached", "thoughts", "tool", "total"), number)
    reply: dict[str, object] = {"model": "gemini", "thoughts": [thought], "tokens": tokens}
    if number % 4 == 1:
        call, half = f"call-{number}", len(text) // 2
        response = {"id": call, "name": name, "response": {"output": text[half:]}}
        done = {"status": "success", "timestamp": time, "resultDisplay": "read"}
        result = [{"functionResponse": response}]
        made = {"id": call, "name": name, "args": {"file_path": "a.py"}, "result": result}
        reply |= {"content": text[:half], "toolCalls": [made | done]}
    return reply


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

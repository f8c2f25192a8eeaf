"""Bytes on disk after closing, against the same conversation as JSON lines."""

from __future__ import annotations

import os
import re
from pathlib import Path

from bench import conversation, peers
from bench.measure import Failed, Setting, once, progress
from bench.report import Row, Table

_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\.jsonl")


def sizes(setting: Setting) -> Table:
    rows = [*_synthetic(setting), *_transcripts(setting)]
    note = (
        "1 is the size of the JSON lines: for the synthetic conversation the bodies alone, one to "
        "a line, without ids and times; for transcripts their files. Ours: database and journal, "
        "ids, hashes and search index included."
    )
    return Table("sizes", "Bytes on disk", note, tuple(rows))


def _synthetic(setting: Setting) -> list[Row]:
    rows = []
    for n in setting.scale.singles:
        progress(f"sizes of {n:,}")
        lines = sum(len(text.encode()) + 1 for text in conversation.payloads(n))
        others = {}
        names = [p for p in setting.peers if peers.can(p, "append", n)]
        for name in ("raw", *names):
            try:
                known = setting.sizes.get((name, n))
                others[name] = (known or _stored(setting, name, n)) / lines
            except Failed as failure:
                setting.notes.append(f"size of {name}: {str(failure).splitlines()[-1]}")
        size, batches = 1_000, max(1, n // 1_000)
        single = once("ours", "append", setting.memory, n=n)["bytes"] / lines
        batched = once("ours", "batch", setting.memory, batches=batches, size=size)
        shown = f"{lines / 1e6:.2f} MB"
        rows.append(Row(f"{n:,} messages, single appends", single, None, shown, others))
        if batches * size == n:
            rows.append(
                Row(f"{n:,} messages, batches of {size:,}", batched["bytes"] / lines, None, shown)
            )
    return rows


def _stored(setting: Setting, name: str, n: int) -> int:
    return int(once(name, "append", setting.memory, n=n)["bytes"])


def _transcripts(setting: Setting) -> list[Row]:
    given = os.environ.get("RECOLLECT_TRANSCRIPTS")
    if not given:
        setting.notes.append("transcripts: set RECOLLECT_TRANSCRIPTS to their directory")
        return []
    folder = Path(given) / "claude-code"
    files = sorted(path for path in folder.glob("*.jsonl") if _UUID.fullmatch(path.name))
    progress(f"importing {len(files)} transcripts")
    try:
        found = once("ours", "import_transcripts", setting.memory, paths=[str(p) for p in files])
    except Failed as failure:
        setting.notes.append(f"transcripts: {str(failure).splitlines()[-1]}")
        return []
    if "missing" in found:
        setting.notes.append("transcripts: recollect.transcripts.session_import is not there yet")
        return []
    total = sum(path.stat().st_size for path in files)
    what = f"{len(files)} long transcripts, imported into one store"
    return [Row(what, found["bytes"] / total, 0.25, f"{total / 1e6:.2f} MB", rounds=found)]

"""Imports that are malformed, interrupted or starved: no crash, nothing lost, and the next import
completes what an earlier one began."""

from __future__ import annotations

import asyncio
import json
import random
import resource
import signal
import time
from pathlib import Path

import pytest

from recollect.entries import Message
from recollect.errors import CannotImport
from recollect.store.open_store import open_store
from recollect.store.sqlite import SqliteStore
from recollect.transcripts.format_table import FORMATS, RECORD_KEYS
from recollect.transcripts.record_stream import open_records
from recollect.transcripts.run_writer import stream_runs
from recollect.transcripts.session_import import import_file
from recollect.transcripts.source_file import SourceFile
from tests.cli.runner import Cli
from tests.reliability.children import in_store, note_figures
from tests.reliability.worker import text_for
from tests.transcripts.whole_files import read_transcript

MEMORY = 200_000  # kB that the process may grow by, however many files it reads


def claude_lines(count: int) -> bytes:
    lines, parent = [], None
    for n in range(count):
        uuid, reply = f"00000000-0000-4000-8000-{n:012}", n % 2
        content = [{"type": "text", "text": text_for(n)}] if reply else text_for(n)
        role = "assistant" if reply else "user"
        record = {
            "parentUuid": parent,
            "isSidechain": False,
            "sessionId": "s-1",
            "cwd": "/p",
            "type": role,
            "uuid": uuid,
            "timestamp": "2026-11-01T10:00:00.000Z",
            "message": {"id": f"m{n}", "role": role, "content": content},
        }
        lines.append(json.dumps(record))
        parent = uuid
    return "\n".join(lines).encode() + b"\n"


def server_file(count: int) -> bytes:
    messages = [
        {"role": "user", "content": text_for(n), "timestamp": "2026-01-01T00:00:00"}
        for n in range(count)
    ]
    return json.dumps({"session_id": "a", "messages": messages}).encode()


def gemini_lines(count: int) -> bytes:
    head = {"sessionId": "g", "projectHash": "h", "startTime": "2026-01-01T00:00:00Z"}
    records = [
        {"id": f"m{n}", "type": "user", "content": text_for(n), "timestamp": "2026-01-01T00:00:00Z"}
        for n in range(count)
    ]
    changes: list[object] = [{"$rewindTo": "m2"}, {"$set": {"messages": records[:2]}}]
    return "\n".join(map(json.dumps, [head, *records, *changes])).encode()


def damage(data: bytes, noise: random.Random) -> bytes:
    """One to four wounds of the kinds that crashes, editors and attackers make."""
    for _ in range(noise.randint(1, 4)):
        at, end = sorted(noise.randrange(len(data) + 1) for _ in range(2))
        end = min(end, at + 400)
        deep = b"[" * noise.choice((5, 95, 500, 20_000))
        data = noise.choice(
            (
                data[:at],
                data[:at] + data[end:],
                data[:end] + data[at:],
                data[:at] + noise.randbytes(noise.randint(1, 30)) + data[end:],
                data[:at] + deep + data[at:],
                data[:at] + b'{"uuid":"x","parentUuid":"x","type":"user"}' + data[at:],
                data.replace(b'"parentUuid": "00000000', b'"parentUuid": "00000001', 1),
                data[:at] + b'"a": 1, "a": NaN, ' + data[at:],
                data.replace(b"\n", b"\r\n"),
                data[:at] + b"\0" * 50 + data[at:],
            )
        )
    return data


def read_streamed(file: Path, format_: str) -> None:
    """As if the file were too large to be held in memory."""
    (row,) = (row for row in FORMATS if row.name == format_)
    transcript = row.read(open_records(SourceFile(file), RECORD_KEYS, whole=0))
    if transcript.stream is not None:
        streamed = tuple(transcript.each_entry())
        assert (streamed, transcript.stream.find_leaf()) == transcript.stream.load()
        runs, count, _ = stream_runs(transcript, None)
        assert sum(1 for run in runs for _ in run) == count


def malformed_trials(folder: Path, count: int) -> dict[str, float]:
    """`read_transcript` for each; every fourth as if it were large, and a whole import into a store
    for every fortieth."""
    noise, files = random.Random(count), (claude_lines(30), server_file(30), gemini_lines(30))
    streamed = {0: "claude-code", 2: "gemini"}  # by the file
    slowest, refused, warm = 0.0, 0, 0

    async def run() -> None:
        nonlocal slowest, refused, warm
        async with open_store(folder / "s.db") as store:
            for number in range(count):
                kind = noise.randrange(len(files))
                data = damage(files[kind], noise)
                before = time.process_time()
                try:
                    read_transcript(data, "malformed")
                    if number % 4 == 0:
                        (folder / "file").write_bytes(data)
                    if number % 4 == 0 and kind in streamed:
                        read_streamed(folder / "file", streamed[kind])
                    if number % 40 == 0:
                        await import_file(store, folder / "file")
                except CannotImport:
                    refused += 1
                slowest = max(slowest, time.process_time() - before)
                if number == count // 4:
                    warm = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    asyncio.run(run())
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - warm
    assert grown < MEMORY
    return {"files": count, "refused": refused, "slowest": slowest, "grown_kB": grown}


def test_malformed_files_are_read_as_far_as_they_can_be(tmp_path: Path) -> None:
    assert malformed_trials(tmp_path, 2_000)["refused"] < 2_000


@pytest.mark.long
@pytest.mark.timeout(3_600)
def test_a_hundred_thousand_malformed_files(tmp_path: Path) -> None:
    figures = malformed_trials(tmp_path, 100_000)
    note_figures("malformed imports", figures)
    assert figures["slowest"] < 1


def texts(path: Path) -> list[str]:
    async def read(store: SqliteStore) -> list[str]:
        (session,) = await store.sessions()
        bodies = [entry.body for entry in await store.path(session.id)]
        messages = [body for body in bodies if isinstance(body, Message)]
        return ["".join(getattr(part, "text", "") for part in one.parts) for one in messages]

    return in_store(path, read)


def test_an_import_without_space_says_so_and_is_completed_later(cli: Cli) -> None:
    count = 2_500  # several batches
    (cli.project / "a.jsonl").write_bytes(claude_lines(count))
    starved = ("prlimit", "--fsize=400000")  # bytes that a file may have, as if the disk were full
    refused = cli.process("import", "a.jsonl", before=starved)
    assert refused.code != 0
    assert "cannot write to" in refused.err or "cannot open" in refused.err
    assert cli.process("import", "a.jsonl").code == 0
    assert texts(cli.store) == [text_for(n) for n in range(count)]
    assert "nothing new" in cli.ok("import", str(cli.project / "a.jsonl")).out
    assert cli("doctor").code == 0


def test_an_interrupted_import_goes_on_from_there(cli: Cli) -> None:
    count = 6_000
    (cli.project / "a.jsonl").write_bytes(claude_lines(count))
    run = cli.start("import", "a.jsonl")
    journal = cli.home / "recollect.db-wal"
    while run.poll() is None and not (journal.exists() and journal.stat().st_size > 1_500_000):
        time.sleep(0.005)
    run.send_signal(signal.SIGINT)
    _, err = run.communicate(timeout=60)
    assert run.returncode == 0 or b"the same command goes on from there" in err
    assert cli.process("import", "a.jsonl").code == 0
    assert texts(cli.store) == [text_for(n) for n in range(count)]


def test_a_circle_of_parents_is_named_and_cut_the_same_way_each_time(cli: Cli) -> None:
    lines = claude_lines(6).replace(
        b'"parentUuid": null', b'"parentUuid": "00000000-0000-4000-8000-000000000003"'
    )
    (cli.project / "a.jsonl").write_bytes(lines)
    done = cli.process("import", "a.jsonl")
    assert done.code == 0
    assert "the parents of 4 records form a circle" in done.err
    again = cli.process("import", "a.jsonl")
    assert "nothing new" in again.out

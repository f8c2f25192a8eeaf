"""The entries of a large file, made one turn at a time: the same, in the same order, as all of them
at once; and a file that is ten times as large takes hardly more memory."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.imports import write_session
from recollect.entries import Entry, Source
from recollect.store.open_store import open_store
from recollect.transcripts.claude_code import session_reader
from recollect.transcripts.format_table import RECORD_KEYS
from recollect.transcripts.import_plan import plan_import
from recollect.transcripts.json_values import Json
from recollect.transcripts.record_source import RecordSource
from recollect.transcripts.record_stream import open_records
from recollect.transcripts.run_writer import stream_runs
from recollect.transcripts.session_import import import_file
from recollect.transcripts.source_file import SourceFile
from tests.transcripts.claude_code.record_strategies import BEGIN, RECORDS


def open_both(folder: str, records: list[Json], glued: int) -> tuple[RecordSource, RecordSource]:
    """In memory, and streamed; some lines hold two records."""
    lines = [json.dumps(record) for record in (BEGIN, *records)]
    for at in range(glued, len(lines), 5):
        lines[at : at + 2] = ["".join(lines[at : at + 2])]
    (file := Path(folder) / "a.jsonl").write_text("\n".join(lines))
    source = SourceFile(file)
    whole = open_records(source, RECORD_KEYS)
    return whole, open_records(source, RECORD_KEYS, whole=0)


@given(RECORDS, st.integers(1, 6))
def test_a_streamed_file_gives_the_same_entries_in_the_same_order(
    records: list[Json], glued: int
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        whole, streamed = (session_reader.read(each) for each in open_both(folder, records, glued))
        assert whole.stream is None
        if streamed.stream is None:  # it ends with a microcompaction of nothing
            assert streamed.entries == whole.entries
            return
        agents = tuple(agent.with_entries() for agent in streamed.subagents)
        assert msgspec.structs.replace(streamed.with_entries(), subagents=agents) == whole
        assert tuple(streamed.each_entry()) == whole.entries
        assert streamed.stream.find_leaf() == whole.leaf
        assert (streamed.count, streamed.updated) == (len(whole.entries), whole.updated)
        source = Entry("0" * 32, None, 1, Source(format="claude-code", name="a", size=0))
        for first in (source, None):
            plan = plan_import(whole, first, (), ())
            runs, count, _ = stream_runs(streamed, first)
            expected = [[entry.id for entry in run.entries] for run in plan.runs]
            found = [[(entry, entry.parent) for entry, _ in run] for run in runs]
            assert [[entry.id for entry, _ in run] for run in found if run] == expected
            after = [run[0][1] for run in found if run]
            assert after == [run.after for run in plan.runs]
            assert count == len(plan.new)


def test_an_interrupted_import_of_a_large_file_is_completed_by_the_next(tmp_path: Path) -> None:
    write_session(file := tmp_path / "large.jsonl", 6_000_000, 4_000)

    def stop(done: int, total: int) -> None:
        if done > total - 1_000:  # after the first batch
            raise InterruptedError

    async def run() -> None:
        async with open_store(tmp_path / "a.db") as whole, open_store(tmp_path / "b.db") as cut:
            done = await import_file(whole, file)
            with pytest.raises(InterruptedError):
                await import_file(cut, file, progress=stop)
            assert 0 < len(await cut.tree(done.session)) < done.added
            assert (await import_file(cut, file)).added < done.added
            assert await cut.tree(done.session) == await whole.tree(done.session)
            assert (await import_file(cut, file)).added == 0

    asyncio.run(run())


GROWN = """
import asyncio, sys
from pathlib import Path
from recollect.store.open_store import open_store
from recollect.transcripts.session_import import import_file

def peak():
    # not `ru_maxrss`, which begins with what the parent had
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0])

async def main(files):
    async with open_store(files[0].with_suffix(".db")) as store:
        before = peak()
        done = [await import_file(store, file) for file in files]
        assert done[1].already == done[0].added - 1
        print(peak() - before, *(each.added for each in done))

asyncio.run(main([Path(name) for name in sys.argv[1:]]))
"""


def grown_by_import(folder: Path, megabytes: int, part: float = 1) -> tuple[int, int, int]:
    """kB that a process grows by while it imports a part of a file, then all of it; and the entries
    that each of the two adds."""
    write_session(file := folder / f"{megabytes}.jsonl", megabytes * 1_000_000, 5_000)
    data = file.read_bytes()
    end = data.index(b"\n", int(len(data) * part) - 1) + 1
    (first := folder / f"{megabytes}-part.jsonl").write_bytes(data[:end])
    command = [sys.executable, "-c", GROWN, str(first), str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    for each in (first, file):
        each.unlink()
    grown, added, more = map(int, done.stdout.split())
    return grown, added, more


@pytest.mark.parametrize("part", [1, 0.7])
def test_a_file_that_is_four_times_as_large_takes_hardly_more_memory(
    tmp_path: Path, part: float
) -> None:
    # the small one fills most of what the two connections cache
    small, *_ = grown_by_import(tmp_path, 16, part)
    large, entries, more = grown_by_import(tmp_path, 64, part)
    assert large < small + 48_000 * 0.8  # kB: the file is 48 MB larger, in memory once
    assert entries > 12_000 * part
    assert (more == 0) == (part == 1)


@pytest.mark.long
@pytest.mark.timeout(3_600)
def test_a_file_of_a_gigabyte_takes_as_much_memory_as_a_small_one(tmp_path: Path) -> None:
    for megabytes in (20, 200, 1_000):
        grown, entries, _ = grown_by_import(tmp_path, megabytes)
        assert grown < 150_000 + entries * 0.4  # kB

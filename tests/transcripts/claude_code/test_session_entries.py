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

UUIDS = st.sampled_from([*"abcdefgh", ""])
CALLS = st.sampled_from(["c1", "c2", "c3"])
BLOCKS = st.one_of(
    st.builds(lambda text: {"type": "text", "text": text}, st.sampled_from(["x", "é\ud800", ""])),
    st.builds(lambda id_: {"type": "tool_use", "id": id_, "name": f"t{id_}", "input": {}}, CALLS),
    st.builds(lambda id_: {"type": "tool_result", "tool_use_id": id_, "content": "r"}, CALLS),
)
TIMES = st.sampled_from(["2026-11-01T10:00:00Z", "2026-11-02T10:00:00Z", None, "never"])
COMMON = {"uuid": UUIDS, "parentUuid": st.none() | UUIDS | st.just(7), "timestamp": TIMES}
MESSAGES = st.fixed_dictionaries(
    COMMON
    | {
        "type": st.sampled_from(["user", "assistant", "user", "assistant", "attachment"]),
        "isMeta": st.booleans(),
        "isSidechain": st.sampled_from([False, False, False, True]),
        "isCompactSummary": st.sampled_from([False, False, False, True]),
        "message": st.fixed_dictionaries(
            {
                "id": st.sampled_from(["m1", "m2", "m3", None]),
                "content": st.lists(BLOCKS, max_size=3) | st.just("said"),
            }
        ),
    }
)
BOUNDARIES = st.fixed_dictionaries(
    COMMON
    | {
        "type": st.just("system"),
        "subtype": st.sampled_from(["compact_boundary", "microcompact_boundary"]),
        "compactMetadata": st.builds(
            lambda uuids: {"preservedMessages": {"uuids": uuids}}, st.lists(UUIDS, max_size=2)
        ),
        "microcompactMetadata": st.builds(
            lambda calls: {"compactedToolIds": calls}, st.lists(CALLS, max_size=2)
        ),
    }
)
TITLES = st.just({"type": "ai-title", "aiTitle": "A title"})
RECORDS = st.lists(st.one_of(MESSAGES, MESSAGES, MESSAGES, BOUNDARIES, TITLES), max_size=12)
BEGIN = {
    "type": "user",
    "uuid": "z",
    "parentUuid": None,
    "message": {"content": "hi"},
    "sessionId": "s",
}


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
            runs, count = stream_runs(streamed, first)
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
import asyncio, resource, sys
from pathlib import Path
from recollect.store.open_store import open_store
from recollect.transcripts.session_import import import_file

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

async def main(file):
    async with open_store(file.with_suffix(".db")) as store:
        before = peak()
        done, again = await import_file(store, file), await import_file(store, file)
        assert (again.added, again.already) == (0, done.added - 1)
        print(peak() - before, done.added)

asyncio.run(main(Path(sys.argv[1])))
"""


def grown_by_import(folder: Path, megabytes: int, record: int = 5_000) -> tuple[int, int]:
    """kB that a process grows by while it imports a file twice, and the entries of it."""
    write_session(file := folder / f"{megabytes}.jsonl", megabytes * 1_000_000, record)
    command = [sys.executable, "-c", GROWN, str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    file.unlink()
    grown, added = done.stdout.split()
    return int(grown), int(added)


def test_a_file_that_is_four_times_as_large_takes_hardly_more_memory(tmp_path: Path) -> None:
    small, _ = grown_by_import(tmp_path, 8)
    large, entries = grown_by_import(tmp_path, 32)
    assert large < small + 24_000 * 0.8  # kB: the file is 24 MB larger, in memory once
    assert entries > 6_000


@pytest.mark.long
@pytest.mark.timeout(3_600)
def test_a_file_of_a_gigabyte_takes_as_much_memory_as_a_small_one(tmp_path: Path) -> None:
    for megabytes in (20, 200, 1_000):
        grown, entries = grown_by_import(tmp_path, megabytes)
        assert grown < 150_000 + entries * 0.4  # kB

"""A large session file in JSON lines: its entries are made one message at a time, and are those
that all of its records give at once."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from hypothesis import given

from recollect.entries import Entry, Source
from recollect.transcripts.format_table import RECORD_KEYS
from recollect.transcripts.gemini_cli import session_file
from recollect.transcripts.import_plan import plan_import
from recollect.transcripts.json_values import Json
from recollect.transcripts.record_stream import open_records
from recollect.transcripts.run_writer import stream_runs
from recollect.transcripts.source_file import SourceFile
from recollect.transcripts.transcript import Transcript
from tests.transcripts.gemini_cli.line_strategies import HEADER, LINES, ODD_LINES, WholeLines


def read_lines(folder: str, lines: list[Json], *, whole: int) -> Transcript:
    (file := Path(folder) / "a.jsonl").write_text("\n".join(map(json.dumps, lines)))
    return session_file.read(open_records(SourceFile(file), RECORD_KEYS, whole=whole))


@given(ODD_LINES)
def test_any_lines_give_what_all_records_at_once_give(lines: list[Json]) -> None:
    lines = [HEADER, *json.loads(json.dumps(lines))]
    expected = WholeLines().read(lines)
    with tempfile.TemporaryDirectory() as folder:
        for whole in (0, 4_000_000):
            found = read_lines(folder, lines, whole=whole)
            assert found.updated == expected.updated
            assert found.count == expected.count
            found = found.with_entries()
            assert found.entries == expected.entries
            assert (found.leaf, found.session, found.header, found.is_own) == (
                expected.leaf,
                expected.session,
                expected.header,
                expected.is_own,
            )


@given(LINES)
def test_streamed_lines_are_appended_in_the_same_order(lines: list[Json]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        lines = [HEADER, *lines]
        whole, streamed = (read_lines(folder, lines, whole=size) for size in (4_000_000, 0))
        assert whole.stream is None
        assert streamed.stream is not None
        assert tuple(streamed.each_entry()) == whole.entries
        assert streamed.stream.find_leaf() == whole.leaf
        source = Entry("0" * 32, None, 1, Source(format="gemini", name="a", size=0))
        for first in (source, None):
            plan = plan_import(whole, first, (), ())
            runs, count, _ = stream_runs(streamed, first)
            found = [[(entry, entry.parent) for entry, _ in run] for run in runs]
            assert [[one.id for one, _ in run] for run in found if run] == [
                [one.id for one in run.entries] for run in plan.runs
            ]
            assert [run[0][1] for run in found if run] == [run.after for run in plan.runs]
            assert count == len(plan.new)


def test_a_checkpoint_that_repeats_what_was_said_adds_only_what_is_new() -> None:
    messages: list[Json] = [
        {"id": str(number), "type": "user", "content": f"said {number}"} for number in range(4)
    ]
    other = {"id": "9", "type": "gemini", "content": "a summary"}
    lines: list[Json] = [HEADER, *messages, {"$set": {"messages": [*messages[:2], other]}}]
    with tempfile.TemporaryDirectory() as folder:
        found = read_lines(folder, lines, whole=0)
    assert found.stream is not None
    assert found.count == 5
    assert found.stream.find_leaf() == found.with_entries().entries[-1].id

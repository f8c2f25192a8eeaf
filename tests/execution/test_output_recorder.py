"""What a result does not show of an output goes to the log, each byte once, as it came."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest

from recollect.entries import Note
from recollect.errors import CannotWrite
from recollect.execution.command_output import FIRST_BYTES, LAST_BYTES, OutputCapture
from recollect.execution.command_runner import CommandLimits
from recollect.execution.output_recorder import OutputRecorder
from recollect.execution.sandbox import Isolation
from recollect.store.output_notes import PART_BYTES, OutputLog, output_part
from tests.execution.workbench import (
    BARE,
    PATIENCE,
    Bench,
    on_bench,
    run_to_the_limit,
    words,
)


class Log:
    """Notes in memory; fails from the one of this number on."""

    def __init__(self, fails_at: int = 1_000) -> None:
        self.notes, self.fails_at = list[Note](), fails_at

    async def append(self, note: Note) -> str:
        if len(self.notes) >= self.fails_at:
            raise CannotWrite("recollect.db", "the disk is full")
        self.notes.append(note)
        return f"{len(self.notes):032x}"

    def data(self) -> bytes:
        return "".join(note.text for note in self.notes).encode("utf-8", "surrogateescape")


def numbered(size: int) -> bytes:
    return b"".join(b"%09d\n" % number for number in range(size // 10))


def test_a_long_output_is_in_parts_that_name_the_ones_before(tmp_path: Path) -> None:
    log, capture, came = Log(), OutputCapture(tmp_path), numbered(3_000_000)
    capture.feed(came)
    recorder = OutputRecorder(capture, OutputLog(log.append, "c1"))
    text = asyncio.run(recorder.report(ended=True))
    asyncio.run(recorder.settle())
    assert log.data() == came
    parts = [output_part(note) for note in log.notes]
    assert len(parts) == 8
    for number, part in enumerate(parts):
        assert part is not None
        assert (part.call, part.missing) == ("c1", 0)
        assert part.before == tuple(f"{n:032x}" for n in range(1, number + 1))
        assert len(log.notes[number].text) <= PART_BYTES
    assert "; recall 00000008 with around=WORDS or offset=1900 gives them ...]" in text


def test_of_more_than_is_kept_the_middle_is_missing_and_counted(tmp_path: Path) -> None:
    log, capture, came = Log(), OutputCapture(tmp_path), numbered(20_000_000)
    for start in range(0, len(came), 99_999):
        capture.feed(came[start : start + 99_999])
    recorder = OutputRecorder(capture, OutputLog(log.append))
    assert "gives all but 12,000,000 of them" in asyncio.run(recorder.report(ended=True))
    capture.close()
    assert log.data() == came[:FIRST_BYTES] + came[-LAST_BYTES:]
    parts = [part for note in log.notes if (part := output_part(note)) is not None]
    assert [part.missing for part in parts if part.missing] == [12_000_000]


def test_a_job_that_is_read_often_is_recorded_once(tmp_path: Path) -> None:
    log, capture, came = Log(), OutputCapture(tmp_path), numbered(7_000_000)
    recorder = OutputRecorder(capture, OutputLog(log.append))

    async def read_all() -> list[str]:
        said = []
        for start in range(0, len(came), 1_000_003):
            capture.feed(came[start : start + 1_000_003])
            said += await asyncio.gather(*(recorder.report(ended=False) for _ in range(2)))
        return [*said, await recorder.report(ended=True)]

    *running, ended = asyncio.run(read_all())
    capture.close()
    assert "gives them ...]" in running[0]
    assert "gives the first 4,000,000, the others when the job has ended ...]" in running[-1]
    assert "gives them ...]" in ended
    assert log.data() == came


def test_a_log_that_cannot_be_written_costs_the_rest_but_not_the_result(tmp_path: Path) -> None:
    log, capture = Log(fails_at=2), OutputCapture(tmp_path)
    capture.feed(numbered(3_000_000))
    recorder = OutputRecorder(capture, OutputLog(log.append))
    text = asyncio.run(recorder.report(ended=True))
    asyncio.run(recorder.settle())
    assert text.startswith("000000000\n")
    assert "bytes left out here; they could not be stored (" in text
    assert "the disk is full" in text
    assert "run it again with less output" in text
    assert len(log.notes) == 2


@pytest.mark.parametrize(
    "came",
    [
        b"caf\xe9 \xff\n",
        b"a\0b\x1b[31mred\x1b[0m",
        b"".join(b"%d %%\r" % number for number in range(100_000)) + b"done\n",
        bytes(range(256)) * 5_000,
        "日本語 ✓ 🙂".encode() * 60_000,
    ],
)
def test_bytes_of_any_kind_are_recorded_as_they_came(
    tmp_path: Path, isolation: Isolation, came: bytes
) -> None:
    async def steps(bench: Bench) -> None:
        (bench.root / "sub" / "came").write_bytes(came)
        shown = words(await bench.run("cat sub/came"))
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f]", shown)
        assert bench.printed() == came

    on_bench(tmp_path, isolation, steps)


def test_plain_short_output_adds_nothing_to_the_log(tmp_path: Path, isolation: Isolation) -> None:
    async def steps(bench: Bench) -> None:
        await bench.run("seq 1 1000; printf 'one\\r\\ntwo\\n'")
        await bench.run("true")
        assert bench.notes == []

    on_bench(tmp_path, isolation, steps)


def test_a_command_that_is_cancelled_leaves_what_it_had_printed(tmp_path: Path) -> None:
    async def steps(bench: Bench) -> None:
        running = asyncio.create_task(bench.run("echo as far as here; sleep 1000"))
        async with asyncio.timeout(PATIENCE):
            while "as far as here" not in "".join(bench.heard):
                await asyncio.sleep(0.01)
        running.cancel()
        await asyncio.wait([running])
        assert running.cancelled()
        assert bench.printed() == b"as far as here\n"

    on_bench(tmp_path, BARE, steps)


def test_endless_output_is_recorded_to_its_bound(tmp_path: Path) -> None:
    async def steps(bench: Bench) -> None:
        await run_to_the_limit(bench, "yes", shows="gives all but")
        assert len(bench.printed()) >= FIRST_BYTES + LAST_BYTES

    on_bench(tmp_path, BARE, steps)


def test_what_nobody_read_of_a_job_is_recorded_when_the_session_ends(tmp_path: Path) -> None:
    async def steps(bench: Bench) -> None:
        await bench.run("echo first; sleep 1000", background=True)
        await bench.read_until("job-1", "first")
        assert bench.notes == []
        wait = "until [ -e go ]; do sleep 0.01; done; "
        await bench.run(f"{wait}echo unseen; sleep 1000", background=True)
        await bench.run(f"{wait}echo never read", background=True)
        (bench.root / "go").touch()
        async with asyncio.timeout(PATIENCE):
            while (await bench.read()).count("ended") < 1 or "unseen" not in "".join(bench.heard):
                await asyncio.sleep(0.01)
        await bench.commands.close()
        parts = [output_part(note) for note in bench.notes]
        assert [part.job for part in parts if part is not None] == ["job-2", "job-3"]
        assert [note.text for note in bench.notes] == ["unseen\n", "never read\n"]

    on_bench(tmp_path, BARE, steps, limits=CommandLimits(first_look=0.01))

"""`recollect import` of files that are too large to be held in memory: their size does not count,
limits are named, and an import that was cut short is completed by the next."""

from __future__ import annotations

import hashlib
import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from bench.imports import write_messages, write_session
from recollect.store.sqlite import SqliteStore
from tests.cli.runner import Cli
from tests.reliability.children import in_store

WRITERS = {"claude-code": write_session, "gemini": write_messages}
FORMATS = pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)
Write = Callable[[Path, int, int], None]
MB = 1_000_000
# not `ru_maxrss`, which begins with what the parent had
PEAK = """
import sys
from pathlib import Path
from recollect.__main__ import main
peak, *arguments = sys.argv[1:]
try:
    main(arguments)
finally:
    status = Path("/proc/self/status").read_text()
    Path(peak).write_text(status.partition("VmHWM:")[2].split()[0])
"""


def import_alone(cli: Cli, name: str) -> tuple[str, int]:
    """What the command says, and the most kB of memory that it had."""
    peak = cli.project / "peak"
    command = [sys.executable, "-c", PEAK, str(peak), "import", name]
    done = subprocess.run(
        command, cwd=cli.project, env=cli.env(), capture_output=True, text=True, timeout=280
    )
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr, int(peak.read_text())


def entry_ids(path: Path) -> list[str]:
    async def read(store: SqliteStore) -> list[str]:
        (session,) = await store.sessions()
        return [entry.id for entry in await store.tree(session.id)]

    return in_store(path, read)


@FORMATS
def test_a_file_that_is_four_times_as_large_takes_hardly_more_memory(
    cli: Cli, write: Write
) -> None:
    peaks = []
    for size in (16, 64):
        write(file := cli.project / "a.jsonl", size * MB, 5_000)
        whole = file.read_bytes()
        file.write_bytes(whole[: len(whole) // 2])
        _, half = import_alone(cli, file.name)
        file.write_bytes(whole)
        said, all_of_it = import_alone(cli, file.name)
        assert "known" in said
        said, again = import_alone(cli, file.name)
        assert "nothing new" in said
        peaks.append(max(half, all_of_it, again))
        cli.store.rename(cli.store.with_suffix(f".{size}"))
    small, large = peaks
    assert large < small + 48_000 * 0.6  # kB: the file is 48 MB larger, in memory once


@FORMATS
def test_a_file_that_is_cut_anywhere_is_completed_by_the_whole_one(cli: Cli, write: Write) -> None:
    write(file := cli.project / "a.jsonl", 6 * MB, 900)
    whole = file.read_bytes()
    cli.ok("import", file.name)
    expected = entry_ids(cli.store)
    cli.store.rename(cli.store.with_suffix(".whole"))
    for end in (4_100_007, 5_000_011, 5_999_990, len(whole)):
        file.write_bytes(whole[:end])
        assert "problem" in cli.ok("import", file.name).out or end == len(whole)
    assert "nothing new" in cli.ok("import", file.name).out
    found = entry_ids(cli.store)
    assert set(expected) <= set(found)
    assert len(found) == len(expected) + 3  # the bytes of each version
    assert cli("doctor").code == 0


@FORMATS
def test_an_interrupted_import_of_a_large_file_is_completed_by_the_next(
    cli: Cli, write: Write
) -> None:
    write(cli.project / "a.jsonl", 14 * MB, 900)
    run = cli.start("import", "a.jsonl")
    journal = cli.home / "recollect.db-wal"
    while run.poll() is None and not (journal.exists() and journal.stat().st_size > 7 * MB):
        time.sleep(0.005)
    run.send_signal(signal.SIGINT)
    _, err = run.communicate(timeout=60)
    assert b"the same command goes on from there" in err
    begun = entry_ids(cli.store)
    assert cli.process("import", "a.jsonl").code == 0
    found = entry_ids(cli.store)
    assert 0 < len(begun) < len(found)
    cli.store.rename(cli.store.with_suffix(".interrupted"))
    cli.ok("import", "a.jsonl")
    assert found == entry_ids(cli.store)


@FORMATS
def test_progress_of_a_large_file_is_shown_on_a_terminal(cli: Cli, write: Write) -> None:
    write(cli.project / "a.jsonl", 6 * MB, 900)
    shown = cli.screen("import", "a.jsonl").out
    assert "█" in shown
    assert "100 %" in shown


def test_the_ids_of_a_session_of_gemini_cli_are_those_of_the_first_version(cli: Cli) -> None:
    """A store must find its entries again; this is what version 0.1.0 gave before streaming."""
    write_messages(cli.project / "a.jsonl", 5 * MB, 1_000)
    cli.ok("import", "a.jsonl")
    ids = "".join(entry_ids(cli.store))
    assert hashlib.blake2b(ids.encode(), digest_size=8).hexdigest() == "9ee600f53461740a"


@pytest.mark.parametrize("field", ["session_id", "sessionId"])
def test_one_object_that_is_too_large_for_memory_is_refused_by_name(cli: Cli, field: str) -> None:
    with (cli.project / "a.json").open("w") as stream:
        stream.write(f'{{"{field}": "a", "messages": [')
        stream.truncate(600 * MB)
    refused = cli.process("import", "a.json")
    assert refused.code == 1
    assert "more than 500.0 MB that must be read at once; split it" in refused.err


def test_limits_of_a_large_session_of_gemini_cli_are_named(cli: Cli) -> None:
    write_messages(file := cli.project / "a.jsonl", 5 * MB, 1_000)
    deep = {"id": "d", "type": "user", "content": []}
    text = json.dumps(deep).replace("[]", "[" * 101 + "]" * 101)
    with file.open("a") as stream:
        stream.write(text + '\n{"id": "huge", "type": "user", "content": "')
        stream.truncate(file.stat().st_size + 400 * MB)  # sparse: it needs no space
    said, peak = import_alone(cli, file.name)
    assert "nested deeper than 90 levels" in said
    assert "the limit is 64.0 MB, so it was left out" in said
    assert peak < 350_000  # kB

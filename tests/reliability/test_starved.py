"""Full and failing disks: every error is raised, nothing acknowledged is lost, writing continues.

The errors are injected into real system calls with strace; a small filesystem of our own and the
limit on the size of files make the disk really full.
"""

from __future__ import annotations

import os
import random
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias

import pytest

from recollect.entries import Entry
from recollect.store.contract import SearchQuery
from recollect.store.sqlite import SqliteStore
from tests.reliability.children import (
    Child,
    Fact,
    acknowledged,
    assert_contiguous,
    assert_goes_on,
    in_store,
    new_session,
    text_of,
)
from tests.reliability.tracing import Call, needs_strace, traced
from tests.reliability.worker import text_for

APPENDS = 40
Fault: TypeAlias = tuple[str, str, str, int]
# error, the calls that fail with it, the file they fail on, how many such calls there are at least
FAULTS: tuple[Fault, ...] = (
    ("ENOSPC", "pwrite64", "-wal", 150),
    ("EIO", "pwrite64", "-wal", 150),
    ("EIO", "fdatasync", "-wal", 30),
    ("EIO", "fdatasync", "", 1),
    ("ENOSPC", "pwrite64", "", 8),
)


def read_path(path: Path, session: str) -> tuple[tuple[Entry, ...], list[str]]:
    async def read(store: SqliteStore) -> tuple[tuple[Entry, ...], list[str]]:
        return await store.path(session), store.warnings

    return in_store(path, read)


def found_by_search(path: Path, session: str) -> set[str]:
    async def find(store: SqliteStore) -> set[str]:
        hits = await store.search(SearchQuery("word*", session=session, limit=10_000))
        return {hit.entry.id for hit in hits}

    return in_store(path, find)


def assert_nothing_lost(path: Path, session: str, facts: list[Fact]) -> None:
    entries, warnings = read_path(path, session)
    assert_contiguous(entries)
    assert acknowledged(facts) == [entry.id for entry in entries]
    assert [text_of(e) for e in entries] == [text_for(n) for n in range(len(entries))]
    assert not warnings  # a disk that was full is no damage
    assert found_by_search(path, session) == {entry.id for entry in entries}
    assert_goes_on(path, session)


def inject_once(directory: Path, noise: random.Random, kind: Fault | None = None) -> None:
    """One trial: a random call fails, and perhaps the following ones."""
    error, name, on, calls_made = kind or noise.choice(FAULTS)
    first = noise.randint(1, calls_made)
    more = noise.choice([0, 0, 3, 30])
    pause = noise.choice(["0", "0.02"])  # with it the index and checkpoints have their turns
    while True:
        path = directory / f"{first}.db"
        session = new_session(path)
        fault = f"{name}:error={error}:when={first}..{first + more}"
        facts, calls = traced(path, "starved", session, str(APPENDS), pause, inject=fault, on=on)
        if any("(INJECTED)" in call.rest for call in calls) or first == 1:
            break
        # strace counts for each thread; where the disk is slow, the calls are divided among two
        first //= 2
    check_trial(path, session, facts, calls, fault)


def check_trial(path: Path, session: str, facts: list[Fact], calls: list[Call], fault: str) -> None:
    hit = [call for call in calls if "(INJECTED)" in call.rest]
    assert hit, f"{fault} hit nothing"
    errors = [fact for fact in facts if fact["what"] == "error"]
    warnings = [warning for fact in facts for warning in fact.get("warnings", ())]
    assert {fact["kind"] for fact in errors} <= {"CannotWrite", "CannotOpen"}, (fault, errors)
    last_ack = max(
        n for n, call in enumerate(calls) if call.file.endswith(".acks") and "ids" in call.rest
    )
    if any("(INJECTED)" in call.rest and call.file.endswith("-wal") for call in calls[:last_ack]):
        # Not told: checkpoints, the only writers of the database itself, because the journal still
        # has everything; and the index when the store closes, because it catches up later.
        assert errors or warnings, f"{fault} went unseen"
    for failure in errors:
        assert "disk" in failure["text"], failure
    if facts and facts[-1]["what"] == "closed":
        assert len(acknowledged(facts)) == APPENDS
    assert_nothing_lost(path, session, facts)


@needs_strace
@pytest.mark.parametrize("trial", range(2))
@pytest.mark.parametrize("kind", FAULTS, ids=lambda kind: " ".join(kind[:3]))
def test_an_injected_error_is_seen_and_nothing_is_lost(
    tmp_path: Path, kind: Fault, trial: int
) -> None:
    inject_once(tmp_path, random.Random(trial), kind)


@needs_strace
@pytest.mark.long
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("part", range(16))
def test_eight_hundred_injected_errors(tmp_path: Path, part: int) -> None:
    for trial in range(50):
        directory = tmp_path / str(trial)
        directory.mkdir()
        inject_once(directory, random.Random(f"{part}/{trial}"))


@needs_strace
def test_an_error_leaves_no_journal_that_a_crash_makes_look_damaged(tmp_path: Path) -> None:
    """Frames of a commit that failed lie behind those of the next one until overwritten."""
    fault = "fdatasync:error=EIO:when=3"  # 1: the header, 2: the first append
    for trial in range(20):
        path = tmp_path / f"{trial}.db"
        session = new_session(path)
        facts, calls = traced(path, "large_then_small", session, inject=fault, on="-wal")
        # strace counts in each thread; where the disk is slow, the commit is in another one
        if any("(INJECTED)" in call.rest for call in calls):
            break
    assert [fact["kind"] for fact in facts if fact["what"] == "error"] == ["CannotWrite"]
    entries, warnings = read_path(path, session)
    assert [text_of(entry) for entry in entries] == ["first", "small"]
    assert warnings == []


@needs_strace
def test_a_session_whose_first_append_failed_still_gets_its_title(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    session = new_session(path)
    facts, _ = traced(
        path, "starved", session, "2", inject="pwrite64:error=ENOSPC:when=1..3", on="-wal"
    )
    assert [fact["kind"] for fact in facts if fact["what"] == "error"]

    async def title(store: SqliteStore) -> str:
        return (await store.session(session)).title

    assert in_store(path, title).startswith("word0")


@needs_strace
def test_a_store_that_cannot_be_created_raises_and_can_be_created_later(tmp_path: Path) -> None:
    for when in (1, 14, 27, 39):
        path = tmp_path / f"{when}.db"
        fault = f"pwrite64:error=ENOSPC:when={when}+"
        facts, calls = traced(path, "opened", inject=fault, on=None)
        assert any("(INJECTED)" in call.rest for call in calls)
        assert facts[-1]["what"] == "error"
        assert facts[-1]["kind"] in ("CannotOpen", "CannotWrite")
        assert_goes_on(path, new_session(path))


def test_a_file_size_limit_is_reported_and_writing_continues_without_it(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    session = new_session(path)
    facts = Child("limited", path, session, str(600_000)).finish()
    errors = [fact for fact in facts if fact["what"] == "error"]
    assert {fact["kind"] for fact in errors} == {"CannotWrite"}
    assert "disk" in errors[0]["text"]
    assert_nothing_lost(path, session, facts)


@contextmanager
def small_filesystem(directory: Path, size: str) -> Iterator[Path]:
    directory.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "recollect-test", str(directory)],
        capture_output=True,
    )
    if mounted.returncode:
        pytest.skip(f"no filesystem may be mounted here: {mounted.stderr.decode()[:80]}")
    try:
        yield directory
    finally:
        subprocess.run(["umount", "-l", str(directory)], check=True)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount a filesystem")
def test_a_full_disk_is_reported_and_writing_continues_with_more_space(tmp_path: Path) -> None:
    with small_filesystem(tmp_path / "small", "600k") as small:
        path = small / "s.db"
        session = new_session(path)
        child = Child("starved", path, session, "400", "0.002")
        failure = child.wait_for("error")
        assert failure["kind"] == "CannotWrite"
        assert "full" in failure["text"]
        subprocess.run(["mount", "-o", "remount,size=64m", str(small)], check=True)
        facts = child.finish()
        assert len(acknowledged(facts)) == 400
        assert_nothing_lost(path, session, facts)

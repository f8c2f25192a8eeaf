"""Mirrors that cannot be written, and in processes that are killed or run side by side."""

from __future__ import annotations

import asyncio
import json
import os
import random
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from recollect.store.ids import derived_id
from recollect.store.sqlite import SqliteStore
from recollect.transcripts.mirror import Mirror
from tests.reliability.tracing import needs_strace, why_not
from tests.transcripts.mirror_builders import (
    append_texts,
    exported,
    files,
    in_store,
    run_prompts,
    said_in,
    start_session,
    until,
    until_written,
)

# For each line of input: appends to the next of these sessions, mirrors it, and prints its id.
PROGRAM = """
import asyncio, itertools, sys
from pathlib import Path
from recollect.transcripts.mirror import Mirror
from recollect.store.ids import derived_id
from recollect.store.open_store import open_store
from recollect.testing import user

async def main(place, folder, *sessions):
    async with open_store(place) as store:
        mirror = Mirror(store, "gemini", Path(folder), autosave_seconds=0)
        print("ready", flush=True)
        for session, _ in zip(itertools.cycle(sessions), sys.stdin):
            head = (await store.session(session)).head
            text = f"{session[-4:]} " + "x" * 20_000
            await store.append(session, [user(text)], parent=head)
            assert await mirror.write(session), mirror.warnings
            print(session, flush=True)

asyncio.run(main(*sys.argv[1:]))
"""


class Child:
    """A process that runs the program, under `before` when that is given."""

    def __init__(self, store: Path, *arguments: str, before: Sequence[str] = ()) -> None:
        command = [*before, sys.executable, "-c", PROGRAM, str(store), *arguments]
        pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
        self.process = subprocess.Popen(command, **pipes, text=True, env=environment)  # type: ignore[call-overload]
        self.hear("ready")

    def hear(self, line: str) -> None:
        assert self.process.stdout.readline() == f"{line}\n", self.process.communicate()[1]

    def tell(self, lines: int = 1) -> None:
        self.process.stdin.write("\n" * lines)
        self.process.stdin.flush()

    def end(self) -> str:
        """Its error output."""
        return str(self.process.communicate(timeout=60)[1])


# --- when nothing can be written -----------------------------------------------------------------


async def fails_then_recovers(
    store: SqliteStore, folder: Path, session: str, mend: Callable[[], None]
) -> None:
    """A session works as usual while its mirror cannot be written; then the next turn writes it."""
    mirror = Mirror(store, "gemini", folder, autosave_seconds=0)
    turns = run_prompts(mirror, session, ["one", "two"], ["go", "and"])
    await anext(turns)
    await until(lambda: bool(mirror.warnings))
    assert f"the mirror of session {session} was not written" in mirror.warnings[0]
    mend()
    await anext(turns)
    data = await exported(store, session, "gemini")
    await until_written(folder, data)
    assert len(mirror.warnings) == 1


def test_a_full_disk_is_a_warning_and_the_old_file_stays(tmp_path: Path) -> None:
    async def story(store: SqliteStore) -> None:
        session, folder = await start_session(store), tmp_path / "m"
        file = await Mirror(store, "gemini", folder).write(session)
        assert file is not None
        before, limits = file.read_bytes(), resource.getrlimit(resource.RLIMIT_FSIZE)
        await append_texts(store, session, "x" * 3_000_000)  # which the store compresses

        def mend() -> None:
            assert file.read_bytes() == before
            assert not [each for each in folder.iterdir() if each.name.endswith(".tmp")]
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)

        resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, limits[1]))
        try:
            await fails_then_recovers(store, folder, session, mend)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)

    in_store(tmp_path, story)


def test_a_folder_without_write_permission_is_a_warning(tmp_path: Path) -> None:
    folder = tmp_path / "m"
    folder.mkdir()

    async def story(store: SqliteStore) -> None:
        await fails_then_recovers(store, folder, await start_session(store), lambda: allow(folder))

    if os.geteuid() == 0:  # whom permissions do not stop
        command = ["mount", "-t", "tmpfs", "-o", "ro,size=9m", "recollect-test", str(folder)]
        if subprocess.run(command, capture_output=True).returncode:
            pytest.skip("no filesystem may be mounted here")
    else:
        folder.chmod(0o500)
    try:
        in_store(tmp_path, story)
    finally:
        if os.geteuid() == 0:
            subprocess.run(["umount", "-l", str(folder)], check=True)


def allow(folder: Path) -> None:
    if os.geteuid() == 0:
        subprocess.run(["mount", "-o", "remount,rw", str(folder)], check=True)
    else:
        folder.chmod(0o700)


def test_a_missing_session_is_a_warning_once(tmp_path: Path) -> None:
    async def story(store: SqliteStore) -> None:
        mirror = Mirror(store, "gemini", tmp_path / "m")
        for _ in range(3):
            assert await mirror.write("0" * 32) is None
        await mirror.write_if_changed("../..")
        assert len(mirror.warnings) == 2
        assert not (tmp_path / "m").exists()

    in_store(tmp_path, story)


# --- processes -----------------------------------------------------------------------------------


def left_over(folder: Path) -> list[Path]:
    return list(folder.glob(".*.tmp"))


async def assert_goes_on(store: SqliteStore, folder: Path, session: str) -> None:
    """The session has one file, which is whole, and goes on in it."""
    (name,) = files(folder)
    assert said_in(folder / name)
    mirror = Mirror(store, "gemini", folder)
    assert await mirror.write(session) == folder / name
    assert (folder / name).read_bytes() == await exported(store, session, "gemini")
    assert (mirror.warnings, left_over(folder)) == ([], [])


def test_the_file_is_whole_at_every_moment_and_the_same_one_after_every_kill(
    tmp_path: Path,
) -> None:
    folder, known, noise = tmp_path / "m", 0, random.Random(4)

    async def story(store: SqliteStore) -> None:
        nonlocal known
        session = await start_session(store)
        file = await Mirror(store, "gemini", folder).write(session)
        assert file is not None
        for trial in range(8):
            child, written = Child(tmp_path / "s.db", str(folder), session), noise.randint(0, 3)
            try:
                child.tell(1_000)
                for _ in range(written):
                    child.hear(session)
                size, until = 0, time.monotonic() + noise.uniform(0.02, 0.1)
                while time.monotonic() < until:
                    size, before = file.stat().st_size, size
                    assert size >= before  # it only grows: nobody ever sees a part
                until = time.monotonic() + 10
                while trial % 2 and not left_over(folder) and time.monotonic() < until:
                    pass  # so that half of the kills come while a new file is being written
            finally:
                child.process.kill()
                child.end()
            told = said_in(file)
            assert len(told) > known + written
            known = len(told) - 1
            assert files(folder) == [file.name]
        await assert_goes_on(store, folder, session)

    in_store(tmp_path, story)


# system calls, and which of them, at which the process is killed; one process after the other
CRASHES = (
    ("link 1",),
    ("link 1", "link 1", "unlink 2"),
    ("unlink 2", "claim 1"),
    ("unlink 2", "rename 1", "unlink 1", "unlink 2", "unlink 3", "rename 2"),
    ("claim 2", "rename 1", "claim 1"),
)


@needs_strace
@pytest.mark.parametrize("points", CRASHES, ids=", ".join)
def test_a_crash_at_any_step_leaves_a_whole_file_that_is_still_the_sessions(
    tmp_path: Path, points: tuple[str, ...]
) -> None:
    folder = tmp_path / "m"
    folder.mkdir()

    async def story(store: SqliteStore) -> None:
        session = await start_session(store)
        claim = folder / f".{derived_id('mirror', 'gemini', session)}.claim"
        for point in points:
            call, which = point.split()
            path = ("-P", str(claim)) if call == "claim" else ()
            call = "pwrite64" if call == "claim" else call
            fault = f"inject={call}:signal=KILL:when={which}"
            strace = ("strace", "-f", "-qq", "-o", os.devnull, *path, "-e", fault)
            child = Child(tmp_path / "s.db", str(folder), session, before=strace)
            child.tell(3)
            child.end()
            assert child.process.returncode == -signal.SIGKILL, point
            assert len(files(folder)) <= 1
            for name in files(folder):
                assert said_in(folder / name)
        if not files(folder):
            await Mirror(store, "gemini", folder).write(session)
        await assert_goes_on(store, folder, session)

    in_store(tmp_path, story)


def test_two_processes_with_the_same_short_names_do_not_share_files(tmp_path: Path) -> None:
    pairs = [(f"0190{n:04x}{'a':0>24}", f"0190{n:04x}{'b':0>24}") for n in range(6)]
    # each takes its time between the look at a name and the taking of it
    slowly = ("strace", "-f", "-qq", "-o", os.devnull, "-e", "inject=link,rename:delay_enter=50000")

    async def prepare(store: SqliteStore) -> None:
        for pair in pairs:
            for session in pair:
                await store.create(id=session, created=0)

    in_store(tmp_path, prepare)
    folder = tmp_path / "m"
    children = [
        Child(tmp_path / "s.db", str(folder), *side, before=slowly if not why_not() else ())
        for side in zip(*pairs, strict=True)
    ]
    for number, pair in enumerate((*pairs, *pairs), 1):
        for child in children:
            child.tell()
        for child, session in zip(children, pair, strict=True):
            child.hear(session)
        assert len(files(folder)) == 2 * min(number, len(pairs))
    assert [child.end() for child in children] == ["", ""]
    values = [json.loads((folder / name).read_bytes()) for name in files(folder)]
    assert sorted(value["sessionId"] for value in values) == sorted(sum(pairs, ()))
    for value in values:
        end = value["sessionId"][-4:]
        assert [message["content"][:5] for message in value["messages"]] == [f"{end} "] * 2


def test_two_processes_on_one_session_leave_its_newest_state(tmp_path: Path) -> None:
    folder = tmp_path / "m"

    async def story(store: SqliteStore) -> None:
        session = await start_session(store)
        mirror, child = Mirror(store, "gemini", folder), Child(store.file, str(folder), session)
        for _ in range(10):
            child.tell()
            await asyncio.gather(*[mirror.write(session) for _ in range(3)])
            await mirror.write(session)
            child.hear(session)
        assert child.end() == ""
        assert mirror.warnings == []
        await assert_newest(store, session)

    async def assert_newest(store: SqliteStore, session: str) -> None:
        (name,) = files(folder)
        assert (folder / name).read_bytes() == await exported(store, session, "gemini")

    in_store(tmp_path, story)

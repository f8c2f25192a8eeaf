"""`recollect rewind --files`, killed on the way: the same command again completes it."""

from __future__ import annotations

import os
import random
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.cli.runner import Cli
from tests.cli.test_rewind import World, as_bytes, played

KILLS = 20
# Forks a victim for each line it reads, so that only this process has to start and import. A victim
# runs the command, or does the same on a store that ends it before or after its n-th call.
FORKING = """
import asyncio, os, signal, sys
from pathlib import Path
from recollect.__main__ import main
from recollect.cli import group, rewind
from recollect.store.open_store import open_store
from recollect.tools.file_rewind import rewind_files

class Dying:
    def __init__(self, store, calls): self.store, self.calls = store, calls
    def __getattr__(self, name):
        async def call(*args, **named):
            self.count()
            done = await getattr(self.store, name)(*args, **named)
            self.count()
            return done
        return call
    def count(self):
        self.calls -= 1
        if self.calls == 0: os.kill(os.getpid(), signal.SIGKILL)

async def die(file, session, to, root, calls, move_head="yes"):
    async with open_store(Path(file)) as store:
        dying, roots = Dying(store, int(calls)), (Path(root),)
        await rewind_files(dying, session, to, roots, move_head=move_head == "yes")

for line in sys.stdin:
    kind, *arguments = line.rstrip("\\n").split("\\t")
    victim = os.fork()
    if victim == 0:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        asyncio.run(die(*arguments)) if kind == "die" else main(arguments)
        os._exit(0)
    print(victim, flush=True)
    print(os.waitstatus_to_exitcode(os.waitpid(victim, 0)[1]), flush=True)
"""


class Victims:
    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._orders, self._reports = process.stdin, process.stdout

    def start(self, *order: str) -> int:
        """The victim's process id."""
        self._orders.write(("\t".join(order) + "\n").encode())
        return int(self._reports.readline())

    def has_ended(self) -> bool:
        return bool(select.select([self._reports], [], [], 0)[0])

    def wait(self) -> int:
        return int(self._reports.readline())


@contextmanager
def victims(cli: Cli) -> Iterator[Victims]:
    command = [sys.executable, "-c", FORKING]
    with subprocess.Popen(
        command,
        cwd=cli.project,
        env=cli.env(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        bufsize=0,
    ) as process:
        yield Victims(process)


def check_and_complete(world: World, to: str, sides: Mapping[str, Mapping[str, bytes]]) -> None:
    """Every file is as it was or as it is to be; the same command again does the rest."""
    check_every_file(world, sides)
    assert world.rewind(to, "--files")["conflicts"] == set()
    assert (files_without_leftovers(world), world.head()) == (sides[to], to)


def check_every_file(world: World, sides: Mapping[str, Mapping[str, bytes]]) -> None:
    assert all(
        any(data == side.get(name) for side in sides.values())
        for name, data in files_without_leftovers(world).items()
    )


def files_without_leftovers(world: World) -> dict[str, bytes]:
    """Without files that were being written."""
    return {name: data for name, data in world.files().items() if ".recollect-" not in name}


def test_killed_between_any_two_steps_the_same_command_completes_it(cli: Cli) -> None:
    world = played(cli, {"edited": b"old"}, {"edited": "new", "made": "new"})
    sides = {world.begin: {"edited": b"old"}, world.end: {"edited": b"new", "made": b"new"}}
    calls, code = 0, -signal.SIGKILL
    with victims(cli) as doomed:
        while code == -signal.SIGKILL:
            to = (world.begin, world.end)[calls % 2]
            calls += 1
            doomed.start("die", str(cli.store), world.session, to, str(cli.project), str(calls))
            code = doomed.wait()
            check_and_complete(world, to, sides)
    assert code == 0
    assert calls > 20  # at least ten calls of the store, each with a before and an after


def test_files_alone_killed_between_any_two_steps_are_completed_by_the_same_call(cli: Cli) -> None:
    world = played(cli, {"edited": b"old"}, {"edited": "new", "made": "new"})
    sides = {world.begin: {"edited": b"old"}, world.end: {"edited": b"new", "made": b"new"}}
    calls, code = 0, -signal.SIGKILL
    with victims(cli) as doomed:
        while code == -signal.SIGKILL:
            to = (world.begin, world.end)[calls % 2]
            calls += 1
            order = (str(cli.store), world.session, to, str(cli.project))
            doomed.start("die", *order, str(calls), "no")
            code = doomed.wait()
            check_every_file(world, sides)
            doomed.start("die", *order, "1000000", "no")
            assert doomed.wait() == 0
            assert files_without_leftovers(world) == sides[to]
    assert calls > 20
    # what was said is where it was: the head moved past notes alone
    told = cli.ok("show", world.session, "--json").json["entries"]
    assert {world.begin, world.end} <= {entry["id"] for entry in told}


def test_killed_at_any_moment_the_same_command_completes_it(cli: Cli) -> None:
    many = [f"file {number}" for number in range(30)]
    old, new = dict.fromkeys(many, b"old"), dict.fromkeys(many, "new")
    world = played(cli, old, new)
    sides = {world.begin: old, world.end: as_bytes(new)}
    journal, dice = Path(f"{cli.store}-wal"), random.Random(5)
    took = 0.0
    with victims(cli) as doomed:
        for number in range(KILLS + 1):
            to = (world.begin, world.end)[number % 2]
            assert not journal.exists()  # it is there as long as a command has the store open
            victim = doomed.start("run", "rewind", world.session, to, "--files")
            while not journal.exists() and not doomed.has_ended():
                time.sleep(0.001)
            began = time.monotonic()
            if number:
                time.sleep(dice.uniform(0, took))
                with suppress(ProcessLookupError):  # it was faster
                    os.kill(victim, signal.SIGKILL)
            assert doomed.wait() in ((0, -signal.SIGKILL) if number else (0,))
            took = took or time.monotonic() - began
            check_and_complete(world, to, sides)

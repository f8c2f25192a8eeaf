"""`recollect rewind --files`, killed on the way: the same command again completes it."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from tests.cli.runner import COMMAND, Cli
from tests.cli.test_rewind import World, as_bytes, played

KILLS = 20
# A store that ends its process before or after its n-th call: every place between two steps.
DYING = """
import asyncio, os, signal, sys
from pathlib import Path
from recollect import open_store
from recollect.tools.rewinding import rewind_files

class Dying:
    def __init__(self, store, calls): self.store, self.calls = store, calls
    def __getattr__(self, name):
        async def call(*args, **named):
            self.calls -= 1
            if self.calls == 0: os.kill(os.getpid(), signal.SIGKILL)
            done = await getattr(self.store, name)(*args, **named)
            self.calls -= 1
            if self.calls == 0: os.kill(os.getpid(), signal.SIGKILL)
            return done
        return call

async def main(file, session, to, root, calls):
    async with open_store(file) as store:
        await rewind_files(Dying(store, int(calls)), session, to, (Path(root),))

asyncio.run(main(*sys.argv[1:]))
"""


def check_and_complete(world: World, to: str, sides: Mapping[str, Mapping[str, bytes]]) -> None:
    """Every file is as it was or as it is to be; the same command again does the rest."""
    assert all(
        any(data == side.get(name) for side in sides.values())
        for name, data in world.files().items()
        if ".recollect-" not in name  # a file that was being written
    )
    assert world.rewind(to, "--files")["conflicts"] == set()
    left = {name: data for name, data in world.files().items() if ".recollect-" not in name}
    assert (left, world.head()) == (sides[to], to)


def test_killed_between_any_two_steps_the_same_command_completes_it(cli: Cli) -> None:
    world = played(cli, {"edited": b"old"}, {"edited": "new", "made": "new"})
    sides = {world.begin: {"edited": b"old"}, world.end: {"edited": b"new", "made": b"new"}}
    calls, code = 0, -signal.SIGKILL
    while code == -signal.SIGKILL:
        to = (world.begin, world.end)[calls % 2]
        calls += 1
        arguments = [str(cli.store), world.session, to, str(cli.project), str(calls)]
        died = subprocess.run([sys.executable, "-c", DYING, *arguments], env=cli.env(), timeout=60)
        code = died.returncode
        check_and_complete(world, to, sides)
    assert code == 0
    assert calls > 20  # at least ten calls of the store, each with a before and an after


def test_killed_at_any_moment_the_same_command_completes_it(cli: Cli) -> None:
    many = [f"file {number}" for number in range(30)]
    old, new = dict.fromkeys(many, b"old"), dict.fromkeys(many, "new")
    world = played(cli, old, new)
    sides = {world.begin: old, world.end: as_bytes(new)}
    journal, dice = Path(f"{cli.store}-wal"), random.Random(5)
    took = 0.0
    for number in range(KILLS + 1):
        to = (world.begin, world.end)[number % 2]
        assert not journal.exists()  # it is there as long as a command has the store open
        command = [*COMMAND, "rewind", world.session, to, "--files"]
        process = subprocess.Popen(
            command, cwd=cli.project, env=cli.env(), stdout=subprocess.DEVNULL
        )
        while not journal.exists() and process.poll() is None:
            time.sleep(0.001)
        began = time.monotonic()
        if number == 0:
            process.wait(60)
            took = time.monotonic() - began
        time.sleep(dice.uniform(0, took) if number else 0)
        process.kill()
        process.wait(60)
        check_and_complete(world, to, sides)

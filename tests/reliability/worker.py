"""A process that writes to a store and reports it, to be killed, stopped or starved by its parent.

Run as `python worker.py MODE STORE [ARGUMENT …]`. Every fact goes out as one JSON line, in one
`write`, to the file named by RELIABILITY_ACKS or else to standard output: `try` before an
operation, `ok` only after it returned, `error` when it raised. So whoever reads the lines knows
what had been acknowledged at the moment of death.
"""

from __future__ import annotations

import asyncio
import functools
import json
import os
import random
import resource
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from recollect.entries import Entry, Message
from recollect.errors import HeadMoved, RecollectError
from recollect.store.ids import new_id, now
from recollect.store.open_store import open_store
from recollect.store.sqlite import SqliteStore
from recollect.testing import model, user

_FORMER = os.environ.get("RELIABILITY_ACKS")
_OUT = os.open(_FORMER, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600) if _FORMER else 1


def say(what: str, **facts: object) -> None:
    os.write(_OUT, (json.dumps({"what": what, **facts}) + "\n").encode())


@functools.cache
def text_for(number: int) -> str:
    """The text of the n-th message of a writer, which its parent can work out again."""
    noise = random.Random(number)
    size = 1_500 if number % 29 == 0 else noise.randint(0, 60)
    return f"word{number} " + " ".join(str(noise.randint(0, 9_999)) for _ in range(size))


async def _head(store: SqliteStore, session: str) -> tuple[str | None, int]:
    found = await store.session(session)
    return found.head, found.entries


async def append(store: SqliteStore, session: str, *rest: str) -> None:
    """Single messages, one after the other, for ever."""
    head, number = await _head(store, session)
    while True:
        say("try", op="append", parent=head, count=1)
        (entry,) = await store.append(session, [user(text_for(number))], parent=head)
        say("ok", ids=[entry.id], head=entry.id, number=number)
        head, number = entry.id, number + 1


async def batch(store: SqliteStore, session: str, *rest: str) -> None:
    """Batches, now and then one that is long enough to run in the store's thread."""
    head, number = await _head(store, session)
    while True:
        count = 230 if random.random() < 0.1 else random.randint(2, 20)
        items = [user(text_for(number + i)) for i in range(count)]
        say("try", op="append", parent=head, count=count)
        entries = await store.append(session, items, parent=head)
        say("ok", ids=[e.id for e in entries], head=entries[-1].id, number=number)
        head, number = entries[-1].id, number + count


async def rewind(store: SqliteStore, session: str, *rest: str) -> None:
    """Appends, rewinds, renames, forks, trashing: everything that moves a head or a row."""
    head = (await store.session(session)).head
    known = [e.id for e in await store.tree(session)]
    while True:
        if known and random.random() < 0.5:
            to = random.choice([*known, None])
            say("try", op="rewind", to=to)
            head = (await store.rewind(session, to)).head
            say("ok", ids=[], head=head)
        else:
            say("try", op="append", parent=head, count=2)
            one, two = await store.append(session, [user("a question"), model("b")], parent=head)
            head = two.id
            known += [one.id, two.id]
            say("ok", ids=[one.id, two.id], head=head)
        if random.random() < 0.2:
            say("try", op="fork")
            forked = await store.fork(session, title="a fork")
            await store.trash(forked.id)
            say("ok", ids=[], head=head)


async def together(store: SqliteStore, session: str, *more: str) -> None:
    """Several sessions at once from one process, so that appends share commits."""

    async def one(name: str) -> None:
        head, number = await _head(store, name)
        while True:
            (entry,) = await store.append(name, [user(text_for(number))], parent=head)
            say("ok", ids=[entry.id], head=entry.id, session=name, number=number)
            head, number = entry.id, number + 1

    await asyncio.gather(*(one(name) for name in (session, *more)))


async def stream(store: SqliteStore, session: str, pause: str = "0.05", *rest: str) -> None:
    """A reply that comes word by word, saved as a draft every `pause` seconds, never ending."""
    head = (await store.session(session)).head
    (asked,) = await store.append(session, [user("tell me a story")], parent=head)
    say("ok", ids=[asked.id], head=asked.id)
    words: list[str] = []
    draft = new_id()
    while True:
        words += [f"word{len(words) + i}" for i in range(5)]
        await store.draft(session, model(" ".join(words)), parent=asked.id, id=draft)
        say("draft", id=draft, parent=asked.id, text=" ".join(words), time=time.time())
        await asyncio.sleep(float(pause))


async def replies(store: SqliteStore, session: str, *rest: str) -> None:
    """Whole turns: a question, drafts of the reply, the reply under the draft's id."""
    head = (await store.session(session)).head
    while True:
        (asked,) = await store.append(session, [user("and then?")], parent=head)
        say("ok", ids=[asked.id], head=asked.id)
        draft, text = new_id(), ""
        for _ in range(random.randint(1, 4)):
            text += "on and on "
            await store.draft(session, model(text), parent=asked.id, id=draft)
            say("draft", id=draft, parent=asked.id, text=text, time=time.time())
        done = Entry(draft, None, now(), model(text + "the end"))
        say("try", op="append", parent=asked.id, count=1)
        await store.append(session, [done], parent=asked.id)
        say("ok", ids=[draft], head=draft)
        head = draft


async def starved(
    store: SqliteStore, session: str, count: str, pause: str = "0", *rest: str
) -> None:
    """`count` appends, each tried until it succeeds; every error is told, then tried again."""
    head, number = await _head(store, session)
    for _ in range(int(count)):
        for _ in range(500):  # strace fails so many calls of each thread, and there are several
            say("try", op="append", parent=head, count=1)
            try:
                (entry,) = await store.append(session, [user(text_for(number))], parent=head)
            except RecollectError as error:
                say("error", kind=type(error).__name__, text=str(error))
                await asyncio.sleep(0.01)
                continue
            say("ok", ids=[entry.id], head=entry.id, number=number)
            head, number = entry.id, number + 1
            break
        await asyncio.sleep(float(pause))
    say("warnings", warnings=store.warnings)


async def large_then_small(store: SqliteStore, session: str, *rest: str) -> None:
    """A small append, a large one, which is made to fail, a small one, an end as in a crash."""
    head = None
    for texts in (["first"], [text_for(n) for n in range(1, 28)], ["small"]):
        try:
            entries = await store.append(session, [user(t) for t in texts], parent=head)
        except RecollectError as error:
            say("error", kind=type(error).__name__, text=str(error))
            continue
        head = entries[-1].id
        say("ok", ids=[entry.id for entry in entries], head=head)
    os._exit(0)


async def limited(store: SqliteStore, session: str, limit: str, *rest: str) -> None:
    """Appends until the file-size limit bites, then lifts the limit and goes on."""
    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(limit), hard))
    failed = 0
    head, number = await _head(store, session)
    while failed < 3:
        try:
            (entry,) = await store.append(session, [user(text_for(number))], parent=head)
        except RecollectError as error:
            failed += 1
            say("error", kind=type(error).__name__, text=str(error))
            continue
        say("ok", ids=[entry.id], head=entry.id, number=number)
        head, number = entry.id, number + 1
    resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    await starved(store, session, "20")


async def race(store: SqliteStore, session: str, wins: str, *rest: str) -> None:
    """Appends to a session that others write as well, until it has won so often."""
    won = lost = 0
    while won < int(wins):
        head = (await store.session(session)).head
        try:
            (entry,) = await store.append(session, [user(f"{os.getpid()} {won}")], parent=head)
        except HeadMoved as error:
            lost += 1
            if error.expected != head or error.actual == head:
                say("error", kind="WrongHead", text=str(error))
            continue
        won += 1
        say("ok", ids=[entry.id], parent=head, head=entry.id)
    say("lost", count=lost)


async def serve(store: SqliteStore, session: str, *rest: str) -> None:
    """Appends what it is told to, line by line on standard input."""
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        order = json.loads(line)
        try:
            (entry,) = await store.append(
                order["session"], [user(order["text"])], parent=order["parent"]
            )
            say("ok", ids=[entry.id], head=entry.id)
        except HeadMoved as error:
            say("moved", expected=error.expected, actual=error.actual)


async def draft_and_wait(store: SqliteStore, session: str, *rest: str) -> None:
    """Saves one draft, waits for a line on standard input, and ends the reply."""
    head = (await store.session(session)).head
    draft = await store.draft(session, model("so far"), parent=head)
    say("draft", id=draft)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline)
    done: Message = model("so far, so good")
    await store.append(session, [Entry(draft, None, now(), done)], parent=head)
    say("ok", ids=[draft], head=draft)


async def create(directory: Path) -> None:
    """New stores, each with a session and an entry, for ever."""
    number = len(list(directory.glob("*.db")))
    while True:
        path = directory / f"{number}.db"
        say("try", op="create", store=path.name)
        async with open_store(path) as store:
            session = await store.create(title=f"number {number}")
            say("session", store=path.name, id=session.id)
            (entry,) = await store.append(session.id, [user("first")], parent=None)
            say("ok", store=path.name, session=session.id, ids=[entry.id])
        number += 1


async def opened_as_nobody(path: Path) -> None:
    """As `opened`, without the rights of root, to whom permissions do not apply."""
    import recollect.settings  # noqa: F401 - nobody may not read the package when root has it

    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
    await opened(path)


async def opened(path: Path) -> None:
    """Opens the store, makes a session and appends once: for many processes at a new file."""
    async with open_store(path) as store:
        session = await store.create()
        (entry,) = await store.append(session.id, [user("here")], parent=None)
        say("ok", ids=[entry.id], session=session.id)


async def import_one(store: SqliteStore, file: str, *rest: str) -> None:
    """Imports a foreign transcript."""
    from recollect.transcripts.session_import import import_file

    done = await import_file(store, file)
    say("ok", ids=[], session=done.session)


Work = Callable[..., Awaitable[None]]
_IN_STORE: dict[str, Work] = {
    work.__name__: work
    for work in (
        append,
        batch,
        rewind,
        together,
        stream,
        replies,
        starved,
        large_then_small,
        limited,
        race,
        serve,
        draft_and_wait,
        import_one,
    )
}
_BY_PATH: dict[str, Callable[[Path], Awaitable[None]]] = {
    "create": create,
    "opened": opened,
    "opened_as_nobody": opened_as_nobody,
}


async def main(mode: str, path: str, *arguments: str) -> None:
    if mode in _BY_PATH:
        await _BY_PATH[mode](Path(path))
        return
    async with open_store(path) as store:
        say("ready", pid=os.getpid(), warnings=store.warnings)
        await _IN_STORE[mode](store, *arguments)
    say("closed", warnings=store.warnings)


if __name__ == "__main__":
    try:
        asyncio.run(main(*sys.argv[1:]))
    except RecollectError as failure:
        say("error", kind=type(failure).__name__, text=str(failure))
        sys.exit(3)

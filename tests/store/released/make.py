"""Writes a small store with one of everything: `python -m tests.store.released.make FILE`.

Run once when a format is released; the file is kept here for ever and `test_released.py` opens it.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

from recollect import Entry
from recollect.engine import Project, open_store
from recollect.entries import Note, entry_to_json
from recollect.testing import call, model, result, user


async def make(path: Path) -> None:
    read = call("read_file", path="a.py")
    talk = [user("first 模型"), model("looking", read), result(read, "x = 1\n" * 2_000)]
    async with open_store(path) as store:
        project = Project("/somewhere", git="0" * 40, inode="1:2", names=("a.py",))
        session = await store.create(project=project, id="a" * 32, created=1_000, owner="anna")
        entries = await store.append(session.id, talk, parent=None)
        forked = await store.fork(session.id, at=entries[1].id, title="a fork")
        bulk = [
            user(f"bulk message number {n}, with a lone \ud800" + " and on" * (n % 7))
            for n in range(420)
        ]
        await store.append(forked.id, bulk, parent=entries[1].id)
        await store.rewind(forked.id, entries[0].id)
        odd = Entry("b" * 32, None, -5, Note(text="odd", extra='{"newer":[1]}'))
        await store.append(forked.id, [odd], parent=entries[0].id)
        await store.keep_counts("some/1", {entries[0].id: (3,)})
        await store.trash(forked.id)
        told = {
            s: [entry_to_json(entry) for entry in await store.tree(s)]
            for s in (session.id, forked.id)
        }
    path.with_suffix(".json").write_text(json.dumps(told), encoding="ascii")


if __name__ == "__main__":
    asyncio.run(make(Path(sys.argv[1])))

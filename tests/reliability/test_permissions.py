"""Directories 0700, files 0600, whatever the umask says."""

from __future__ import annotations

import asyncio
import os
import stat
from pathlib import Path

from recollect.store.open_store import open_store
from recollect.testing import user


def modes(directory: Path) -> dict[str, int]:
    return {file.name: stat.S_IMODE(file.stat().st_mode) for file in directory.iterdir()}


def test_other_users_cannot_read_a_store_even_with_an_open_umask(tmp_path: Path) -> None:
    async def run() -> None:
        async with open_store(tmp_path / "a" / "b" / "s.db") as store:
            session = await store.create()
            await store.append(session.id, [user("secret")], parent=None)
            assert modes(tmp_path / "a" / "b") == {
                "s.db": 0o600,
                "s.db-wal": 0o600,
                "s.db-shm": 0o600,
            }
            assert await store.path(session.id)
        assert modes(tmp_path / "a" / "b") == {"s.db": 0o600}
        assert modes(tmp_path / "a") == {"b": 0o700}
        assert modes(tmp_path)["a"] == 0o700

    before = os.umask(0)
    try:
        asyncio.run(run())
    finally:
        os.umask(before)

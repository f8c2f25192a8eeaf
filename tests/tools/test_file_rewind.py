"""Rewinding files while others write, too: nobody's work is overwritten, nothing is half done."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from recollect.entries import Note
from recollect.errors import HeadMoved, UnknownEntry
from recollect.store.sqlite import SqliteStore
from recollect.tools.file_backups import FileState, change_note, content_hash
from recollect.tools.file_rewind import rewind_files
from tests.tools.test_file_backups import World, names, play


class Meddling:
    """A store that does something else right before one of its calls."""

    def __init__(self, store: SqliteStore, name: str, deed: Callable[[], Awaitable[None]]) -> None:
        self._store, self._name, self._deed = store, name, deed

    def __getattr__(self, name: str) -> Any:
        async def call(*given: Any, **named: Any) -> Any:
            if name == self._name:
                self._name = ""
                await self._deed()
            return await getattr(self._store, name)(*given, **named)

        return call


@pytest.mark.parametrize("moment", ["tree", "blob", "put", "append"])
def test_what_the_user_writes_while_files_are_restored_stays(tmp_path: Path, moment: str) -> None:
    async def story(world: World) -> None:
        (world.root / "f").write_text("old")
        await world.write("f", "new")

        async def deed() -> None:
            (world.root / "f").write_text("user's")

        store: Any = Meddling(world.store, moment, deed)
        done = await rewind_files(store, world.session, world.start, (world.root,))
        assert (done.done, names(c.path for c in done.conflicts)) == (0, {"f"})

    assert (play(tmp_path, story) / "f").read_text() == "user's"


@pytest.mark.parametrize("moment", ["tree", "blob", "put", "append"])
def test_a_session_that_continues_meanwhile_is_an_error_and_no_file_changes(
    tmp_path: Path, moment: str
) -> None:
    async def story(world: World) -> None:
        (world.root / "f").write_text("old")
        await world.write("f", "new")

        async def deed() -> None:
            await world.append(Note(text="somebody else's"))

        store: Any = Meddling(world.store, moment, deed)
        with pytest.raises(HeadMoved):
            await rewind_files(store, world.session, world.start, (world.root,))
        assert (world.root / "f").read_text() == "new"
        assert (await world.rewind()).done == 1

    play(tmp_path, story)


def test_a_read_only_file_is_left_alone(tmp_path: Path) -> None:
    async def story(world: World) -> None:
        (world.root / "f").write_text("old")
        await world.write("f", "new")
        (world.root / "f").chmod(0o444)
        assert [c.why for c in (await world.rewind()).conflicts] == ["it is read-only"]
        (world.root / "f").chmod(0o644)
        assert names((await world.rewind()).restored) == {"f"}

    play(tmp_path, story)


def test_an_unknown_entry_is_an_error(tmp_path: Path) -> None:
    async def story(world: World) -> None:
        with pytest.raises(UnknownEntry):
            await world.go("0" * 32)

    play(tmp_path, story)


@pytest.mark.parametrize("name", ["AGENTS.md", ".github/workflows/ci.yml", ".Git/hooks/a", "HEAD"])
def test_a_forged_note_about_a_protected_file_restores_nothing(tmp_path: Path, name: str) -> None:
    async def story(world: World) -> None:
        blob = await world.store.put(b"evil")
        evil = FileState(content_hash(b"evil"), blob)
        path = str(world.root / name)
        await world.append(change_note(path, "before", evil))
        await world.append(change_note(path, "after", FileState()))
        done = await world.rewind(beside=True)
        assert (done.done, done.beside) == (0, ())
        assert "the user's to change" in done.conflicts[0].why

    assert list(play(tmp_path, story).iterdir()) == []

"""What tools changed comes back on a rewind; what the user changed is never overwritten."""

from __future__ import annotations

import asyncio
import hashlib
import stat
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect import Entry
from recollect.engine import open_store
from recollect.entries import Note, json_text
from recollect.store.ids import derived_id, new_id
from recollect.store.sqlite import SqliteStore
from recollect.testing import user
from recollect.tools.builtin import replace, write_file
from recollect.tools.file_backups import (
    FileBackups,
    FileState,
    RestorePlan,
    change_note,
    changes_since,
    plan_restore,
    read_states,
)
from recollect.tools.file_rewind import RewindResult, rewind_files
from recollect.tools.tool import ToolContext, ToolFailed


class World:
    """A project, a session, and tools that keep what they change."""

    def __init__(self, root: Path, store: SqliteStore, session: str) -> None:
        self.root, self.store, self.session = root, store, session
        self.backups = FileBackups(store, (root,), self.append)
        self.start: str | None = None

    async def begin(self) -> None:
        (entry,) = await self.store.append(self.session, [user("go")], parent=None)
        self.start = entry.id

    async def append(self, note: Note) -> None:
        await self.store.append(self.session, [note], parent=await self.head())

    async def write(self, path: str, content: str) -> None:
        context = ToolContext((self.root,), before_change=self.backups.before_change)
        said = json_text({"file_path": path, "content": content})
        assert not (await write_file(said, context)).is_error
        await self.backups.settle()

    async def entries(self) -> tuple[Entry, ...]:
        return await self.store.path(self.session, since=self.start)

    async def plan(self) -> RestorePlan:
        changes = changes_since(await self.entries())
        return plan_restore(changes, read_states(changes, (self.root,)))

    async def rewind(self, *, preview: bool = False, beside: bool = False) -> RewindResult:
        return await self.go(self.start, preview=preview, beside=beside)

    async def go(
        self, to: str | None, *, preview: bool = False, beside: bool = False
    ) -> RewindResult:
        return await rewind_files(
            self.store, self.session, to, (self.root,), preview=preview, beside=beside
        )

    async def head(self) -> str | None:
        return (await self.store.session(self.session)).head


def names(paths: Iterable[str]) -> set[str]:
    return {Path(path).name for path in paths}


def play(tmp_path: Path, story: Callable[[World], Awaitable[None]]) -> Path:
    root = tmp_path / "root"
    root.mkdir()

    async def run() -> None:
        async with open_store(tmp_path / "home" / "store.db") as store:
            world = World(root, store, (await store.create()).id)
            await world.begin()
            await story(world)

    asyncio.run(run())
    return root


def test_a_rewind_restores_what_tools_changed_created_and_emptied(tmp_path: Path) -> None:
    async def story(world: World) -> None:
        (world.root / "old").write_text("old")
        (world.root / "old").chmod(0o640)
        (world.root / "twice").write_text("first")
        await world.write("old", "changed")
        await world.write("new/file", "made")
        await world.write("twice", "second")
        await world.write("twice", "third")
        done = await world.rewind()
        assert names(done.restored) == {"old", "twice"}
        assert names(done.removed) == {"file"}
        assert (done.conflicts, done.session.head) == ((), world.start)

    root = play(tmp_path, story)
    assert (root / "old").read_text() == "old"
    assert stat.S_IMODE((root / "old").stat().st_mode) == 0o640
    assert (root / "twice").read_text() == "first"
    assert not (root / "new" / "file").exists()


def test_a_file_the_user_changed_since_is_a_conflict_and_stays(tmp_path: Path) -> None:
    async def story(world: World) -> None:
        for name in ("edited", "removed", "linked", "fine"):
            (world.root / name).write_text("old")
            await world.write(name, "tool's")
        (world.root / "edited").write_text("user's")
        (world.root / "removed").unlink()
        (world.root / "linked").unlink()
        (world.root / "linked").symlink_to("edited")
        done = await world.rewind()
        assert names(done.restored) == {"fine"}
        link = world.root / "linked"
        assert {Path(c.path).name: c.why for c in done.conflicts} == {
            "edited": "it was changed since the last tool wrote it",
            "removed": "it was removed since the last tool wrote it",
            "linked": f"it goes through {link}, a link to edited",
        }

    root = play(tmp_path, story)
    assert (root / "edited").read_text() == "user's"
    assert (root / "fine").read_text() == "old"
    assert not (root / "removed").exists()
    assert (root / "linked").is_symlink()


def test_a_file_the_user_changed_between_two_tools_is_a_conflict(tmp_path: Path) -> None:
    async def story(world: World) -> None:
        (world.root / "f").write_text("old")
        await world.write("f", "one")
        (world.root / "f").write_text("user's")
        await world.write("f", "user's and two")
        done = await world.rewind()
        assert [c.why for c in done.conflicts] == [
            "somebody else changed it between two changes by tools"
        ]

    assert (play(tmp_path, story) / "f").read_text() == "user's and two"


def test_a_change_whose_result_is_unknown_is_never_overwritten(tmp_path: Path) -> None:
    async def story(world: World) -> None:
        (world.root / "f").write_text("old")
        await world.backups.before_change(world.root / "f")
        plan = await world.plan()
        assert plan.unchanged == (str(world.root / "f"),)  # it did not happen
        (world.root / "f").write_text("half")
        plan = await world.plan()
        assert plan.restores == ()
        assert "not known" in plan.conflicts[0].why

    play(tmp_path, story)


def test_tools_and_restores_can_follow_each_other(tmp_path: Path) -> None:
    async def story(world: World) -> None:
        (world.root / "f").write_text("0")
        for round_number in range(3):
            await world.write("f", f"tool {round_number}")
            done = await world.rewind()
            assert len(done.restored) == 1
            assert (world.root / "f").read_text() == "0"
        assert (await world.plan()) == RestorePlan()
        assert names((await world.rewind()).unchanged) == {"f"}

    play(tmp_path, story)


def test_a_tool_that_failed_left_nothing_to_restore(tmp_path: Path) -> None:
    async def story(world: World) -> None:
        (world.root / "f").write_text("old")
        await world.backups.before_change(world.root / "f")
        await world.backups.settle()
        context = ToolContext((world.root,), before_change=world.backups.before_change)
        said = json_text({"file_path": "f", "old_string": "absent", "new_string": "x"})
        assert (await replace(said, context)).is_error
        changes = changes_since(await world.entries())
        assert len(changes) == 1
        assert (await world.plan()).unchanged == (str(world.root / "f"),)

    play(tmp_path, story)


def test_a_file_that_cannot_be_backed_up_is_not_changed(tmp_path: Path) -> None:
    async def story(world: World) -> None:
        (world.root / "f").write_text("old")
        outside = world.root.parent / "outside"
        outside.write_text("outside")
        with pytest.raises(ToolFailed):
            await world.backups.before_change(outside)

    play(tmp_path, story)


def test_a_forged_note_restores_nothing_outside_and_nothing_false(tmp_path: Path) -> None:
    async def story(world: World) -> None:
        outside = world.root.parent / "outside"
        outside.write_text("mine")
        (world.root / "f").write_text("old")
        blob = await world.store.put(b"evil")
        evil = FileState(hashlib.sha256(b"evil").hexdigest(), blob, 0o777)
        mine = FileState(hashlib.sha256(b"mine").hexdigest())
        old = FileState(hashlib.sha256(b"old").hexdigest())
        for path, before, after in (
            (str(outside), evil, mine),
            ("../outside", FileState(), mine),
            (str(world.root / "f"), FileState("0" * 64, blob), old),
            (str(world.root), FileState(), old),
            ("", FileState(), old),
            ("nul\0", FileState(), old),
            ("half \ud800", FileState(), old),
        ):
            await world.append(change_note(path, "before", before))
            await world.append(change_note(path, "after", after))
        done = await world.rewind(beside=True)
        assert (done.done, len(done.conflicts), done.unchanged) == (0, 7, ())
        assert outside.read_text() == "mine"

    root = play(tmp_path, story)
    assert (root / "f").read_text() == "old"
    assert sorted(path.name for path in root.parent.iterdir()) == ["home", "outside", "root"]


def test_a_note_of_an_imported_session_is_ignored() -> None:
    note = change_note("a", "before", FileState())
    assert changes_since([Entry(derived_id("x"), None, 0, note)]) == ()
    assert len(changes_since([Entry(new_id(), None, 0, note)])) == 1


@pytest.mark.parametrize(
    "extra",
    [
        '{"file_change":1}',
        '{"file_change":{"path":"a"}}',
        '{"file_change":{"path":"a","stage":"later","state":{}}}',
        '{"file_change":' + "[" * 9_000 + "]" * 9_000 + "}",
        '{"file_change":{"path":"' + "a" * 50_000 + '","stage":"before","state":{}}}',
        '{"note":"\\"file_change\\""}',
    ],
)
def test_notes_that_are_not_ours_are_ignored(extra: str) -> None:
    assert changes_since([Entry("1", None, 0, Note(text="x", extra=extra))]) == ()


def test_notes_survive_the_store(tmp_path: Path) -> None:
    async def story(world: World) -> None:
        state = FileState("ab", "cd", 0o644)
        for name in ("plain", "grüße 你好", "odd \udcff", 'quote"\n'):
            await world.append(change_note(name, "before", state))
        assert [change.path for change in changes_since(await world.entries())] == [
            "plain",
            "grüße 你好",
            "odd \udcff",
            'quote"\n',
        ]

    play(tmp_path, story)


def state(content: str | None) -> FileState:
    return FileState() if content is None else FileState(f"h{content}", f"b{content}", 0o644)


contents = st.sampled_from([None, "a", "b", "c"])
edits = st.lists(
    st.tuples(st.sampled_from(["tool", "user"]), st.sampled_from("fg"), contents), max_size=12
)


@given(edits=edits, first=st.fixed_dictionaries({"f": contents, "g": contents}))
def test_a_plan_restores_or_leaves_alone_and_loses_nothing_of_the_users(
    edits: list[tuple[str, str, str | None]], first: dict[str, str | None]
) -> None:
    files = dict(first)
    entries: list[Entry] = []
    left: dict[str, str | None] = {}  # what the last tool left behind
    found: dict[str, str | None] = {}  # what the first tool found
    disturbed: set[str] = set()
    for who, path, content in edits:
        if who == "tool":
            if left.get(path, files[path]) != files[path]:
                disturbed.add(path)
            found.setdefault(path, files[path])
            left[path] = content
            entries.append(Entry("1", None, 0, change_note(path, "before", state(files[path]))))
            entries.append(Entry("2", None, 0, change_note(path, "after", state(content))))
        files[path] = content
    disturbed |= {path for path, content in left.items() if files[path] != content}
    changes = changes_since(entries)
    plan = plan_restore(changes, {path: state(content) for path, content in files.items()})
    restored = {item.path: item for item in plan.restores}
    conflicts = {conflict.path for conflict in plan.conflicts}
    for path, content in found.items():
        if files[path] == content:
            assert path in plan.unchanged
        elif path in disturbed:
            assert path in conflicts
        else:
            assert restored[path] == (path, state(files[path]), state(content))
    assert len(restored) + len(conflicts) + len(plan.unchanged) == len(found)


moves = st.lists(
    st.one_of(
        st.tuples(st.just("write"), st.sampled_from("fg"), contents),
        st.tuples(st.just("go"), st.integers(0, 40), st.sampled_from(["f", "g", "", None])),
    ),
    max_size=15,
)


@given(moves=moves)
def test_any_entry_can_be_rewound_to_also_after_crashes(
    moves: list[tuple[str, int | str, str | None]],
) -> None:
    files: dict[str, str | None] = {"f": None, "g": "a"}
    entries: list[Entry] = []
    seen: list[dict[str, str | None]] = []  # the files at each entry

    def append(note: Note) -> None:
        entries.append(Entry(str(len(entries)), None, 0, note))
        seen.append(dict(files))

    for move, where, what in moves:
        if move == "write":
            path = str(where)
            append(change_note(path, "before", state(files[path])))
            files[path] = what
            append(change_note(path, "after", state(what)))
        elif entries:
            position = int(where) % len(entries)
            changes = changes_since(entries, str(position))
            plan = plan_restore(changes, {path: state(files[path]) for path in files})
            assert plan.conflicts == ()
            for one in plan.restores:
                append(change_note(one.path, "before", one.now, one.target))
            for one in plan.restores:
                if what in (None, one.path):  # else the crash came before this file
                    files[one.path] = one.target.hash[1:] or None
            if what is None:
                assert files == seen[position]
                for one in plan.restores:
                    append(change_note(one.path, "restored", one.target))

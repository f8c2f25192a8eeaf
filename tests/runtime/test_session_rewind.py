"""Going back with files alone, and what is shown before it."""

from __future__ import annotations

from pathlib import Path

from recollect.display.rewind_points import describe_preview
from recollect.entries import Note, Text
from recollect.runtime.session_outline import read_outline
from recollect.runtime.session_rewind import (
    FileDifference,
    preview_rewind,
    read_prompt,
    rewind_session,
)
from recollect.testing import call, model, result, user
from tests.tools.test_file_backups import World, play


async def look(world: World, to: str | None) -> dict[str, FileDifference]:
    outline = await read_outline(world.store, world.session)
    preview = await preview_rewind(world.store, outline, to, (world.root,))
    return {Path(one.path).name: one for one in preview.files}


def test_files_alone_go_back_and_forth_as_often_as_one_likes(tmp_path: Path) -> None:
    async def story(world: World) -> None:
        store, roots = world.store, (world.root,)
        (world.root / "f").write_text("old")
        await world.write("f", "new")
        await world.append(Note(text="the end"))
        place = world.start
        for number in range(4):
            found = await store.session(world.session)
            done = await rewind_session(store, found, place, "files", roots)
            assert done.done == 1
            assert done.back == found.head  # going there with files undoes this
            told = await store.path(world.session)
            assert told[found.entries - 1].id == found.head  # what was said stays
            assert len(told) == found.entries + 2  # what is noted: before and after
            assert (world.root / "f").read_text() == ("old" if number % 2 == 0 else "new")
            place = done.back

    play(tmp_path, story)


def test_where_nothing_is_to_be_restored_nothing_is_noted(tmp_path: Path) -> None:
    async def story(world: World) -> None:
        found = await world.store.session(world.session)
        done = await rewind_session(world.store, found, world.start, "files", (world.root,))
        assert (done.done, done.session) == (0, found)

    play(tmp_path, story)


def test_a_preview_compares_what_is_with_what_would_be(tmp_path: Path) -> None:
    async def story(world: World) -> None:
        (world.root / "f").write_text("one\ntwo\n")
        (world.root / "binary").write_bytes(b"\0\1")
        (world.root / "large").write_text("x" * 2_000_000)
        (world.root / "mine").write_text("old\n")
        for name in ("f", "binary", "large", "made", "mine"):
            await world.write(name, "two\n")
        (world.root / "mine").write_text("by me\n")
        found = await look(world, world.start)
        assert found["f"].outcome == "restored"
        assert "+one\n" in found["f"].diff
        assert found["made"].outcome == "removed"
        assert "-two" in found["made"].diff
        assert found["binary"].diff == "(not a text: 4 bytes now, 2 bytes then)"
        assert "too large to compare" in found["large"].diff
        assert found["mine"].outcome == "conflict"
        assert "+old" in found["mine"].diff
        assert "-by me" in found["mine"].diff
        assert (world.root / "f").read_text() == "two\n"

    play(tmp_path, story)


def test_a_preview_names_commands_whose_changes_stay(tmp_path: Path) -> None:
    async def story(world: World) -> None:
        ran = call("run_shell_command", "c1", command="make")
        found = await world.store.session(world.session)
        more = [user("build"), model("now", ran), result(ran, "done")]
        await world.store.append(world.session, more, parent=found.head)
        outline = await read_outline(world.store, world.session)
        there = await preview_rewind(world.store, outline, found.head, (world.root,))
        said = [*describe_preview(there, world.root)]
        assert "  not undone    what 1 command since then may have changed" in said
        here = await preview_rewind(world.store, outline, outline.session.head, (world.root,))
        assert here.commands == 0

    play(tmp_path, story)


def test_a_prompt_to_edit_is_what_the_user_typed(tmp_path: Path) -> None:
    async def story(world: World) -> None:
        said = user("look at @a.py\nand say why", Text(text="1: the file\n"))
        (entry,) = await world.store.append(world.session, [said], parent=world.start)
        prompt = await read_prompt(world.store, world.session, entry.id)
        assert prompt.text == "look at @a.py\nand say why"

    play(tmp_path, story)

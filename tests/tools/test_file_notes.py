"""Notes on files: written by the model, shown again when the file is read."""

from __future__ import annotations

import asyncio
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from recollect.engine import open_store
from recollect.entries import Compaction, Message, ToolResult
from recollect.testing import call, model, result, user
from recollect.tools.builtin import note
from recollect.tools.file_notes import (
    FileNote,
    all_notes,
    format_notes,
    notes_for,
)
from recollect.tools.tool import ToolContext
from recollect.view_loader import load_view
from tests.tools.calls import ROOT, made, text, view


def noted(path: str, said: str) -> Message:
    output = made(note, path=path, text=said)
    return result(call("note", path=path, text=said), text(output), is_error=output.is_error)


def test_the_newest_ten_notes_on_a_file_are_read_back_newest_first() -> None:
    seen = view(*[noted("src/a.py", f"note {n}\nmore") for n in range(15)], noted("b.py", "other"))
    found = notes_for(seen, "src/a.py")
    assert [one.text for one in found] == [f"note {n}\nmore" for n in range(14, 4, -1)]
    assert found[0] == FileNote("src/a.py", "note 14\nmore", 14_000, f"{14:032x}")


@given(st.text(min_size=1, max_size=40))
def test_any_note_is_read_back_or_refused(said: str) -> None:
    message = noted("a.py", said)
    part = message.parts[0]
    assert isinstance(part, ToolResult)
    found = notes_for(view(message), "a.py")
    assert len(found) == (not part.is_error)
    assert all(one.text.strip() == one.text for one in found)


def test_one_file_has_one_name_however_it_is_written() -> None:
    seen = view(noted("/work/src/../src/a.py", "x"))
    for path in ("src/a.py", "./src/a.py", "/work/src/a.py"):
        assert [one.text for one in notes_for(seen, path, str(ROOT))] == ["x"]
    assert notes_for(seen, "a.py", str(ROOT)) == ()


def test_neither_failures_nor_other_tools_nor_messages_make_notes() -> None:
    said = "Note on a.py\nforged"
    seen = view(
        user(said),
        model(said),
        result(call("cat"), said),
        result(call("note"), said, is_error=True),
        Message(role="user", parts=(ToolResult(call_id="c", name="note"),)),
    )
    assert notes_for(seen, "a.py") == ()


def test_a_path_cannot_carry_a_note_of_its_own() -> None:
    for path in ("a.py\nforged", "", "x" * 2_000, "a\x1b[2J.py", "a\u202e.py"):
        assert made(note, path=path, text="x").is_error


def test_a_note_is_bounded() -> None:
    assert not made(note, path="a.py", text="x" * 2_000).is_error
    for said in ("x" * 2_001, "x" * 1_000_000, "\x00" * 5_000 + "x", "", " \n "):
        assert made(note, path="a.py", text=said).is_error


def test_notes_are_shown_on_one_line_each() -> None:
    shown = format_notes(
        notes_for(view(noted("a.py", "one\n[end]\ntwo"), noted("a.py", "x" * 2_000)), "a.py")
    )
    assert shown.startswith("[your notes on a.py, newest first]\n- 1970-01-01 00:00 UTC: xxx")
    assert shown.endswith("\n- 1970-01-01 00:00 UTC: one [end] two")
    assert shown.count("\n") == 2
    assert format_notes(()) == ""


def test_notes_outlive_a_compaction_and_a_new_process_but_not_a_rewind(tmp_path: Path) -> None:
    kept, other = noted("src/a.py", "kept"), noted("src/ab.py", "other")
    undone, fresh = noted("src/a.py", "undone"), noted("src/a.py", "fresh")

    async def story() -> None:
        async with open_store(tmp_path / "store.db") as store:
            session = await store.create()
            first = [kept, other]
            (*_, last) = await store.append(session.id, first, parent=None)
            (left,) = await store.append(session.id, [undone], parent=last.id)
            await store.rewind(session.id, last.id, head=left.id)
            more = [user(str(n)) for n in range(600)]
            *_, last = await store.append(session.id, more, parent=last.id)
            compaction = Compaction(status="COMPRESSED", snapshot="talk")
            await store.append(session.id, [compaction, fresh], parent=last.id)
            seen = await load_view(store, session.id)
            assert [one.text for one in notes_for(seen, "src/a.py")] == ["fresh"]
            context = ToolContext(roots=(tmp_path,), session=session.id, store=store, view=seen)
            for path in ("src/a.py", str(tmp_path / "src/a.py")):
                found = await all_notes(context, path)
                assert [one.text for one in found] == ["fresh", "kept"]
            assert await all_notes(context, "...") == ()
            assert await all_notes(context, 'a"b') == ()

    asyncio.run(story())

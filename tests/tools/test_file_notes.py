from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect import open_store
from recollect.entries import Compaction, Entry, Message, Text, ToolResult
from recollect.snapshot.ledger_builder import build_ledger
from recollect.snapshot.plan_steps import PlanStep, apply_plan_call, parse_steps
from recollect.testing import call, model, result, user
from recollect.toolkinds import classify_tool
from recollect.tools.builtin import note, save_memory_tool, todo
from recollect.tools.file_notes import (
    FileNote,
    all_notes,
    format_notes,
    notes_for,
)
from recollect.tools.tool import Tool, ToolContext, ToolFailed, ToolOutput
from recollect.view.view import View
from recollect.view_loader import load_view

ROOT = Path("/work")
PLACE = ToolContext(roots=(ROOT,))


def made(tool: Tool, **arguments: object) -> ToolOutput:
    return asyncio.run(tool(json.dumps(arguments), PLACE))


def text(output: ToolOutput) -> str:
    first = output.content[0]
    assert isinstance(first, Text)
    return first.text


def noted(path: str, said: str) -> Message:
    output = made(note, path=path, text=said)
    return result(call("note", path=path, text=said), text(output), is_error=output.is_error)


def view(*messages: Message) -> View:
    entries = [
        Entry(f"{n:032x}", f"{n - 1:032x}" if n else None, n * 1_000, message)
        for n, message in enumerate(messages)
    ]
    return View.fold(entries)


# --- notes -------------------------------------------------------------------------------------


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


# --- the list ----------------------------------------------------------------------------------

STATUSES = st.sampled_from(["pending", "in_progress", "completed"])
ITEMS = st.lists(
    st.fixed_dictionaries({"content": st.text(max_size=30)}, optional={"status": STATUSES})
)


def test_a_list_is_shown_with_its_marks() -> None:
    items = [
        {"content": "read", "status": "completed"},
        {"content": "write\nit", "status": "in_progress", "activeForm": "writing"},
        {"content": "test"},
    ]
    assert text(made(todo, items=items)) == "1 of 3 done\n[x] read\n[>] write it\n[ ] test"


def test_the_snapshot_reads_our_list() -> None:
    items = [{"content": "read", "status": "completed"}, {"content": "test", "status": "pending"}]
    asked = call("todo", items=items)
    answer = result(asked, text(made(todo, items=items)))
    assert classify_tool(todo.name) == "plan"
    ledger = build_ledger(view(user("go on"), model("", asked), answer).entries)
    assert ledger.steps == (PlanStep("read", "done"), PlanStep("test", "open"))


@given(ITEMS)
def test_what_is_shown_is_what_the_snapshot_understands_of_the_call(
    items: list[dict[str, str]],
) -> None:
    output = made(todo, items=items)
    doing = sum(item.get("status") == "in_progress" for item in items)
    if output.is_error:
        understood = apply_plan_call((), {"items": items})
        assert doing > 1 or len(items) > 60 or len(understood) < len(items)
    elif items:
        assert parse_steps(text(output)) == apply_plan_call((), {"items": items})


@pytest.mark.parametrize(
    "items",
    [
        [{"content": "a", "status": "started"}],
        [{"content": "a", "status": "in_progress"}, {"content": "b", "status": "in_progress"}],
        [{"content": " \n "}],
        [{"status": "pending"}],
        [{"content": "a"}] * 61,
        [{"content": 5}],
        ["a"],
        "a",
        {"content": "a"},
    ],
)
def test_a_list_that_makes_no_sense_is_refused_with_a_reason(items: object) -> None:
    output = made(todo, items=items)
    assert output.is_error
    assert text(output).startswith("Error: ")
    assert len(text(output)) < 300


def test_a_list_may_be_emptied() -> None:
    assert text(made(todo, items=[])) == "The list is empty."


def test_the_schema_lists_the_statuses_without_references() -> None:
    schema = json.loads(todo.declaration.parameters)
    item = schema["properties"]["items"]["items"]
    assert sorted(item["properties"]["status"]["enum"]) == ["completed", "in_progress", "pending"]
    assert "$ref" not in todo.declaration.parameters


# --- memory ------------------------------------------------------------------------------------


class Memory:
    def __init__(self, error: Exception | None = None) -> None:
        self.facts: list[str] = []
        self.error = error

    async def save(self, fact: str) -> str:
        if self.error is not None:
            raise self.error
        self.facts.append(fact)
        return "MEMORY.md"


def test_a_fact_is_stored_as_one_clean_line() -> None:
    memory = Memory()
    output = made(save_memory_tool(memory.save), fact=" likes\n\n## Heading\x1b[2J tabs ")
    assert memory.facts == ["likes ## Heading tabs"]
    assert text(output) == "Remembered in MEMORY.md: likes ## Heading tabs"


def test_saving_a_memory_is_a_change_that_may_need_approval() -> None:
    tool = save_memory_tool(Memory().save)
    assert (tool.name, tool.effect) == ("save_memory", "write")
    assert list(json.loads(tool.declaration.parameters)["properties"]) == ["fact"]


@pytest.mark.parametrize(
    "fact", ["", " \n", "\x00", "x" * 1_001, "x" * 1_000_000, "\x00" * 9_000 + "a"]
)
def test_a_fact_without_words_or_without_end_is_refused(fact: str) -> None:
    memory = Memory()
    assert made(save_memory_tool(memory.save), fact=fact).is_error
    assert memory.facts == []


@pytest.mark.parametrize("error", [PermissionError("read-only"), ToolFailed("not allowed")])
def test_a_memory_that_cannot_be_written_is_an_error_the_model_reads(error: Exception) -> None:
    output = made(save_memory_tool(Memory(error).save), fact="x")
    assert output.is_error
    assert str(error) in text(output)

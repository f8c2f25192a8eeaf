"""What a session of openai-agents returns after something was left out, lost or compacted."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from recollect.adapters.openai_agents import RecollectSession
from recollect.adapters.response_items import plain_item
from recollect.codecs.call_pairing import INTERRUPTED
from recollect.entries import (
    Compaction,
    Elide,
    Elided,
    Entry,
    Message,
    Pin,
    Restore,
    Text,
    Thought,
    ToolCall,
    ToolResult,
)
from recollect.store.sqlite import SqliteStore
from recollect.testing import call, model, result, says, user
from recollect.view.elision_rules import ElisionRules
from recollect.view.entry_log import ACKNOWLEDGEMENT
from tests.adapters.items import EVERY_KIND, called, output, reasoned, replied, run, said
from tests.cli.runner import Cli

LONG = "line of a file\n" * 400


def orphans(items: Sequence[Any]) -> list[Any]:
    """Calls without an output after them, and outputs without a call before them."""
    calls = {i["call_id"]: n for n, i in enumerate(items) if i.get("type") == "function_call"}
    outputs = {
        i["call_id"]: n for n, i in enumerate(items) if i.get("type") == "function_call_output"
    }
    lost = [c for c, at in calls.items() if outputs.get(c, -1) < at]
    return lost + [o for o, at in outputs.items() if calls.get(o, at) >= at]


def reads(count: int) -> list[Any]:
    """Turns that read the same file again and again."""
    found: list[Any] = [said("Find the bug.")]
    for n in range(count):
        found += [called(f"c{n}"), output(f"c{n}", f"{n}: {LONG}"), replied(f"Not in read {n}.")]
    return found


def message_with(entries: Sequence[Entry], kind: type) -> list[str]:
    return [
        entry.id
        for entry in entries
        if isinstance(entry.body, Message) and isinstance(entry.body.parts[-1], kind)
    ]


def test_an_elided_output_keeps_its_call_and_holds_the_placeholder(tmp_path: Path) -> None:
    cli = Cli(tmp_path)
    items = [said("Look"), called("c1"), called("c2"), output("c1", LONG), output("c2", "short")]

    async def add(store: SqliteStore) -> tuple[str, str]:
        session = RecollectSession("u", store=store)
        await session.add_items(items)
        handle = await session.open()
        return handle.id, message_with(handle.view().entries, ToolResult)[0]

    async def items_of(store: SqliteStore) -> list[Any]:
        return await RecollectSession("u", store=store).get_items()

    async def all_items_of(store: SqliteStore) -> list[Any]:
        return await RecollectSession("u", store=store, full=True).get_items()

    id_, entry = cli.write(add)
    cli.ok("context", id_, "--drop", entry)
    shown = cli.write(items_of)
    assert shown[:3] == items[:3]
    assert [item["call_id"] for item in shown[3:]] == ["c1", "c2"]
    assert all("left out" in item["output"] for item in shown[3:])
    assert cli.write(all_items_of) == items
    cli.ok("context", id_, "--restore", entry)
    assert cli.write(items_of) == items


def test_any_part_can_be_left_out_and_all_other_items_stay_as_they_were(tmp_path: Path) -> None:
    async def work(store: SqliteStore) -> None:
        session = RecollectSession("u", store=store)
        await session.add_items(EVERY_KIND)
        handle = await session.open()
        for entry in handle.view().entries:
            assert isinstance(entry.body, Message)
            for position, part in enumerate(entry.body.parts):
                what = Elided(entry=entry.id, parts=(position,), placeholder="[gone]")
                (elide,) = await handle.append(Elide(rule="drop", items=(what,)))
                shown = await session.get_items()
                changed = [item for item in EVERY_KIND if item not in shown]
                assert len(changed) <= 1 or isinstance(part, Thought)
                assert orphans(shown) == []
                await handle.append(Restore(entries=(elide.id,)))
        assert await session.get_items() == EVERY_KIND

    run(tmp_path, work)


def test_ids_go_with_the_reasoning_item_that_they_depend_on(tmp_path: Path) -> None:
    async def work(store: SqliteStore) -> None:
        session = RecollectSession("u", store=store)
        await session.add_items([said("Look"), reasoned("Hm."), called("c1"), output("c1")])
        handle = await session.open()
        thought = Elided(entry=handle.view().entries[1].id, parts=(0,), placeholder="")
        await handle.append(Elide(rule="drop", items=(thought,)))
        bare = {key: value for key, value in called("c1").items() if key != "id"}
        assert await session.get_items() == [said("Look"), bare, output("c1")]

    run(tmp_path, work)


def test_a_compaction_shows_as_a_snapshot_and_popping_past_it_undoes_it(tmp_path: Path) -> None:
    async def work(store: SqliteStore) -> None:
        session = RecollectSession("u", store=store)
        items = [said("Look"), called("c1"), output("c1"), replied("Done.")]
        await session.add_items(items)
        handle = await session.open()
        await handle.append(Compaction(status="COMPRESSED", snapshot="They looked at a.py."))
        await session.add_items([said("And then?")])
        assert await session.get_items() == [
            said("They looked at a.py."),
            {"role": "assistant", "content": ACKNOWLEDGEMENT},
            said("And then?"),
        ]
        full = RecollectSession("u", store=store, full=True)
        assert await full.get_items() == [*items, said("And then?")]
        assert await session.pop_item() == said("And then?")
        assert len(await session.get_items()) == 2
        assert await session.pop_item() == replied("Done.")
        assert await session.get_items() == items[:-1]

    run(tmp_path, work)


@pytest.mark.parametrize("first_kept", range(1, 6))
@pytest.mark.parametrize("pinned", range(5))
def test_wherever_a_compaction_cuts_no_call_and_no_output_is_alone(
    tmp_path: Path, first_kept: int, pinned: int
) -> None:
    async def work(store: SqliteStore) -> None:
        session = RecollectSession("u", store=store)
        for item in (said("Look"), called("c1"), called("c2"), output("c1"), output("c2", "two")):
            await session.add_items([item])
        await session.add_items([replied("Done.")])
        handle = await session.open()
        entries = handle.view().entries
        await handle.append(
            Pin(entries=(entries[pinned].id,)),
            Compaction(
                status="COMPRESSED",
                snapshot="They looked.",
                first_kept=entries[first_kept].id,
                kept=(entries[pinned].id,),
            ),
        )
        shown = await session.get_items()
        assert orphans(shown) == []
        assert shown[-1] == replied("Done.")

    run(tmp_path, work)


def test_a_call_whose_output_was_lost_in_a_crash_is_answered(tmp_path: Path) -> None:
    async def work(store: SqliteStore) -> None:
        session = RecollectSession("u", store=store)
        crashed = [said("Look"), reasoned(), called("c1"), called("c2"), output("c2")]
        await session.add_items(crashed)
        answer = output("c1", INTERRUPTED)
        assert await session.get_items() == [*crashed, answer]
        await session.add_items([said("Go on")])
        assert await session.get_items() == [*crashed, answer, said("Go on")]
        assert await session.get_items(limit=6) == [*crashed, said("Go on")]
        # the output comes after all: an approval was waited for
        await session.add_items([output("c1", "late")])
        assert await session.get_items() == [*crashed, output("c1", "late"), said("Go on")]

    run(tmp_path, work)


def test_a_lost_screenshot_takes_its_call_and_the_reasoning_along(tmp_path: Path) -> None:
    async def work(store: SqliteStore) -> None:
        session = RecollectSession("u", store=store)
        click = {"type": "computer_call", "call_id": "c1", "id": "cu_1", "action": {}}
        await session.add_items([said("Click"), reasoned(), click, said("Go on")])
        assert await session.get_items() == [said("Click"), said("Go on")]

    run(tmp_path, work)


def test_an_output_without_its_call_is_shown_as_text(tmp_path: Path) -> None:
    async def work(store: SqliteStore) -> None:
        session = RecollectSession("u", store=store)
        await session.add_items([output("nobody", "found it")])
        (shown,) = await session.get_items()
        assert shown["role"] == "user"
        assert "found it" in str(shown["content"])
        full = RecollectSession("u", store=store, full=True)
        assert await full.get_items() == [output("nobody", "found it")]

    run(tmp_path, work)


@pytest.mark.parametrize("budget", [1_000, 4_000, 20_000])
def test_a_budget_is_kept_and_nothing_is_stored_for_it(tmp_path: Path, budget: int) -> None:
    items = reads(20)

    async def work(store: SqliteStore) -> None:
        session = RecollectSession("u", store=store, budget=budget, model="gpt-4o")
        await session.add_items(items)
        shown = await session.get_items()
        assert orphans(shown) == []
        assert shown[-1] == items[-1]
        assert sum(len(str(item)) for item in shown) / 4 < budget * 1.2
        assert await RecollectSession("u", store=store).get_items() == items
        small = RecollectSession("small", store=store, budget=budget)
        await small.add_items(items[:1])
        assert await small.get_items() == items[:1]

    run(tmp_path, work)


def test_rules_leave_superseded_reads_out(tmp_path: Path) -> None:
    items = reads(9)

    async def work(store: SqliteStore) -> None:
        session = RecollectSession("u", store=store, rules=ElisionRules(keep_reads=2))
        await session.add_items(items)
        shown = await session.get_items()
        whole = [item for item in shown if LONG in str(item.get("output"))]
        assert whole == [items[-5], items[-2]]
        assert len(shown) == len(items)

    run(tmp_path, work)


def test_messages_of_other_agents_become_items_without_their_instructions(tmp_path: Path) -> None:
    grep = call("grep", pattern="x")

    async def work(store: SqliteStore) -> None:
        session = RecollectSession("u", store=store)
        handle = await session.open()
        spoken = Message(role="model", parts=(*says("I look", grep).steps,))  # type: ignore[arg-type]
        rules = Message(role="system", parts=(Text(text="You are a coder."),), context="initial")
        await handle.append(
            rules, user("Where is x?"), spoken, result(grep, "a.py:1"), model("There.")
        )
        assert await session.get_items() == [
            said("Where is x?"),
            {"role": "assistant", "content": "I look"},
            {
                "type": "function_call",
                "call_id": "call-1",
                "name": "grep",
                "arguments": '{"pattern":"x"}',
            },
            output("call-1", "a.py:1"),
            {"role": "assistant", "content": "There."},
        ]
        for text in ("There.", "a.py:1"):
            assert text in str(await session.pop_item())
        popped = await session.pop_item()
        assert popped is not None
        assert popped["name"] == "grep"
        assert (await session.get_items())[-1]["content"] == "I look"

    run(tmp_path, work)


def test_what_patches_build_on_never_changes() -> None:
    """Stored sessions hold patches against these items: a change here would break them."""
    text = (Text(text="a"),)
    asked = ToolCall(id="c", name="n", arguments="{}")
    answered = ToolResult(call_id="c", name="n", content=text)
    assert plain_item("message", "user", text) == {"role": "user", "content": "a"}
    assert plain_item("message", "model", text, listed=True) == {
        "role": "assistant",
        "content": [{"type": "output_text", "text": "a"}],
    }
    assert plain_item("function_call", "model", (asked,)) == {
        "type": "function_call",
        "call_id": "c",
        "name": "n",
        "arguments": "{}",
    }
    assert plain_item("function_call_output", "user", (answered,), listed=True) == {
        "type": "function_call_output",
        "call_id": "c",
        "output": [{"type": "input_text", "text": "a"}],
    }

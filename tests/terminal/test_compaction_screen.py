"""`/compact`: the proposal, its edits, a part, cancelling, failing, undoing."""

from __future__ import annotations

import asyncio
from pathlib import Path

from recollect.entries import Body, Compaction, Entry
from recollect.terminal.compaction_screen import CompactionScreen
from recollect.terminal.prompt_choice import PromptChoice
from recollect.terminal.row_list import RowList
from recollect.testing import says, user
from tests.terminal.context_places import command, exchange, opened, store
from tests.terminal.pilot import DrivenTerminal, TerminalPlace

WRITTEN = (
    "<scratchpad>thinking</scratchpad><state_snapshot><overall_goal>Keep the house tidy."
    "</overall_goal><key_knowledge>The modules are numbered.</key_knowledge></state_snapshot>"
)


def talk(count: int = 12) -> list[Body]:
    return [body for number in range(count) for body in exchange(number)]


def screen(driven: DrivenTerminal) -> CompactionScreen:
    found = driven.app.screen
    assert isinstance(found, CompactionScreen)
    return found


async def open_compaction(driven: DrivenTerminal, words: str = "") -> CompactionScreen:
    await command(driven, f"/compact {words}".rstrip())
    await driven.wait(lambda: isinstance(driven.app.screen, CompactionScreen), "the screen")
    return screen(driven)


async def proposed(driven: DrivenTerminal) -> CompactionScreen:
    shown = screen(driven)
    await driven.wait(lambda: not shown.proposing and shown.outcome is not None, "a proposal")
    return shown


def entries(driven: DrivenTerminal) -> tuple[Entry, ...]:
    return driven.session.view().entries


def compactions(driven: DrivenTerminal) -> list[Compaction]:
    return [one.body for one in entries(driven) if isinstance(one.body, Compaction)]


def test_an_edited_snapshot_is_stored_as_it_was_left_and_undone(terminal: TerminalPlace) -> None:
    async def use() -> None:
        session, stored = await store(talk())
        async with opened(terminal, session, WRITTEN, WRITTEN) as driven:
            before = entries(driven) if driven.app.runner.session else stored
            await open_compaction(driven, "keep the API decisions")
            shown = await proposed(driven)
            assert "would compact" in driven.shown()
            assert "Keep the house tidy." in shown.area.text
            assert "keep the API decisions" in shown.area.text
            assert compactions(driven) == []
            await driven.press("e")
            shown.area.move_cursor(shown.area.document.end)
            line = next(n for n, one in enumerate(shown.area.text.split("\n")) if "numbered" in one)
            shown.area.move_cursor((line, 0))
            await driven.press("X", "q")
            await driven.wait_shown("afterwards")
            text = shown.area.text
            assert "Xq" in text
            await driven.press("ctrl+s")
            await driven.wait(lambda: driven.app.screen is driven.app.chat, "the conversation")
            (made,) = compactions(driven)
            assert made.snapshot == text
            assert made.reason.startswith("edited by hand")
            view = driven.app.runner.session.view()  # type: ignore[union-attr]
            assert view.tokens == made.tokens_after < made.tokens_before
            await command(driven, "/compact undo")
            await driven.wait_shown("undid ")
            assert driven.app.runner.session.view().tokens == made.tokens_before  # type: ignore[union-attr]
            assert len(before) == len(stored)

    asyncio.run(use())


def test_what_cannot_be_stored_is_said_and_stored_nowhere(terminal: TerminalPlace) -> None:
    async def use() -> None:
        session, _ = await store(talk())
        async with opened(terminal, session, "", "") as driven:
            await open_compaction(driven)
            shown = await proposed(driven)
            assert "built by code" in driven.shown()  # the model answered nothing
            await driven.press("e")
            shown.area.load_text("nothing of use")
            await driven.press("ctrl+s")
            await driven.wait_shown("not stored: the snapshot says nothing")
            assert compactions(driven) == []
            await driven.press("escape", "escape", "escape")  # the second one says what it loses
            await driven.wait(lambda: driven.app.screen is driven.app.chat)

    asyncio.run(use())


def test_a_part_is_chosen_from_the_prompts(terminal: TerminalPlace) -> None:
    async def use() -> None:
        session, stored = await store(talk())
        async with opened(terminal, session, WRITTEN, WRITTEN, WRITTEN) as driven:
            await open_compaction(driven)
            shown = await proposed(driven)
            await driven.press("r")
            await driven.wait(lambda: isinstance(driven.app.screen, PromptChoice), "the prompts")
            driven.app.screen.query_one(RowList).move_to(9)  # the ninth prompt
            await driven.press("enter")
            await driven.wait(lambda: driven.app.screen is shown)
            await driven.wait(lambda: shown.wish.until == stored[32].id and not shown.proposing)
            await driven.wait_shown("” and what comes after it stay")
            await driven.press("a")
            await driven.wait(lambda: driven.app.screen is driven.app.chat)
            (made,) = compactions(driven)
            assert made.first_kept == stored[32].id

    asyncio.run(use())


def test_what_the_user_wrote_is_not_lost_by_one_key(terminal: TerminalPlace) -> None:
    async def use() -> None:
        session, _ = await store(talk())
        async with opened(terminal, session, WRITTEN, WRITTEN) as driven:
            await open_compaction(driven)
            shown = await proposed(driven)
            await driven.press("e", "down", "down", "end", "X", "escape")
            for key, name in (("b", "b"), ("i", "i"), ("u", "u"), ("escape", "Esc")):
                await driven.press(key)
                await driven.wait_shown(f"would be lost: {name} again goes on")
                assert "compute_0.X" in shown.area.text
            await driven.press("a")
            await driven.wait(lambda: driven.app.screen is driven.app.chat)
            (made,) = compactions(driven)
            assert "compute_0.X" in made.snapshot

    asyncio.run(use())


def test_another_key_twice_gives_up_what_the_user_wrote(terminal: TerminalPlace) -> None:
    async def use() -> None:
        session, _ = await store(talk())
        async with opened(terminal, session, WRITTEN, WRITTEN) as driven:
            await open_compaction(driven)
            await proposed(driven)
            await driven.press("e", "X", "escape", "escape")
            await driven.wait_shown("would be lost: Esc again goes on")
            await driven.press("escape")
            await driven.wait(lambda: driven.app.screen is driven.app.chat)
            assert compactions(driven) == []

    asyncio.run(use())


def test_it_is_cancelled_and_refused_when_the_session_went_on(terminal: TerminalPlace) -> None:
    async def use() -> None:
        session, _ = await store(talk())
        async with opened(terminal, session, says(WRITTEN, delay=600), WRITTEN) as driven:
            await open_compaction(driven)
            await driven.wait(lambda: driven.server.requests, "a request")
            await driven.wait_shown("the model writes a snapshot")
            shown = screen(driven)
            await driven.press("escape")
            await driven.wait_shown("stopped; nothing was stored")
            await driven.press("i")
            await driven.type("the tests")
            await driven.press("enter")
            await driven.wait(lambda: len(driven.server.requests) == 2, "another request")
            await proposed(driven)
            assert "the tests" in shown.area.text
            held = driven.app.runner.session
            assert held is not None
            await held.append(user("meanwhile"))
            await driven.press("a")
            await driven.wait_shown("the session went on since")
            assert compactions(driven) == []

    asyncio.run(use())


def test_hooks_hear_of_it_and_nothing_to_do_is_a_sentence(terminal: TerminalPlace) -> None:
    async def use() -> None:
        log = Path("hooks.log").absolute()
        hooks = "".join(
            f'[[hooks]]\nevent = "{event}"\ncommand = "sh -c \'echo {event} >> {log}\'"\n'
            for event in ("PreCompress", "ChatCompressed")
        )
        session, _ = await store([user("hi")])
        async with opened(terminal, session) as driven:
            await open_compaction(driven)
            await driven.wait_shown("was not compacted")
            await driven.wait_shown("/context shows what the model sees")
            for size in ((40, 12), (20, 5), (120, 40)):
                await driven.pilot.resize_terminal(*size)
                await driven.pilot.pause()
        other, _ = await store(talk())
        async with opened(terminal, other, WRITTEN, settings=hooks) as driven:
            await open_compaction(driven)
            await proposed(driven)
            assert not log.exists()
            await driven.press("a")
            await driven.wait(lambda: driven.app.screen is driven.app.chat)
            assert log.read_text().split() == ["PreCompress", "ChatCompressed"]

    asyncio.run(use())

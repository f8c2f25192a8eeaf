"""Choosing a session to resume, in the real program over a real store."""

from __future__ import annotations

import asyncio
import re
import time
from pathlib import Path

import apsw
import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual.widgets import Input

from recollect.display.display_text import display_width, sanitize
from recollect.display.session_list import (
    CACHE_SECONDS,
    SessionDetails,
    describe_facts,
    matches_title,
)
from recollect.entries import Entry, Message, Note, Text, json_text
from recollect.store.contract import SearchHit, SessionInfo
from recollect.store.ids import new_id, now
from recollect.store.sqlite import SqliteStore
from recollect.terminal.confirm_line import ConfirmLine
from recollect.terminal.palette import Palette
from recollect.terminal.resume_screen import ResumeScreen
from recollect.terminal.session_list_view import SessionListView, passage_segments
from recollect.terminal.start_options import StartOptions
from tests.terminal.pilot import TerminalPlace
from tests.terminal.session_picker import PICKER, picker, titles, wait_chat, wait_listed
from tests.terminal.stored_sessions import (
    HOUR,
    add_many,
    add_session,
    exchange,
    in_store,
    run_command,
)


@pytest.fixture(autouse=True)
def _own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)


def test_a_session_is_found_by_its_title_or_by_what_was_said_and_opened(
    terminal: TerminalPlace,
) -> None:
    async def use() -> None:
        await add_session(terminal, "rate limiter", exchange("count the tokens", "a leaky bucket"))
        parser = await add_session(terminal, "parser", exchange("read files", "by recursion"))
        async with terminal.open(options=PICKER) as driven:
            await wait_listed(driven, "parser", "rate limiter")
            await driven.wait_shown("1 turn · 1,010 tokens · m-1")
            await driven.wait_shown("by recursion")  # the preview
            await driven.press("down")
            await driven.wait_shown("a leaky bucket")
            await driven.type("leaky")
            await driven.wait_shown("⌕ rate limiter")
            assert titles(driven) == ["rate limiter"]
            await driven.press(*["backspace"] * 5)
            await wait_listed(driven, "parser", "rate limiter")
            await driven.type("pars")
            await wait_listed(driven, "parser")
            await driven.press("enter")
            await wait_chat(driven)
            await driven.wait_shown("by recursion")
            assert driven.app.runner.session is not None
            assert driven.app.runner.session.id == parser.id

    asyncio.run(use())


def test_the_list_leaves_out_sub_agents_and_what_clients_of_a_server_own(
    terminal: TerminalPlace,
) -> None:
    async def use() -> None:
        mine = await add_session(terminal, "mine")
        link = Note(text="a subagent's", extra=json_text({"recollect": {"parent": mine.id}}))
        await add_session(terminal, "of a sub-agent", [link, *exchange("a", "b")])
        await add_session(terminal, "of a client", owner="client")
        async with terminal.open(options=PICKER) as driven:
            await wait_listed(driven, "mine")
            await driven.press("tab")
            await driven.wait_shown("of every project")
            await wait_listed(driven, "mine")

    asyncio.run(use())


def test_tab_shows_every_project_and_a_session_of_another_one_says_where_tools_work(
    terminal: TerminalPlace, tmp_path: Path
) -> None:
    async def use() -> None:
        other = tmp_path / "elsewhere"
        other.mkdir()
        await add_session(terminal, "here")
        there = await add_session(terminal, "there", folder=other)
        async with terminal.open(options=PICKER) as driven:
            await wait_listed(driven, "here")
            await driven.press("tab")
            await wait_listed(driven, "there", "here")
            await driven.wait(lambda: re.search(r"there  +elsewhere\b", driven.shown()))
            await driven.wait_shown("m-1 · ~/elsewhere")  # in the preview, whole
            await driven.press("enter")
            await driven.wait_shown("tools will work here, in ~/project")
            await driven.press("escape")
            await driven.wait(lambda: picker(driven).rows.has_focus)
            await driven.press("enter")
            await driven.wait_shown("tools will work here")
            await driven.press("enter")
            await wait_chat(driven)
            runner = driven.app.runner
            await driven.wait(lambda: runner.session is not None)
            assert runner.session is not None
            assert runner.session.id == there.id

    asyncio.run(use())


def test_a_renamed_folder_keeps_its_sessions(
    terminal: TerminalPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def use() -> None:
        terminal.write("a.py", "print(1)\n")
        await add_session(terminal, "before the move")
        moved = terminal.project.with_name("moved")
        terminal.project.rename(moved)
        monkeypatch.chdir(moved)
        async with terminal.open(options=PICKER) as driven:
            await wait_listed(driven, "before the move")
            await driven.press("enter")
            await wait_chat(driven)

    asyncio.run(use())


def test_a_session_is_renamed_trashed_and_brought_back_in_place(terminal: TerminalPlace) -> None:
    async def use() -> None:
        await add_session(terminal, "first")
        second = await add_session(terminal, "second")
        async with terminal.open(options=PICKER) as driven:
            await wait_listed(driven, "second", "first")
            await driven.press("ctrl+e")
            await driven.wait(lambda: picker(driven).query_one("#title", Input).has_focus)
            await driven.press("end", "space", *"try", "enter")
            await wait_listed(driven, "second try", "first")
            await driven.press("ctrl+x")
            await driven.wait_shown("put it into the trash?")
            await driven.press("x", "escape")  # nothing but a yes is a yes
            await driven.wait(lambda: not picker(driven).query_one(ConfirmLine).is_asking)
            await driven.press("ctrl+x", "enter")
            await wait_listed(driven, "first")
            await driven.wait_shown("Ctrl-Z brings it back")
            await driven.press("ctrl+z")
            await wait_listed(driven, "second try", "first")
            await driven.press("up", "ctrl+x", "y")
            await wait_listed(driven, "first")
            await driven.press("ctrl+t")
            await wait_listed(driven, "second try")
            await driven.wait_shown("1 session in the trash")
            await driven.press("enter")
            await wait_listed(driven)
            await driven.press("ctrl+t")
            await wait_listed(driven, "second try", "first")
            store = driven.app.runner.runtime.store
            assert (await store.session(second.id)).trashed is None

    asyncio.run(use())


def test_the_session_one_is_in_is_not_trashed_and_renamed_with_the_conversation(
    terminal: TerminalPlace,
) -> None:
    async def use() -> None:
        mine = await add_session(terminal, "mine")
        async with terminal.open(options=StartOptions(session=mine.id)) as driven:
            await driven.wait(lambda: driven.app.runner.session is not None)
            await run_command(driven, "/resume")
            await wait_listed(driven, "mine")
            await driven.press("ctrl+x")
            await driven.wait_shown("this is the session you are in")
            await driven.press("ctrl+e")
            await driven.wait(lambda: picker(driven).query_one("#title", Input).has_focus)
            await driven.press("!", "enter")
            await wait_listed(driven, "mine!")
            await driven.press("escape")
            await wait_chat(driven)
            session = driven.app.runner.session
            assert session is not None
            assert session.view().head == (await session.info()).head

    asyncio.run(use())


def test_two_thousand_sessions_are_there_at_once_and_only_visible_ones_are_read(
    terminal: TerminalPlace,
) -> None:
    async def use() -> None:
        await add_many(terminal, 2_000)
        async with terminal.open() as driven:
            began = time.monotonic()
            await run_command(driven, "/resume")
            await driven.wait(lambda: isinstance(driven.app.screen, ResumeScreen))
            await driven.wait(lambda: picker(driven).rows.items, "a row")
            took = time.monotonic() - began
            await driven.wait_shown("2,000 sessions")
            rows = picker(driven).query_one(SessionListView)
            await driven.wait(lambda: rows.details, "details")
            await driven.press("pagedown", "pagedown")
            await driven.wait(
                lambda: all(item.version in rows.details for item in rows.visible_items())
            )
            assert len(rows.details) < 60
            assert took < 3  # seconds, on a busy machine; 0.1 on a quiet one

    asyncio.run(use())


@pytest.mark.parametrize("size", [(40, 12), (20, 5), (120, 40)])
def test_hostile_titles_and_small_terminals_break_nothing(
    terminal: TerminalPlace, size: tuple[int, int]
) -> None:
    async def use() -> None:
        evil = "\x1b[2J\x1b]0;pwned\x07\u202e שלום 日本語 👩\u200d👩\u200d👧 " + "x" * 2_000
        await add_session(terminal, evil, exchange(evil, "a\x1b[31m" + "y" * 1_000_000))
        await add_session(terminal, "good")
        empty = await in_store(terminal, lambda store: store.create(title="empty"))
        async with terminal.open(options=PICKER, size=size) as driven:
            await driven.wait(lambda: isinstance(driven.app.screen, ResumeScreen))
            await driven.press("tab")
            await driven.wait(lambda: len(picker(driven).rows.items) == 3)
            for key in ("down", "down", "up", "pagedown", "ctrl+t", "ctrl+t", "ctrl+x", "escape"):
                await driven.press(key)
            assert "\x1b" not in driven.shown()
            await driven.pilot.resize_terminal(80, 24)
            await driven.type("pwned")
            await driven.wait(lambda: len(picker(driven).rows.items) < 3)
            assert "\x1b" not in driven.shown()
            await driven.press("escape")
            await wait_chat(driven)
        assert empty.entries == 0

    asyncio.run(use())


def test_a_session_whose_prompt_cache_is_gone_says_what_resuming_costs(
    terminal: TerminalPlace,
) -> None:
    async def use() -> None:
        info = await add_session(terminal, "old")
        details = SessionDetails(turns=3, tokens=45_210, model="m")
        later = info.used + CACHE_SECONDS * 1_000
        assert "45,210 tokens" in describe_facts(info, details, project=False, now=later - 1)
        cold = describe_facts(info, details, project=False, now=later)
        assert cold == "1 hour ago · 3 turns · cold: ≈45,210 tokens to resume · m"

        async def old(store: SqliteStore) -> None:
            made = await store.create(title="older", created=now() - 3 * HOUR)
            said = Message(role="user", parts=(Text("what is left of it?"),))
            await store.append(
                made.id, [Entry(new_id(), None, now() - 2 * HOUR, said)], parent=None
            )

        await in_store(terminal, old)
        async with terminal.open(options=PICKER) as driven:
            await driven.wait(lambda: isinstance(driven.app.screen, ResumeScreen))
            await driven.press("tab")
            await driven.wait_shown("2 hours ago · 1 turn · cold: ≈")

    asyncio.run(use())


def test_a_damaged_session_is_listed_and_an_error_to_open_that_hides_nothing(
    terminal: TerminalPlace,
) -> None:
    async def use() -> None:
        good = await add_session(terminal, "good", exchange("one", "uno"))
        bad = await add_session(terminal, "damaged", exchange("two", "due"))
        db = apsw.Connection(str(terminal.home / "recollect.db"))
        db.execute("UPDATE entries SET body = x'00' WHERE id = ?", (bytes.fromhex(bad.head or ""),))
        db.close()
        async with terminal.open(options=StartOptions(session=good.id)) as driven:
            await driven.wait_shown("uno")
            active = driven.app.runner.active
            await run_command(driven, "/resume")
            await wait_listed(driven, "damaged", "good")
            await driven.wait_shown("▌ two")
            await driven.press("enter")
            await wait_chat(driven)
            await driven.wait_shown("damaged")
            assert driven.app.runner.active is active
            assert "uno" in driven.shown()

    asyncio.run(use())


@given(
    text=st.text(max_size=300),
    marks=st.lists(st.tuples(st.integers(-5, 320), st.integers(-5, 320)), max_size=5),
    width=st.integers(0, 90),
)
def test_a_passage_fits_its_line_whatever_was_said_and_wherever_the_matches_are(
    text: str, marks: list[tuple[int, int]], width: int
) -> None:
    info = SessionInfo("0" * 32, "title", None, 0, 0, 0)
    entry = Entry("1" * 32, None, 0, Note(text=""))
    segments = passage_segments(SearchHit(info, entry, text, tuple(marks)), width, Palette())
    shown = "".join(segment.text for segment in segments)
    assert display_width(shown) <= max(1, width)
    assert shown == sanitize(shown)
    assert "\n" not in shown


def test_titles_are_found_by_words_and_ids_by_enough_of_their_digits() -> None:
    info = SessionInfo("fade" * 8, "Parse the File", None, 0, 0, 0, "/home/me/work")
    assert matches_title(info, "file PARSE")
    assert not matches_title(info, "fade")
    assert matches_title(info, "defade")
    assert not matches_title(info, "work")
    assert matches_title(info, "work", project=True)


def test_resume_in_text_lists_takes_parts_of_ids_and_stays_where_it_is_on_errors(
    terminal: TerminalPlace,
) -> None:
    async def use() -> None:
        first = await add_session(terminal, "first", exchange("one", "uno"))
        second = await add_session(terminal, "second", exchange("two", "due"))
        broken = await add_session(terminal, "broken")
        await in_store(terminal, lambda store: store.trash(broken.id))
        async with terminal.open(options=StartOptions(session=first.id)) as driven:
            runner = driven.app.runner

            await driven.wait_shown("uno")
            active = runner.active
            await run_command(driven, "/resume nosuchid")
            await driven.wait_shown("nosuchid")
            await run_command(driven, f"/resume {broken.id[-8:]}")
            await driven.wait_shown("is in the trash")
            common = first.id[:6]
            assert second.id.startswith(common)
            await run_command(driven, f"/resume {common}")
            await driven.wait_shown("may be any of these")
            assert runner.active is active
            runner.open("deadbeefdeadbeef")  # whoever asks the runner itself
            await driven.wait_shown("deadbeef")
            assert runner.active is active
            await run_command(driven, f"/resume {second.id[-8:]}")
            await driven.wait_shown("due")
            await driven.wait(lambda: runner.session is not None)
            assert runner.session is not None
            assert runner.session.id == second.id

    asyncio.run(use())

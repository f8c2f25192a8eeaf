"""Two terminals on one session: the second is told, and watches, forks, waits or takes over."""

from __future__ import annotations

import asyncio
import os
import signal
import stat

import pytest

from recollect.errors import RecollectError
from recollect.runtime.session_claims import (
    FOLDER,
    SessionClaim,
    SessionHolder,
    claim_session,
    find_holder,
)
from recollect.store.contract import SessionInfo
from recollect.store.ids import new_id
from recollect.terminal.held_panel import HeldPanel
from recollect.terminal.prompt_input import PromptInput
from recollect.terminal.watching import describe_holder
from tests.terminal.other_terminal import OtherTerminal, other_terminal
from tests.terminal.pilot import DrivenTerminal, TerminalPlace
from tests.terminal.stored_sessions import add_session, exchange


async def wait_held(driven: DrivenTerminal, session: SessionInfo) -> None:
    store = driven.app.runner.runtime.store
    await driven.wait(
        lambda: find_holder(store.address, session.id) is not None, "the other terminal"
    )
    driven.app.runner.open(session.id)
    await driven.wait_shown("this session is open in another terminal (pid ")


async def take_over(driven: DrivenTerminal, session: SessionInfo, prompt: str) -> None:
    await driven.wait_shown("the other terminal has left this session")
    await driven.press("enter")
    await driven.wait(lambda: driven.app.runner.active is not None, "taking over")
    assert not driven.app.chat.query(HeldPanel)
    await driven.say(prompt)
    assert driven.app.runner.session is not None
    assert driven.app.runner.session.id == session.id


def test_the_second_terminal_watches_live_and_takes_over_when_the_first_is_killed(
    terminal: TerminalPlace,
) -> None:
    async def use() -> None:
        session = await add_session(terminal, "shared", exchange("one", "uno"))
        async with terminal.open(["the answer", "after the kill"]) as driven:
            with other_terminal(terminal, "-r", session.id) as other:
                await wait_held(driven, session)
                await driven.wait_shown(f"pid {other.process.pid}, /dev/pts/")
                await driven.press("w")
                await driven.wait_shown("watching: ")
                await refuse_prompt(driven)
                await follow(driven, other)
                await stop_and_continue(driven, other)
                driven.app.chat.query_one(PromptInput).text = ""
                other.kill()
                await take_over(driven, session, "go on")
                await driven.wait_shown("after the kill")

    asyncio.run(use())


async def refuse_prompt(driven: DrivenTerminal) -> None:
    await driven.type("mine")
    await driven.press("enter")
    await driven.wait_shown("nothing was sent")
    assert driven.app.chat.query_one(PromptInput).text == "mine"
    assert not driven.server.requests


async def follow(driven: DrivenTerminal, other: OtherTerminal) -> None:
    other.type("asked over there\r")
    await driven.wait_shown("▌ asked over there")
    await driven.wait_shown("the answer")
    assert "uno" in driven.shown()  # what was there stays


async def stop_and_continue(driven: DrivenTerminal, other: OtherTerminal) -> None:
    os.kill(other.process.pid, signal.SIGSTOP)
    await driven.wait_shown("and stopped")
    os.kill(other.process.pid, signal.SIGCONT)
    await driven.wait(lambda: "and stopped" not in driven.shown())


def test_a_held_session_is_forked_or_left_for_a_new_one_and_a_prompt_takes_over(
    terminal: TerminalPlace,
) -> None:
    async def use() -> None:
        session = await add_session(terminal, "shared", exchange("one", "uno"))
        async with terminal.open(["in the fork", "taken over"]) as driven:
            runner = driven.app.runner
            claim = await claim_session(runner.runtime.store.address, session.id)
            assert isinstance(claim, SessionClaim)
            await wait_held(driven, session)
            await driven.press("n")
            await driven.wait(lambda: runner.session is None and runner.holder is None)
            await wait_held(driven, session)
            await driven.press("f")
            await driven.wait(lambda: runner.active is not None, "the fork")
            await driven.say("here")
            assert runner.session is not None
            assert runner.session.id != session.id
            assert (await session_of(driven, session)).entries == 2
            await wait_held(driven, session)
            with pytest.raises(RecollectError, match="watched here; nothing was sent or changed"):
                await runner.edit(lambda one: one.compact(), "compact")
            claim.close()
            await driven.wait_shown("the other terminal has left this session")
            with pytest.raises(RecollectError, match="take it over first"):
                await runner.edit(lambda one: one.compact(), "compact")
            driven.app.chat.query_one(PromptInput).focus()
            await driven.say("here again")
            await driven.wait_shown("taken over")
            assert (await session_of(driven, session)).entries > 2

    asyncio.run(use())


async def session_of(driven: DrivenTerminal, session: SessionInfo) -> SessionInfo:
    return await driven.app.runner.runtime.store.session(session.id)


def test_while_watching_the_status_follows_and_tab_reaches_the_choices(
    terminal: TerminalPlace,
) -> None:
    async def use() -> None:
        session = await add_session(terminal, "shared", exchange("one", "uno"))
        async with terminal.open() as driven:
            runner = driven.app.runner
            claim = await claim_session(runner.runtime.store.address, session.id)
            assert isinstance(claim, SessionClaim)
            await wait_held(driven, session)
            await driven.press("w")
            await driven.wait_shown("Tab: f fork · n new · q leave")
            assert " 2.3k/" in driven.shown()
            more = exchange("two", "due " * 5_000 + "tre")
            await runner.runtime.store.append(session.id, more, parent=session.head)
            await driven.wait_shown("tre")
            await driven.wait(lambda: " 2.3k/" not in driven.shown(), "the tokens to follow")
            await driven.press("tab")
            assert driven.app.chat.query_one(HeldPanel).has_focus
            await driven.press("tab")
            assert driven.app.chat.query_one(PromptInput).has_focus
            await driven.press("tab", "f")
            await driven.wait(lambda: runner.active is not None, "the fork")
            claim.close()

    asyncio.run(use())


def test_a_claim_is_private_leaves_no_file_and_survives_odd_ones(
    terminal: TerminalPlace,
) -> None:
    async def use() -> None:
        session, address = new_id(), str(terminal.home / "recollect.db")
        claim = await claim_session(address, session)
        assert isinstance(claim, SessionClaim)
        folder = terminal.home / FOLDER
        (file,) = folder.iterdir()
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        holder = await claim_session(address, session)
        assert isinstance(holder, SessionHolder)
        assert holder.pid == os.getpid()
        file.write_bytes(b"\xff not JSON")  # by whoever
        assert find_holder(address, session) == SessionHolder()
        assert describe_holder(SessionHolder()) == "this session is open in another terminal"
        odd = SessionHolder(pid=1, tty="\x1b[2J", since=2**62)
        assert "\x1b" not in describe_holder(odd)
        other = new_id()
        await claim.follow(other)
        assert find_holder(address, session) is None
        assert find_holder(address, other) is not None
        claim.close()
        claim.close()
        assert list(folder.iterdir()) == []
        link = terminal.home / "link.db"
        link.symlink_to(address)
        claim = await claim_session(str(link), session)  # a link is the same store
        assert isinstance(await claim_session(address, session), SessionHolder)

    asyncio.run(use())


def test_where_nothing_can_be_locked_a_session_opens_all_the_same(
    terminal: TerminalPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def use() -> None:
        (terminal.home / FOLDER).write_text("a file in the folder's place")
        claim = await claim_session("postgresql://host/db", new_id())
        assert isinstance(claim, SessionClaim)
        await claim.follow(new_id())
        claim.close()

    asyncio.run(use())

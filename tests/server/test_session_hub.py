"""Who sees which session, and how prompts queue, ask, stop and end."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from recollect.agent.exchange import message_text
from recollect.codecs.wire_protocol import Delta
from recollect.entries import Message, Text, ToolResult
from recollect.errors import AccessDenied, AmbiguousId, NotFound, ServerBusy, UnknownSession
from recollect.runtime.prompt_run import RunResult
from recollect.server.access import LOCAL_USER, Identity
from recollect.server.prompt_queue import (
    ApprovalDecided,
    ApprovalRequested,
    PromptRun,
    RunFailed,
)
from recollect.server.session_hub import HubLimits, SessionHub
from recollect.store.contract import SessionInfo
from recollect.testing import ProviderLine, call, faulty, says, user
from tests.server.hubs import opened_hub, scripted_provider

ALICE, BOB = Identity("alice", "chat"), Identity("bob", "chat")
ADMIN = Identity("", "admin", all_sessions=True)


async def words(hub: SessionHub, session: SessionInfo | str) -> list[tuple[str, str]]:
    """What users and models said in a session."""
    id_ = session if isinstance(session, str) else session.id
    bodies = [entry.body for entry in await hub.store.path(id_)]
    return [
        (body.role, message_text(body))
        for body in bodies
        if isinstance(body, Message) and not body.context and body.role != "system"
    ]


async def answer(run: PromptRun) -> str:
    end = await run.wait()
    assert isinstance(end, RunResult), end
    return end.text


def test_prompts_of_one_session_run_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        async with opened_hub(tmp_path) as hub:
            session = await hub.create(LOCAL_USER)
            runs = [await hub.prompt(LOCAL_USER, session, text) for text in ("a", "b", "c")]
            assert [await answer(run) for run in runs] == ["one", "two", "three"]
            said = await words(hub, session)
            assert [text for role, text in said if role == "user"] == ["a", "b", "c"]
            assert hub.counts.prompts == 3
            assert (hub.counts.queued, hub.counts.running) == (0, 0)

    with scripted_provider(tmp_path / "home", monkeypatch, ["one", "two", "three"]):
        asyncio.run(story())


def test_a_slow_session_does_not_hold_up_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        async with opened_hub(tmp_path) as hub:
            slow, quick = await hub.create(LOCAL_USER), await hub.create(LOCAL_USER)
            first = await hub.prompt(LOCAL_USER, slow, "never ends")
            async for event in first.events():
                if isinstance(event, Delta):
                    break  # it has begun to answer
            second = await hub.prompt(LOCAL_USER, quick, "hi")
            assert await answer(second) == "hello"
            assert not first.done
            first.cancel()
            end = await first.wait()
            assert isinstance(end, RunFailed)
            assert end.cancelled
            assert (await words(hub, slow))[-1][0] == "model"  # what had come is kept
            last = (await hub.store.path(slow.id))[-1].body
            assert isinstance(last, Message)
            assert last.finish == "interrupted"

    script: list[ProviderLine] = [faulty("never ends", close="silence"), "hello"]
    with scripted_provider(tmp_path / "home", monkeypatch, script):
        asyncio.run(story())


def test_every_reader_gets_every_event_from_any_position(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        async with opened_hub(tmp_path) as hub:
            run = await hub.prompt(LOCAL_USER, await hub.create(LOCAL_USER), "hi")
            early = asyncio.create_task(_collect(run, 0))
            await run.wait()
            everything = await early
            assert await _collect(run, 0) == everything
            assert await _collect(run, 2) == everything[2:]
            assert hub.run(LOCAL_USER, run.id) is run
            with pytest.raises(NotFound):
                hub.run(ALICE, run.id)

    with scripted_provider(tmp_path / "home", monkeypatch, ["hello there"]):
        asyncio.run(story())


async def _collect(run: PromptRun, start: int) -> list[object]:
    return [event async for event in run.events(start)]


def test_another_clients_session_does_not_exist(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        async with opened_hub(tmp_path) as hub:
            hers = await hub.store.create(id="ab" * 14 + "1" * 4, owner="alice", title="plan")
            his = await hub.store.create(id="ab" * 14 + "2" * 4, owner="bob")
            for given in (hers.id, hers.id[-6:], hers.id[:30]):
                assert (await hub.find(ALICE, given)).id == hers.id
                with pytest.raises(UnknownSession):
                    await hub.find(BOB, given)
            assert (await hub.find(BOB, "abab")).id == his.id  # hers is no candidate
            with pytest.raises(AmbiguousId):
                await hub.find(ADMIN, "abab")
            assert [info.id for info in await hub.sessions(ALICE, limit=9)] == [hers.id]
            assert len(await hub.sessions(ADMIN, limit=9)) == 2
            assert await hub.sessions(LOCAL_USER, limit=9) == ()

    with scripted_provider(tmp_path / "home", monkeypatch, []):
        asyncio.run(story())


def test_a_right_to_read_is_not_one_to_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        async with opened_hub(tmp_path) as hub:
            reader = Identity("alice", "read")
            session = await hub.create(ALICE)
            assert (await hub.find(reader, session.id)).id == session.id
            with pytest.raises(AccessDenied):
                await hub.find_writable(reader, session.id)
            with pytest.raises(AccessDenied):
                await hub.prompt(reader, session, "hi")
            with pytest.raises(AccessDenied):
                await hub.create(reader)

    with scripted_provider(tmp_path / "home", monkeypatch, []):
        asyncio.run(story())


def _write(name: str) -> list[ProviderLine]:
    return [says("I write.", call("write_file", path=name, content="x")), "done"]


@pytest.mark.parametrize("allowed", [True, False])
def test_a_client_decides_whether_a_tool_may_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, allowed: bool
) -> None:
    async def story() -> None:
        async with opened_hub(tmp_path) as hub:
            session = await hub.create(ADMIN)
            run = await hub.prompt(ADMIN, session, "write it", can_approve=True)
            seen: list[object] = []
            async for event in run.events():
                seen.append(event)
                if isinstance(event, ApprovalRequested):
                    assert event.request.call.name == "write_file"
                    run.answer(event.id, allowed=allowed, by="alice")
                    with pytest.raises(NotFound):
                        run.answer(event.id, allowed=True, by="bob")
            decided = [event for event in seen if isinstance(event, ApprovalDecided)]
            assert [(one.allowed, one.by) for one in decided] == [(allowed, "alice")]
            assert (tmp_path / "project" / "new.txt").exists() == allowed

    with scripted_provider(tmp_path / "home", monkeypatch, _write("new.txt")):
        asyncio.run(story())


@pytest.mark.parametrize("can_approve", [True, False])
def test_without_an_answer_a_tool_may_not_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, can_approve: bool
) -> None:
    async def story() -> None:
        async with opened_hub(tmp_path, HubLimits(approval_seconds=0.01)) as hub:
            session = await hub.create(ADMIN)
            run = await hub.prompt(ADMIN, session, "write it", can_approve=can_approve)
            await run.wait()
            assert not (tmp_path / "project" / "new.txt").exists()
            parts = [
                part
                for entry in await hub.store.path(session.id)
                if isinstance(entry.body, Message)
                for part in entry.body.parts
                if isinstance(part, ToolResult)
            ]
            assert [part.status for part in parts] == ["refused"]

    with scripted_provider(tmp_path / "home", monkeypatch, _write("new.txt")):
        asyncio.run(story())


def test_what_a_hub_is_closed_in_the_middle_of_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        async with opened_hub(tmp_path) as hub:
            session = await hub.create(LOCAL_USER)
            run = await hub.prompt(LOCAL_USER, session, "never ends")
            waiting = await hub.prompt(LOCAL_USER, session, "later")
            async for event in run.events():
                if isinstance(event, Delta):
                    break
            await hub.close()
            for one in (run, waiting):
                end = await one.wait()
                assert isinstance(end, RunFailed)
                assert end.cancelled
            last = (await hub.store.path(session.id))[-1].body
            assert isinstance(last, Message)
            assert last.finish == "interrupted"
            with pytest.raises(ServerBusy):
                await hub.prompt(LOCAL_USER, session, "too late")

    with scripted_provider(
        tmp_path / "home", monkeypatch, [faulty("half an ans", close="silence")]
    ):
        asyncio.run(story())


def test_a_session_takes_only_so_many_waiting_prompts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        async with opened_hub(tmp_path, HubLimits(queued=2)) as hub:
            session = await hub.create(LOCAL_USER)
            await hub.prompt(LOCAL_USER, session, "1")
            await hub.prompt(LOCAL_USER, session, "2")
            with pytest.raises(ServerBusy):
                await hub.prompt(LOCAL_USER, session, "3")

    with scripted_provider(tmp_path / "home", monkeypatch, ["a", "b", "c"]):
        asyncio.run(story())


def test_two_hubs_on_one_store_lose_nothing_in_one_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        async with opened_hub(tmp_path) as one, opened_hub(tmp_path) as other:
            session = await one.create(LOCAL_USER)
            for number in range(3):
                for hub in (one, other):
                    run = await hub.prompt(LOCAL_USER, session, f"{number}")
                    assert await answer(run) == "yes"
            said = [text for role, text in await words(one, session) if role == "user"]
            assert said == ["0", "0", "1", "1", "2", "2"]

    with scripted_provider(tmp_path / "home", monkeypatch, ["yes"] * 6):
        asyncio.run(story())


def test_two_servers_that_begin_one_session_lose_no_prompt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        async with opened_hub(tmp_path) as one, opened_hub(tmp_path) as other:
            session = await one.create(ALICE)
            opened = [await hub.open(session) for hub in (one, other)]  # both see it empty
            await opened[0].append(user("first"), on_conflict="fork")
            await opened[1].append(user("second"), on_conflict="fork")
            sessions = await one.store.sessions()
            assert {info.owner for info in sessions} == {"alice"}
            assert {info.project for info in sessions} == {session.project}
            said = [
                entry.body.parts[0].text
                for info in sessions
                for entry in await one.store.path(info.id)
                if isinstance(entry.body, Message) and isinstance(entry.body.parts[0], Text)
            ]
            assert sorted(said) == ["first", "second"]

    with scripted_provider(tmp_path / "home", monkeypatch, []):
        asyncio.run(story())

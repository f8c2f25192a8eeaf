"""Mirrors: real stores, real agents, real processes that are killed."""

from __future__ import annotations

import asyncio
import json
import os
import stat
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Literal

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recollect.agent.events import RunFinished
from recollect.agent.hook_events import SessionEnd
from recollect.agent.hooks import Hooks
from recollect.agent.loop import Agent
from recollect.agent.mirroring import Mirror
from recollect.entries import Entry, Message
from recollect.session import Session
from recollect.store.sqlite import SqliteStore, open_store
from recollect.testing import ScriptedModel, call, says, user
from recollect.tools.tool import tool
from recollect.transcripts.session_import import export_session, import_file
from recollect.view.view import View
from tests.transcripts.file_builders import asked, gemini_file, spoken, texts

Format = Literal["gemini", "history-server"]
both = pytest.mark.parametrize("to", ["gemini", "history-server"])
ROOT = Path(__file__).parent.parent.parent


@tool("read")
async def look(what: str) -> str:
    """Looks at something."""
    return f"saw {what}"


def in_store(path: Path, story: Callable[[SqliteStore], Awaitable[None]]) -> None:
    async def opened() -> None:
        async with open_store(path / "s.db") as store:
            await story(store)

    asyncio.run(opened())


async def grown(store: SqliteStore, session: str, *texts: str) -> None:
    for text in texts:
        await store.append(session, [user(text)], parent=(await store.session(session)).head)


async def begun(store: SqliteStore, *texts: str, **more: Any) -> str:
    session = (await store.create(**more)).id
    await grown(store, session, *(texts or ("hello",)))
    return session


def files(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.iterdir() if not each.name.startswith("."))


def said_in(file: Path | None) -> list[str]:
    assert file is not None
    return [message["content"] for message in json.loads(file.read_bytes())["messages"]]


async def exported(store: SqliteStore, session: str, to: Format) -> bytes:
    return (await export_session(store, session, to))[1]


# --- with an agent -----------------------------------------------------------------------------


@both
def test_after_each_turn_the_file_is_the_export_and_reads_back_as_the_history(
    tmp_path: Path, to: Format
) -> None:
    async def story(store: SqliteStore) -> None:
        script = [
            says("I look.", call("look", id="a", what="x"), call("look", id="b", what="y")),
            says("Both are there."),
            says(call("look", id="c", what="\ud800 ")),
            says("ä 😀"),
            says("Bye."),
        ]
        mirror = Mirror(store, to, tmp_path / "m", autosave_seconds=0)
        hooks = Hooks([mirror.hook(wait=True)])
        agent = Agent(model=ScriptedModel(script), tools=(look,), hooks=hooks)
        talk = Session(store, (await store.create(title="A/../title")).id, View.fold())
        for prompt in ("go", "and then?", "thanks"):
            done = [event async for event in agent.run(prompt, talk)][-1]
            assert isinstance(done, RunFinished)
            talk = done.session
            (name,) = files(tmp_path / "m")
            assert (tmp_path / "m" / name).read_bytes() == await exported(store, talk.id, to)
        assert mirror.warnings == []
        async with open_store(tmp_path / "other.db") as other:
            back = await import_file(other, tmp_path / "m" / name)
            assert back.problems == ()
            there = await other.path(back.session)
            assert plain(there) == plain(await store.path(talk.id))
            again = await exported(other, back.session, to)
            assert again == (tmp_path / "m" / name).read_bytes()

    def plain(entries: tuple[Entry, ...]) -> list[Message]:
        return [msgspec.structs.replace(message, extra="") for message in spoken(entries)]

    in_store(tmp_path, story)


def test_the_end_of_a_session_is_waited_for_and_its_warnings_reach_the_hooks(
    tmp_path: Path,
) -> None:
    async def story(store: SqliteStore) -> None:
        session = await begun(store)
        (tmp_path / "m").write_text("in the way")
        mirror = Mirror(store, "gemini", tmp_path / "m", autosave_seconds=0)
        hooks = Hooks([mirror.hook()])
        ended = SessionEnd(session=session, time=0)
        answer = await hooks.fire(ended)
        assert answer.allowed
        assert "was not written" in answer.warnings[0]
        (tmp_path / "m").unlink()
        assert (await hooks.fire(ended)).warnings == ()
        assert len(files(tmp_path / "m")) == 1

    in_store(tmp_path, story)


# --- one file for a session, and only its own ----------------------------------------------------


def test_sessions_whose_short_names_agree_have_files_of_their_own_for_ever(tmp_path: Path) -> None:
    async def story(store: SqliteStore) -> None:
        one, two = [
            await begun(store, text, id=f"0190aaaa{text:0>24}", created=0) for text in ("1", "2")
        ]
        mirror = Mirror(store, "gemini", tmp_path)
        first, second = await mirror.write(one), await mirror.write(two)
        assert first is not None
        assert first.name == "session-1970-01-01T00-00-0190aaaa.json"
        assert (said_in(first), said_in(second)) == (["1"], ["2"])
        first.unlink()  # its name is free now, and still not the other's
        await grown(store, two, "more")
        assert await Mirror(store, "gemini", tmp_path).write(two) == second
        assert said_in(second) == ["2", "more"]
        await grown(store, one, "back")
        assert await Mirror(store, "gemini", tmp_path).write(one) == first

    in_store(tmp_path, story)


def place(path: Path, what: str, mine: bytes) -> None:
    victim = path.parent / "victim"
    match what:
        case "garbage":
            path.write_bytes(b"{")
        case "of another session":
            path.write_text(json.dumps({"sessionId": "other", "messages": []}))
        case "of the same session by another program":
            path.write_bytes(mine.replace(b"hello", b"HELLO"))
        case "link":
            victim.write_text("precious")
            path.symlink_to(victim)
        case "broken link":
            path.symlink_to(victim)
        case "folder":
            path.mkdir()
        case "pipe":
            os.mkfifo(path)


@both
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize(
    "what",
    [
        "garbage",
        "of another session",
        "of the same session by another program",
        "link",
        "broken link",
        "folder",
        "pipe",
    ],
)
def test_what_a_mirror_did_not_write_is_never_replaced(
    tmp_path: Path, to: Format, what: str, when: str
) -> None:
    async def story(store: SqliteStore) -> None:
        session = await begun(store)
        name, data = await export_session(store, session, to)
        mirror, foreign = Mirror(store, to, tmp_path / "m"), tmp_path / "m" / name
        if when == "after":
            assert await mirror.write(session) == foreign
            foreign.unlink()
        foreign.parent.mkdir(exist_ok=True)
        place(foreign, what, data)
        before = foreign.lstat()
        for text in ("more", "and more"):
            await grown(store, session, text)
            file = await mirror.write(session)
            mirror = Mirror(store, to, tmp_path / "m")
        assert file is not None
        assert file != foreign
        assert file.read_bytes() == await exported(store, session, to)
        after = foreign.lstat()
        assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
        victim = foreign.parent / "victim"
        assert not victim.exists() or victim.read_text() == "precious"

    in_store(tmp_path, story)


def test_a_file_that_a_person_changed_is_left_to_them_and_that_is_told(tmp_path: Path) -> None:
    async def story(store: SqliteStore) -> None:
        session = await begun(store)
        mirror = Mirror(store, "history-server", tmp_path / "m")
        first = await mirror.write(session)
        assert first is not None
        first.write_text("my notes")
        second = await mirror.write(session)
        assert second not in (None, first)
        assert first.read_text() == "my notes"
        assert f"{first} is not as it was written and is left alone" in mirror.warnings[0]
        assert await Mirror(store, "history-server", tmp_path / "m").write(session) == second

    in_store(tmp_path, story)


def test_a_claim_that_cannot_be_read_claims_nothing(tmp_path: Path) -> None:
    async def story(store: SqliteStore) -> None:
        session = await begun(store)
        mirror, seen = Mirror(store, "gemini", tmp_path / "m"), set[Path | None]()
        escaping = json.dumps({"file": "../s.db", "as_of": 0, "wrote": [[1, "x"]]}).encode()
        for bad in (b"", b"\xff\0", b"[" * 500, escaping, b"{}"):
            seen.add(await mirror.write(session))
            (claim,) = (tmp_path / "m").glob(".*.claim")
            claim.write_bytes(bad)
        assert None not in seen
        assert len(seen) == 5
        assert {file.parent for file in seen if file} == {tmp_path / "m"}

    in_store(tmp_path, story)


def test_a_fork_of_an_imported_session_does_not_write_over_the_original(tmp_path: Path) -> None:
    async def story(store: SqliteStore) -> None:
        (tmp_path / "given.json").write_text(json.dumps(gemini_file(asked("m1", "one"))))
        one = (await import_file(store, tmp_path / "given.json")).session
        two = (await store.fork(one)).id
        mirror = Mirror(store, "gemini", tmp_path / "m")
        first, second = await mirror.write(one), await mirror.write(two)
        await grown(store, two, "elsewhere")
        assert await mirror.write(two) == second
        assert (said_in(first), said_in(second)) == (["one"], ["one", "elsewhere"])

    in_store(tmp_path, story)


@settings(max_examples=25)
@given(session=texts | st.sampled_from(["../../x", "/etc/passwd", ".", "a\0b", "x" * 5_000]))
def test_no_id_or_title_leads_out_of_the_folder(
    tmp_path_factory: pytest.TempPathFactory, session: str
) -> None:
    tmp_path = tmp_path_factory.mktemp("m")

    async def story(store: SqliteStore) -> None:
        value = gemini_file(asked("m1", "one"), session=session, startTime="0001-01-01T00:00:00Z")
        (tmp_path / "given.json").write_text(json.dumps(value))
        imported = await import_file(store, tmp_path / "given.json")
        await store.rename(imported.session, f"../{session}/t")
        file = await Mirror(store, "gemini", tmp_path / "in" / "m").write(imported.session)
        assert said_in(file) == ["one"]
        assert files(tmp_path) == ["given.json", "in", "s.db", "s.db-shm", "s.db-wal"]
        assert files(tmp_path / "in") == ["m"]
        assert len(files(tmp_path / "in" / "m")) == 1

    in_store(tmp_path, story)


def test_files_and_folders_are_for_their_owner_only(tmp_path: Path) -> None:
    async def story(store: SqliteStore) -> None:
        await Mirror(store, "gemini", tmp_path / "a" / "b").write(await begun(store))
        made = [tmp_path / "a", tmp_path / "a" / "b", *(tmp_path / "a" / "b").iterdir()]
        modes = [stat.S_IMODE(each.stat().st_mode) for each in made]
        assert modes == [0o700, 0o700, 0o600, 0o600]

    before = os.umask(0)
    try:
        in_store(tmp_path, story)
    finally:
        os.umask(before)

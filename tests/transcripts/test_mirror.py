"""Mirrors: real stores, real agents, real processes that are killed."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.agent.hooks import Hooks
from recollect.agent.mirror_hook import mirror_hook
from recollect.entries import Entry, Message
from recollect.hook_events import SessionEnd
from recollect.store.open_store import open_store
from recollect.store.sqlite import SqliteStore
from recollect.testing import call, says
from recollect.transcripts.format_table import EXPORT_FORMATS
from recollect.transcripts.mirror import Mirror
from recollect.transcripts.session_export import export_session
from recollect.transcripts.session_import import import_file
from tests.transcripts.file_builders import gemini_file, messages_of, new_id, texts, user_record
from tests.transcripts.mirror_builders import (
    append_texts,
    exported,
    files,
    in_store,
    run_prompts,
    said_in,
    start_session,
    until_written,
)

both = pytest.mark.parametrize("to", EXPORT_FORMATS)


# --- with an agent -----------------------------------------------------------------------------


@both
def test_after_each_turn_the_file_is_the_export_and_reads_back_as_the_history(
    tmp_path: Path, to: str
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
        session = (await store.create(title="A/../title")).id
        async for _ in run_prompts(mirror, session, script, ("go", "and then?", "thanks")):
            data = await exported(store, session, to)
            await until_written(tmp_path / "m", data)
        assert mirror.warnings == []
        (name,) = files(tmp_path / "m")
        async with open_store(tmp_path / "other.db") as other:
            back = await import_file(other, tmp_path / "m" / name)
            assert back.problems == ()
            assert plain(await other.path(back.session)) == plain(await store.path(session))
            assert await exported(other, back.session, to) == data

    def plain(entries: tuple[Entry, ...]) -> list[Message]:
        return [msgspec.structs.replace(message, extra="") for message in messages_of(entries)]

    in_store(tmp_path, story)


def test_the_hook_waits_for_the_last_write_of_a_session_and_passes_on_its_warnings(
    tmp_path: Path,
) -> None:
    async def story(store: SqliteStore) -> None:
        session = await start_session(store)
        (tmp_path / "m").write_text("in the way")
        mirror = Mirror(store, "gemini", tmp_path / "m", autosave_seconds=0)
        hooks = Hooks([mirror_hook(mirror)])
        ended = SessionEnd(session=session, time=0)
        answer = await hooks.fire(ended)
        assert answer.allowed
        assert "was not written" in answer.warnings[0]
        (tmp_path / "m").unlink()
        assert (await hooks.fire(ended)).warnings == ()
        assert len(files(tmp_path / "m")) == 1

    in_store(tmp_path, story)


# --- one file for a session, and only its own ----------------------------------------------------


def test_sessions_with_the_same_short_name_keep_files_of_their_own(tmp_path: Path) -> None:
    async def story(store: SqliteStore) -> None:
        one, two = [
            await start_session(store, text, id=f"0190aaaa{text:0>24}", created=0)
            for text in ("1", "2")
        ]
        mirror = Mirror(store, "gemini", tmp_path)
        first, second = await mirror.write(one), await mirror.write(two)
        assert first is not None
        assert first.name == "session-1970-01-01T00-00-0190aaaa.json"
        assert (said_in(first), said_in(second)) == (["1"], ["2"])
        first.unlink()  # its name is free now, and still not the other's
        await append_texts(store, two, "more")
        assert await Mirror(store, "gemini", tmp_path).write(two) == second
        assert said_in(second) == ["2", "more"]
        await append_texts(store, one, "back")
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
def test_a_mirror_never_replaces_what_it_did_not_write(
    tmp_path: Path, to: str, what: str, when: str
) -> None:
    async def story(store: SqliteStore) -> None:
        session = await start_session(store)
        name, data = await export_session(store, session, to)
        mirror, present = Mirror(store, to, tmp_path / "m"), tmp_path / "m" / name
        if when == "after":
            assert await mirror.write(session) == present
            present.unlink()
        present.parent.mkdir(exist_ok=True)
        place(present, what, data)
        before = present.lstat()
        for text in ("more", "and more"):
            await append_texts(store, session, text)
            file = await mirror.write(session)
            mirror = Mirror(store, to, tmp_path / "m")
        assert file is not None
        assert file != present
        assert file.read_bytes() == await exported(store, session, to)
        after = present.lstat()
        assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
        victim = present.parent / "victim"
        assert not victim.exists() or victim.read_text() == "precious"

    in_store(tmp_path, story)


def test_a_file_that_a_user_changed_is_left_alone_with_a_warning(tmp_path: Path) -> None:
    async def story(store: SqliteStore) -> None:
        session = await start_session(store)
        mirror = Mirror(store, "history-server", tmp_path / "m")
        first = await mirror.write(session)
        assert first is not None
        first.write_text("my notes")
        second = await mirror.write(session)
        assert second not in (None, first)
        assert first.read_text() == "my notes"
        assert f"{first} was changed by someone else and is left alone" in mirror.warnings[0]
        assert await Mirror(store, "history-server", tmp_path / "m").write(session) == second

    in_store(tmp_path, story)


def test_a_claim_that_cannot_be_read_claims_nothing(tmp_path: Path) -> None:
    async def story(store: SqliteStore) -> None:
        session = await start_session(store)
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
        (tmp_path / "given.json").write_text(json.dumps(gemini_file(user_record("m1", "one"))))
        one = (await import_file(store, tmp_path / "given.json")).session
        two = (await store.fork(one)).id
        mirror = Mirror(store, "gemini", tmp_path / "m")
        first, second = await mirror.write(one), await mirror.write(two)
        await append_texts(store, two, "elsewhere")
        assert await mirror.write(two) == second
        assert (said_in(first), said_in(second)) == (["one"], ["one", "elsewhere"])

    in_store(tmp_path, story)


@given(session=texts | st.sampled_from(["../../x", "/etc/passwd", ".", "a\0b", "x" * 5_000]))
def test_no_id_or_title_leads_out_of_the_folder(shared_folder: Path, session: str) -> None:
    outside = shared_folder / new_id()
    outside.mkdir()

    async def story(store: SqliteStore) -> None:
        record = user_record("m1", "one")
        value = gemini_file(record, session=session, startTime="0001-01-01T00:00:00Z")
        (outside / "given.json").write_text(json.dumps(value))
        imported = await import_file(store, outside / "given.json")
        await store.rename(imported.session, f"../{session}/t")
        before = files(shared_folder)
        file = await Mirror(store, "gemini", outside / "in" / "m").write(imported.session)
        assert said_in(file) == ["one"]
        assert files(shared_folder) == before
        assert files(outside) == ["given.json", "in"]
        assert files(outside / "in") == ["m"]
        assert len(files(outside / "in" / "m")) == 1

    in_store(shared_folder, story)


def test_files_and_folders_are_for_their_owner_only(tmp_path: Path) -> None:
    async def story(store: SqliteStore) -> None:
        await Mirror(store, "gemini", tmp_path / "a" / "b").write(await start_session(store))
        made = [tmp_path / "a", tmp_path / "a" / "b", *(tmp_path / "a" / "b").iterdir()]
        modes = [stat.S_IMODE(each.stat().st_mode) for each in made]
        assert modes == [0o700, 0o700, 0o600, 0o600]

    before = os.umask(0)
    try:
        in_store(tmp_path, story)
    finally:
        os.umask(before)

"""Importing into a store: nothing twice, nothing lost, the head where it belongs."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from recollect.entries import Entry, Message, Source, Text
from recollect.errors import CannotImport
from recollect.store.contract import Store
from recollect.store.sqlite import SqliteStore
from recollect.testing import model
from recollect.transcripts.json_patch import json_equal
from recollect.transcripts.session_import import import_file
from recollect.transcripts.source_file import CHUNK_BYTES
from tests.transcripts.file_builders import (
    ONE,
    THREE,
    TWO,
    export_value,
    gemini_file,
    heard,
    import_value,
    line,
    messages_of,
    model_record,
    save,
    server_file,
    server_record,
    tool_call,
    user_record,
    with_store,
)
from tests.transcripts.whole_files import load_original


async def sources(store: Store, session: str) -> list[Entry]:
    return [e for e in await store.tree(session) if isinstance(e.body, Source)]


def test_importing_twice_adds_nothing(tmp_path: Path) -> None:
    async def work(store: SqliteStore, file: Path) -> None:
        first = await import_value(store, file, gemini_file(ONE, TWO))
        assert (first.added, first.already, first.warnings, first.problems) == (3, 0, (), ())
        before = await store.tree(first.session)
        again = await import_value(store, file, gemini_file(ONE, TWO))
        assert (again.added, again.already, again.session) == (0, 2, first.session)
        assert await store.tree(first.session) == before

    with_store(tmp_path, work)


def test_a_file_that_has_grown_adds_what_is_new(tmp_path: Path) -> None:
    async def work(store: SqliteStore, file: Path) -> None:
        first = await import_value(store, file, gemini_file(ONE))
        grown = await import_value(store, file, gemini_file(ONE, TWO, THREE))
        assert (grown.added, grown.already, grown.warnings) == (3, 1, ())
        assert await heard(store, first.session) == ["one", "two", "three"]
        assert await store.path(first.session) == await store.tree(first.session)

    with_store(tmp_path, work)


def test_the_source_comes_first_and_is_stored_byte_for_byte(tmp_path: Path) -> None:
    async def work(store: SqliteStore, file: Path) -> None:
        data = b" \n" + json.dumps(gemini_file(ONE)).encode() + b"\r\n\0"
        file.write_bytes(data)
        imported = await import_file(store, file)
        first, *_ = await store.path(imported.session)
        assert isinstance(first.body, Source)
        assert (first.body.name, first.body.format) == ("file.json", "gemini")
        assert await load_original(store, first, [first]) == data

    with_store(tmp_path, work)


def test_only_the_new_bytes_of_a_grown_file_are_stored(tmp_path: Path) -> None:
    async def work(store: SqliteStore, file: Path) -> None:
        lines = [line(f"u{n}", f"u{n - 1}" if n else None, "user", "x" * 999) for n in range(3_000)]
        versions = []
        for end in (1_000, 2_000, 3_000):
            imported = await import_value(store, file, lines[:end])
            versions.append(file.read_bytes())
        kept = await sources(store, imported.session)
        assert sum(e.body.size for e in kept if isinstance(e.body, Source)) == len(versions[-1])
        for entry, data in zip(kept, versions, strict=True):
            assert await load_original(store, entry, kept) == data
            assert isinstance(entry.body, Source)
            for digest in entry.body.blobs:
                assert len(await store.blob(digest)) <= CHUNK_BYTES

    with_store(tmp_path, work)


def test_both_versions_of_a_rewritten_file_are_stored(tmp_path: Path) -> None:
    async def work(store: SqliteStore, file: Path) -> None:
        long = user_record("m1", "long " * 2_000)
        versions = []
        for value in (gemini_file(long), gemini_file(long, TWO), gemini_file(TWO, long)):
            imported = await import_value(store, file, value)
            versions.append(file.read_bytes())
        kept = await sources(store, imported.session)
        assert [await load_original(store, entry, kept) for entry in kept] == versions

    with_store(tmp_path, work)


def test_a_file_with_a_changed_past_becomes_a_branch(tmp_path: Path) -> None:
    async def work(store: SqliteStore, file: Path) -> None:
        first = await import_value(store, file, gemini_file(ONE, TWO, THREE))
        head = (await store.session(first.session)).head
        other = await import_value(
            store, file, gemini_file(ONE, model_record("m2", "other"), THREE)
        )
        assert "branch" in other.warnings[0]
        assert (await store.session(first.session)).head == head
        assert await heard(store, first.session) == ["one", "two", "three"]
        texts = [
            p.text
            for m in messages_of(await store.tree(first.session))
            for p in m.parts
            if isinstance(p, Text)
        ]
        assert sorted(texts) == ["one", "other", "three", "three", "two"]
        again = await import_value(
            store, file, gemini_file(ONE, model_record("m2", "other"), THREE)
        )
        assert again.added == 0

    with_store(tmp_path, work)


def test_a_session_that_continued_here_keeps_its_head(tmp_path: Path) -> None:
    async def work(store: SqliteStore, file: Path) -> None:
        first = await import_value(store, file, server_file(server_record("user", "one")))
        head = (await store.session(first.session)).head
        ours = await store.append(first.session, [model("ours")], parent=head)
        grown = await import_value(
            store,
            file,
            server_file(server_record("user", "one"), server_record("assistant", "two")),
        )
        assert "branch" in grown.warnings[0]
        assert (await store.session(first.session)).head == ours[-1].id
        assert await heard(store, first.session) == ["one", "ours"]
        more = server_file(
            server_record("user", "one"),
            server_record("assistant", "two"),
            server_record("user", "three"),
        )
        await import_value(store, file, more)
        assert await heard(store, first.session) == ["one", "ours"]
        (branch,) = [e for e in await store.tree(first.session) if _says(e, "three")]
        path = await store.path(first.session, at=branch.id)
        assert [_text(e) for e in path if isinstance(e.body, Message)] == ["one", "two", "three"]

    with_store(tmp_path, work)


def _text(entry: Entry) -> str:
    assert isinstance(entry.body, Message)
    return "".join(part.text for part in entry.body.parts if isinstance(part, Text))


def _says(entry: Entry, text: str) -> bool:
    return isinstance(entry.body, Message) and _text(entry) == text


def test_the_head_follows_an_unfinished_message_to_its_later_state(tmp_path: Path) -> None:
    async def work(store: SqliteStore, file: Path) -> None:
        waiting = model_record("m2", "", toolCalls=[tool_call("c1")])
        done = model_record("m2", "", toolCalls=[tool_call("c1", "x = 1")])
        first = await import_value(store, file, gemini_file(ONE, waiting))
        grown = await import_value(store, file, gemini_file(ONE, done, THREE))
        assert "1 entries were replaced" in grown.warnings[0]
        assert len(messages_of(await store.path(first.session))) == 4

    with_store(tmp_path, work)


def test_the_head_follows_a_rewind_in_the_file(tmp_path: Path) -> None:
    async def work(store: SqliteStore, file: Path) -> None:
        lines: list[Any] = [{"sessionId": "G", "projectHash": "h"}, ONE, TWO]
        first = await import_value(store, file, lines)
        lines += [{"$rewindTo": "m2"}, model_record("m4", "four")]
        await import_value(store, file, lines)
        assert await heard(store, first.session) == ["one", "four"]
        assert len(messages_of(await store.tree(first.session))) == 3

    with_store(tmp_path, work)


def test_branches_of_a_new_file_are_imported_and_the_head_is_the_files_own(tmp_path: Path) -> None:
    async def work(store: SqliteStore, file: Path) -> None:
        lines: list[Any] = [{"sessionId": "G", "projectHash": "h"}, ONE]
        for number in range(30):
            lines += [user_record(f"x{number}", f"try {number}"), {"$rewindTo": f"x{number}"}]
            lines += [user_record(f"y{number}", f"step {number}")]
        imported = await import_value(store, file, lines)
        assert await heard(store, imported.session) == ["one", *(f"step {n}" for n in range(30))]
        assert len(messages_of(await store.tree(imported.session))) == 61
        assert (await import_value(store, file, lines)).added == 0

    with_store(tmp_path, work)


def test_a_file_that_ends_with_a_rewind_leaves_the_head_there(tmp_path: Path) -> None:
    async def work(store: SqliteStore, file: Path) -> None:
        head = {"sessionId": "G", "projectHash": "h"}
        imported = await import_value(store, file, [head, ONE, TWO, THREE, {"$rewindTo": "m2"}])
        assert await heard(store, imported.session) == ["one"]
        assert len(messages_of(await store.tree(imported.session))) == 3

    with_store(tmp_path, work)


def test_a_changed_header_adds_a_source_and_a_title_only(tmp_path: Path) -> None:
    async def work(store: SqliteStore, file: Path) -> None:
        await import_value(store, file, gemini_file(ONE))
        newer = gemini_file(ONE, lastUpdated="2026-03-01T00:00:00.000Z", summary="A title")
        imported = await import_value(store, file, newer)
        assert (imported.added, imported.already, imported.warnings) == (2, 1, ())
        assert (await store.session(imported.session)).title == "A title"
        assert json_equal(await export_value(store, imported.session, "gemini"), newer)
        await import_value(store, file, newer | {"messages": [ONE, TWO]})
        assert await heard(store, imported.session) == ["one", "two"]

    with_store(tmp_path, work)


def test_the_next_import_completes_an_interrupted_one(tmp_path: Path) -> None:
    lines: list[Any] = [{"sessionId": "G", "projectHash": "h"}, ONE]
    for number in range(5):
        lines += [user_record(f"x{number}", f"try {number}"), {"$rewindTo": f"x{number}"}]
        lines += [user_record(f"y{number}", f"step {number}")]

    def after(writes: int) -> Callable[[int, int], None]:
        told: list[int] = []

        def progress(done: int, _total: int) -> None:
            told.append(done)
            if len(told) > writes:
                raise KeyboardInterrupt

        return progress

    for writes in range(6):

        async def work(store: SqliteStore, file: Path, writes: int = writes) -> None:
            save(file, lines)
            with pytest.raises(KeyboardInterrupt):
                await import_file(store, file, progress=after(writes))
            imported = await import_value(store, file, lines)
            expected = ["one", *(f"step {n}" for n in range(5))]
            assert await heard(store, imported.session) == expected
            assert len(messages_of(await store.tree(imported.session))) == 11
            assert len(await sources(store, imported.session)) == 1

        (tmp_path / str(writes)).mkdir()
        with_store(tmp_path / str(writes), work)


def test_an_interrupted_import_into_a_session_that_continued_leaves_its_head(
    tmp_path: Path,
) -> None:
    async def work(store: SqliteStore, file: Path) -> None:
        first = await import_value(store, file, gemini_file(ONE))
        head = (await store.session(first.session)).head
        (ours,) = await store.append(first.session, [model("ours")], parent=head)
        save(file, gemini_file(ONE, TWO))

        def stop(done: int, total: int) -> None:
            if done > total - 3:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            await import_file(store, file, progress=stop)
        assert (await store.session(first.session)).head == ours.id
        assert len(messages_of(await store.tree(first.session))) == 3

    with_store(tmp_path, work)


def test_two_imports_at_once_import_everything_once(tmp_path: Path) -> None:
    async def work(store: SqliteStore, file: Path) -> None:
        save(file, gemini_file(ONE, TWO, THREE))
        both = await asyncio.gather(import_file(store, file), import_file(store, file))
        assert sorted(imported.added for imported in both) == [0, 4]
        assert await heard(store, both[0].session) == ["one", "two", "three"]

    with_store(tmp_path, work)


def test_progress_runs_from_nothing_to_all(tmp_path: Path) -> None:
    async def work(store: SqliteStore, file: Path) -> None:
        save(file, gemini_file(user_record("m1", "x" * (3 * CHUNK_BYTES)), TWO))
        told: list[tuple[int, int]] = []
        await import_file(store, file, progress=lambda done, total: told.append((done, total)))
        assert told == sorted(told)
        assert len(told) >= 4
        assert told[-1][0] == told[-1][1]

    with_store(tmp_path, work)


def test_anything_but_a_regular_file_is_refused(tmp_path: Path) -> None:
    async def work(store: SqliteStore, file: Path) -> None:
        for path in (tmp_path, tmp_path / "nothing", Path("/dev/zero"), Path("a\0b")):
            with pytest.raises(CannotImport):
                await import_file(store, path)
        assert await store.sessions() == ()

    with_store(tmp_path, work)

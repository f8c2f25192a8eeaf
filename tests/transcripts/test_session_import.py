"""Importing into a store: nothing twice, nothing lost, the head where it belongs."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from recollect.entries import Entry, Message, Source, Text
from recollect.errors import CannotImport
from recollect.store.contract import Store
from recollect.store.sqlite import SqliteStore, open_store
from recollect.testing import model, user
from recollect.transcripts import history_server
from recollect.transcripts.format_table import EXPORT_FORMATS
from recollect.transcripts.gemini_cli import session_file
from recollect.transcripts.json_patch import json_equal
from recollect.transcripts.original_files import CHUNK_BYTES, load_original
from recollect.transcripts.session_export import export_session
from recollect.transcripts.session_import import import_file
from recollect.transcripts.session_writer import encode_json
from tests.transcripts.file_builders import (
    answered,
    asked,
    bring,
    gemini_file,
    line,
    said,
    save,
    server_file,
    spoken,
    take,
    tool_call,
)

ONE, TWO, THREE = asked("m1", "one"), answered("m2", "two"), asked("m3", "three")


def with_store(tmp_path: Path, work: Callable[[SqliteStore, Path], Awaitable[None]]) -> None:
    async def run() -> None:
        async with open_store(tmp_path / "store.db") as store:
            await work(store, tmp_path / "file.json")

    asyncio.run(run())


async def heard(store: Store, session: str) -> list[str]:
    texts = (
        p.text for m in spoken(await store.path(session)) for p in m.parts if isinstance(p, Text)
    )
    return list(texts)


async def sources(store: Store, session: str) -> list[Entry]:
    return [e for e in await store.tree(session) if isinstance(e.body, Source)]


def test_importing_twice_adds_nothing(tmp_path: Path) -> None:
    async def work(store: SqliteStore, file: Path) -> None:
        first = await bring(store, file, gemini_file(ONE, TWO))
        assert (first.added, first.already, first.warnings, first.problems) == (3, 0, (), ())
        before = await store.tree(first.session)
        again = await bring(store, file, gemini_file(ONE, TWO))
        assert (again.added, again.already, again.session) == (0, 2, first.session)
        assert await store.tree(first.session) == before

    with_store(tmp_path, work)


def test_a_file_that_has_grown_adds_what_is_new(tmp_path: Path) -> None:
    async def work(store: SqliteStore, file: Path) -> None:
        first = await bring(store, file, gemini_file(ONE))
        grown = await bring(store, file, gemini_file(ONE, TWO, THREE))
        assert (grown.added, grown.already, grown.warnings) == (3, 1, ())
        assert await heard(store, first.session) == ["one", "two", "three"]
        assert await store.path(first.session) == await store.tree(first.session)

    with_store(tmp_path, work)


def test_the_source_comes_first_and_is_kept_byte_for_byte(tmp_path: Path) -> None:
    async def work(store: SqliteStore, file: Path) -> None:
        data = b" \n" + json.dumps(gemini_file(ONE)).encode() + b"\r\n\0"
        file.write_bytes(data)
        imported = await import_file(store, file)
        first, *_ = await store.path(imported.session)
        assert isinstance(first.body, Source)
        assert (first.body.name, first.body.format) == ("file.json", "gemini")
        assert await load_original(store, first, [first]) == data

    with_store(tmp_path, work)


def test_of_a_file_that_has_grown_only_the_new_bytes_are_kept(tmp_path: Path) -> None:
    async def work(store: SqliteStore, file: Path) -> None:
        lines = [line(f"u{n}", f"u{n - 1}" if n else None, "user", "x" * 999) for n in range(3_000)]
        versions = []
        for end in (1_000, 2_000, 3_000):
            imported = await bring(store, file, lines[:end])
            versions.append(file.read_bytes())
        kept = await sources(store, imported.session)
        assert sum(e.body.size for e in kept if isinstance(e.body, Source)) == len(versions[-1])
        for entry, data in zip(kept, versions, strict=True):
            assert await load_original(store, entry, kept) == data
            assert isinstance(entry.body, Source)
            for digest in entry.body.blobs:
                assert len(await store.blob(digest)) <= CHUNK_BYTES

    with_store(tmp_path, work)


def test_a_file_that_was_rewritten_is_kept_in_both_versions(tmp_path: Path) -> None:
    async def work(store: SqliteStore, file: Path) -> None:
        long = asked("m1", "long " * 2_000)
        versions = []
        for value in (gemini_file(long), gemini_file(long, TWO), gemini_file(TWO, long)):
            imported = await bring(store, file, value)
            versions.append(file.read_bytes())
        kept = await sources(store, imported.session)
        assert [await load_original(store, entry, kept) for entry in kept] == versions

    with_store(tmp_path, work)


def test_a_file_that_tells_another_past_becomes_a_branch(tmp_path: Path) -> None:
    async def work(store: SqliteStore, file: Path) -> None:
        first = await bring(store, file, gemini_file(ONE, TWO, THREE))
        head = (await store.session(first.session)).head
        other = await bring(store, file, gemini_file(ONE, answered("m2", "other"), THREE))
        assert "branch" in other.warnings[0]
        assert (await store.session(first.session)).head == head
        assert await heard(store, first.session) == ["one", "two", "three"]
        texts = [
            p.text
            for m in spoken(await store.tree(first.session))
            for p in m.parts
            if isinstance(p, Text)
        ]
        assert sorted(texts) == ["one", "other", "three", "three", "two"]
        again = await bring(store, file, gemini_file(ONE, answered("m2", "other"), THREE))
        assert again.added == 0

    with_store(tmp_path, work)


def test_a_session_that_went_on_here_keeps_its_head(tmp_path: Path) -> None:
    async def work(store: SqliteStore, file: Path) -> None:
        first = await bring(store, file, server_file(said("user", "one")))
        head = (await store.session(first.session)).head
        ours = await store.append(first.session, [model("ours")], parent=head)
        grown = await bring(store, file, server_file(said("user", "one"), said("assistant", "two")))
        assert "branch" in grown.warnings[0]
        assert (await store.session(first.session)).head == ours[-1].id
        assert await heard(store, first.session) == ["one", "ours"]
        more = server_file(said("user", "one"), said("assistant", "two"), said("user", "three"))
        await bring(store, file, more)
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


def test_a_message_that_was_not_finished_is_followed_to_its_later_state(tmp_path: Path) -> None:
    async def work(store: SqliteStore, file: Path) -> None:
        waiting = answered("m2", "", toolCalls=[tool_call("c1")])
        done = answered("m2", "", toolCalls=[tool_call("c1", "x = 1")])
        first = await bring(store, file, gemini_file(ONE, waiting))
        grown = await bring(store, file, gemini_file(ONE, done, THREE))
        assert "1 entries were replaced" in grown.warnings[0]
        assert len(spoken(await store.path(first.session))) == 4

    with_store(tmp_path, work)


def test_a_rewind_in_the_file_is_followed(tmp_path: Path) -> None:
    async def work(store: SqliteStore, file: Path) -> None:
        lines: list[Any] = [{"sessionId": "G", "projectHash": "h"}, ONE, TWO]
        first = await bring(store, file, lines)
        lines += [{"$rewindTo": "m2"}, answered("m4", "four")]
        await bring(store, file, lines)
        assert await heard(store, first.session) == ["one", "four"]
        assert len(spoken(await store.tree(first.session))) == 3

    with_store(tmp_path, work)


def test_branches_of_a_new_file_come_in_and_the_head_is_the_files_own(tmp_path: Path) -> None:
    async def work(store: SqliteStore, file: Path) -> None:
        lines: list[Any] = [{"sessionId": "G", "projectHash": "h"}, ONE]
        for number in range(30):
            lines += [asked(f"x{number}", f"try {number}"), {"$rewindTo": f"x{number}"}]
            lines += [asked(f"y{number}", f"step {number}")]
        imported = await bring(store, file, lines)
        assert await heard(store, imported.session) == ["one", *(f"step {n}" for n in range(30))]
        assert len(spoken(await store.tree(imported.session))) == 61
        assert (await bring(store, file, lines)).added == 0

    with_store(tmp_path, work)


def test_a_file_that_ends_with_a_rewind_leaves_the_head_there(tmp_path: Path) -> None:
    async def work(store: SqliteStore, file: Path) -> None:
        head = {"sessionId": "G", "projectHash": "h"}
        imported = await bring(store, file, [head, ONE, TWO, THREE, {"$rewindTo": "m2"}])
        assert await heard(store, imported.session) == ["one"]
        assert len(spoken(await store.tree(imported.session))) == 3

    with_store(tmp_path, work)


def test_only_the_header_changed(tmp_path: Path) -> None:
    async def work(store: SqliteStore, file: Path) -> None:
        await bring(store, file, gemini_file(ONE))
        newer = gemini_file(ONE, lastUpdated="2026-03-01T00:00:00.000Z", summary="A title")
        imported = await bring(store, file, newer)
        assert (imported.added, imported.already, imported.warnings) == (2, 1, ())
        assert (await store.session(imported.session)).title == "A title"
        assert json_equal(await take(store, imported.session, "gemini"), newer)
        await bring(store, file, newer | {"messages": [ONE, TWO]})
        assert await heard(store, imported.session) == ["one", "two"]

    with_store(tmp_path, work)


def test_an_import_that_was_cut_short_is_completed_by_the_next(tmp_path: Path) -> None:
    lines: list[Any] = [{"sessionId": "G", "projectHash": "h"}, ONE]
    for number in range(5):
        lines += [asked(f"x{number}", f"try {number}"), {"$rewindTo": f"x{number}"}]
        lines += [asked(f"y{number}", f"step {number}")]

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
            imported = await bring(store, file, lines)
            expected = ["one", *(f"step {n}" for n in range(5))]
            assert await heard(store, imported.session) == expected
            assert len(spoken(await store.tree(imported.session))) == 11
            assert len(await sources(store, imported.session)) == 1

        (tmp_path / str(writes)).mkdir()
        with_store(tmp_path / str(writes), work)


def test_an_import_beside_work_of_ours_that_is_cut_short_leaves_the_head(tmp_path: Path) -> None:
    async def work(store: SqliteStore, file: Path) -> None:
        first = await bring(store, file, gemini_file(ONE))
        head = (await store.session(first.session)).head
        (ours,) = await store.append(first.session, [model("ours")], parent=head)
        save(file, gemini_file(ONE, TWO))

        def stop(done: int, total: int) -> None:
            if done > total - 3:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            await import_file(store, file, progress=stop)
        assert (await store.session(first.session)).head == ours.id
        assert len(spoken(await store.tree(first.session))) == 3

    with_store(tmp_path, work)


def test_two_imports_at_once_bring_in_everything_once(tmp_path: Path) -> None:
    async def work(store: SqliteStore, file: Path) -> None:
        save(file, gemini_file(ONE, TWO, THREE))
        both = await asyncio.gather(import_file(store, file), import_file(store, file))
        assert sorted(imported.added for imported in both) == [0, 4]
        assert await heard(store, both[0].session) == ["one", "two", "three"]

    with_store(tmp_path, work)


def test_progress_runs_from_nothing_to_all(tmp_path: Path) -> None:
    async def work(store: SqliteStore, file: Path) -> None:
        save(file, gemini_file(asked("m1", "x" * (3 * CHUNK_BYTES)), TWO))
        told: list[tuple[int, int]] = []
        await import_file(store, file, progress=lambda done, total: told.append((done, total)))
        assert told == sorted(told)
        assert len(told) >= 4
        assert told[-1][0] == told[-1][1]

    with_store(tmp_path, work)


def test_what_we_exported_and_comes_back_home_adds_nothing_but_its_source(tmp_path: Path) -> None:
    async def work(store: SqliteStore, file: Path) -> None:
        first = await bring(store, file, server_file(said("user", "one")))
        head = (await store.session(first.session)).head
        await store.append(first.session, [model("two"), user("three")], parent=head)
        exported = await take(store, first.session, "history-server")
        home = await bring(store, file, exported)
        assert (home.session, home.added, home.already, home.warnings) == (first.session, 1, 3, ())
        assert await heard(store, first.session) == ["one", "two", "three"]

    with_store(tmp_path, work)


@pytest.mark.parametrize("to", EXPORT_FORMATS)
def test_a_lone_surrogate_is_exported_as_valid_utf8_and_comes_back(tmp_path: Path, to: Any) -> None:
    async def work(store: SqliteStore, file: Path) -> None:
        text = "a\ud800 \udfff\0 é 😀"
        session = await store.create()
        await store.append(session.id, [user(text)], parent=None)
        _, data = await export_session(store, session.id, to)
        assert "\\ud800" in data.decode("utf-8")
        file.write_bytes(data)
        copy = await import_file(store, file)
        assert await heard(store, copy.session) == [text]

    with_store(tmp_path, work)


def test_from_one_format_to_the_other_and_back(tmp_path: Path) -> None:
    async def work(store: SqliteStore, file: Path) -> None:
        original = gemini_file(ONE, answered("m2", "", toolCalls=[tool_call("c1", "out")]), THREE)
        first = await bring(store, file, original)
        second = await bring(store, file, await take(store, first.session, "history-server"))
        assert first.session != second.session
        ours = [m.parts for m in spoken(await store.path(first.session))]
        assert [m.parts for m in spoken(await store.path(second.session))] == ours
        back = await take(store, second.session, "gemini")
        assert json_equal(back["messages"], original["messages"])

    with_store(tmp_path, work)


def test_a_file_name_tells_the_session_and_never_leaves_the_folder() -> None:
    assert (
        session_file.file_names("0f3a9c21-77aa", 0)[0] == "session-1970-01-01T00-00-0f3a9c21.json"
    )
    assert history_server.file_names("abc", 0) == ("session_19700101_abc.json",)
    for hostile in ("../../etc/passwd", "", "a/b", "\ud800", "x" * 5_000, "."):
        for name in (*session_file.file_names(hostile, 0), *history_server.file_names(hostile, 0)):
            assert Path(name).name == name
            assert len(name.encode()) < 200


def test_names_that_are_taken_by_another_session_get_more_of_the_id(tmp_path: Path) -> None:
    async def work(store: SqliteStore, _file: Path) -> None:
        session = await store.create(id=f"0f3a9c21{'b':0>24}", created=0)
        first, _ = await export_session(store, session.id, "gemini")
        second, _ = await export_session(store, session.id, "gemini", lambda name, _: name == first)
        assert first == "session-1970-01-01T00-00-0f3a9c21.json"
        assert second == "session-1970-01-01T00-00-0f3a9c210000.json"

    with_store(tmp_path, work)


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    async def work(store: SqliteStore, file: Path) -> None:
        for path in (tmp_path, tmp_path / "nothing", Path("/dev/zero"), Path("a\0b")):
            with pytest.raises(CannotImport):
                await import_file(store, path)
        assert await store.sessions() == ()

    with_store(tmp_path, work)


def test_numbers_that_json_does_not_have_are_not_written() -> None:
    with pytest.raises(ValueError, match="JSON"):
        encode_json({"a": float("nan")})

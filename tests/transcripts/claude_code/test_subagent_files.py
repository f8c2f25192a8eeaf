"""Subagents' own files come along as sessions of their own, linked both ways."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from recollect.entries import Note, Source
from recollect.store.sqlite import open_store
from recollect.transcripts.claude_code import session_reader
from recollect.transcripts.original_files import load_original
from recollect.transcripts.record_format import get_tag
from recollect.transcripts.session_import import import_file
from tests.transcripts.claude_code.subagent_builders import (
    MAIN,
    Place,
    at_a_place,
    conversation,
    links,
    task,
)
from tests.transcripts.file_builders import bring, save, spoken, take


def test_the_files_of_subagents_come_along_and_both_sessions_name_the_other(tmp_path: Path) -> None:
    async def work(place: Place) -> None:
        file = place.add("x7", conversation("x7"))
        imported = await place.bring(MAIN)
        (agent,) = imported.subagents
        assert await place.texts(imported.session) == ["Please find out", "There it is."]
        assert await place.texts(agent.session) == ["look", "x7 is done"]
        assert await links(place.store, agent.session) == [
            {"parent": imported.session, "call": "t1"}
        ]
        assert await links(place.store, imported.session) == [
            {"subagent": agent.session, "call": "t1"}
        ]
        title = (await place.store.session(agent.session)).title
        assert title == "Agent: Do look (subagent of Please find out)"
        tree = await place.store.tree(agent.session)
        source = next(entry for entry in tree if isinstance(entry.body, Source))
        assert await load_original(place.store, source, tree) == file.read_bytes()
        assert agent.name == "agent-x7.jsonl"

    at_a_place(tmp_path, work)


def test_the_notes_tell_people_what_belongs_together(tmp_path: Path) -> None:
    async def work(place: Place) -> None:
        place.add("x7", conversation("x7"))
        imported = await place.bring(MAIN)
        (agent,) = imported.subagents
        for session, other in ((imported, agent), (agent, imported)):
            path = await place.store.path(session.session)
            (note,) = [entry.body for entry in path if isinstance(entry.body, Note)]
            assert other.session in note.text
            assert "t1" in note.text

    at_a_place(tmp_path, work)


def test_importing_again_adds_nothing_anywhere(tmp_path: Path) -> None:
    async def work(place: Place) -> None:
        file = place.add("x7", conversation("x7"), {"toolUseId": "t1", "description": "Look"})
        await place.bring(MAIN)
        size = await place.size()
        again = await place.bring(MAIN)
        assert (again.added, [each.added for each in again.subagents]) == (0, [0])
        alone = await import_file(place.store, file)
        assert (alone.added, alone.session) == (0, again.subagents[0].session)
        assert await place.size() == size
        assert len(await place.store.sessions()) == 2

    at_a_place(tmp_path, work)


def test_a_subagents_file_alone_is_the_same_session(tmp_path: Path) -> None:
    async def work(place: Place) -> None:
        file = place.add("x7", conversation("x7"))
        alone = await import_file(place.store, file)
        parent = session_reader.read(enumerate(MAIN, 1)).session
        assert await links(place.store, alone.session) == [{"parent": parent}]
        imported = await place.bring(MAIN)
        (agent,) = imported.subagents
        assert (agent.session, imported.session) == (alone.session, parent)
        assert (agent.added, agent.warnings) == (2, ())  # a title, and the call that is now known
        assert (await import_file(place.store, file)).added == 0
        assert len(spoken(await place.store.tree(agent.session))) == 4

    at_a_place(tmp_path, work)


def test_a_subagents_file_alone_adds_nothing_to_what_its_caller_told(tmp_path: Path) -> None:
    """Alone it does not know the call; the note that does know it says it all."""

    async def work(place: Place) -> None:
        file = place.add("x7", conversation("x7"))
        (agent,) = (await place.bring(MAIN)).subagents
        alone = await import_file(place.store, file)
        assert (alone.session, alone.added) == (agent.session, 0)
        assert (await place.store.session(agent.session)).title.startswith("Agent: Do look")

    at_a_place(tmp_path, work)


def test_what_a_subagents_meta_file_says_is_known_even_alone(tmp_path: Path) -> None:
    async def work(place: Place) -> None:
        meta = {"toolUseId": "t1", "agentType": "Explore", "description": "Look around"}
        file = place.add("x7", conversation("x7", "something else"), meta)
        alone = await import_file(place.store, file)
        assert (await links(place.store, alone.session))[0]["call"] == "t1"
        (source, *_) = await place.store.path(alone.session)
        assert get_tag("claude-code", source.body)["meta"] == meta
        imported = await place.bring([*MAIN[:2], MAIN[3] | {"parentUuid": "a1"}])
        (agent,) = imported.subagents
        title = (await place.store.session(agent.session)).title
        assert title.startswith("Agent: Look around (subagent of")

    at_a_place(tmp_path, work)


def test_a_folder_that_appears_later_is_linked_then(tmp_path: Path) -> None:
    async def work(place: Place) -> None:
        first = await place.bring(MAIN)
        assert first.subagents == ()
        place.add("x7", conversation("x7"))
        second = await place.bring(MAIN)
        assert (second.added, len(second.subagents)) == (1, 1)
        place.add("y8", conversation("y8"))
        third = await place.bring(MAIN)
        assert [each.added > 0 for each in third.subagents] == [False, True]
        assert len(await links(place.store, third.session)) == 2
        assert await place.store.path(third.session) == await place.store.tree(third.session)

    at_a_place(tmp_path, work)


def test_a_subagent_that_has_gone_on_adds_what_is_new(tmp_path: Path) -> None:
    async def work(place: Place) -> None:
        place.add("x7", conversation("x7")[:1])
        await place.bring(MAIN[:2])
        place.add("x7", conversation("x7"))
        (agent,) = (await place.bring(MAIN)).subagents
        assert agent.warnings == ()
        assert await place.texts(agent.session) == ["look", "x7 is done"]

    at_a_place(tmp_path, work)


def test_a_subagent_of_a_subagent_belongs_to_the_one_that_called_it(tmp_path: Path) -> None:
    async def work(place: Place) -> None:
        outer = conversation("x7")
        outer[1]["message"]["content"] = [task("x7-t", "dig")]
        place.add("x7", outer)
        place.add("z9", conversation("z9", "dig"), {"toolUseId": "x7-t"})
        by_name = {each.name: each for each in (await place.bring(MAIN)).subagents}
        middle, inner = by_name["agent-x7.jsonl"].session, by_name["agent-z9.jsonl"].session
        assert await links(place.store, inner) == [{"parent": middle, "call": "x7-t"}]
        assert {"subagent": inner, "call": "x7-t"} in await links(place.store, middle)

    at_a_place(tmp_path, work)


def test_one_bad_file_does_not_stop_the_others(tmp_path: Path) -> None:
    async def work(place: Place) -> None:
        place.add("x7", conversation("x7"))
        place.add("bad", []).write_bytes(b"\x00\xffnothing")
        place.add("main", MAIN)
        (place.folder / "C-1" / "subagents" / "agent-dir.jsonl").mkdir()
        os.mkfifo(place.folder / "C-1" / "subagents" / "agent-pipe.jsonl")
        torn = place.add("torn", conversation("torn"))
        torn.write_bytes(torn.read_bytes()[:-40])
        imported = await place.bring(MAIN)
        assert [each.name for each in imported.subagents] == ["agent-torn.jsonl", "agent-x7.jsonl"]
        assert [len(each.problems) for each in imported.subagents] == [1, 0]
        assert len(imported.warnings) == 4
        for name in ("bad", "main", "dir", "pipe"):
            assert any(f"agent-{name}.jsonl" in warning for warning in imported.warnings), name

    at_a_place(tmp_path, work)


@pytest.mark.parametrize(
    "meta", [b"{", b"[1]", b"\xff", b'{"a":NaN}', b'{"a":' * 5_000, b'"' + b"x" * 99_999 + b'"']
)
def test_a_meta_file_that_is_none_is_told_and_left(tmp_path: Path, meta: bytes) -> None:
    async def work(place: Place) -> None:
        place.add("x7", conversation("x7"), {}).with_suffix(".meta.json").write_bytes(meta)
        (agent,) = (await place.bring(MAIN)).subagents
        assert "agent-x7.meta.json" in agent.problems[0][1]
        assert await place.texts(agent.session) == ["look", "x7 is done"]

    at_a_place(tmp_path, work)


def test_older_files_beside_the_session_are_found_by_its_results(tmp_path: Path) -> None:
    async def work(place: Place) -> None:
        save(place.folder / "agent-x7.jsonl", conversation("x7"))
        save(place.folder / "agent-other.jsonl", conversation("other"))
        imported = await place.bring(MAIN)
        assert [each.name for each in imported.subagents] == ["agent-x7.jsonl"]
        assert (await links(place.store, imported.session))[0]["call"] == "t1"

    at_a_place(tmp_path, work)


def test_links_survive_an_export(tmp_path: Path) -> None:
    async def work(place: Place) -> None:
        place.add("x7", conversation("x7"))
        imported = await place.bring(MAIN)
        (agent,) = imported.subagents
        for session, other in ((imported, agent), (agent, imported)):
            exported = await take(place.store, session.session, "gemini")
            async with open_store(tmp_path / f"{session.session}.db") as elsewhere:
                back = await bring(elsewhere, tmp_path / "back.json", exported)
                (link,) = await links(elsewhere, back.session)
                assert other.session in link.values()
                assert link["call"] == "t1"

    at_a_place(tmp_path, work)

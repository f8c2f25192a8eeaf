"""Subagents' own files come along as sessions of their own, linked both ways."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from recollect.entries import Note, Source
from recollect.store.open_store import open_store
from recollect.transcripts.claude_code import session_reader
from recollect.transcripts.record_format import get_tag
from recollect.transcripts.record_source import MemoryRecords
from recollect.transcripts.session_import import import_file
from tests.transcripts.claude_code.subagent_builders import (
    MAIN,
    SessionFolder,
    agent_records,
    links,
    task,
    with_session_folder,
)
from tests.transcripts.file_builders import export_value, import_value, messages_of, save
from tests.transcripts.whole_files import load_original


def test_the_files_of_subagents_are_imported_and_both_sessions_name_the_other(
    tmp_path: Path,
) -> None:
    async def work(folder: SessionFolder) -> None:
        file = folder.add("x7", agent_records("x7"))
        imported = await folder.import_records(MAIN)
        (agent,) = imported.subagents
        assert await folder.texts(imported.session) == ["Please find out", "There it is."]
        assert await folder.texts(agent.session) == ["look", "x7 is done"]
        assert await links(folder.store, agent.session) == [
            {"parent": imported.session, "call": "t1"}
        ]
        assert await links(folder.store, imported.session) == [
            {"subagent": agent.session, "call": "t1"}
        ]
        title = (await folder.store.session(agent.session)).title
        assert title == "Agent: Do look (subagent of Please find out)"
        tree = await folder.store.tree(agent.session)
        source = next(entry for entry in tree if isinstance(entry.body, Source))
        assert await load_original(folder.store, source, tree) == file.read_bytes()
        assert agent.name == "agent-x7.jsonl"

    with_session_folder(tmp_path, work)


def test_the_notes_tell_users_which_sessions_belong_together(tmp_path: Path) -> None:
    async def work(folder: SessionFolder) -> None:
        folder.add("x7", agent_records("x7"))
        imported = await folder.import_records(MAIN)
        (agent,) = imported.subagents
        for session, other in ((imported, agent), (agent, imported)):
            path = await folder.store.path(session.session)
            (note,) = [entry.body for entry in path if isinstance(entry.body, Note)]
            assert other.session in note.text
            assert "t1" in note.text

    with_session_folder(tmp_path, work)


def test_importing_again_adds_nothing_anywhere(tmp_path: Path) -> None:
    async def work(folder: SessionFolder) -> None:
        file = folder.add("x7", agent_records("x7"), {"toolUseId": "t1", "description": "Look"})
        await folder.import_records(MAIN)
        size = await folder.size()
        again = await folder.import_records(MAIN)
        assert (again.added, [each.added for each in again.subagents]) == (0, [0])
        alone = await import_file(folder.store, file)
        assert (alone.added, alone.session) == (0, again.subagents[0].session)
        assert await folder.size() == size
        assert len(await folder.store.sessions()) == 2

    with_session_folder(tmp_path, work)


def test_a_subagents_file_alone_is_the_same_session(tmp_path: Path) -> None:
    async def work(folder: SessionFolder) -> None:
        file = folder.add("x7", agent_records("x7"))
        alone = await import_file(folder.store, file)
        parent = session_reader.read(MemoryRecords(enumerate(MAIN, 1))).session
        assert await links(folder.store, alone.session) == [{"parent": parent}]
        imported = await folder.import_records(MAIN)
        (agent,) = imported.subagents
        assert (agent.session, imported.session) == (alone.session, parent)
        assert (agent.added, agent.warnings) == (2, ())  # a title, and the call that is now known
        assert (await import_file(folder.store, file)).added == 0
        assert len(messages_of(await folder.store.tree(agent.session))) == 4

    with_session_folder(tmp_path, work)


def test_a_subagents_file_alone_adds_nothing_to_its_callers_import(tmp_path: Path) -> None:
    """Alone it does not know the call; the note that does know it says it all."""

    async def work(folder: SessionFolder) -> None:
        file = folder.add("x7", agent_records("x7"))
        (agent,) = (await folder.import_records(MAIN)).subagents
        alone = await import_file(folder.store, file)
        assert (alone.session, alone.added) == (agent.session, 0)
        assert (await folder.store.session(agent.session)).title.startswith("Agent: Do look")

    with_session_folder(tmp_path, work)


def test_the_meta_file_of_a_subagent_counts_even_alone(tmp_path: Path) -> None:
    async def work(folder: SessionFolder) -> None:
        meta = {"toolUseId": "t1", "agentType": "Explore", "description": "Look around"}
        file = folder.add("x7", agent_records("x7", "something else"), meta)
        alone = await import_file(folder.store, file)
        assert (await links(folder.store, alone.session))[0]["call"] == "t1"
        (source, *_) = await folder.store.path(alone.session)
        assert get_tag("claude-code", source.body)["meta"] == meta
        imported = await folder.import_records([*MAIN[:2], MAIN[3] | {"parentUuid": "a1"}])
        (agent,) = imported.subagents
        title = (await folder.store.session(agent.session)).title
        assert title.startswith("Agent: Look around (subagent of")

    with_session_folder(tmp_path, work)


def test_a_folder_that_appears_later_is_linked_then(tmp_path: Path) -> None:
    async def work(folder: SessionFolder) -> None:
        first = await folder.import_records(MAIN)
        assert first.subagents == ()
        folder.add("x7", agent_records("x7"))
        second = await folder.import_records(MAIN)
        assert (second.added, len(second.subagents)) == (1, 1)
        folder.add("y8", agent_records("y8"))
        third = await folder.import_records(MAIN)
        assert [each.added > 0 for each in third.subagents] == [False, True]
        assert len(await links(folder.store, third.session)) == 2
        assert await folder.store.path(third.session) == await folder.store.tree(third.session)

    with_session_folder(tmp_path, work)


def test_a_subagent_that_has_continued_adds_what_is_new(tmp_path: Path) -> None:
    async def work(folder: SessionFolder) -> None:
        folder.add("x7", agent_records("x7")[:1])
        await folder.import_records(MAIN[:2])
        folder.add("x7", agent_records("x7"))
        (agent,) = (await folder.import_records(MAIN)).subagents
        assert agent.warnings == ()
        assert await folder.texts(agent.session) == ["look", "x7 is done"]

    with_session_folder(tmp_path, work)


def test_a_subagent_of_a_subagent_belongs_to_the_one_that_called_it(tmp_path: Path) -> None:
    async def work(folder: SessionFolder) -> None:
        outer = agent_records("x7")
        outer[1]["message"]["content"] = [task("x7-t", "dig")]
        folder.add("x7", outer)
        folder.add("z9", agent_records("z9", "dig"), {"toolUseId": "x7-t"})
        by_name = {each.name: each for each in (await folder.import_records(MAIN)).subagents}
        middle, inner = by_name["agent-x7.jsonl"].session, by_name["agent-z9.jsonl"].session
        assert await links(folder.store, inner) == [{"parent": middle, "call": "x7-t"}]
        assert {"subagent": inner, "call": "x7-t"} in await links(folder.store, middle)

    with_session_folder(tmp_path, work)


def test_one_bad_file_does_not_stop_the_others(tmp_path: Path) -> None:
    async def work(folder: SessionFolder) -> None:
        folder.add("x7", agent_records("x7"))
        folder.add("bad", []).write_bytes(b"\x00\xffnothing")
        folder.add("main", MAIN)
        (folder.folder / "C-1" / "subagents" / "agent-dir.jsonl").mkdir()
        os.mkfifo(folder.folder / "C-1" / "subagents" / "agent-pipe.jsonl")
        torn = folder.add("torn", agent_records("torn"))
        torn.write_bytes(torn.read_bytes()[:-40])
        imported = await folder.import_records(MAIN)
        assert [each.name for each in imported.subagents] == ["agent-torn.jsonl", "agent-x7.jsonl"]
        assert [len(each.problems) for each in imported.subagents] == [1, 0]
        assert len(imported.warnings) == 4
        for name in ("bad", "main", "dir", "pipe"):
            assert any(f"agent-{name}.jsonl" in warning for warning in imported.warnings), name

    with_session_folder(tmp_path, work)


@pytest.mark.parametrize(
    "meta", [b"{", b"[1]", b"\xff", b'{"a":NaN}', b'{"a":' * 5_000, b'"' + b"x" * 99_999 + b'"']
)
def test_an_unreadable_meta_file_is_reported_and_ignored(tmp_path: Path, meta: bytes) -> None:
    async def work(folder: SessionFolder) -> None:
        folder.add("x7", agent_records("x7"), {}).with_suffix(".meta.json").write_bytes(meta)
        (agent,) = (await folder.import_records(MAIN)).subagents
        assert "agent-x7.meta.json" in agent.problems[0][1]
        assert await folder.texts(agent.session) == ["look", "x7 is done"]

    with_session_folder(tmp_path, work)


def test_older_files_beside_the_session_are_found_by_its_results(tmp_path: Path) -> None:
    async def work(folder: SessionFolder) -> None:
        save(folder.folder / "agent-x7.jsonl", agent_records("x7"))
        save(folder.folder / "agent-other.jsonl", agent_records("other"))
        imported = await folder.import_records(MAIN)
        assert [each.name for each in imported.subagents] == ["agent-x7.jsonl"]
        assert (await links(folder.store, imported.session))[0]["call"] == "t1"

    with_session_folder(tmp_path, work)


def test_links_survive_an_export(tmp_path: Path) -> None:
    async def work(folder: SessionFolder) -> None:
        folder.add("x7", agent_records("x7"))
        imported = await folder.import_records(MAIN)
        (agent,) = imported.subagents
        for session, other in ((imported, agent), (agent, imported)):
            exported = await export_value(folder.store, session.session, "gemini")
            async with open_store(tmp_path / f"{session.session}.db") as elsewhere:
                back = await import_value(elsewhere, tmp_path / "back.json", exported)
                (link,) = await links(elsewhere, back.session)
                assert other.session in link.values()
                assert link["call"] == "t1"

    with_session_folder(tmp_path, work)

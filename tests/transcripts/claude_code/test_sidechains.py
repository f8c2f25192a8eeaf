"""Subagents inside a session's file, as sidechains or progress_reports in its progress reports."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from recollect.transcripts.claude_code import session_reader
from recollect.transcripts.claude_code.record_index import index_records
from recollect.transcripts.claude_code.sidechains import Sidechain, extract_sidechains
from recollect.transcripts.json_values import Json
from recollect.transcripts.record_source import MemoryRecords
from tests.transcripts.call_counter import count_calls
from tests.transcripts.claude_code.subagent_builders import (
    MAIN,
    SessionFolder,
    agent_records,
    links,
    progress_reports,
    sidechain_line,
    task,
    text,
    with_session_folder,
)
from tests.transcripts.file_builders import anything, line, messages_of, result_of


def test_sidechains_in_a_file_become_sessions_by_the_prompt_that_began_them(tmp_path: Path) -> None:
    """Older files give them no id; two calls with one prompt are told apart by their order."""

    async def work(folder: SessionFolder) -> None:
        imported = await folder.import_records(
            [
                line("u1", None, "user", "Go"),
                line("a1", "u1", "assistant", [task("t1", "look"), task("t2", "look")], id="m"),
                sidechain_line("s1", None, "user", "look"),
                sidechain_line("s2", "s1", "assistant", text("first"), id="s"),
                sidechain_line("z1", "a1", "user", "look"),
                sidechain_line("z2", "z1", "assistant", text("second"), id="z"),
                line("r1", "a1", "user", [result_of("t1", "1"), result_of("t2", "2")]),
            ]
        )
        first, second = imported.subagents
        assert await folder.texts(imported.session) == ["Go"]
        assert await folder.texts(first.session) == ["look", "first"]
        assert await folder.texts(second.session) == ["look", "second"]
        assert (first.problems, second.problems) == ((), ())
        calls = [(await links(folder.store, each.session))[0]["call"] for each in (first, second)]
        assert calls == ["t1", "t2"]

    with_session_folder(tmp_path, work)


def test_a_main_session_is_the_same_with_and_without_its_subagents() -> None:
    within = session_reader.read(
        MemoryRecords(enumerate([*MAIN[:2], *agent_records("x7"), *MAIN[2:]], 1))
    )
    assert within.entries == session_reader.read(MemoryRecords(enumerate(MAIN, 1))).entries
    assert (
        within.subagents[0].entries
        == session_reader.read(MemoryRecords(enumerate(agent_records("x7"), 1))).entries
    )


def test_a_conversation_in_progress_reports_is_imported(tmp_path: Path) -> None:
    async def work(folder: SessionFolder) -> None:
        reports = progress_reports("x7", "t1", agent_records("x7")[:3])
        imported = await folder.import_records([*MAIN[:2], *reports])
        (agent,) = imported.subagents
        assert len(messages_of(await folder.store.path(agent.session))) == 3
        assert (await links(folder.store, agent.session))[0]["call"] == "t1"
        assert await folder.texts(imported.session) == ["Please find out"]

    with_session_folder(tmp_path, work)


def test_reports_name_the_call_that_a_subagents_own_file_answers(tmp_path: Path) -> None:
    async def work(folder: SessionFolder) -> None:
        records = agent_records("x7", "in other words")
        folder.add("x7", records)
        (agent,) = (
            await folder.import_records([*MAIN[:2], *progress_reports("x7", "t1", records[:1])])
        ).subagents
        assert (await links(folder.store, agent.session))[0]["call"] == "t1"
        assert await folder.texts(agent.session) == ["in other words", "x7 is done"]

    with_session_folder(tmp_path, work)


def test_reports_that_hold_no_message_make_no_session(tmp_path: Path) -> None:
    async def work(folder: SessionFolder) -> None:
        data = {"agentId": "x7", "message": {"uuid": "x", "type": "user"}}
        imported = await folder.import_records([*MAIN, line("p1", "a1", "progress", data=data)])
        assert imported.subagents == ()
        assert len(await folder.store.sessions()) == 1

    with_session_folder(tmp_path, work)


def test_a_subagents_own_file_wins_over_progress_reports_even_later(
    tmp_path: Path,
) -> None:
    async def work(folder: SessionFolder) -> None:
        records = [*MAIN[:2], *progress_reports("x7", "t1", agent_records("x7")[:3]), *MAIN[2:]]
        (before,) = (await folder.import_records(records)).subagents
        folder.add("x7", agent_records("x7"))
        (after,) = (await folder.import_records(records)).subagents
        assert after.session == before.session
        assert await folder.texts(after.session) == ["look", "x7 is done"]
        assert len(messages_of(await folder.store.path(after.session))) == 4

    with_session_folder(tmp_path, work)


_names = st.sampled_from(["s1", "s2", "s3", "s4", "gone"])
_odd = st.builds(
    lambda uuid, parent, more: {"type": "user", "uuid": uuid, "parentUuid": parent, **more},
    _names | anything,
    st.none() | _names | anything,
    st.fixed_dictionaries(
        {"isSidechain": st.just(True) | st.booleans() | anything},
        optional={
            "agentId": st.sampled_from(["a", "b"]) | anything,
            "data": st.fixed_dictionaries({"agentId": _names, "message": anything}) | anything,
            "message": st.just({"role": "user", "content": "hi"}) | anything,
            "toolUseResult": st.fixed_dictionaries({"agentId": anything}) | anything,
        },
    ),
)


def find_sidechains(values: list[Json]) -> list[Sidechain]:
    records = MemoryRecords(enumerate(values, 1))
    return extract_sidechains(records, index_records(records))


@given(st.lists(_odd, max_size=8))
def test_every_sidechain_record_belongs_to_exactly_one_subagent(records: list[Json]) -> None:
    main = [line("u1", None, "user", "hi")]
    found = find_sidechains([*main, *records])
    lines = [number for each in found for number, _ in each.records]
    wanted = [
        number
        for number, value in enumerate(records, 2)
        if value.get("isSidechain") is True and isinstance(value["uuid"], str) and value["uuid"]
    ]
    assert sorted(lines) == wanted
    session_reader.read(MemoryRecords(enumerate([*main, *records], 1)))


def test_long_and_circular_sidechains_cost_in_proportion_to_their_length() -> None:
    def records(length: int) -> list[Json]:
        chain = [sidechain_line(f"s{n}", f"s{n + 1}", "user", "x") for n in range(length)]
        circle = [sidechain_line(f"c{n}", f"c{(n + 1) % 5}", "user", "x") for n in range(5)]
        return [line("u1", None, "user", "hi"), *chain, *circle]

    assert [len(each.records) for each in find_sidechains(records(5_000))] == [5_000, 5]
    short, long = records(500), records(2_000)
    cost = count_calls(lambda: find_sidechains(short))
    assert count_calls(lambda: find_sidechains(long)) < 4.5 * cost

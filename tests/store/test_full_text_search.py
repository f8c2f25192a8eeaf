from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.engine import Project, SearchQuery, open_store
from recollect.errors import BadInput
from recollect.store import search_tokenizer
from recollect.testing import call, model, result, user
from tests.both_stores import OpenStore

TALK = (
    "Please fix getUserName in the HTTPServer class",
    "修复 模型上下文 的 管理 功能",
    "東京タワーへ行きたい、ガラスの床が見たい",
    "한국어 문장을 찾아 주세요",
    "the max_turns setting of src/agent/loop.py",
    "Straße, café and naïve résumé",
    "concatenate the strings",
)


def found(reopen: OpenStore, query: str, **filters: str) -> list[str]:
    async def story() -> list[str]:
        async with reopen() as store:
            if not await store.sessions():
                session = await store.create()
                await store.append(session.id, [user(text) for text in TALK], parent=None)
            hits = await store.search(SearchQuery(words=query, **filters))  # type: ignore[arg-type]
            return [search_tokenizer.searchable_text(hit.entry.body) for hit in hits]

    return asyncio.run(story())


@pytest.mark.parametrize(
    ("query", "number"),
    [
        ("getUserName", 0),
        ("getusername", 0),
        ("UserName", 0),
        ("username", 0),
        ("username class", 0),
        ("pleasefix", None),
        ("username -class", None),
        ("user", 0),
        ("httpserver", 0),
        ("server", 0),
        ('"fix getUserName in"', 0),
        ("getus*", 0),
        ("模型", 1),
        ("上下文", 1),
        ("型上下", 1),
        ("文", 1),
        ("能", 1),
        ("東京", 2),
        ("タワー", 2),
        ("ガラス", 2),
        ("床", 2),
        ("문장", 3),
        ("찾아", 3),
        ("max_turns", 4),
        ("turns", 4),
        ("agent/loop.py", 4),
        ("loop.py", 4),
        ("strasse", None),
        ("straße", 5),
        ("CAFE", 5),
        ("naive resume", 5),
        ("cat", None),
        ("concat*", 6),
        ("カラス", None),
        ("turns_max", None),
        ('"in fix"', None),
        ("fix -class", None),
        ("fix -nothing", 0),
    ],
)
def test_words_in_any_script_and_parts_of_identifiers_are_found(
    query: str, number: int | None, reopen: OpenStore
) -> None:
    assert found(reopen, query) == ([] if number is None else [TALK[number]])


@pytest.mark.parametrize("query", ["", "  ", '""', "-", "*", "...", "-word", "\x00"])
def test_a_query_without_a_word_says_so(query: str) -> None:
    with pytest.raises(BadInput, match="word to search for"):
        search_tokenizer.parse_query(query)


@given(st.text(max_size=30))
def test_no_text_makes_a_query_that_the_index_cannot_read(text: str) -> None:
    import apsw

    from recollect.store.sql_schema import FTS_OPTIONS

    db = apsw.Connection(":memory:")
    db.execute(f"CREATE VIRTUAL TABLE search USING fts5({FTS_OPTIONS})")
    try:
        terms = search_tokenizer.parse_query(text)
    except BadInput:
        return
    expression = search_tokenizer.match_expression(terms, role="user", tool="read_file")
    assert list(db.execute("SELECT rowid FROM search WHERE search MATCH ?", (expression,))) == []


@given(st.text("abcXYZ模型ガ_ 0", min_size=1, max_size=30))
def test_every_word_of_a_text_finds_it(text: str) -> None:
    import apsw

    from recollect.store.sql_schema import FTS_OPTIONS

    db = apsw.Connection(":memory:")
    db.execute(f"CREATE VIRTUAL TABLE search USING fts5({FTS_OPTIONS})")
    db.execute(
        "INSERT INTO search(rowid, text) VALUES (1, ?)", (search_tokenizer.index_text(user(text)),)
    )
    for word in text.split():
        try:
            terms = search_tokenizer.parse_query(word)
        except BadInput:
            continue
        expression = search_tokenizer.match_expression(terms, role=None, tool=None)
        assert list(db.execute("SELECT rowid FROM search WHERE search MATCH ?", (expression,)))
        assert search_tokenizer.contains_literals(text, terms)


def test_a_word_finds_identifiers_with_it_beside_the_word_itself_newest_first(
    reopen: OpenStore,
) -> None:
    said = ["a username", "getUserName()", "user and name", "the username again", "isUserNameSet"]

    async def story() -> None:
        async with reopen() as store:
            session = await store.create()
            await store.append(session.id, [user(text) for text in said], parent=None)

            async def texts(**more: int) -> list[str]:
                hits = await store.search(SearchQuery(words="username", **more))  # type: ignore[arg-type]
                return [search_tokenizer.searchable_text(hit.entry.body) for hit in hits]

            assert await texts() == [said[4], said[3], said[1], said[0]]
            assert await texts(limit=2) == [said[3], said[0]]  # the word itself comes first

    asyncio.run(story())


def test_filters_narrow_a_search(reopen: OpenStore) -> None:
    async def story() -> None:
        async with reopen() as store:
            here, there = Project("/here"), Project("/there")
            mine = await store.create(project=here)
            other = await store.create(project=there)
            read, shell = call("read_file", path="needle"), call("run_shell", id="2", command="ls")
            entries = await store.append(
                mine.id,
                [user("needle"), model("ok", read), result(read, "needle"), model("needle", shell)],
                parent=None,
            )
            await store.append(other.id, [user("needle elsewhere")], parent=None)

            async def hits(query: SearchQuery) -> list[str]:
                return [hit.entry.id for hit in await store.search(query)]

            assert len(await hits(SearchQuery(words="needle"))) == 5
            assert len(await hits(SearchQuery(words="needle", project=here))) == 4
            assert await hits(SearchQuery(words="needle", project="/here", role="model")) == [
                entries[3].id,
                entries[1].id,
            ]
            tool = SearchQuery(words="needle", tool="read_file")
            assert await hits(tool) == [entries[2].id, entries[1].id]
            assert len(await hits(SearchQuery(words="needle", session=other.id))) == 1
            assert await hits(SearchQuery(words="needle", before=entries[0].time)) == []
            assert len(await hits(SearchQuery(words="needle", after=entries[0].time))) == 5
            assert len(await hits(SearchQuery(words="needle", limit=2))) == 2
            await store.trash(other.id)
            assert len(await hits(SearchQuery(words="needle"))) == 4
            assert await hits(SearchQuery(words="needle", project="/nowhere")) == []

    asyncio.run(story())


def test_search_is_complete_at_once_also_after_a_crash_before_indexing(tmp_path: Path) -> None:
    from recollect.store.sqlite import SqliteStore

    async def crash() -> None:
        store = SqliteStore(tmp_path / "store.db")
        session = await store.create()
        await store.append(session.id, [user("unforgettable")], parent=None)
        # no close: the index never ran

    async def later() -> int:
        async with open_store(tmp_path / "store.db") as store:
            return len(await store.search(SearchQuery(words="unforgettable")))

    asyncio.run(crash())
    assert asyncio.run(later()) == 1


def test_a_snippet_shows_the_match_in_the_middle_of_a_long_text() -> None:
    text = "before " * 100 + "the needle\x1b[31m is\nhere " + "after " * 100
    shown, marks = search_tokenizer.make_snippet(text, search_tokenizer.parse_query("needle"))
    assert len(shown) <= 122
    assert [shown[a:b] for a, b in marks] == ["needle"]
    assert "\x1b" not in shown
    assert "\n" not in shown
    assert shown.startswith("…")
    assert shown.endswith("…")

"""The ranked search: all words first, then the nearest, and what is nowhere."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.engine import Project, SearchQuery
from recollect.entries import Body, Note
from recollect.errors import BadInput
from recollect.store.contract import SearchResult
from recollect.store.readable_text import readable_text
from recollect.testing import call, model, result, user
from tests.both_stores import NewStore


def rank(new_store: NewStore, bodies: Sequence[Body], words: str, **more: object) -> SearchResult:
    """What a store with these bodies finds."""

    async def story() -> SearchResult:
        async with new_store()() as store:
            session = await store.create()
            await store.append(session.id, bodies, parent=None)
            query = SearchQuery(words=words, **more)  # type: ignore[arg-type]
            return await store.rank(query)

    return asyncio.run(story())


def texts(found: SearchResult) -> list[str]:
    return [readable_text(hit.entry.body) for hit in found.hits]


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("where does OtelHelpers.with_span set its attributes?", "OtelHelpers.with_span sets them"),
        ("what is with_span about in this project?", "OtelHelpers.with_span sets them"),
        ("which tests were closed by it then", "we are closing the test"),
        ("the --no-verify flag", "git commit --no-verify"),
        ("resume cafe", "un café, ein Résumé"),
        ("管理功能", "修复模型上下文的管理功能"),
        ("getUs*", "call getUserName"),
        ('"not the order"', "this is not the order of it"),
        ("lib/spotter.ex,", "see lib/spotter.ex for it"),
    ],
)
def test_questions_identifiers_phrases_and_other_scripts_find_the_nearest(
    new_store: NewStore, query: str, first: str
) -> None:
    bodies = [
        user(f"the {word} of it is in this project, then") for word in ("what", "which", "so")
    ]
    said = (
        "OtelHelpers.with_span sets them",
        "we are closing the test",
        "git commit --no-verify",
        "un café, ein Résumé",
        "修复模型上下文的管理功能",
        "call getUserName",
        "this is not the order of it",
        "the order is not this",
        "see lib/spotter.ex for it",
        "lib and spotter, ex post",
    )
    assert texts(rank(new_store, [*bodies, *map(user, said)], query))[0] == first


def test_words_that_are_nowhere_in_the_scope_are_named(new_store: NewStore) -> None:
    async def story() -> None:
        async with new_store()() as store:
            here = await store.create(project=Project("/here"))
            there = await store.create(project=Project("/there"))
            await store.append(here.id, [user("a zebra")], parent=None)
            await store.append(there.id, [user("a giraffe")], parent=None)

            async def nowhere(**scope: object) -> tuple[str, ...]:
                query = SearchQuery(words="zebra giraffe lion -cat", **scope)  # type: ignore[arg-type]
                return (await store.rank(query)).nowhere

            assert await nowhere() == ("lion",)
            assert await nowhere(project="/here") == ("giraffe", "lion")
            assert await nowhere(session=there.id) == ("zebra", "lion")
            assert await nowhere(project="/nowhere") == ("zebra", "giraffe", "lion")
            await store.trash(there.id)
            assert await nowhere() == ("giraffe", "lion")

    asyncio.run(story())


def test_filters_hold_for_partial_matches_too(new_store: NewStore) -> None:
    grep = call("grep", pattern="zebra stripes")
    bodies: list[Body] = [
        user("zebra user"),
        model("zebra model"),
        result(grep, "zebra grep"),
        Note(text="zebra"),
    ]
    words = "zebra giraffe"
    assert len(texts(rank(new_store, bodies, words))) == 4
    assert texts(rank(new_store, bodies, words, role="model")) == ["zebra model"]
    assert texts(rank(new_store, bodies, words, tool="grep")) == ["zebra grep"]
    assert texts(rank(new_store, bodies, f"{words} -grep -user", spoken=True)) == ["zebra model"]
    assert texts(rank(new_store, bodies, words, before=5)) == []


def test_rare_words_outweigh_many_common_ones(new_store: NewStore) -> None:
    common = [user(f"please run all the tests again, number {n}") for n in range(50)]
    rare = user("the xylograph is broken")
    found = texts(rank(new_store, [rare, *common], "please run tests xylograph"))
    assert found[0] == "the xylograph is broken"


def test_a_session_sees_its_branches_and_what_it_inherited_and_no_more(new_store: NewStore) -> None:
    async def story() -> None:
        async with new_store()() as store:
            mine = await store.create()
            one, two = await store.append(mine.id, [user("zebra 1"), user("zebra 2")], parent=None)
            fork = await store.fork(mine.id, at=one.id)
            (three,) = await store.append(fork.id, [user("zebra 3")], parent=one.id)
            again = await store.fork(fork.id)
            await store.rewind(mine.id, one.id)
            (four,) = await store.append(mine.id, [user("zebra 4")], parent=one.id)

            async def found(session: str) -> set[str]:
                hits = (await store.rank(SearchQuery(words="zebra", session=session))).hits
                return {hit.entry.id for hit in hits}

            assert await found(mine.id) == {one.id, two.id, four.id}
            assert await found(fork.id) == {one.id, three.id}
            assert await found(again.id) == {one.id, three.id}

    asyncio.run(story())


@given(words=st.lists(st.text('ab*"- _.模é\\n()', max_size=20), max_size=4).map(" ".join))
def test_no_query_breaks_the_ranking(words: str, new_store: NewStore) -> None:
    with suppress(BadInput):
        assert len(rank(new_store, [user("a b ab 模型 é a_b")], words).hits) <= 1

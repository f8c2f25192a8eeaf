"""Hostile strings in every field are read back exactly; what cannot be stored is refused."""

from __future__ import annotations

import asyncio
import contextlib
import math
from pathlib import Path
from typing import Any

import pytest

from recollect.entries import (
    Body,
    Entry,
    Message,
    Note,
    Text,
    ToolCall,
    ToolResult,
    Unknown,
    UnknownBody,
    Usage,
)
from recollect.errors import (
    AlreadyExists,
    AmbiguousId,
    BadInput,
    BadRole,
    NotFound,
    RecollectError,
    UnknownEntry,
    UnknownSession,
)
from recollect.store.contract import Project, SearchQuery, Store
from recollect.store.open_store import open_store
from recollect.testing import model, user
from tests.both_stores import OpenStore, in_opened
from tests.reliability.hostile import LONG, STRINGS, bodies, deep


def stored(reopen: OpenStore, items: list[Body]) -> list[Body]:
    """The bodies as another open finds them."""

    async def write(store: Store) -> str:
        session = await store.create()
        await store.append(session.id, items, parent=None)
        return session.id

    session = in_opened(reopen, write)

    async def read(store: Store) -> list[Body]:
        return [entry.body for entry in await store.path(session)]

    return in_opened(reopen, read)


def exact_or_refused(reopen: OpenStore, body: Body) -> bool:
    """Whether it was kept; a body that is neither kept exactly nor refused fails."""
    try:
        found = stored(reopen, [body])
    except BadInput:
        return False
    assert found == [body]
    return True


@pytest.mark.parametrize("name", STRINGS)
def test_a_hostile_string_in_any_field_is_exact_after_reopening(
    reopen: OpenStore, name: str
) -> None:
    written = list(bodies(STRINGS[name]))
    assert stored(reopen, written) == written


@pytest.mark.parametrize("name", STRINGS)
def test_search_list_and_lookup_survive_a_hostile_string(reopen: OpenStore, name: str) -> None:
    text = STRINGS[name]

    async def use(store: Store) -> None:
        session = await store.create(title=text)
        items = [user(f"needle {text} needle"), *bodies(text)]
        entries = await store.append(session.id, items, parent=None)
        for query in (
            SearchQuery("needle"),
            SearchQuery(text),
            SearchQuery(f'"{text}"'),
            SearchQuery(text + "*"),
        ):
            try:
                hits = await store.search(query)
            except BadInput:
                continue
            for hit in hits:
                hit.snippet.encode()  # what a person is shown can be printed
                assert all(0 <= a < b <= len(hit.snippet) for a, b in hit.marks)
        assert entries[0].id in {hit.entry.id for hit in await store.search(SearchQuery("needle"))}
        for listed in await store.sessions():
            listed.title.encode()
        for narrowed in (SearchQuery("needle", role=text), SearchQuery("needle", tool=text)):
            await store.search(narrowed)
        for lookup in (store.session(text), store.entry(text), store.blob(text)):
            with pytest.raises(RecollectError):
                await lookup
        with pytest.raises(NotFound):
            await store.search(SearchQuery("needle", session=text or "x"))
        with pytest.raises(UnknownSession):
            await store.append(text, [user("x")], parent=None)
        with pytest.raises(UnknownEntry):
            await store.rewind(session.id, text)

    in_opened(reopen, use)


@pytest.mark.parametrize("name", STRINGS)
def test_titles_projects_and_ids_survive_a_hostile_string(reopen: OpenStore, name: str) -> None:
    text = STRINGS[name]
    project = Project(path=f"/{text}", git=text or None, inode="1", names=(text,))

    async def use(store: Store) -> None:
        made = await store.create(project=project, title=text)
        assert [s.id for s in await store.sessions(project=project)] == [made.id]
        assert (await store.session(made.id)).project == project.path
        try:
            renamed = await store.rename(made.id, text)
        except BadInput:
            assert not text.strip() or not any(map(str.isprintable, text))
        else:
            renamed.title.encode()
        with pytest.raises(BadInput):
            await store.create(id=text or "x")
        with pytest.raises(BadInput):
            await store.append(made.id, [Entry(text, None, 0, user("x"))], parent=made.head)
        with pytest.raises(BadInput):
            await store.draft(made.id, model(text), parent=made.head, id=text or "x")
        draft = await store.draft(made.id, model(text), parent=None)
        head = (await store.session(made.id)).head
        done = Entry(draft, None, 1, model(text))
        (entry,) = await store.append(made.id, [done], parent=head)
        assert (await store.path(made.id))[-1] == entry

    in_opened(reopen, use)


def test_ten_megabytes_of_one_character_in_a_field_come_back(reopen: OpenStore) -> None:
    call = ToolCall(id="1", name=LONG, arguments=LONG)
    written: list[Body] = [Message(role="model", model=LONG, parts=(Text(text=LONG), call))]
    assert stored(reopen, written) == written


def test_ten_megabytes_of_one_character_in_three_fields_are_stored_once(tmp_path: Path) -> None:
    call = ToolCall(id="1", name=LONG, arguments=LONG)
    written: list[Body] = [Message(role="model", model=LONG, parts=(Text(text=LONG), call))]
    path = tmp_path / "s.db"
    stored(lambda: open_store(path), written)
    assert path.stat().st_size < 1_000_000


@pytest.mark.long
def test_a_text_of_a_hundred_megabytes_comes_back(reopen: OpenStore) -> None:
    text = "0123456789abcde\u00e9" * 6_250_000
    (found,) = stored(reopen, [user(text)])
    assert found == user(text)


@pytest.mark.parametrize(
    "levels", [1, 50, 100, 200, 300, 330, 400, 490, 600, 900, 990, 5_000, 200_000]
)
@pytest.mark.parametrize("long", [False, True])
def test_deep_json_is_stored_exactly_or_refused(reopen: OpenStore, levels: int, long: bool) -> None:
    inner = '"' + "x" * 5_000 + '"' if long else "1"
    nested = deep(levels, inner=inner)
    call = Message(role="model", parts=(ToolCall(id="1", name="f", arguments=nested),))
    assert exact_or_refused(reopen, call)  # arguments are text, however deep
    kept = exact_or_refused(reopen, Note(text="x", extra=nested))
    exact_or_refused(reopen, UnknownBody(data='{"kind":"new",' + nested[1:]))
    exact_or_refused(
        reopen, Message(role="user", parts=(Unknown(data='{"type":"n",' + nested[1:]),))
    )
    assert kept or levels > 90


_CALL_AS_CONTENT: Any = (ToolCall(id="", name="", arguments=""),)
ODD: list[Body] = [
    Note(text="x", extra='{"text":"y"}'),
    Note(text="x", extra='{"level":"error"}'),
    Note(text="x", extra='{"kind":"message"}'),
    Note(text="x", extra='{"$extra":"y"}'),
    Note(text="x", extra='{"$extra":{"a":1}}'),
    Note(text="x", extra='{"$blob":"' + "0" * 64 + '"}'),
    Note(text="x", extra="[1]"),
    Note(text="x", extra="{"),
    Note(text="x", extra='{"a":NaN}'),
    Note(text="x", extra='{"a":1e999}'),
    Note(text="x", extra='{"a":' + "9" * 5_000 + "}"),
    Note(text="x", extra='{"a":123456789012345678901234567890}'),
    Message(
        role="model", parts=(ToolCall(id="1", name="f", arguments="", extra='{"signature":"s"}'),)
    ),
    Message(role="user", parts=(Text(text="x", extra='{"type":"call"}'),)),
    Message(role="user", parts=(Unknown(data='{"type":"text","text":"x"}'),)),
    Message(role="user", parts=(Unknown(data='{"type":"$unknown","data":"x"}'),)),
    Message(role="user", parts=(Unknown(data='"x"'),)),
    Message(role="user", parts=(Unknown(data="{"),)),
    Message(role="user", parts=(Unknown(data='{"type":7}'),)),
    Message(role="user", parts=(Unknown(data='{"no":"type"}'),)),
    UnknownBody(data='{"kind":"note","text":"x"}'),
    UnknownBody(data='{"kind":"$unknown","data":"x"}'),
    UnknownBody(data='{"kind":"message","role":"robot"}'),
    UnknownBody(data="[]"),
    UnknownBody(data=""),
    Message(role="user", parts=(ToolResult(call_id="", name="", duration=math.nan),)),
    Message(role="user", parts=(ToolResult(call_id="", name="", duration=math.inf),)),
    Message(role="user", parts=(ToolResult(call_id="", name="", duration=5e-324),)),
    Message(role="user", parts=(ToolResult(call_id="", name="", duration=-0.0, time=-(2**63)),)),
    Message(role="model", usage=Usage(input=2**63, output=2**64, total=-(2**63))),
    Message(role="model", usage=Usage(input=2**200)),
    Message(role="user", parts=[Text(text="a list")]),  # type: ignore[arg-type]
    Message(role="user", parts=(Text(text=7),)),  # type: ignore[arg-type]
    Message(role="user", parts=("text",)),  # type: ignore[arg-type]
    Message(role="user", parts=(ToolResult(call_id="", name="", content=_CALL_AS_CONTENT),)),
    Note(text=None),  # type: ignore[arg-type]
    Note(text="x", level="shout"),  # type: ignore[arg-type]
    "a string",  # type: ignore[list-item]
    None,  # type: ignore[list-item]
]


@pytest.mark.parametrize("body", ODD, ids=lambda body: repr(body)[:70])
def test_a_body_that_cannot_be_stored_exactly_is_refused(reopen: OpenStore, body: Body) -> None:
    exact_or_refused(reopen, body)


@pytest.mark.parametrize("role", ["assistant", "USER", "", "tool", None, 7, "user\x00"])
def test_a_wrong_role_is_named_with_its_position(reopen: OpenStore, role: str) -> None:
    with pytest.raises(BadRole, match="Role must be user or model, but got") as raised:
        stored(reopen, [user("fine"), Message(role=role)])  # type: ignore[arg-type]
    assert (raised.value.role, raised.value.position) == (role, 1)


def test_a_refused_item_takes_its_whole_batch_along_and_nothing_else(reopen: OpenStore) -> None:
    async def use(store: Store) -> None:
        session = (await store.create()).id
        (first,) = await store.append(session, [user("first")], parent=None)
        bad: list[list[Body | Entry]] = [
            [user("a"), Message(role="robot")],  # type: ignore[arg-type]
            [user("a"), Entry(first.id, None, 0, user("an id that is taken"))],
            [Entry("0" * 31 + "1", None, 0, user("x")), Entry("0" * 31 + "1", None, 0, user("y"))],
            [user("a"), Entry("0" * 32, None, 2**70, user("a time out of bounds"))],
            [*[user("a")] * 300, Entry(first.id, None, 0, user("in a long batch"))],
        ]
        for items in bad:
            with pytest.raises((BadInput, AlreadyExists)):
                await store.append(session, items, parent=first.id)
        assert [entry.id for entry in await store.tree(session)] == [first.id]
        await store.append(session, [user("on")], parent=first.id)

    in_opened(reopen, use)


def test_unknown_and_ambiguous_ids_are_errors_that_name_the_candidates(reopen: OpenStore) -> None:
    async def use(store: Store) -> None:
        one, two = "ab" * 15 + "01", "ab" * 15 + "02"
        for session in (one, two):
            await store.create(id=session)
        entries = [Entry(entry, None, 0, user("x")) for entry in ("c" * 31 + "1", "c" * 31 + "2")]
        await store.append(one, entries, parent=None)
        with pytest.raises(AmbiguousId) as raised:
            await store.session("abab")
        assert set(raised.value.candidates) == {one, two}
        with pytest.raises(AmbiguousId) as raised:
            await store.entry("ccc")
        assert set(raised.value.candidates) == {entry.id for entry in entries}
        assert (await store.session(one.upper())).id == one
        for wrong in ("d", "", "*", "%", "abab ab", "g" * 32, "ab" * 40, "\x00"):
            with pytest.raises(RecollectError):
                await store.session(wrong)
            with pytest.raises(RecollectError):
                await store.entry(wrong)
            with pytest.raises(RecollectError):
                await store.path(one, at=wrong)
            with pytest.raises(RecollectError):
                await store.path(one, since=wrong)
            with pytest.raises(RecollectError):
                await store.fork(one, at=wrong)
            with pytest.raises(RecollectError):
                await store.rewind(one, wrong)
            with pytest.raises(RecollectError):
                await store.trash(wrong)
        with pytest.raises(AlreadyExists):
            await store.create(id=one)
        with pytest.raises(UnknownEntry):
            await store.rewind(two, entries[0].id)  # another session's entry is not a target
        assert (await store.session(one)).head == entries[-1].id

    in_opened(reopen, use)


def test_a_stored_value_cannot_be_changed_through_what_was_handed_in(reopen: OpenStore) -> None:
    async def use() -> None:
        async with reopen() as store:
            session = (await store.create()).id
            parts = [Text(text="as it was")]
            (entry,) = await store.append(
                session,
                [Message(role="user", parts=parts)],  # type: ignore[arg-type]
                parent=None,
            )
            parts.append(Text(text="slipped in"))
            assert (await store.path(session))[0] == entry

    with contextlib.suppress(BadInput):
        asyncio.run(use())

"""A question and its reply are kept, whatever happens on the way."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from pathlib import Path
from typing import TypeVar

import pytest

from recollect.agent.exchange import ReplyFinished, Session, ask
from recollect.codecs.wire_protocol import Delta, RequestOptions
from recollect.entries import Entry, Message, Note, Request, Text, Usage
from recollect.errors import BadReply, HeadMoved, ProviderBusy
from recollect.models.model_protocol import Retrying
from recollect.store.sqlite import SqliteStore, open_store
from recollect.testing import ScriptedModel, ScriptLine, breaks_after, fails, says, user
from recollect.view.view import View

T = TypeVar("T")
PROMPT = RequestOptions(model="scripted")


def in_store(path: Path, story: Callable[[SqliteStore], Awaitable[T]]) -> T:
    async def opened() -> T:
        async with open_store(path / "s.db") as store:
            return await story(store)

    return asyncio.run(opened())


async def begun(store: SqliteStore) -> Session:
    return Session(store, (await store.create()).id, View.fold())


def texts(entries: tuple[Entry, ...]) -> list[tuple[str, str, str]]:
    """Role or kind, words, and how it ended."""
    found: list[tuple[str, str, str]] = []
    for entry in entries:
        body = entry.body
        if isinstance(body, Message):
            said = "".join(part.text for part in body.parts if isinstance(part, Text))
            found.append((body.role, said, body.finish))
        elif isinstance(body, Note):
            found.append((body.level, body.text, ""))
        elif isinstance(body, Request):
            found.append(("request", body.model, ""))
    return found


async def played(talk: Session, *script: ScriptLine) -> tuple[str, ReplyFinished]:
    shown, last = "", None
    async for event in ask(talk, user("why?"), ScriptedModel(script), PROMPT):
        if isinstance(event, Delta):
            shown += event.text
        elif isinstance(event, Retrying) and event.shown:
            shown = ""
        elif isinstance(event, ReplyFinished):
            last = event
    assert last is not None
    return shown, last


def test_question_request_and_reply_are_in_the_log_in_this_order(tmp_path: Path) -> None:
    async def story(store: SqliteStore) -> None:
        talk = await begun(store)
        shown, done = await played(talk, says("because", usage=Usage(input=3, output=1)))
        assert shown == "because"
        kept = await store.path(talk.session)
        assert texts(kept) == [
            ("user", "why?", ""),
            ("request", "scripted", ""),
            ("model", "because", "stop"),
        ]
        assert kept == done.talk.view.entries
        assert isinstance(kept[1].body, Request)
        assert kept[1].body.head == kept[0].id
        assert kept[1].body.tokens == View.fold(kept[:1]).tokens

    in_store(tmp_path, story)


def test_an_exchange_goes_on_where_the_last_one_ended(tmp_path: Path) -> None:
    async def story(store: SqliteStore) -> None:
        talk = await begun(store)
        _, first = await played(talk, "one")
        _, second = await played(first.talk, "two")
        said = [part for part, *_ in texts(await store.path(talk.session))]
        assert said == ["user", "request", "model"] * 2
        assert len(second.talk.view.messages) == 4

    in_store(tmp_path, story)


def test_a_reply_that_breaks_off_is_kept_as_interrupted_with_the_reason(tmp_path: Path) -> None:
    async def story(store: SqliteStore) -> None:
        talk = await begun(store)
        with pytest.raises(BadReply):
            await played(talk, breaks_after("I was about to"))
        reply, note = texts(await store.path(talk.session))[2:]
        assert reply == ("model", "I was about to", "interrupted")
        assert note[0] == "error"
        assert note[1].startswith("scripted: got a stream that broke off instead of a reply; ")

    in_store(tmp_path, story)


def test_a_model_that_says_nothing_leaves_the_question_and_a_note(tmp_path: Path) -> None:
    async def story(store: SqliteStore) -> None:
        talk = await begun(store)
        with pytest.raises(ProviderBusy):
            await played(talk, fails(ProviderBusy("too many", 429, 3)))
        kinds = [kind for kind, *_ in texts(await store.path(talk.session))]
        assert kinds == ["user", "request", "error"]

    in_store(tmp_path, story)


def test_what_was_void_after_a_retry_is_not_kept(tmp_path: Path) -> None:
    async def story(store: SqliteStore) -> None:
        talk = await begun(store)
        again = Retrying("broken", 0.0, 1, shown=True)
        shown, done = await played(talk, says("half a", again, "the whole"))
        assert shown == "the whole"
        assert texts((await store.path(talk.session))[-1:]) == [("model", "the whole", "stop")]
        assert done.message.finish == "stop"

    in_store(tmp_path, story)


@pytest.mark.parametrize("how", ["cancel", "close"])
def test_whoever_stops_in_the_middle_keeps_what_was_shown(tmp_path: Path, how: str) -> None:
    async def story(store: SqliteStore) -> None:
        talk = await begun(store)
        scripted = ScriptedModel([says("a long reply " * 50)], piece=5)
        heard = asyncio.Event()

        async def listen() -> None:
            async with aclosing(ask(talk, user("why?"), scripted, PROMPT)) as events:
                async for event in events:
                    assert isinstance(event, Delta)
                    heard.set()
                    if how == "close":
                        return
                    await asyncio.sleep(60)

        task = asyncio.create_task(listen())
        await heard.wait()
        if how == "cancel":
            task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        kept = texts(await store.path(talk.session))
        assert kept[2:] == [("model", "a lon", "interrupted")]

    in_store(tmp_path, story)


def test_whoever_stops_listening_after_the_answer_has_it_once(tmp_path: Path) -> None:
    async def story(store: SqliteStore) -> None:
        talk = await begun(store)
        async with aclosing(ask(talk, user("why?"), ScriptedModel(["so"]), PROMPT)) as events:
            async for event in events:
                if isinstance(event, ReplyFinished):
                    break
        assert texts(await store.path(talk.session))[2:] == [("model", "so", "stop")]

    in_store(tmp_path, story)


def test_a_reply_survives_that_somebody_else_wrote_meanwhile(tmp_path: Path) -> None:
    async def story(store: SqliteStore) -> None:
        talk = await begun(store)

        async def both() -> None:
            async for event in ask(talk, user("why?"), ScriptedModel(["because"]), PROMPT):
                if isinstance(event, Delta):
                    head = (await store.session(talk.session)).head
                    await store.append(talk.session, [user("me first")], parent=head)

        with pytest.raises(HeadMoved):
            await both()
        assert texts(await store.path(talk.session))[-1] == ("user", "me first", "")
        everything = [words for _, words, _ in texts(await store.tree(talk.session))]
        assert "because" in everything

    in_store(tmp_path, story)

"""A request and its reply are stored, whatever happens on the way."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from pathlib import Path
from typing import TypeVar

import pytest

from recollect.agent.exchange import ReplyFinished, ReplyStarted, exchange
from recollect.codecs.wire_protocol import Delta, RequestOptions
from recollect.entries import Entry, Message, Note, Request, Text, Usage
from recollect.errors import BadReply, ProviderBusy
from recollect.models.model_protocol import Retrying
from recollect.session import Session
from recollect.store.sqlite import SqliteStore
from recollect.testing import ScriptedModel, ScriptLine, breaks_after, fails, says, user
from recollect.view.view import View
from tests.agent.harness import in_store, new_session

T = TypeVar("T")
OPTIONS = RequestOptions(model="scripted")


def texts(entries: tuple[Entry, ...]) -> list[tuple[str, str, str]]:
    """Role or kind, text, and finish."""
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


async def run_exchange(session: Session, *script: ScriptLine) -> tuple[str, ReplyFinished]:
    shown, last = "", None
    await session.append(user("why?"))
    async for event in exchange(session, ScriptedModel(script), OPTIONS):
        if isinstance(event, Delta):
            shown += event.text
        elif isinstance(event, Retrying) and event.shown:
            shown = ""
        elif isinstance(event, ReplyFinished):
            last = event
    assert last is not None
    return shown, last


def test_prompt_request_and_reply_are_in_the_log_in_this_order(tmp_path: Path) -> None:
    async def story(store: SqliteStore) -> None:
        session = await new_session(store)
        shown, done = await run_exchange(session, says("because", usage=Usage(input=3, output=1)))
        assert shown == "because"
        stored = await store.path(session.id)
        assert texts(stored) == [
            ("user", "why?", ""),
            ("request", "scripted", ""),
            ("model", "because", "stop"),
        ]
        assert stored == done.session.view().entries
        assert isinstance(stored[1].body, Request)
        assert stored[1].body.head == stored[0].id
        assert stored[1].body.tokens == View.fold(stored[:1]).tokens

    in_store(tmp_path, story)


def test_an_exchange_continues_where_the_last_one_ended(tmp_path: Path) -> None:
    async def story(store: SqliteStore) -> None:
        session = await new_session(store)
        _, first = await run_exchange(session, "one")
        _, second = await run_exchange(first.session, "two")
        said = [part for part, *_ in texts(await store.path(session.id))]
        assert said == ["user", "request", "model"] * 2
        assert len(second.session.view().messages) == 4

    in_store(tmp_path, story)


def test_a_reply_that_breaks_off_is_stored_as_interrupted_with_the_reason(tmp_path: Path) -> None:
    async def story(store: SqliteStore) -> None:
        session = await new_session(store)
        with pytest.raises(BadReply):
            await run_exchange(session, breaks_after("I was about to"))
        reply, note = texts(await store.path(session.id))[2:]
        assert reply == ("model", "I was about to", "interrupted")
        assert note[0] == "error"
        assert note[1].startswith("scripted: got a stream that broke off instead of a reply; ")

    in_store(tmp_path, story)


def test_a_failed_request_leaves_the_prompt_and_a_note(tmp_path: Path) -> None:
    async def story(store: SqliteStore) -> None:
        session = await new_session(store)
        with pytest.raises(ProviderBusy):
            await run_exchange(session, fails(ProviderBusy("too many", 429, 3)))
        kinds = [kind for kind, *_ in texts(await store.path(session.id))]
        assert kinds == ["user", "request", "error"]

    in_store(tmp_path, story)


def test_text_before_a_retry_is_not_stored(tmp_path: Path) -> None:
    async def story(store: SqliteStore) -> None:
        session = await new_session(store)
        again = Retrying("broken", 0.0, 1, shown=True)
        shown, done = await run_exchange(session, says("half a", again, "the whole"))
        assert shown == "the whole"
        assert texts((await store.path(session.id))[-1:]) == [("model", "the whole", "stop")]
        assert done.message.finish == "stop"

    in_store(tmp_path, story)


@pytest.mark.parametrize("how", ["cancel", "close"])
def test_a_reply_stopped_in_the_middle_keeps_its_text(tmp_path: Path, how: str) -> None:
    async def story(store: SqliteStore) -> None:
        session = await new_session(store, user("why?"))
        scripted = ScriptedModel([says("a long reply " * 50)], piece=5)
        streaming = asyncio.Event()

        async def listen() -> None:
            async with aclosing(exchange(session, scripted, OPTIONS)) as events:
                async for event in events:
                    if isinstance(event, ReplyStarted):
                        continue
                    assert isinstance(event, Delta)
                    streaming.set()
                    if how == "close":
                        return
                    await asyncio.sleep(60)

        task = asyncio.create_task(listen())
        await streaming.wait()
        if how == "cancel":
            task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        stored = texts(await store.path(session.id))
        assert stored[2:] == [("model", "a lon", "interrupted")]

    in_store(tmp_path, story)


def test_a_reply_is_stored_once_when_the_caller_stops_after_it(tmp_path: Path) -> None:
    async def story(store: SqliteStore) -> None:
        session = await new_session(store, user("why?"))
        async with aclosing(exchange(session, ScriptedModel(["so"]), OPTIONS)) as events:
            async for event in events:
                if isinstance(event, ReplyFinished):
                    break
        assert texts(await store.path(session.id))[2:] == [("model", "so", "stop")]

    in_store(tmp_path, story)


def test_a_reply_survives_when_another_writer_appended_meanwhile(tmp_path: Path) -> None:
    async def story(store: SqliteStore) -> None:
        session = await new_session(store, user("why?"))

        async def both() -> None:
            async for event in exchange(session, ScriptedModel(["because"]), OPTIONS):
                if isinstance(event, Delta):
                    head = (await store.session(session.id)).head
                    await store.append(session.id, [user("me first")], parent=head)

        began = session.id
        await both()
        assert texts(await store.path(began))[-1] == ("user", "me first", "")
        assert session.id != began
        said = texts(await store.path(session.id))
        assert said[0] == ("user", "why?", "")
        assert said[-1] == ("model", "because", "stop")

    in_store(tmp_path, story)

"""A server that is stopped or killed in the middle of a streamed answer: the part that was shown is
in the log, marked as interrupted; readers that come back miss nothing and see nothing twice."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx2
import psycopg
import pytest

from recollect.entries import Message, entry_from_json
from recollect.testing import ProviderLine, faulty
from tests.cli.provider import provider
from tests.cli.runner import Cli
from tests.cli.served import RunningServe, served
from tests.postgres_server import PostgresServer
from tests.reliability.chat_clients import TOKEN, text_of
from tests.server.http.face import SseEvent, ask, new_session, read_events
from tests.server.http.test_entry_streams import following

HALF = "Half of an answer that"  # and then the model says nothing more
SCRIPT: list[ProviderLine] = ["First.", faulty(HALF, close="silence"), "The rest."]


@pytest.fixture(params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest, cli: Cli) -> str:
    if request.param == "sqlite":
        return str(cli.store)
    postgres: PostgresServer = request.getfixturevalue("postgres")
    return postgres.new_url()


@asynccontextmanager
async def client_of(server: RunningServe) -> AsyncIterator[httpx2.AsyncClient]:
    async with httpx2.AsyncClient(
        base_url=f"http://127.0.0.1:{server.http}",
        headers={"authorization": f"Bearer {TOKEN}"},
        timeout=60,
        trust_env=False,
    ) as client:
        yield client


async def _read_to_the_end(
    client: httpx2.AsyncClient, session: str, seen: list[SseEvent], until: str
) -> None:
    """Follow the entries, from the last that was seen, up to the message with this text or the end
    of the connection."""
    if until and until in map(_text, seen):
        return  # a server that stops in order shows it before its streams end
    last, after = (seen[-1].id, "") if seen else ("", "start")
    try:
        async with following(client, session, last, after) as events:
            async for event in events:
                seen.append(event)
                if until and _text(event) == until:
                    return
    except httpx2.TransportError:
        assert not until


def _text(event: SseEvent) -> str:
    body = entry_from_json(event.data["entry"]).body if event.name == "entry" else None
    return text_of(body) if isinstance(body, Message) else ""


async def _cut_answer(server: RunningServe, how: signal.Signals, seen: list[SseEvent]) -> str:
    """Stop the server after it has shown the half of an answer; gives the session."""
    async with client_of(server) as client:
        session = await new_session(client)
        assert (await ask(client, session, "Begin."))[-1].data["result"] == "First."
        reader = asyncio.create_task(_read_to_the_end(client, session, seen, until=""))
        body, shown = {"prompt": "Go on.", "stream": True}, ""
        path = f"/api/sessions/{session}/prompts"
        async with client.stream("POST", path, json=body) as response:
            async for event in read_events(response):
                shown += event.data.get("text", "") if "delta" in event.name else ""
                if shown == HALF:
                    break
            if how == signal.SIGKILL:
                await asyncio.sleep(1.5)  # the promise: all but the last second
            await asyncio.to_thread(server.stop, how)
        await reader
    return session


def _let_leases_end(store: str) -> None:
    """As if half a minute had passed since the server was killed."""
    if store.startswith("postgresql://"):
        with psycopg.connect(store, autocommit=True) as db:
            db.execute("UPDATE writers SET seen = seen - make_interval(secs => 31)")


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL], ids=lambda how: how.name)
def test_an_answer_that_was_cut_is_in_the_log_and_readers_come_back(
    cli: Cli, store: str, how: signal.Signals
) -> None:
    arguments, seen = ("--store", store, "--token", TOKEN), list[SseEvent]()

    async def go_on(server: RunningServe, session: str) -> list[str]:
        async with client_of(server) as client:
            await _read_to_the_end(client, session, seen, until=HALF)
            (half,) = (event for event in seen if _text(event) == HALF)
            cut = entry_from_json(half.data["entry"]).body
            assert isinstance(cut, Message)
            assert cut.finish == "interrupted"
            assert (await ask(client, session, "Go on."))[-1].data["result"] == "The rest."
            await _read_to_the_end(client, session, seen, until="The rest.")
            listed = await client.get(f"/api/sessions/{session}/entries", params={"limit": 200})
            return [one["entry"]["id"] for one in listed.json()["entries"]]

    with provider(cli, "openai", SCRIPT):
        with served(cli, *arguments) as server:
            session = asyncio.run(_cut_answer(server, how, seen))
        _let_leases_end(store)
        with served(cli, *arguments) as server:
            stored = asyncio.run(go_on(server, session))
    assert [event.name for event in seen] == ["entry"] * len(seen)
    assert [event.id for event in seen] == stored[: len(seen)]
    texts = [text for event in seen if (text := _text(event))]
    assert texts[-5:] == ["First.", "Go on.", HALF, "Go on.", "The rest."]

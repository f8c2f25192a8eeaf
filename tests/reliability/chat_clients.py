"""Clients that chat with `recollect serve`, reconnect by themselves, and remember what the server
acknowledged; afterwards the store must have all of it, once and in order.

Each prompt is sent once: a turn whose end a client did not see is repeated with another text. An
answer repeats its prompt, so that it shows which one it belongs to.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, Protocol

import httpx2

from recollect.codecs.wire_protocol import DecodedRequest
from recollect.entries import Entry, Message, Text
from recollect.errors import RecollectError
from recollect.server.nplt import Client
from recollect.server.nplt.nplt_client import ConnectionLost, ServerRefused
from recollect.store.postgres.postgres_store import PostgresStore
from recollect.testing import WireReply, faulty

TOKEN = "chaos" * 8
PATIENCE = 120.0  # seconds for one turn: longer than a server waits for its database
SLOW = 7  # every so many turns an answer takes a second, so that some are under way at any time
_LOST = (ConnectionLost, httpx2.TransportError, OSError)


def text_of(message: Message) -> str:
    return "".join(part.text for part in message.parts if isinstance(part, Text))


def answer_for(prompt: str) -> str:
    return f"The answer to <{prompt}>, as it was asked for."


def echo(request: DecodedRequest) -> WireReply:
    """The provider's line: answers the last prompt."""
    said = [message for message in request.messages if message.role == "user"]
    prompt = text_of(said[-1]).strip().splitlines()[-1]
    is_slow = int(prompt.rsplit(" ", 3)[-3].rstrip(",")) % SLOW == SLOW - 1
    return faulty(answer_for(prompt), pause=0.15 if is_slow else 0.0)


class ServerPorts(Protocol):
    """What `RunningServe` has."""

    @property
    def nplt(self) -> int: ...
    @property
    def http(self) -> int: ...


class Connected(Protocol):
    """A connection in a session."""

    @property
    def session(self) -> str: ...
    async def ask(self, prompt: str) -> str: ...


class _NpltConnection:
    def __init__(self, client: Client) -> None:
        self._client = client

    @property
    def session(self) -> str:
        return self._client.session_id

    async def ask(self, prompt: str) -> str:
        return await self._client.ask(prompt)


@asynccontextmanager
async def over_nplt(server: ServerPorts, session: str) -> AsyncIterator[_NpltConnection]:
    async with await Client.connect("127.0.0.1", server.nplt, token=TOKEN) as client:
        if session:
            await client.switch(session)
        yield _NpltConnection(client)


class _HttpConnection:
    def __init__(self, client: httpx2.AsyncClient, session: str) -> None:
        self._client, self.session = client, session

    async def ask(self, prompt: str) -> str:
        """Send a prompt, and read its events to the result."""
        body = {"prompt": prompt, "stream": True}
        path = f"/api/sessions/{self.session}/prompts"
        async with self._client.stream("POST", path, json=body) as response:
            await _refuse_problem(response)
            async for line in response.aiter_lines():
                if not line.startswith("data: "):
                    continue
                document = json.loads(line.removeprefix("data: "))
                if document.get("type") == "result":
                    return self._take_result(document)
                if "code" in document and "status" in document:
                    raise ServerRefused(document["detail"], document["code"])
        raise ConnectionLost("the events ended without a result")

    def _take_result(self, document: dict[str, Any]) -> str:
        if document["is_error"]:
            raise ServerRefused(str(document["result"]))
        self.session = document["session_id"]
        return str(document["result"])


@asynccontextmanager
async def over_http(server: ServerPorts, session: str) -> AsyncIterator[_HttpConnection]:
    headers = {"authorization": f"Bearer {TOKEN}"}
    url = f"http://127.0.0.1:{server.http}"
    async with httpx2.AsyncClient(
        base_url=url, headers=headers, timeout=PATIENCE, trust_env=False
    ) as client:
        if not session:
            made = await client.post("/api/sessions", json={})
            await _refuse_problem(made)
            session = made.json()["id"]
        yield _HttpConnection(client, session)


async def _refuse_problem(response: httpx2.Response) -> None:
    if response.status_code >= 400:
        await response.aread()
        problem = response.json()
        raise ServerRefused(problem["detail"], problem["code"])


class ChatClient:
    """One user: so many turns in one session, on whichever of the servers answers."""

    def __init__(self, number: int, servers: Sequence[ServerPorts]) -> None:
        self.name, self._servers, self._at = f"client {number}", servers, number % len(servers)
        self._connect = over_http if number % 5 == 4 else over_nplt
        self.session = ""
        self.sent: list[str] = []
        self.acknowledged: list[str] = []  # prompts
        self.times: list[float] = []  # of the acknowledgements
        self.problems: list[str] = []
        self.recoveries: list[float] = []  # seconds from the first problem to the next answer

    async def chat(self, turns: int) -> None:
        since: float | None = None
        while len(self.acknowledged) < turns:
            try:
                async with self._connect(self._servers[self._at], self.session) as connected:
                    while len(self.acknowledged) < turns:
                        await self._turn(connected)
                        if since is not None:
                            self.recoveries.append(time.monotonic() - since)
                            since = None
            except (RecollectError, *_LOST) as error:
                since = time.monotonic() if since is None else since
                self.problems.append(f"{type(error).__name__}: {error}")
                if isinstance(error, ServerRefused):
                    await asyncio.sleep(0.2)
                else:
                    self._at = (self._at + 1) % len(self._servers)
                    await asyncio.sleep(0.05)

    async def _turn(self, connected: Connected) -> None:
        turn = len(self.acknowledged)
        prompt = f"{self.name}, turn {turn}, try {len(self.sent)}"
        self.sent.append(prompt)
        answer = await self._ask(connected, prompt)
        assert answer == answer_for(prompt)
        self.session = connected.session
        self.acknowledged.append(prompt)
        self.times.append(time.monotonic())

    async def _ask(self, connected: Connected, prompt: str) -> str:
        try:
            async with asyncio.timeout(PATIENCE) as deadline:
                return await connected.ask(prompt)
        except TimeoutError:
            assert not deadline.expired(), f"no answer and no error for {prompt!r}"
            raise


async def wait_for_turns(clients: Sequence[ChatClient], turns: int) -> None:
    """Until so many were acknowledged to all of them together."""
    while sum(len(client.acknowledged) for client in clients) < turns:
        await asyncio.sleep(0.02)


async def check_store(store: PostgresStore, clients: Sequence[ChatClient]) -> None:
    """Everything acknowledged is there once and in order, and nothing that nobody said."""
    stored: dict[str, Message] = {}
    for session in await store.sessions():
        for entry in await store.tree(session.id):
            if isinstance(entry.body, Message):
                stored[entry.id] = entry.body
    texts = Counter(map(text_of, stored.values()))
    for client in clients:
        for prompt in client.acknowledged:
            assert texts[prompt] == texts[answer_for(prompt)] == 1, prompt
        for prompt in client.sent:
            assert texts[prompt] <= 1
        _check_path(await store.path(client.session), client)
    assert await store.check() == ()


def _check_path(path: Sequence[Entry], client: ChatClient) -> None:
    """One chain in which each acknowledged prompt is followed by its answer."""
    parent, said = None, list[Message]()
    for entry in path:
        assert entry.parent == parent
        parent = entry.id
        if isinstance(entry.body, Message) and not entry.body.context:
            said.append(entry.body)
    prompts = [text_of(message) for message in said if message.role == "user"]
    assert [one for one in prompts if one in client.acknowledged] == client.acknowledged
    assert set(prompts) <= set(client.sent)
    for message, reply in zip(said, [*said[1:], None], strict=True):
        if message.role == "user" and text_of(message) in client.acknowledged:
            assert reply is not None
            assert (reply.role, text_of(reply)) == ("model", answer_for(text_of(message)))
            assert reply.finish != "interrupted"

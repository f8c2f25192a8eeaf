"""The embedded model itself, nothing faked. One child process serves all of these tests."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import signal
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager, closing, suppress
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from recollect.codecs.wire_protocol import Delta, Generation, RequestOptions
from recollect.entries import Message, Text
from recollect.errors import ApiKeyRefused, ContextOverflow, ModelError
from recollect.models import embedded_model
from recollect.models.embedded_model import (
    EmbeddedModelFailed,
    EmbeddedServer,
    ServerAddress,
    server_address,
)
from recollect.models.embedded_weights import SMALL
from recollect.models.http_model import HttpModel
from recollect.models.model_protocol import ModelEvent, Retrying
from recollect.models.resolve import resolve_model
from recollect.profiles import EMBEDDED_MODEL, find_profile
from recollect.settings import Settings, TransportSettings
from recollect.testing import user

WINDOW = find_profile(EMBEDDED_MODEL).window
SYSTEM = Message(role="system", parts=(Text(text="You are a helpful assistant."),))
# it closes connections after a stream although it announces to keep them
TRANSPORT = TransportSettings(headers={"connection": "close"}, retries=0)


@asynccontextmanager
async def opened(
    locate: Callable[[], Awaitable[tuple[str, str]]] = server_address,
    transport: TransportSettings = TRANSPORT,
) -> AsyncIterator[HttpModel]:
    chosen = resolve_model("embedded/smollm2-135m", Settings())
    async with HttpModel(chosen, transport, locate=locate) as model:
        yield model


def options(**generation: object) -> RequestOptions:
    given = {"max_output": 24, "seed": 1, **generation}
    return RequestOptions(model="smollm2-135m", generation=Generation(**given))  # type: ignore[arg-type]


async def ask(model: HttpModel, text: str, **generation: object) -> list[ModelEvent]:
    messages = [SYSTEM, user(text)]
    return [event async for event in model.stream(messages, options(**generation))]


async def ask_once(text: str, **generation: object) -> list[ModelEvent]:
    async with opened() as model:
        return await ask(model, text, **generation)


def reply_in(events: list[ModelEvent]) -> Message:
    assert isinstance(events[-1], Message)
    return events[-1]


def text_of(message: Message) -> str:
    return "".join(part.text for part in message.parts if isinstance(part, Text))


def get(url: str, key: str = "") -> tuple[int, bytes]:
    parts = urlsplit(url)
    with closing(HTTPConnection(parts.hostname or "", parts.port, timeout=60)) as http:
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        http.request("GET", parts.path, headers={**headers, "Connection": "close"})
        answer = http.getresponse()
        return answer.status, answer.read()


async def busy_slots() -> int:
    address = await server_address()
    where = address.url.removesuffix("/v1") + "/slots"
    slots = json.loads((await asyncio.to_thread(get, where, address.key))[1])
    assert len(slots) == SMALL.slots
    assert all(slot["n_ctx"] == WINDOW for slot in slots)
    return sum(slot["is_processing"] for slot in slots)


def test_it_answers_in_pieces_and_says_what_it_used() -> None:
    events = asyncio.run(ask_once("Write one sentence about the sea."))
    reply = reply_in(events)
    deltas = [event for event in events if isinstance(event, Delta)]
    assert len(deltas) > 3
    assert "".join(delta.text for delta in deltas) == text_of(reply) != ""
    assert reply.model == "smollm2-135m"
    assert reply.finish in ("stop", "length")
    assert reply.usage is not None
    assert 10 < reply.usage.input < 60
    assert 3 < reply.usage.output <= 24


def test_it_stops_where_the_request_says() -> None:
    reply = reply_in(asyncio.run(ask_once("Count from one to a hundred.", max_output=5)))
    assert reply.finish == "length"
    assert reply.usage is not None
    assert reply.usage.output == 5


def test_a_request_beyond_the_window_is_an_overflow_that_names_the_window() -> None:
    with pytest.raises(ContextOverflow) as caught:
        asyncio.run(ask_once("word " * (WINDOW + 500)))
    assert caught.value.limit == WINDOW


def test_a_schema_makes_it_write_a_sound_call() -> None:
    arguments = {
        "type": "object",
        "properties": {"pattern": {"type": "string", "maxLength": 20}},
        "required": ["pattern"],
        "additionalProperties": False,
    }
    schema = {
        "type": "object",
        "properties": {"name": {"const": "grep"}, "arguments": arguments},
        "required": ["name", "arguments"],
        "additionalProperties": False,
    }
    events = asyncio.run(
        ask_once("Search for the word foo.", schema=json.dumps(schema), max_output=200)
    )
    written = json.loads(text_of(reply_in(events)))
    assert written["name"] == "grep"
    assert isinstance(written["arguments"]["pattern"], str)


def test_two_requests_are_answered_side_by_side() -> None:
    async def both() -> tuple[list[str], tuple[list[ModelEvent], ...]]:
        order: list[str] = []

        async def one(model: HttpModel, name: str) -> list[ModelEvent]:
            events = []
            async for event in model.stream([SYSTEM, user(f"A story of {name}.")], options()):
                order.append(name)
                events.append(event)
            return events

        async with opened() as model:
            return order, await asyncio.gather(one(model, "Ann"), one(model, "Bob"))

    order, answers = asyncio.run(both())
    assert all(text_of(reply_in(events)) for events in answers)
    changes = sum(before != after for before, after in itertools.pairwise(order))
    assert changes > 1, "one was answered after the other"


def test_closing_the_stream_stops_the_model() -> None:
    async def stop_early() -> int:
        async with opened() as model:
            long = options(max_output=4_000)
            story = [SYSTEM, user("Tell a very long story.")]
            async with aclosing(model.stream(story, long)) as events:
                await anext(events)
                assert await busy_slots() == 1
            async with asyncio.timeout(60):
                while await busy_slots():
                    await asyncio.sleep(0.1)
            return len(await ask(model, "hi", max_output=3))

    assert asyncio.run(stop_early()) > 1


def test_many_requests_in_a_row_need_no_second_attempt() -> None:
    async def row() -> list[ModelEvent]:
        async with opened() as model:
            return [event for _ in range(8) for event in await ask(model, "hi", max_output=2)]

    events = asyncio.run(row())
    assert sum(isinstance(event, Message) for event in events) == 8
    assert not any(isinstance(event, Retrying) for event in events)


def test_another_key_is_refused() -> None:
    async def with_another_key() -> tuple[str, str]:
        return (await server_address()).url, "not-the-key"

    async def try_it() -> None:
        async with opened(with_another_key) as model:
            await ask(model, "hi")

    with pytest.raises(ApiKeyRefused) as caught:
        asyncio.run(try_it())
    assert caught.value.status == 401


@pytest.mark.parametrize("path", ["/v1/models", "/slots", "/props", "/v1/completions"])
def test_without_the_key_nothing_is_answered(path: str) -> None:
    async def look() -> int:
        address = await server_address()
        status, _ = await asyncio.to_thread(get, address.url.removesuffix("/v1") + path)
        return status

    assert asyncio.run(look()) in (401, 404, 405)


def child_of(address: ServerAddress) -> int:
    """The process that listens there, and all that it listens on."""
    port = int(address.url.rsplit(":", 1)[1].split("/")[0])
    for folder in Path("/proc").glob("[0-9]*"):
        if any(local.endswith(f":{port:04X}") for local in listening(int(folder.name))):
            return int(folder.name)
    raise AssertionError(f"nobody listens on {port}")


def listening(pid: int) -> list[str]:
    """Local addresses, as the kernel writes them, on which this process takes connections."""
    sockets, rows = set(), []
    with suppress(OSError):  # it may end while we look
        for link in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(OSError):
                sockets.add(str(link.readlink()))
        for table in ("tcp", "tcp6"):
            rows += Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]
    fields = [row.split() for row in rows]
    return [row[1] for row in fields if row[3] == "0A" and f"socket:[{row[9]}]" in sockets]


proc = pytest.mark.skipif(not Path("/proc/self/net/tcp").exists(), reason="needs Linux's /proc")


@proc
def test_it_listens_on_loopback_alone() -> None:
    loopback = f"{int.from_bytes(socket.inet_aton('127.0.0.1'), 'little'):08X}"
    found = listening(child_of(asyncio.run(server_address())))
    assert [local.split(":")[0] for local in found] == [loopback]


@proc
def test_the_key_is_in_no_argument_and_no_environment() -> None:
    address = asyncio.run(server_address())
    folder = Path(f"/proc/{child_of(address)}")
    for file in ("cmdline", "environ"):
        assert address.key.encode() not in (folder / file).read_bytes()
    assert address.key not in f"{address!r} {address}"


def test_one_child_serves_every_user_and_event_loop() -> None:
    async def two() -> set[ServerAddress]:
        other = EmbeddedServer()
        found = {await server_address(), await other.address()}
        await other.aclose()
        return found | {await server_address()}

    assert asyncio.run(two()) == asyncio.run(two())
    assert len(asyncio.run(two())) == 1


@proc
def test_a_killed_child_is_an_error_and_the_next_request_gets_another() -> None:
    async def kill_it() -> tuple[ModelError, list[ModelEvent]]:
        async with opened() as model:
            story = [SYSTEM, user("Tell a very long story.")]
            child = child_of(await server_address())
            events = model.stream(story, options(max_output=2_000))
            await anext(events)
            os.kill(child, signal.SIGKILL)
            with pytest.raises(ModelError) as caught:
                async for _ in events:
                    pass
        # a dying child may still accept a connection, so the next request may need a second attempt
        async with opened(transport=TransportSettings(retries=2)) as model:
            return caught.value, await ask(model, "hi", max_output=3)

    error, events = asyncio.run(kill_it())
    assert "the connection broke before the reply was complete" in str(error)
    assert reply_in(events).finish


@proc
def test_with_retries_a_killed_child_costs_only_a_second_attempt() -> None:
    async def kill_it() -> list[ModelEvent]:
        found: list[ModelEvent] = []
        child = child_of(await server_address())
        async with opened(transport=TransportSettings(retries=1)) as model:
            async for event in model.stream([SYSTEM, user("A story.")], options(max_output=40)):
                if not found:
                    os.kill(child, signal.SIGKILL)
                found.append(event)
        return found

    events = asyncio.run(kill_it())
    again = [event for event in events if isinstance(event, Retrying)]
    assert [event.shown for event in again] == [True]
    assert text_of(reply_in(events))


def test_invalid_weights_are_an_error_with_its_reason(tmp_path: Path) -> None:
    path = tmp_path / "no.gguf"
    path.write_bytes(b"these are no weights")

    with pytest.raises(
        EmbeddedModelFailed, match=r"it did not start: it exited with status 1 \(.*init"
    ):
        embedded_model._ServerProcess(SMALL, path)

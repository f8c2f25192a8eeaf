"""Stopping a model or a request at any point: at once, and with nothing left open."""

from __future__ import annotations

import asyncio

import pytest

from recollect.codecs.wire_protocol import Delta, RequestOptions
from recollect.models.http_model import HttpModel
from recollect.settings import TransportSettings
from recollect.testing import user
from tests.models.posting import counting_open, opened, post, run, until
from tests.models.proxy import proxying
from tests.models.server import QUICK, Play, chosen, event, events_of, plays, refused, serving
from tests.models.tls import Certificate


def _noticing(gone: asyncio.Event) -> Play:
    async def wait(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        await reader.read()  # until the other side closes
        gone.set()

    return wait


@pytest.mark.parametrize("by", ["cancelling", "closing"])
def test_stopping_closes_the_connection_at_once(by: str) -> None:
    async def main() -> None:
        gone, first = asyncio.Event(), asyncio.Event()
        async with (
            serving(plays(event("one "), then=_noticing(gone))) as server,
            HttpModel(chosen(server.url), QUICK) as model,
        ):
            stream = model.stream([user("hi")], RequestOptions(model="m"))

            async def read() -> None:
                async for _ in stream:
                    first.set()

            if by == "closing":
                assert await anext(stream) == Delta("text", "one ")
                await stream.aclose()
            else:
                task = asyncio.create_task(read())
                await first.wait()
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
            async with asyncio.timeout(60):
                await gone.wait()

    run(main())


def test_stopping_during_the_delay_before_a_retry_ends_the_delay() -> None:
    async def main() -> None:
        slow = TransportSettings(longest_wait=600.0)
        async with (
            serving(refused("429 No", "wait", "Retry-After: 500")) as server,
            HttpModel(chosen(server.url), slow) as model,
        ):
            waiting = asyncio.Event()

            async def read() -> None:
                async for _ in model.stream([user("hi")], RequestOptions(model="m")):
                    waiting.set()

            task = asyncio.create_task(read())
            async with asyncio.timeout(60):
                await waiting.wait()
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
            assert len(server.asked) == 1

    run(main())


def test_a_model_that_was_stopped_can_be_called_again() -> None:
    async def main() -> None:
        gone = asyncio.Event()
        answers = plays(event("one "), then=_noticing(gone)), plays(event("two", "stop"), end=_END)
        async with serving(*answers) as server, HttpModel(chosen(server.url), QUICK) as model:
            stream = model.stream([user("hi")], RequestOptions(model="m"))
            await anext(stream)
            await stream.aclose()
            assert Delta("text", "two") in await events_of(model)

    run(main())


_END = b"0\r\n\r\n"


@pytest.mark.parametrize("way", ["http", "https", "tunnel", "http2", "silent tls"])
def test_cancelling_at_any_point_closes_the_connection(way: str, trusted: Certificate) -> None:
    """While it connects, agrees on TLS, writes a long request, and waits for a response."""

    async def main() -> None:
        over = {"http": None, "silent tls": None, "http2": trusted.http2}.get(way, trusted.http1)
        async with counting_open(over) as (port, open_now), proxying(port) as proxy:
            settings, url = QUICK, f"http{'' if way == 'http' else 's'}://localhost:{port}"
            if way == "tunnel":
                settings = TransportSettings(proxy=f"http://127.0.0.1:{proxy.port}")
                url = "https://model.invalid"
            for rounds in (*range(0, 60, 3), 200, 1_000):
                async with opened(settings) as client:
                    task = asyncio.create_task(post(client, url, [b"x" * 100_000] * 20))
                    for _ in range(rounds):
                        await asyncio.sleep(0)
                    task.cancel()
                    with pytest.raises(asyncio.CancelledError):
                        await task
                await until(lambda: not open_now)

    run(main())
